//! Reads a run's records and sorts them by connection and by end.
//!
//! Events name their socket by its ports: the server's are in the plan. The applications' log names
//! a connection by flow and number and tells its ports where it connects or accepts. A line that
//! cannot be read (the last one of a run that was killed) is counted and left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use crate::error::TruthError;
use crate::line::{Event, Look, Step, port_of};

/// All that is recorded of one connection.
#[derive(Debug, Default)]
pub(crate) struct Talk {
    pub(crate) client_port: u16,
    pub(crate) server_port: u16,
    pub(crate) flow: u64,
    /// Counted as the applications' log does; `None` if that does not tell.
    pub(crate) number: Option<u64>,
    /// First and last event of either end.
    pub(crate) span: Option<(u64, u64)>,
    /// When the client handed down a SYN.
    pub(crate) syns: Vec<u64>,
    /// The client's end, the server's end.
    pub(crate) ends: [End; 2],
}

/// What one end knew and did.
#[derive(Debug, Default)]
pub(crate) struct End {
    pub(crate) observed: Vec<Observed>,
    pub(crate) probes: Vec<Probe>,
    /// The number of its FIN, once handed down.
    pub(crate) fin: Option<u32>,
    /// When TCP handed down a segment with data.
    pub(crate) sends: Vec<u64>,
    /// `ca_state` from then on.
    pub(crate) ca: Vec<(u64, u8)>,
    pub(crate) retransmits: Vec<u64>,
    /// When its application waited in read.
    pub(crate) reads: Vec<(u64, u64, ())>,
    pub(crate) writes: Vec<Write>,
    /// When its application read the end of the stream.
    pub(crate) eof: Option<u64>,
    /// By `TCP_INFO`, before the socket was closed.
    pub(crate) total_retrans: Option<u64>,
    pub(crate) mss: Option<u64>,
    /// By `TCP_INFO`, now and then.
    pub(crate) samples: Vec<Sample>,
    /// When its application had seen that all it wrote was acknowledged.
    pub(crate) drained: Vec<u64>,
    /// When its application ended its writing.
    pub(crate) ended: Option<u64>,
    pub(crate) habits: Habits,
}

/// What a sender does below its windows, as planned: a stock kernel keeps no record of when.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Habits {
    /// TCP itself spaces its segments out (`sk_pacing_status`).
    pub(crate) paces: bool,
    /// A queue of its own host may be long, so that TCP waits for room in it.
    pub(crate) queues: bool,
    /// Data went with the SYN, so that numbers do not count from the first record.
    pub(crate) fast_open: bool,
}

/// `TCP_INFO` at an instant between `t` and [`SAMPLE_LATE_NS`] later.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) t: u64,
    /// Bytes.
    pub(crate) unsent: u64,
    /// Segments.
    pub(crate) unacked: u64,
}

/// Ours: a look at all sockets takes 0.5 ms where the kernel's table is large
/// (`tcpwhy_linux::record::tcp_info`); twice that.
pub(crate) const SAMPLE_LATE_NS: u64 = 1_000_000;

/// A call of write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) bytes: u64,
    pub(crate) blocked: bool,
}

/// `tcp_truth`: the event of an observed kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observed {
    pub(crate) t: u64,
    pub(crate) place: Place,
    pub(crate) why: Why,
    pub(crate) amount: u32,
    pub(crate) una: u32,
    pub(crate) nxt: u32,
    pub(crate) end: u32,
    pub(crate) wnd: u32,
    pub(crate) cwnd: u32,
    pub(crate) ssthresh: u32,
    pub(crate) flight: u32,
    pub(crate) srtt_us: u32,
    pub(crate) ca: u8,
}

/// Where in the kernel an event was recorded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Place {
    /// At the end of `tcp_write_xmit`.
    Xmit,
    /// After an incoming segment.
    Ack,
    /// In a call of write.
    Write,
    /// As a timer fired.
    Timer,
}

/// Why `tcp_write_xmit` stopped, what a write did, which timer fired.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Why {
    Nothing,
    Cwnd,
    Rwnd,
    Nagle,
    Defer,
    Tsq,
    Pacing,
    PushOne,
    Blocked,
    Tlp,
    Rto,
    Probe0,
    Other,
}

/// `tcp_probe`: a stock tracepoint, before an incoming segment is processed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    pub(crate) t: u64,
    pub(crate) una: u32,
    pub(crate) nxt: u32,
    pub(crate) wnd: u32,
    pub(crate) cwnd: u32,
    pub(crate) ssthresh: u32,
    pub(crate) srtt_us: u32,
}

/// The records of a run.
#[derive(Debug, Default)]
pub(crate) struct Records {
    /// In the order of their first event.
    pub(crate) talks: Vec<Talk>,
    /// Lines that could not be read.
    pub(crate) damaged: u64,
}

/// What is used of the plan.
#[derive(serde::Deserialize)]
struct Plan {
    #[serde(default)]
    client: PlanHost,
    #[serde(default)]
    server: PlanHost,
    flows: Vec<PlanFlow>,
}

#[derive(Default, serde::Deserialize)]
struct PlanHost {
    egress: Option<serde_json::Value>,
}

#[derive(serde::Deserialize)]
struct PlanFlow {
    port: u16,
    #[serde(default)]
    client_socket: PlanSocket,
    #[serde(default)]
    server_socket: PlanSocket,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct PlanSocket {
    max_pacing: Option<u64>,
    fast_open: bool,
}

/// Names in a run's folder, as `tcpwhy_linux::lab::folder` has them.
const PLAN: &str = "plan.json";
const KERNEL: &str = "kernel.jsonl";
const APPLICATIONS: &str = "applications.jsonl";
const TCP_INFO: &str = "tcp_info.jsonl";

impl Records {
    /// Reads those of a run's folder; with `stock` without what only an observed kernel records.
    pub(crate) fn read(folder: &Path, stock: bool) -> Result<Self, TruthError> {
        let path = folder.join(PLAN);
        let plan = std::fs::read(&path).map_err(|source| TruthError::file(&path, source))?;
        let plan: Plan =
            serde_json::from_slice(&plan).map_err(|error| TruthError::file(&path, error.into()))?;
        let ports = plan.flows.iter().map(|flow| flow.port).collect();
        let mut reading = Reading { ports, stock, ..Reading::default() };
        each_line(&folder.join(KERNEL), |line| reading.event(line))?;
        each_line(&folder.join(APPLICATIONS), |line| reading.step(line))?;
        each_line(&folder.join(TCP_INFO), |line| reading.sample(line))?;
        reading.plan(&plan);
        Ok(reading.finish())
    }
}

#[derive(Default)]
struct Reading {
    ports: BTreeSet<u16>,
    stock: bool,
    /// By the client's and the server's port.
    talks: BTreeMap<(u16, u16), Talk>,
    /// Of each application's connection.
    names: BTreeMap<(u64, u64), (u16, u16)>,
    damaged: u64,
}

impl Reading {
    fn event(&mut self, line: &[u8]) {
        let Ok(event) = serde_json::from_slice::<Event<'_>>(line) else {
            self.damaged += 1;
            return;
        };
        if self.stock && OBSERVED.contains(&event.name.as_ref()) {
            return;
        }
        let Some((own, other)) = event.ports() else { return };
        let (side, key) = match (self.ports.contains(&own), self.ports.contains(&other)) {
            (true, _) => (1, (other, own)),
            (false, true) => (0, (own, other)),
            (false, false) => return,
        };
        let talk = self.talks.entry(key).or_default();
        let (first, last) = talk.span.unwrap_or((event.t, event.t));
        talk.span = Some((first.min(event.t), last.max(event.t)));
        take(talk, side, &event);
    }

    fn step(&mut self, line: &[u8]) {
        let Ok(step) = serde_json::from_slice::<Step<'_>>(line) else {
            self.damaged += 1;
            return;
        };
        let side = usize::from(step.who != "client");
        let name = (step.flow, step.connection);
        if let Some(socket) = &step.socket {
            let of = |address: &Option<_>| address.as_deref().and_then(port_of);
            if let (Some(local), Some(peer)) = (of(&socket.local), of(&socket.peer)) {
                let key = if side == 0 { (local, peer) } else { (peer, local) };
                self.names.insert(name, key);
            }
        }
        let Some(key) = self.names.get(&name) else { return };
        let talk = self.talks.entry(*key).or_default();
        (talk.flow, talk.number) = (step.flow, Some(step.connection));
        take_step(&mut talk.ends[side], &step);
    }

    fn sample(&mut self, line: &[u8]) {
        let Ok(look) = serde_json::from_slice::<Look<'_>>(line) else {
            self.damaged += 1;
            return;
        };
        let ports = port_of(&look.local).zip(port_of(&look.peer));
        let Some((own, other)) = ports.filter(|ports| ports.1 != 0) else { return };
        let side = usize::from(self.ports.contains(&own));
        let key = if side == 0 { (own, other) } else { (other, own) };
        let Some(talk) = self.talks.get_mut(&key) else { return };
        let end = &mut talk.ends[side];
        end.mss = look.info.snd_mss.filter(|mss| *mss > 0).or(end.mss);
        if let (Some(unsent), Some(unacked)) = (look.info.notsent_bytes, look.info.unacked) {
            end.samples.push(Sample { t: look.t, unsent, unacked });
        }
    }

    /// What the plan says of each end's habits.
    fn plan(&mut self, plan: &Plan) {
        for (ports, talk) in &mut self.talks {
            let Some(flow) = plan.flows.iter().find(|flow| flow.port == ports.1) else { continue };
            let hosts = [&plan.client, &plan.server];
            let sockets = [&flow.client_socket, &flow.server_socket];
            for ((end, host), socket) in talk.ends.iter_mut().zip(hosts).zip(sockets) {
                end.habits.queues = host.egress.is_some();
                end.habits.paces |= socket.max_pacing.is_some();
                end.habits.fast_open = flow.client_socket.fast_open;
            }
        }
    }

    fn finish(self) -> Records {
        let mut talks: Vec<_> = self
            .talks
            .into_iter()
            .map(|((client_port, server_port), talk)| Talk { client_port, server_port, ..talk })
            .filter(|talk| talk.span.is_some())
            .collect();
        for end in talks.iter_mut().flat_map(|talk| &mut talk.ends) {
            end.sends.sort_unstable();
            end.reads.sort_unstable();
            end.writes.sort_by_key(|write| write.from);
            end.samples.sort_by_key(|sample| sample.t);
            end.observed.sort_by_key(|record| record.t);
            end.probes.sort_by_key(|record| record.t);
            end.ca.sort_by_key(|change| change.0);
            end.retransmits.sort_unstable();
        }
        talks.sort_by_key(|talk| (talk.span, talk.client_port));
        Records { talks, damaged: self.damaged }
    }
}

fn take(talk: &mut Talk, side: usize, event: &Event<'_>) {
    let number = |field: Option<crate::line::Number>| field.map_or(0, |number| number.0);
    let end = &mut talk.ends[side];
    match event.name.as_ref() {
        "tcp_truth" => {
            end.mss = event.mss.map(|mss| mss.0).or(end.mss);
            end.observed.extend(observed(event));
        }
        "tcp_probe" => end.probes.push(Probe {
            t: event.t,
            una: number(event.una) as u32,
            nxt: number(event.nxt) as u32,
            wnd: number(event.wnd) as u32,
            cwnd: number(event.cwnd) as u32,
            ssthresh: number(event.ssthresh) as u32,
            srtt_us: number(event.srtt) as u32,
        }),
        "tcp_segment" => {
            if number(event.flags) & FIN != 0 {
                end.fin = Some((number(event.end_seq) as u32).wrapping_sub(1));
            }
            if number(event.seq) != number(event.end_seq) && number(event.flags) & SYN == 0 {
                end.sends.push(event.t);
            } else if side == 0 && number(event.flags) & SYN != 0 {
                talk.syns.push(event.t);
            }
        }
        "tcp_retransmit_skb" => end.retransmits.push(event.t),
        "tcp_cong_state_set" => {
            end.ca.push((event.t, number(event.cong_state.or(event.ca)) as u8));
        }
        _ => {}
    }
}

fn take_step(end: &mut End, step: &Step<'_>) {
    if let Some(socket) = &step.socket {
        end.mss = end.mss.or(socket.mss);
        // BBR asks for pacing itself (Linux v6.12 `net/ipv4/tcp_bbr.c`, `bbr_init`).
        end.habits.paces |= socket.congestion.as_ref().is_some_and(|name| name.starts_with("bbr"));
    }
    match step.what.as_ref() {
        "read" => {
            end.reads.push((step.from, step.to, ()));
            if step.bytes == Some(0) {
                end.eof = Some(step.to);
            }
        }
        "end_writing" => end.ended = Some(step.from),
        "drain" => end.drained.push(step.to),
        "write" => end.writes.push(Write {
            from: step.from,
            to: step.to,
            bytes: step.bytes.unwrap_or(0),
            blocked: step.sleeps.map_or(step.unsent == Some(0), |sleeps| sleeps > 0),
        }),
        _ => {}
    }
    let info = step.tcp_info.as_ref().and_then(|info| info.total_retrans);
    end.total_retrans = info.or(end.total_retrans);
}

fn observed(event: &Event<'_>) -> Option<Observed> {
    let number = |field: Option<crate::line::Number>| field.map(|number| number.0 as u32);
    Some(Observed {
        t: event.t,
        place: match event.place.as_deref()? {
            "xmit" => Place::Xmit,
            "ack" => Place::Ack,
            "write" => Place::Write,
            "timer" => Place::Timer,
            _ => return None,
        },
        why: match event.why.as_deref()? {
            "nothing" | "empty" => Why::Nothing,
            "cwnd" | "defer_cwnd" => Why::Cwnd,
            "rwnd" | "defer_rwnd" => Why::Rwnd,
            "nagle" => Why::Nagle,
            "defer" => Why::Defer,
            "tsq" => Why::Tsq,
            "pacing" => Why::Pacing,
            "push_one" => Why::PushOne,
            "blocked" => Why::Blocked,
            "tlp" => Why::Tlp,
            "rto" => Why::Rto,
            "probe0" => Why::Probe0,
            _ => Why::Other,
        },
        amount: number(event.amount).unwrap_or(0),
        una: number(event.una)?,
        nxt: number(event.nxt)?,
        end: number(event.end)?,
        wnd: number(event.wnd)?,
        cwnd: number(event.cwnd)?,
        ssthresh: number(event.ssthresh)?,
        flight: number(event.flight).unwrap_or(0),
        srtt_us: number(event.srtt).unwrap_or(0),
        ca: number(event.ca).unwrap_or(0) as u8,
    })
}

/// Hands each line of a file on; a file that is not there has none.
fn each_line(path: &Path, mut take: impl FnMut(&[u8])) -> Result<(), TruthError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(TruthError::file(path, error)),
    };
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = (&mut reader).take(LONGEST_LINE).read_until(b'\n', &mut line);
        match read {
            Ok(0) => return Ok(()),
            Ok(_) if line.trim_ascii().is_empty() => {}
            Ok(_) => take(line.trim_ascii_end()),
            Err(error) => return Err(TruthError::file(path, error)),
        }
    }
}

/// Events about connections that only an observed kernel has (`scripts/kernel/edits.py`).
const OBSERVED: [&str; 2] = ["tcp_truth", "tcp_segment"];

/// Bits of a segment's flags (RFC 9293 section 3.1).
const FIN: u64 = 0x01;
const SYN: u64 = 0x02;

/// Ours: hundred times the longest line there is.
const LONGEST_LINE: u64 = 1 << 17;
