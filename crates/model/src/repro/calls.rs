//! Which calls did the application make, and when?

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::ops::ControlFlow;

use tcpwhy::report::{Connection, State};
use tcpwhy::wire;

use super::{Captured, Host, Numbers};

/// A write, as far as packets show it.
#[derive(Clone, Copy, Debug)]
struct Write {
    /// Number of its first byte.
    from: u32,
    bytes: u32,
    /// It was made before the first of it was sent, but after everything before was: the
    /// application had nothing until then.
    waited: bool,
}

/// The application's side of a connection.
#[expect(clippy::struct_excessive_bools, reason = "independent facts about an application")]
pub(super) struct Calls {
    host: Host,
    own: u32,
    peer: u32,
    descriptor: u8,
    /// Writes that are still to come.
    writes: VecDeque<Write>,
    /// The end was told together with the last data.
    ends_with_data: bool,
    /// What all writes come to.
    pub(super) bytes: u64,
    /// Small segments were sent although smaller ones were not acknowledged.
    pub(super) nodelay: bool,
    opened: bool,
    ended: bool,
    /// What of the peer's stream came, in order and beyond, as numbers.
    next: u32,
    held: Vec<(u32, u32)>,
}

impl Calls {
    pub(super) fn of(
        connection: &Connection,
        events: &[(i64, Captured)],
        numbers: &Numbers,
        host: Host,
    ) -> Calls {
        let writes = writes(connection, events, numbers, host);
        let ends = events
            .iter()
            .find(|(_, packet)| packet.from == host && packet.flags.has(wire::Flags::FIN));
        Calls {
            host,
            own: numbers.own,
            peer: numbers.peer,
            descriptor: if host == Host::Client { 3 } else { 4 },
            bytes: writes.iter().map(|write| u64::from(write.bytes)).sum(),
            ends_with_data: ends.is_some_and(|(_, packet)| packet.len > 0),
            nodelay: overtakes(connection, events, numbers, host),
            writes,
            opened: false,
            ended: false,
            next: 1,
            held: Vec::new(),
        }
    }

    /// Calls whose effect a packet is that the host sent.
    pub(super) fn before_sent(
        &mut self,
        packet: &Captured,
        time: &str,
        text: &mut String,
    ) -> ControlFlow<()> {
        if packet.is_syn() {
            if self.host == Host::Client && !self.opened {
                self.opened = true;
                let _ = writeln!(
                    text,
                    "{time} connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)"
                );
            }
            return ControlFlow::Continue(());
        }
        if packet.flags.has(wire::Flags::RST) {
            let _ = writeln!(
                text,
                "// Here the host reset the connection; what made it do so was not captured."
            );
            return ControlFlow::Break(());
        }
        let end = packet.seq.wrapping_sub(self.own).wrapping_add(packet.len);
        let begins =
            |write: &Write| packet.len > 0 && end.wrapping_sub(write.from).cast_signed() > 0;
        if self.writes.front().is_some_and(begins) {
            self.write(time, text);
        }
        if packet.flags.has(wire::Flags::FIN) {
            self.end(time, text);
        }
        ControlFlow::Continue(())
    }

    /// Makes the next write, and those that were made with it.
    fn write(&mut self, time: &str, text: &mut String) {
        while let Some(Write { bytes, .. }) = self.writes.pop_front() {
            let _ = writeln!(text, "{time} write({}, ..., {bytes}) = {bytes}", self.descriptor);
            if self.writes.front().is_some_and(|next| next.waited) {
                return;
            }
        }
        if self.ends_with_data {
            self.end(time, text);
        }
    }

    fn end(&mut self, time: &str, text: &mut String) {
        if !std::mem::replace(&mut self.ended, true) {
            let _ = writeln!(text, "{time} shutdown({}, SHUT_WR) = 0", self.descriptor);
        }
    }

    /// Calls that follow a packet that came in.
    pub(super) fn after_received(&mut self, packet: &Captured, time: &str, text: &mut String) {
        if self.host == Host::Server && !self.opened && !packet.is_syn() {
            self.opened = true;
            let _ = writeln!(text, "{time} accept(3, ..., ...) = 4");
            if self.nodelay {
                let _ = writeln!(text, "+0 setsockopt(4, SOL_TCP, TCP_NODELAY, [1], 4) = 0");
            }
        }
        if packet.len == 0 || packet.is_syn() {
            return;
        }
        let seq = packet.seq.wrapping_sub(self.peer);
        self.held.push((seq, seq.wrapping_add(packet.len)));
        let before = self.next;
        while let Some(at) = self.held.iter().position(|(from, to)| {
            self.next.wrapping_sub(*from).cast_signed() >= 0
                && to.wrapping_sub(self.next).cast_signed() > 0
        }) {
            self.next = self.held.swap_remove(at).1;
        }
        let next = self.next;
        self.held.retain(|(_, to)| to.wrapping_sub(next).cast_signed() > 0);
        let read = self.next.wrapping_sub(before);
        if read > 0 {
            let _ = writeln!(text, "+0 read({}, ..., {read}) = {read}", self.descriptor);
        }
    }
}

/// The writes of the host's application: one ends where the account says that the application had no
/// more, and where a packet is pushed (`tcp_push`). Since v5.4 super-segments always are, and tell
/// nothing.
fn writes(
    connection: &Connection,
    events: &[(i64, Captured)],
    numbers: &Numbers,
    host: Host,
) -> VecDeque<Write> {
    let pauses = pauses(connection, host);
    let first_ns = events.first().map_or(0, |(at_ns, _)| *at_ns);
    let is_super = |packet: &Captured| connection.mss.is_none_or(|mss| packet.len > mss);
    let is_pushed = |packet: &Captured| packet.flags.has(wire::Flags::PSH);
    let any_tells = events.iter().any(|(_, packet)| {
        packet.from == host && is_super(packet) && packet.len > 0 && !is_pushed(packet)
    });
    let mut writes: VecDeque<Write> = VecDeque::new();
    let (mut highest, mut pushed) = (1_u32, false);
    for (at_ns, packet) in events.iter().filter(|(_, packet)| packet.from == host && packet.len > 0)
    {
        let end = numbers.seq(packet).wrapping_add(packet.len);
        let new = end.wrapping_sub(highest);
        if new.cast_signed() <= 0 {
            continue;
        }
        let at = at_ns - first_ns;
        let waited =
            pauses.iter().any(|(start, stop)| *start < at && at <= stop.saturating_add(SLACK_NS));
        match writes.back_mut() {
            Some(write) if !waited && !pushed => write.bytes += new,
            _ => writes.push_back(Write { from: highest, bytes: new, waited }),
        }
        pushed = is_pushed(packet) && (any_tells || !is_super(packet));
        highest = end;
    }
    writes
}

/// A send follows what released it within so much. Ours: the bound of limits-method.md, section 4.
const SLACK_NS: i64 = 50_000;

/// The spans in which the host's application had nothing to send, by its direction's account.
fn pauses(connection: &Connection, host: Host) -> Vec<(i64, i64)> {
    let direction = &connection.directions[usize::from(host == Host::Server)];
    let limits = direction.iter().flat_map(|direction| &direction.limits);
    let held_back = |state: State| {
        matches!(
            state,
            State::App
                | State::AppWindow
                | State::Sndbuf
                | State::IdleAppThink
                | State::IdlePeerThink
                | State::Receiving
        )
    };
    limits
        .filter(|limit| held_back(limit.state))
        .map(|limit| (limit.start_ns, limit.end_ns))
        .collect()
}

/// Whether a small segment was sent while a smaller one was not acknowledged, which Nagle's
/// algorithm in Minshall's variant forbids.
fn overtakes(
    connection: &Connection,
    events: &[(i64, Captured)],
    numbers: &Numbers,
    host: Host,
) -> bool {
    let Some(mss) = connection.mss else { return false };
    let (mut acked, mut small_end, mut highest) = (1_u32, None::<u32>, 1_u32);
    for (_, packet) in events {
        if packet.from != host {
            if packet.flags.has(wire::Flags::ACK) && !packet.is_syn() {
                acked = numbers.ack(packet);
            }
            continue;
        }
        let end = numbers.seq(packet).wrapping_add(packet.len);
        let is_new = packet.len > 0 && end.wrapping_sub(highest).cast_signed() > 0;
        if !is_new {
            continue;
        }
        highest = end;
        let is_small = packet.len % mss != 0;
        let waits = small_end.is_some_and(|small: u32| small.wrapping_sub(acked).cast_signed() > 0);
        if is_small && waits && !packet.flags.has(wire::Flags::FIN) {
            return true;
        }
        if is_small {
            small_end = Some(end);
        }
    }
    false
}
