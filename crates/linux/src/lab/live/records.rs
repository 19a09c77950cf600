//! Records of a run that need work before they can be kept: put together, or cleared of others'.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::setup::Node;
use super::stage::{Stage, Trouble};
use crate::lab::backend::LabError;
use crate::lab::folder;
use crate::record::counters::Counters;

/// Counters of both hosts, before and after.
#[derive(Debug, Default, Serialize)]
pub(super) struct HostCounters {
    client: BeforeAndAfter,
    server: BeforeAndAfter,
}

#[derive(Debug, Default, Serialize)]
struct BeforeAndAfter {
    before: Option<Counters>,
    after: Option<Counters>,
}

impl HostCounters {
    /// Those before the run.
    pub(super) fn begin(stage: &Stage) -> Self {
        let of = |node| BeforeAndAfter { before: read(stage, node), after: None };
        Self { client: of(Node::Client), server: of(Node::Server) }
    }

    /// Adds those after it, and writes them.
    pub(super) fn finish(mut self, stage: &Stage, folder: &Path) -> Result<(), Trouble> {
        self.client.after = read(stage, Node::Client);
        self.server.after = read(stage, Node::Server);
        let path = folder.join(folder::COUNTERS);
        let text = serde_json::to_vec_pretty(&self).map_err(io::Error::from);
        Ok(text
            .and_then(|text| fs::write(&path, text))
            .map_err(|source| LabError::writing(&path, source))?)
    }
}

fn read(stage: &Stage, node: Node) -> Option<Counters> {
    stage.inside(node, Counters::read).ok()?.ok()
}

/// Where the samples of one host's sockets are kept until both are put together.
pub(super) fn tcp_info_of(folder: &Path, node: Node) -> PathBuf {
    folder.join(format!("{}.{}", node.name(), folder::TCP_INFO))
}

/// Puts the samples of both hosts together, in order of time, each with `who` it is of.
pub(super) fn join_tcp_info(folder: &Path) -> Result<(), Trouble> {
    let parts = [Node::Client, Node::Server].map(|node| (node, tcp_info_of(folder, node)));
    let path = folder.join(folder::TCP_INFO);
    let joined = join(&parts, &path);
    joined.map_err(|source| LabError::writing(&path, source))?;
    for (_, part) in parts {
        fs::remove_file(&part).map_err(|source| LabError::writing(&part, source))?;
    }
    Ok(())
}

fn join(parts: &[(Node, PathBuf); 2], path: &Path) -> io::Result<()> {
    #[derive(Deserialize)]
    struct Stamped {
        t: u64,
    }
    let mut out = BufWriter::new(File::create(path)?);
    let open = |(node, part): &(Node, PathBuf)| -> io::Result<_> {
        let lines = BufReader::new(File::open(part)?).lines();
        let name = node.name();
        let lines = lines.map(move |line| -> io::Result<(u64, String)> {
            let line = line?;
            let stamped: Stamped = serde_json::from_str(&line)?;
            let rest = line.trim_start().trim_start_matches('{');
            Ok((stamped.t, format!("{{\"who\":\"{name}\",{rest}")))
        });
        Ok(lines.peekable())
    };
    let (mut one, mut other) = (open(&parts[0])?, open(&parts[1])?);
    loop {
        let earlier = match (one.peek(), other.peek()) {
            (Some(Ok((a, _))), Some(Ok((b, _)))) if a > b => other.next(),
            (None, _) => other.next(),
            _ => one.next(),
        };
        let Some(line) = earlier else { break };
        writeln!(out, "{}", line?.1)?;
    }
    out.flush()
}

/// Takes out of the kernel's records what is of other namespaces: tracepoints see the whole
/// machine, and another lab may use the same ports for its servers.
///
/// `clients` are the ports that our own clients had.
pub(super) fn keep_own_events(folder: &Path, clients: &BTreeSet<u16>) -> Result<(), Trouble> {
    let path = folder.join(folder::KERNEL);
    let all = folder.join(format!("all.{}", folder::KERNEL));
    let kept = || -> io::Result<()> {
        fs::rename(&path, &all)?;
        let mut out = BufWriter::new(File::create(&path)?);
        for line in BufReader::new(File::open(&all)?).lines() {
            let line = line?;
            if is_own(&line, clients) {
                writeln!(out, "{line}")?;
            }
        }
        out.flush()?;
        fs::remove_file(&all)
    };
    Ok(kept().map_err(|source| LabError::writing(&path, source))?)
}

fn is_own(line: &str, clients: &BTreeSet<u16>) -> bool {
    #[derive(Deserialize)]
    struct Ends {
        sport: Option<u16>,
        dport: Option<u16>,
        src: Option<String>,
        dest: Option<String>,
    }
    // What says nothing of ports is kept.
    let Ok(ends) = serde_json::from_str::<Ends>(line) else { return true };
    let port = |end: Option<String>| end?.rsplit_once(':')?.1.parse().ok();
    let ports: Vec<u16> =
        [ends.sport, ends.dport, port(ends.src), port(ends.dest)].into_iter().flatten().collect();
    ports.is_empty() || ports.iter().any(|port| clients.contains(port))
}

/// The ports of our own clients, by the emulator's journal.
pub(super) fn client_ports(folder: &Path) -> io::Result<BTreeSet<u16>> {
    #[derive(Deserialize)]
    struct Packet<'a> {
        way: &'a str,
        from: Option<u16>,
    }
    let mut ports = BTreeSet::new();
    for line in BufReader::new(File::open(folder.join(folder::PACKETS))?).lines() {
        let line = line?;
        let packet: Packet<'_> = serde_json::from_str(&line)?;
        ports.extend(packet.from.filter(|_| packet.way == "up"));
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_put_together_in_order() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let place = folder.path();
        fs::write(tcp_info_of(place, Node::Client), "{\"t\":1,\"a\":1}\n{\"t\":5,\"a\":2}\n")
            .expect("written");
        fs::write(tcp_info_of(place, Node::Server), "{\"t\":3}\n{\"t\":5}\n{\"t\":9}\n")
            .expect("written");
        join_tcp_info(place).expect("joined");
        let text = fs::read_to_string(place.join(folder::TCP_INFO)).expect("read");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                r#"{"who":"client","t":1,"a":1}"#,
                r#"{"who":"server","t":3}"#,
                r#"{"who":"client","t":5,"a":2}"#,
                r#"{"who":"server","t":5}"#,
                r#"{"who":"server","t":9}"#,
            ]
        );
        assert!(!tcp_info_of(place, Node::Client).exists());
    }

    #[test]
    fn events_of_other_labs_are_left_out() {
        let ours = BTreeSet::from([40_000]);
        for (line, own) in [
            (r#"{"event":"tcp_probe","src":"192.0.2.2:8000","dest":"192.0.2.1:40000"}"#, true),
            (r#"{"event":"tcp_probe","src":"192.0.2.2:8000","dest":"192.0.2.1:40001"}"#, false),
            (r#"{"event":"tcp_probe","src":"[2001:db8::1]:40000","dest":"[::]:1"}"#, true),
            (r#"{"event":"tcp_retransmit_skb","sport":8000,"dport":40001}"#, false),
            (r#"{"event":"tcp_retransmit_skb","sport":40000,"dport":8000}"#, true),
            (r#"{"event":"something"}"#, true),
        ] {
            assert_eq!(is_own(line, &ours), own, "{line}");
        }
    }
}
