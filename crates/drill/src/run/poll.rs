//! Who is ready to be read from or written to?
//!
//! Follows `tcp_poll` and fs/eventpoll.c: a watched socket is put on a list whenever something
//! wakes its waiters; looking takes it off the list unless its events are level-triggered.

use super::call::{Arguments, Made, Operation, Outcome, field};
use super::end::Role;
use super::epoll::Interest;
use super::host::{File, Host};
use super::names;
use crate::script::Expression;
use tcpwhy_model::socket::{Socket, State};

const IN: i64 = 0x1 | 0x40;
const OUT: i64 = 0x4 | 0x100;
const ERR: i64 = 0x8;
const HUP: i64 = 0x10;
const RDHUP: i64 = 0x2000;
const EDGE: i64 = 1 << 31;
const ONESHOT: i64 = 1 << 30;

impl Host {
    /// What a socket is ready for (`tcp_poll`).
    fn mask(&self, at: usize) -> i64 {
        let end = &self.ends[at];
        if let Role::Listener(waiting) = &end.role {
            let any = waiting.iter().any(|child| self.ends[*child].is_ready());
            return if any { IN } else { 0 };
        }
        let mut mask = 0;
        let state = end.state();
        let peer_ended =
            matches!(state, State::CloseWait | State::LastAck | State::Closing | State::TimeWait);
        let read_ended = end.read_shut || peer_ended || state == State::Closed && end.used;
        let write_ended = end.write_shut || state == State::Closed;
        if read_ended && write_ended {
            mask |= HUP;
        }
        if read_ended {
            mask |= IN | RDHUP;
        }
        if let Some(socket) = end.socket()
            && !matches!(state, State::SynSent)
        {
            mask |= if socket.readable() > 0 { IN } else { 0 };
            mask |= if write_ended || is_writable(socket, self.config().sysctl.notsent_lowat) {
                OUT
            } else {
                0
            };
        }
        if end.socket().is_some_and(Socket::is_deferred) {
            mask |= OUT;
        }
        mask | if end.error.is_some() || end.zero_copy.is_told() { ERR } else { 0 }
    }

    /// `poll`, if it does not have to wait.
    pub(super) fn polled(
        &self,
        wanted: &[(i64, i64, i64)],
        deadline_ns: Option<u64>,
        at_once: bool,
    ) -> Option<Outcome> {
        let found = |descriptor: i64, events: i64| {
            self.end_of(descriptor).map_or(0x20, |at| self.mask(at) & (events | ERR | HUP))
        };
        let ready: Vec<i64> =
            wanted.iter().map(|(descriptor, events, _)| found(*descriptor, *events)).collect();
        let count = ready.iter().filter(|mask| **mask != 0).count();
        let over = at_once || deadline_ns.is_some_and(|deadline| deadline <= self.now_ns);
        if count == 0 && !over {
            return None;
        }
        let outcome = Outcome::value(count as i64);
        Some(wanted.iter().zip(ready).fold(outcome, |outcome, ((_, _, expected), got)| {
            outcome.filling("revents", *expected, got)
        }))
    }

    /// `epoll_wait`, if it does not have to wait.
    pub(super) fn epolled(
        &mut self,
        epoll: i64,
        wanted: &[(i64, i64)],
        most: usize,
        deadline_ns: Option<u64>,
        at_once: bool,
    ) -> Option<Outcome> {
        self.wake();
        let mut interests = match self.files.get(&epoll) {
            Some(File::Epoll(epoll)) => epoll.interests.clone(),
            _ => return Some(Outcome::error("EBADF")),
        };
        let mut found = Vec::new();
        for (descriptor, interest) in interests.iter_mut().filter(|(_, interest)| interest.ready) {
            if found.len() == most {
                break;
            }
            let mask = self.mask(interest.end) & (interest.events | ERR | HUP) & !(EDGE | ONESHOT);
            interest.ready = mask != 0 && interest.events & (EDGE | ONESHOT) == 0;
            if mask == 0 {
                continue;
            }
            if interest.events & ONESHOT != 0 {
                interest.events &= EDGE | ONESHOT;
            }
            found.push((mask, *descriptor));
        }
        if let Some(File::Epoll(epoll)) = self.files.get_mut(&epoll) {
            epoll.interests = interests;
        }
        let over = at_once || deadline_ns.is_some_and(|deadline| deadline <= self.now_ns);
        if found.is_empty() && !over {
            return None;
        }
        let outcome = Outcome::value(found.len() as i64);
        Some(wanted.iter().zip(&found).fold(outcome, |outcome, ((events, _), (got, _))| {
            outcome.filling("events", *events, *got)
        }))
    }

    /// Puts on their lists those that something woke.
    fn wake(&mut self) {
        let woken: Vec<bool> =
            self.ends.iter_mut().map(|end| std::mem::take(&mut end.woken)).collect();
        for file in self.files.values_mut() {
            if let File::Epoll(epoll) = file {
                for interest in epoll.interests.values_mut() {
                    let disarmed = interest.events & !(EDGE | ONESHOT) == 0;
                    interest.ready |= woken[interest.end] && !disarmed;
                }
            }
        }
    }
}

/// Whether enough of the send buffer is free (`sk_stream_is_writeable`), and enough of what is in it
/// was sent.
fn is_writable(socket: &Socket, lowat: u32) -> bool {
    let info = socket.info();
    let lowat = socket.config().options.notsent_lowat.unwrap_or(lowat);
    let unsent = u64::from(info.write_seq.wrapping_sub(info.snd_nxt));
    let free = info.sndbuf.saturating_sub(info.wmem_queued);
    free >= info.wmem_queued / 2 && unsent * 2 < u64::from(lowat)
}

/// When a call that waits this many milliseconds gives up; never if they are negative.
fn deadline(host: &Host, milliseconds: i64) -> Option<u64> {
    u64::try_from(milliseconds)
        .ok()
        .map(|ms| host.now_ns.saturating_add(ms.saturating_mul(1_000_000)))
}

pub(super) fn poll(arguments: &Arguments<'_>, host: &Host) -> Made {
    let Expression::List(all) = arguments.at(0)? else { return Err("poll without a list".into()) };
    let mut wanted = Vec::new();
    for one in all {
        let value = |name: &str| field(one, name).map(names::number);
        let descriptor = value("fd").ok_or("poll of no descriptor")??;
        wanted.push((
            descriptor,
            value("events").unwrap_or(Ok(0))?,
            value("revents").unwrap_or(Ok(0))?,
        ));
    }
    let timeout = arguments.number(2)?;
    Ok(Operation::Poll { wanted, deadline_ns: deadline(host, timeout), at_once: timeout == 0 })
}

pub(super) fn epoll_control(arguments: &Arguments<'_>, host: &mut Host) -> Made {
    let (epoll, action, descriptor) =
        (arguments.number(0)?, arguments.word(1)?, arguments.number(2)?);
    let end = host.end_of(descriptor).ok_or("epoll of what is no socket")?;
    let events = arguments.field(3, "events").map_or(Ok(0), names::number)?;
    let Some(File::Epoll(epoll)) = host.files.get_mut(&epoll) else {
        return Err("epoll_ctl of what is no epoll".into());
    };
    match action {
        "EPOLL_CTL_ADD" | "EPOLL_CTL_MOD" => {
            epoll.interests.insert(descriptor, Interest { end, events, ready: true });
        }
        "EPOLL_CTL_DEL" => {
            epoll.interests.remove(&descriptor);
        }
        name => return Err(format!("epoll_ctl {name}")),
    }
    Ok(Operation::Ended(Outcome::value(0)))
}

pub(super) fn epoll_wait(arguments: &Arguments<'_>, host: &Host) -> Made {
    let mut wanted = Vec::new();
    let one = |structure: &Expression| -> Result<Option<(i64, i64)>, String> {
        let Expression::Struct(_) = structure else {
            return Ok(None);
        };
        let value = |name: &str| field(structure, name).map(names::number);
        let events = value("events").unwrap_or(Ok(0))?;
        Ok(Some((events, value("fd").or_else(|| value("ptr")).unwrap_or(Ok(0))?)))
    };
    match arguments.at(1)? {
        Expression::List(all) => {
            for structure in all {
                wanted.extend(one(structure)?);
            }
        }
        structure => wanted.extend(one(structure)?),
    }
    let (most, timeout) = (arguments.number(2)?, arguments.number(3)?);
    Ok(Operation::EpollWait {
        epoll: arguments.number(0)?,
        wanted,
        most: usize::try_from(most).unwrap_or(0),
        deadline_ns: deadline(host, timeout),
        at_once: timeout == 0,
    })
}
