//! `tcpwhy check --path`: what a path asks of this host, and what the model makes of today's settings and better ones.

mod facts;
mod foresee;
mod words;

use std::net::IpAddr;
use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;
use tcpwhy::host::snapshot::Snapshot;
use tcpwhy::host::target::{AskedFor, Buffer, Granted, Needs, Open, needs};
use tcpwhy::host::{Asked, Change, Seen};
use tcpwhy::report::Connection;
use tcpwhy::tracker::Config;

use super::CheckFlags;
use crate::cmd::one;
use crate::cmd::signals::stop_on_signals;
use crate::exit::Exit;
use crate::read::Input;
use crate::{complain, output};
use facts::{Facts, From};
use foresee::{Foreseen, foreseen, gained, kernel};

/// Prints the answer, as text or JSON.
pub(super) fn run(flags: &CheckFlags, peer: IpAddr, snapshot: &Snapshot) -> anyhow::Result<Exit> {
    let seen = Seen::new(snapshot).context("the snapshot holds no look at the host")?;
    let captured = match &flags.capture {
        Some(file) => match captured(file, peer)? {
            Ok(connections) => connections,
            Err(exit) => return Ok(exit),
        },
        None => Vec::new(),
    };
    let Some(facts) = Facts::of(flags, peer, &seen, &captured) else {
        let from = if captured.is_empty() { "no" } else { "neither the capture nor an" };
        complain(&format!(
            "say what the path is like, as --rate 1gbit --rtt 20ms, both above 0: {from} open connection to {peer} \
             tells it"
        ));
        return Ok(Exit::Usage);
    };
    let needs = needs(&seen, &facts.target);
    let kernel = kernel(snapshot);
    let foreseen = foreseen(&facts.target, &needs, snapshot, kernel);
    let text = if flags.json {
        json(&facts, &needs, &foreseen, snapshot.netns.as_deref())?
    } else {
        words::text(&facts, &needs, snapshot, &foreseen)
    };
    output::tell(&text, flags.json).context("cannot write the answer")?;
    Ok(Exit::Analysed)
}

/// The connections of a capture that are with the peer; the exit where there are none, which was told then.
fn captured(file: &Path, peer: IpAddr) -> anyhow::Result<Result<Vec<Connection>, Exit>> {
    let stop = stop_on_signals().context("cannot listen for Ctrl-C")?;
    let report = match one::report(&Input::named(file), Config::default(), &stop, &mut complain) {
        Ok(report) => report,
        Err(refused) => return Ok(Err(refused.told())),
    };
    Ok(facts::with_peer(report.connections, peer, file).map_err(|why| {
        complain(&why);
        Exit::Usage
    }))
}

/// The answer as programs read it.
#[derive(Serialize)]
struct Answer<'a> {
    format: &'static str,
    peer: IpAddr,
    rate: u64,
    rate_from: From,
    rtt_ns: u64,
    rtt_from: From,
    bdp_bytes: u64,
    route: Option<&'a str>,
    receive: Option<Room>,
    send: Option<Room>,
    window_scale: Option<u8>,
    /// `None` where sockets were not seen.
    open: Option<Vec<Socket>>,
    changes: Vec<Told>,
    predicted: &'a [Foreseen],
    /// Why nothing is predicted.
    not_predicted: Option<&'a str>,
}

#[derive(Serialize)]
struct Room {
    key: &'static str,
    most: u64,
    carries: u64,
    needed: u64,
}

/// A connection to the peer that is open.
#[derive(Serialize)]
struct Socket {
    port: u16,
    pid: Option<u32>,
    fd: Option<u32>,
    rcvbuf: u32,
    /// What its program asked for with `SO_RCVBUF`, at least.
    rcvbuf_asked: Option<u32>,
    sndbuf: u32,
    sndbuf_asked: Option<u32>,
}

#[derive(Serialize)]
struct Told {
    apply: String,
    undo: Option<String>,
}

fn socket(open: &Open) -> Socket {
    let asked = |granted: &Granted| {
        granted.asked.map(|(AskedFor::Bytes(bytes) | AskedFor::AtLeast(bytes))| bytes)
    };
    Socket {
        port: open.port,
        pid: open.owner.map(|owner| owner.pid),
        fd: open.owner.and_then(|owner| owner.fd),
        rcvbuf: open.receive.bytes,
        rcvbuf_asked: asked(&open.receive),
        sndbuf: open.send.bytes,
        sndbuf_asked: asked(&open.send),
    }
}

fn json(
    facts: &Facts,
    needs: &Needs,
    foreseen: &Result<Vec<Foreseen>, String>,
    netns: Option<&str>,
) -> anyhow::Result<String> {
    let room = |buffer: &Asked<Buffer>| {
        let Buffer { key, most, carries, needed } = *buffer.as_ref().ok()?;
        Some(Room { key, most, carries, needed })
    };
    let told = |change: &Change| {
        let commands = change.commands().within(netns);
        Told { apply: commands.apply, undo: commands.undo }
    };
    let target = &facts.target;
    let predicted = foreseen.as_deref().unwrap_or_default();
    let answer = Answer {
        format: "tcpwhy-check-path/1",
        peer: target.peer,
        rate: target.rate,
        rate_from: facts.rate_from,
        rtt_ns: target.rtt_ns,
        rtt_from: facts.rtt_from,
        bdp_bytes: target.bdp_bytes(),
        route: needs.route.as_ref().ok().and_then(Option::as_ref).map(|taken| &*taken.route.line),
        receive: room(&needs.receive),
        send: room(&needs.send),
        window_scale: needs.scale.as_ref().ok().map(|scale| scale.shift),
        open: needs.open.as_ref().ok().map(|open| open.iter().map(socket).collect()),
        changes: gained(predicted).into_iter().map(told).collect(),
        predicted,
        not_predicted: foreseen.as_ref().err().map(String::as_str),
    };
    serde_json::to_string_pretty(&answer).context("cannot write the answer as JSON")
}
