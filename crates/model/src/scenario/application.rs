//! `[application]`: from the words a user would type to the steps of both ends.

use super::error::{self, Place, ScenarioError};
use super::host;
use super::keys::APPLICATION;
use super::plan::{Accept, Flow, Step};
use super::section::Section;
use super::steps;
use super::tree::{Node, VERBS};
use super::units::Quantity;

/// Reads one application; `sockets` are the options of client and server as their hosts have them.
pub(super) fn read(
    path: &str,
    node: &Node,
    number: u16,
    sockets: [Option<&Node>; 2],
) -> Result<Flow, ScenarioError> {
    let section = Section::open(path, APPLICATION, Some(node))?;
    let (client, server) = steps_of(&section, verb(&section)?)?;
    let socket = |host: &str, own: Option<&Node>, key: &str| {
        host::socket(&[(format!("{host}.socket"), own), (section.name(key), section.node(key))])
    };
    Ok(Flow {
        start_ns: section.figure("start")?,
        port: section.number("port")?.map_or(FIRST_PORT + number, |port| port as u16),
        connections: section.figure("connections")? as u32,
        gap_ns: section.figure("gap")?,
        together: section.switch("together")?,
        may_fail: section.switch("may_fail")?,
        flood: section.number("flood")?.unwrap_or(0) as u32,
        accept: accept(&section)?,
        client,
        server,
        client_socket: socket("client", sockets[0], "client_socket")?,
        server_socket: socket("server", sockets[1], "server_socket")?,
    })
}

/// When the server takes its connections.
fn accept(section: &Section<'_>) -> Result<Accept, ScenarioError> {
    let Some((place, said)) = section.text("accept")? else { return Ok(Accept::AtOnce) };
    match (&*said, Quantity::Time.read(&said)) {
        ("never", _) => Ok(Accept::Never),
        (_, Ok(0)) => Ok(Accept::AtOnce),
        (_, Ok(ns)) if ns <= HOUR_NS => Ok(Accept::After(ns)),
        _ => {
            let said = error::shown(&said);
            let what = format!("`{said}` is no time up to 1h, and not \"never\"");
            Err(ScenarioError::new(place, what))
        }
    }
}

/// What the application does: just one thing.
fn verb(section: &Section<'_>) -> Result<&'static str, ScenarioError> {
    let said: Vec<_> = VERBS.into_iter().filter(|verb| section.has(verb)).collect();
    let verb = match *said.as_slice() {
        [verb] if verb != "client" && verb != "server" => verb,
        ["client", "server"] => "client",
        [] => {
            let what = format!(
                "`{}` does nothing: write one of download, post, exchange, send, or the steps of \
                 client and server",
                section.path
            );
            return Err(ScenarioError::new(&section.place, what));
        }
        ["client" | "server"] => {
            let what = "steps are written for both ends, `client` and `server`";
            return Err(ScenarioError::new(section.place(said[0]), what));
        }
        _ => {
            let what = format!("`{}` does more than one thing: {}", section.path, said.join(", "));
            return Err(ScenarioError::new(section.place(said[1]), what));
        }
    };
    let idle = unused(verb).iter().find(|key| section.has(key));
    match idle {
        None => Ok(verb),
        Some(key) => {
            let verb = if verb == "client" { "a list of steps" } else { verb };
            let what = format!("`{}` means nothing to {verb}", section.name(key));
            Err(ScenarioError::new(section.place(key), what))
        }
    }
}

/// Keys that change nothing beside this one.
fn unused(verb: &str) -> &'static [&'static str] {
    match verb {
        "exchange" => &["head"],
        "send" => &["request", "head"],
        "client" => &[
            "times",
            "idle",
            "think",
            "request",
            "head",
            "write",
            "pause",
            "read",
            "read_pause",
            "stall",
            "stall_after",
        ],
        _ => &[],
    }
}

fn steps_of(section: &Section<'_>, verb: &str) -> Result<(Vec<Step>, Vec<Step>), ScenarioError> {
    if verb == "client" {
        return Ok((steps::read(section, "client")?, steps::read(section, "server")?));
    }
    let data = Data::read(section, section.figure(verb)?)?;
    let (request, head) = (section.figure("request")?, section.figure("head")?);
    let think = sleep(section.figure("think")?);
    let talk = |first: bool| -> [Vec<Step>; 2] {
        let read = data.read_steps(first);
        match verb {
            "download" => [
                [vec![Step::WriteHead(request), Step::ReadHead], read].concat(),
                [vec![Step::ReadHead], think.clone(), vec![Step::WriteHead(head), data.write()]]
                    .concat(),
            ],
            "post" => [
                vec![Step::WriteHead(request), data.write(), Step::ReadHead],
                [vec![Step::ReadHead], read, think.clone(), vec![Step::WriteHead(head)]].concat(),
            ],
            "exchange" => [
                [vec![whole_write(request)], read].concat(),
                [vec![whole_read(request)], think.clone(), vec![data.write()]].concat(),
            ],
            _ => [read, [think.clone(), vec![data.write()]].concat()],
        }
    };
    let times = section.figure("times")? as u32;
    let [mut client, mut server] = talk(true);
    if times > 1 {
        let [again_client, again_server] = talk(false);
        let idle = sleep(section.figure("idle")?);
        let repeat = |steps| Step::Repeat { times: times - 1, steps };
        // Who speaks first is who pauses.
        let [idle_client, idle_server] =
            if verb == "send" { [Vec::new(), idle] } else { [idle, Vec::new()] };
        client.push(repeat([idle_client, again_client].concat()));
        server.push(repeat([idle_server, again_server].concat()));
    } else if section.has("idle") {
        let what =
            format!("`{}` needs `times`: there is nothing to wait between", section.name("idle"));
        return Err(ScenarioError::new(section.place("idle"), what));
    }
    // Who sent the data ends the connection first, as HTTP/1.0 servers and uploading clients do, but
    // only when all has arrived: a kernel's tracepoints fall silent with its FIN.
    let to_end = Step::ReadToEnd { chunk: data.chunk_read, pause_ns: 0 };
    let ends_first = if matches!(verb, "download" | "send") { &mut server } else { &mut client };
    ends_first.extend([Step::Drain, Step::EndWriting]);
    client.push(to_end.clone());
    server.push(to_end);
    Ok((client, server))
}

fn sleep(ns: u64) -> Vec<Step> {
    if ns == 0 { Vec::new() } else { vec![Step::Sleep(ns)] }
}

const fn whole_write(bytes: u64) -> Step {
    Step::Write { bytes, chunk: bytes, pause_ns: 0 }
}

const fn whole_read(bytes: u64) -> Step {
    Step::Read { bytes, chunk: bytes, pause_ns: 0 }
}

/// How the data is written and read.
struct Data {
    bytes: u64,
    chunk_write: u64,
    pause_write_ns: u64,
    chunk_read: u64,
    pause_read_ns: u64,
    stall_ns: u64,
    stall_after: u64,
}

impl Data {
    fn read(section: &Section<'_>, bytes: u64) -> Result<Self, ScenarioError> {
        let data = Self {
            bytes,
            chunk_write: section.figure("write")?,
            pause_write_ns: section.figure("pause")?,
            chunk_read: section.figure("read")?,
            pause_read_ns: section.figure("read_pause")?,
            stall_ns: section.figure("stall")?,
            stall_after: section.figure("stall_after")?,
        };
        if data.stall_after > 0 && data.stall_ns == 0 {
            let place: &Place = section.place("stall_after");
            return Err(ScenarioError::new(
                place,
                "`stall_after` needs `stall`, as `stall = \"3s\"`",
            ));
        }
        if data.stall_after >= bytes && data.stall_ns > 0 {
            let what = format!("`stall_after` is past the data, which has {bytes} bytes");
            return Err(ScenarioError::new(section.place("stall_after"), what));
        }
        Ok(data)
    }

    fn write(&self) -> Step {
        Step::Write { bytes: self.bytes, chunk: self.chunk_write, pause_ns: self.pause_write_ns }
    }

    fn read_steps(&self, may_stall: bool) -> Vec<Step> {
        let read =
            |bytes| Step::Read { bytes, chunk: self.chunk_read, pause_ns: self.pause_read_ns };
        match (may_stall && self.stall_ns > 0, self.stall_after) {
            (false, _) => vec![read(self.bytes)],
            (true, 0) => vec![Step::Sleep(self.stall_ns), read(self.bytes)],
            (true, after) => {
                vec![read(after), Step::Sleep(self.stall_ns), read(self.bytes - after)]
            }
        }
    }
}

/// The longest time of an application.
const HOUR_NS: u64 = 3_600_000_000_000;

/// Ours: above the ports that need rights.
const FIRST_PORT: u16 = 8000;
