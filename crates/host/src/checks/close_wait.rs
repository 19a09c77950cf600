//! Peers have closed their connections, and this side has not.
//!
//! # What it says
//! In `CLOSE_WAIT` the peer has sent its FIN and the program here still holds the socket: it stays until the
//! program closes it. No setting ends it.
//!
//! # How we know
//! There are at least a hundred in one process, or ten that have been silent for a minute or grow between the looks.
//! Why is told apart:
//! - no descriptor holds them: the program never accepted them, and their clients gave up in the accept queue;
//! - the process waits for a disk (state `D` in every look), or the host is held up (pressure, stolen processor time) and none
//!   is older than a minute: it may close them when it can;
//! - those of the first look are all still there and there are more: a `close` was forgotten;
//! - a tenth or more went between the looks: handlers do close, but later than their peers gave up;
//! - else it stays open: another look, later, would tell.
//!
//! # What it is not
//! Not a fault of the network or the kernel. A pool that keeps connections which its server has closed looks
//! like a forgotten close until it uses them again.
//!
//! # What to do
//! Forgotten: close the socket when a read returns 0, on error paths too. Slow: make the peer's timeout longer than
//! the handler's, or the handler faster. Never accepted: see `ACCEPT_QUEUE`; a shorter backlog refuses sooner.
//!
//! # Sources
//! RFC 9293 section 3.6; Linux `tcp_fin` (v6.12), `inet_csk_accept`. A hundred, ten, a tenth and a minute: ours, not measured.

use core::cmp::Reverse;
use core::fmt::Write as _;
use core::net::SocketAddr;
use std::collections::{BTreeMap, BTreeSet};

use super::{Check, host_stalls, words};
use crate::finding::{Confidence, Evidence, Finding, Fix, Group, Scope, Severity};
use crate::seen::{Asked, Seen};
use crate::snapshot::{Look, Owner, Socket, State};

pub(super) const CHECK: Check =
    Check { code: "CLOSE_WAIT", file: include_str!("close_wait.rs"), group: Group::Closing, judge };

const MANY: usize = 100;
const SOME: usize = 10;
const LONG_NS: u64 = 60_000_000_000;
/// One of this many went between the looks.
const TURNOVER: usize = 10;

/// Who holds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Holder {
    /// No descriptor: they wait in the accept queue of a port.
    Queue(u16),
    /// A process.
    Process(u32),
    /// A descriptor, and whose was not seen.
    Unseen,
}

/// Why they are still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    NeverAccepted,
    StalledProcess,
    StalledHost,
    Forgotten,
    Slow,
    Unknown,
}

#[derive(Clone, Debug, Default)]
struct Held {
    count: usize,
    owner: Option<Owner>,
    came: usize,
    stayed: usize,
    went: usize,
    /// Longest silence of the peer.
    silent_ns: Option<u64>,
    /// With data that nobody has read.
    unread: usize,
}

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    seen.sockets()?;
    let stalls = host_stalls::stalls(seen);
    let mut found: Vec<(usize, Finding)> = held(seen)
        .iter()
        .filter(|(holder, held)| is_odd(**holder, held))
        .map(|(holder, held)| {
            let cause = cause(seen, *holder, held, !stalls.is_empty());
            (held.count, finding(seen, *holder, held, cause, &stalls))
        })
        .collect();
    found.sort_by_key(|(count, _)| Reverse(*count));
    found.truncate(words::WORST);
    Ok(found.into_iter().map(|(_, finding)| finding).collect())
}

fn is_odd(holder: Holder, held: &Held) -> bool {
    let is_old = held.silent_ns.is_some_and(|silent| silent > LONG_NS);
    let grows = held.came > 0 && held.stayed > 0 && held.went == 0;
    held.count >= MANY
        || (held.count >= SOME && (is_old || grows || matches!(holder, Holder::Queue(_))))
}

fn held(seen: &Seen<'_>) -> BTreeMap<Holder, Held> {
    let mut all: BTreeMap<Holder, Held> = BTreeMap::new();
    let before: BTreeSet<_> = seen.before.into_iter().flat_map(closed_by_peer).map(key).collect();
    let mut now = BTreeSet::new();
    for socket in closed_by_peer(seen.now) {
        let held = all.entry(holder(socket)).or_default();
        held.count += 1;
        held.owner = held.owner.or(socket.owner);
        // The FIN itself is one byte of the queue that `SIOCINQ` does not count, `idiag_rqueue` does.
        held.unread += usize::from(socket.receive_queue > 1);
        let silent = socket.info.as_ref().and_then(|info| info.last_ack_recv_ns);
        held.silent_ns = held.silent_ns.max(silent);
        if seen.before.is_some() {
            *if before.contains(&key(socket)) { &mut held.stayed } else { &mut held.came } += 1;
            now.insert(key(socket));
        }
    }
    for socket in seen.before.into_iter().flat_map(closed_by_peer) {
        if let Some(held) = all.get_mut(&holder(socket)) {
            held.went += usize::from(!now.contains(&key(socket)));
        }
    }
    all
}

fn closed_by_peer(look: &Look) -> impl Iterator<Item = &Socket> {
    look.sockets.iter().flatten().filter(|socket| socket.state == State::CloseWait)
}

const fn key(socket: &Socket) -> (SocketAddr, SocketAddr) {
    (socket.local, socket.remote)
}

fn holder(socket: &Socket) -> Holder {
    match socket.owner {
        Some(owner) => Holder::Process(owner.pid),
        None if socket.is_orphan() == Some(true) => Holder::Queue(socket.local.port()),
        None => Holder::Unseen,
    }
}

fn cause(seen: &Seen<'_>, holder: Holder, held: &Held, host_stands: bool) -> Cause {
    let pid = match holder {
        Holder::Queue(_) => return Cause::NeverAccepted,
        Holder::Process(pid) => Some(pid),
        Holder::Unseen => None,
    };
    // Pressure is that of ten seconds: it explains none that are older than a minute.
    let are_old = held.silent_ns.is_some_and(|silent| silent > LONG_NS);
    if pid.is_some_and(|pid| {
        waits_for_disk(seen.now, pid) && seen.before.is_none_or(|look| waits_for_disk(look, pid))
    }) {
        Cause::StalledProcess
    } else if held.went > 0 {
        // Few of many: one that goes by chance is no sign that the others will.
        if held.went * TURNOVER >= held.count { Cause::Slow } else { Cause::Unknown }
    } else if host_stands && !are_old {
        Cause::StalledHost
    } else if held.came > 0 && held.stayed > 0 {
        Cause::Forgotten
    } else {
        Cause::Unknown
    }
}

fn waits_for_disk(look: &Look, pid: u32) -> bool {
    let process = look.processes.as_ref().and_then(|all| all.get(&pid));
    process.is_some_and(|process| process.state == Some('D'))
}

fn finding(
    seen: &Seen<'_>,
    holder: Holder,
    held: &Held,
    cause: Cause,
    stalls: &[(String, Evidence)],
) -> Finding {
    let who = match holder {
        Holder::Queue(port) => accepter(seen, port),
        Holder::Process(_) => words::program(seen, held.owner),
        Holder::Unseen => "a program that was not seen".to_owned(),
    };
    let connections = words::count(held.count as u64, "connection");
    let title = match cause {
        Cause::NeverAccepted => {
            format!("the clients of {connections} gave up before {who} accepted them")
        }
        Cause::StalledProcess => {
            format!("{who} waits for a disk while the peers of {connections} have closed")
        }
        Cause::Slow => format!("{who} closes later than its peers: {connections} in CLOSE_WAIT"),
        Cause::Forgotten => format!(
            "{who} does not close what its peers closed: {connections} in CLOSE_WAIT, and more come"
        ),
        Cause::StalledHost | Cause::Unknown => format!("{who} has {connections} in CLOSE_WAIT"),
    };
    let command = match holder {
        Holder::Queue(port) => format!("ss -tnie state close-wait 'sport = :{port}'"),
        Holder::Process(_) | Holder::Unseen => "ss -tnipe state close-wait".to_owned(),
    };
    let mut evidence = vec![Evidence::new(command, tally(seen, held))];
    if cause == Cause::StalledHost {
        evidence.extend(stalls.iter().map(|(_, evidence)| evidence.clone()));
    }
    Finding {
        severity: Severity::Warning,
        confidence: sure(cause, held),
        scope: match holder {
            Holder::Process(_) => Scope::Process(who.clone()),
            Holder::Queue(_) | Holder::Unseen => Scope::Netns,
        },
        title,
        why: why(cause, stalls),
        not: not(cause).to_owned(),
        evidence,
        fixes: vec![fix(cause, &who)],
        unseen: seen.before.is_none().then(|| "a second look".to_owned()).into_iter().collect(),
        ..Finding::default()
    }
}

/// Who should have accepted them.
fn accepter(seen: &Seen<'_>, port: u16) -> String {
    let mut listeners = seen.listeners().unwrap_or_default().iter();
    let owner = listeners.find_map(|each| each.owner.filter(|_| each.local.port() == port));
    match owner {
        Some(_) => format!("{} on port {port}", words::program(seen, owner)),
        None => format!("the listener on port {port}"),
    }
}

fn tally(seen: &Seen<'_>, held: &Held) -> String {
    let mut out = format!("{}", held.count);
    if seen.before.is_some() {
        let _ = write!(out, ": {} came between the looks, {} went", held.came, held.went);
    }
    if let Some(silent) = held.silent_ns {
        let _ = write!(out, ", silent for up to {} s", silent / 1_000_000_000);
    }
    if held.unread > 0 {
        let _ = write!(out, ", {} with data that nobody has read", held.unread);
    }
    out
}

const fn sure(cause: Cause, held: &Held) -> Confidence {
    match cause {
        Cause::NeverAccepted => Confidence::High,
        Cause::Forgotten if held.count >= MANY => Confidence::High,
        Cause::Forgotten | Cause::StalledProcess | Cause::Slow => Confidence::Medium,
        Cause::StalledHost | Cause::Unknown => Confidence::Low,
    }
}

fn why(cause: Cause, stalls: &[(String, Evidence)]) -> String {
    match cause {
        Cause::NeverAccepted => {
            "they sit in the accept queue with their FIN: the program will still take each one and work for a \
             client that has gone, before those who wait."
                .to_owned()
        }
        Cause::StalledProcess => {
            "a task in state D cannot run, and so cannot close; look at the disk or mount that it waits for.".to_owned()
        }
        Cause::StalledHost => {
            let all: Vec<&str> = stalls.iter().map(|(what, _)| what.as_str()).collect();
            format!("the host itself is held up: {}. The program may close them when it can run.", words::named(&all))
        }
        Cause::Forgotten => {
            "none of them went while others came: each holds a descriptor and its buffers until the process ends."
                .to_owned()
        }
        Cause::Slow => {
            "some went while others came, so they are closed in the end: the handlers are slower than their peers' \
             timeout, and what they answer is thrown away."
                .to_owned()
        }
        Cause::Unknown => {
            "each holds a descriptor and its buffers until the program closes it; no setting ends it.".to_owned()
        }
    }
}

const fn not(cause: Cause) -> &'static str {
    match cause {
        Cause::NeverAccepted => "not why the program does not accept",
        Cause::StalledHost | Cause::StalledProcess => {
            "not that no close was forgotten: look again when the host runs freely"
        }
        Cause::Forgotten => {
            "not which line of the program: a pool that keeps dead connections looks the same until it uses them"
        }
        Cause::Slow => "not whether the handler is slow or the peer impatient",
        Cause::Unknown => {
            "not why: a forgotten close, a slow handler, or a pool; another look some minutes later tells"
        }
    }
}

fn fix(cause: Cause, who: &str) -> Fix {
    let what = match cause {
        Cause::NeverAccepted => {
            format!(
                "find out why {who} does not accept; a shorter backlog refuses clients instead of keeping them"
            )
        }
        Cause::StalledProcess | Cause::StalledHost => {
            "relieve the host first, then look again".to_owned()
        }
        Cause::Slow => {
            format!("make {who} faster, or its peers' timeout longer than its slowest answer")
        }
        Cause::Forgotten | Cause::Unknown => {
            format!("have {who} close a socket when a read returns 0, on its error paths too")
        }
    };
    words::advise(what, "")
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, processors, running, silent, socket};
    use super::super::sample::{host, judged, missing, once, shown};
    use super::*;
    use crate::snapshot::{Pressure, Snapshot, Source};

    /// Connections of process 42, by the numbers of their ports: at the first look, and at the last.
    fn closed([before, now]: [core::ops::Range<u16>; 2], for_s: u64) -> Snapshot {
        each_look(running(host(&[]), "api", 'S'), |nth, look| {
            let one = |port| {
                let peer = format!("10.0.0.9:{port}");
                silent(socket(State::CloseWait, "10.0.0.1:80", &peer), for_s)
            };
            let ports = if nth == 0 { &before } else { &now };
            look.sockets = Some(ports.clone().map(one).collect());
        })
    }

    fn title(host: &Snapshot) -> String {
        judged(&CHECK, host)
            .expect("seen")
            .first()
            .map_or_else(String::new, |found| found.title.clone())
    }

    #[test]
    fn more_of_them_and_none_gone_is_a_forgotten_close() {
        insta::assert_snapshot!(shown(&CHECK, &closed([1000..1120, 1000..1130], 300)));
    }

    #[test]
    fn some_gone_and_others_come_is_a_slow_handler() {
        insta::assert_snapshot!(shown(&CHECK, &closed([1000..1120, 1050..1170], 30)));
    }

    #[test]
    fn one_of_many_that_went_tells_nothing() {
        let few = closed([1000..1120, 1001..1130], 300);
        assert_eq!(judged(&CHECK, &few).expect("seen")[0].confidence, Confidence::Low);
        assert!(title(&closed([1000..1120, 1012..1132], 300)).contains("later than its peers"));
    }

    #[test]
    fn those_without_a_descriptor_were_never_accepted() {
        let host = each_look(closed([1000..1012, 1000..1012], 5), |_, look| {
            for socket in look.sockets.iter_mut().flatten() {
                (socket.inode, socket.owner) = (0, None);
            }
        });
        insta::assert_snapshot!(shown(&CHECK, &host));
    }

    #[test]
    fn a_process_that_waits_for_a_disk_is_not_blamed() {
        let host = running(closed([1000..1120, 1000..1130], 300), "api", 'D');
        assert!(title(&host).contains("waits for a disk"), "{}", title(&host));
    }

    #[test]
    fn a_host_under_pressure_or_robbed_of_its_processors_may_explain_it() {
        let pressed = |share| {
            each_look(closed([1000..1120, 1000..1130], 60), |_, look| {
                let io = Pressure { some_avg10: share, ..Pressure::default() };
                look.pressure = Some([("io".to_owned(), io)].into());
            })
        };
        insta::assert_snapshot!(shown(&CHECK, &pressed(PRESSED_JUST)));
        assert!(title(&pressed(PRESSED_JUST - 1)).contains("does not close"));
        let mut robbed = processors(closed([1000..1120, 1000..1130], 60), &[(0, 0)]);
        robbed.looks[1].processors.as_mut().expect("seen")[0].steal = 500;
        assert_eq!(judged(&CHECK, &robbed).expect("seen")[0].confidence, Confidence::Low);
        for socket in robbed.looks[1].sockets.iter_mut().flatten() {
            *socket = silent(socket.clone(), 61);
        }
        assert!(title(&robbed).contains("does not close"), "pressure is younger than these");
    }

    const PRESSED_JUST: u32 = host_stalls::PRESSED + 1;

    #[test]
    fn a_few_or_young_ones_that_do_not_grow_are_nothing() {
        assert_eq!(title(&closed([1000..1009, 1000..1009], 300)), "");
        assert_eq!(title(&closed([1000..1099, 1000..1099], 60)), "");
        assert_ne!(title(&closed([1000..1099, 1000..1099], 61)), "");
        assert_ne!(title(&closed([1000..1100, 1000..1100], 1)), "");
    }

    #[test]
    fn one_look_does_not_tell_why() {
        let found = judged(&CHECK, &once(closed([1000..1120, 1000..1120], 300))).expect("seen");
        assert_eq!((found[0].confidence, found[0].unseen.len()), (Confidence::Low, 1));
    }

    #[test]
    fn without_sockets_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Sockets);
    }
}
