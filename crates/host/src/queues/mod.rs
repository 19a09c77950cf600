//! The path inside a host: where data waits between a program and the wire, and how long at most.
//!
//! ```text
//! sending    application -> send buffer -> small queue -> qdisc -> ring (byte queue limits) -> wire
//! receiving  wire -> ring -> backlog -> receive buffer -> application
//! ```
//!
//! Each [`Stage`] has the parameter that limits it, its limit, what is in it, what it dropped, and how long a
//! packet waits that comes when it is full: what is in front of it, divided by the rate. In a ring of 128
//! packets of 1500 bytes the last one waits for 127 others: at 5 Mbit/s 304.8 ms. Packets count with the MTU;
//! their link headers do not.
//!
//! What was not seen is `None` and is in [`Stage::unseen`]; nothing is taken for usual.

mod qdisc;
mod receiving;
mod sending;
#[cfg(test)]
mod tests;
mod view;

use serde::{Deserialize, Serialize};

use super::seen::{Asked, Missing, Seen};
use super::snapshot::{Link, Source};
pub use view::text;

/// The path inside the host through one interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Queues {
    /// The interface.
    pub dev: String,
    /// At which rate data leaves, in bits per second.
    pub rate: Option<u64>,
    /// Where that is from.
    pub rate_of: RateOf,
    /// MTU of the interface: the size that packets count with.
    pub mtu: Option<u32>,
    /// In the order in which data passes them: first those of sending.
    pub stages: Vec<Stage>,
    /// What an acknowledgment proves, and what it does not.
    pub acknowledgment: [String; 2],
}

/// Where a rate is from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RateOf {
    /// There is none.
    #[default]
    Unseen,
    /// It was given.
    Given,
    /// The interface's speed.
    Link,
}

/// Which way data passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// From a program to the wire.
    #[default]
    Sending,
    /// From the wire to a program.
    Receiving,
}

/// A place where data waits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stage {
    /// Which way data passes it.
    pub way: Way,
    /// Its name: `qdisc fq_codel 8001:`.
    pub name: String,
    /// What sets its limit: a setting, or a command that changes it.
    pub parameter: Option<String>,
    /// The most that may wait in it; `None` where it was not seen or there is no such limit.
    pub limit: Option<Amount>,
    /// To what the limit applies: `each socket`, `each of 4 queues`; empty for the whole stage.
    pub each: String,
    /// What waited in it, all together.
    pub now: Option<Amount>,
    /// What was dropped in it since the host or the stage started.
    pub dropped: Option<u64>,
    /// Of these, since the first look.
    pub dropped_since: Option<u64>,
    /// How long what comes last waits while it is full.
    pub longest_wait_ns: Option<u64>,
    /// What happens to more: `the program waits`, `packets are dropped`.
    pub when_full: String,
    /// What has to be known of it.
    pub notes: Vec<String>,
    /// What was not seen of it.
    pub unseen: Vec<String>,
}

/// How much data: in the unit that the kernel counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Amount {
    /// Bytes.
    Bytes(u64),
    /// Packets, of any size up to the MTU, and larger ones where the device cuts them.
    Packets(u64),
}

/// The path through `dev`; at `rate` bits per second where one is given, else at the speed of its link.
///
/// # Errors
/// Neither the interface nor a queueing discipline of it was seen.
pub fn queues(seen: &Seen<'_>, dev: &str, rate: Option<u64>) -> Asked<Queues> {
    let links = seen.now.links.as_deref().unwrap_or_default();
    let link = links.iter().find(|link| link.name == dev);
    let qdiscs = seen.now.qdiscs.as_deref().unwrap_or_default();
    if link.is_none() && !qdiscs.iter().any(|qdisc| qdisc.dev == dev) {
        return Err(Missing::part(Source::Links, dev));
    }
    let unseen = Link { name: dev.to_owned(), ..Link::default() };
    let link = link.unwrap_or(&unseen);
    let speed =
        link.speed.filter(|_| !sending::is_made_up(link) && !qdisc::is_shared_out(seen, dev));
    let (rate, rate_of) = match (rate, speed) {
        (Some(rate), _) => (Some(rate), RateOf::Given),
        (None, Some(speed)) => (Some(speed), RateOf::Link),
        (None, None) => (None, RateOf::Unseen),
    };
    let drain = Drain { rate: rate.filter(|rate| *rate > 0), mtu: link.mtu, uncut: uncut(link) };
    let mut stages = sending::stages(&Inside { seen, link, drain });
    let drain = Drain { uncut: None, ..drain };
    stages.extend(receiving::stages(&Inside { seen, link, drain }));
    Ok(Queues {
        dev: dev.to_owned(),
        rate,
        rate_of,
        mtu: link.mtu,
        stages,
        acknowledgment: [PROVES.to_owned(), PROVES_NOT.to_owned()],
    })
}

/// RFC 9293 §3.8.6 and §3.10.7.4: an acknowledgment covers what the receiving TCP took.
const PROVES: &str = "an ACK proves that the data reached the peer's TCP: it is in its receive buffer, and this \
     host may forget it";
/// RFC 9293 §3.9.1 (RECEIVE) leaves it to the application when it reads; tcp(7), `SIOCOUTQ` counts what is
/// not acknowledged, not what is not read.
const PROVES_NOT: &str = "it does not prove that the peer's program read it, wrote it to a disk or will: a crash of \
     that host loses it; only an answer of the program does";

/// What stages are made of.
pub(super) struct Inside<'s, 'a> {
    seen: &'s Seen<'a>,
    link: &'s Link,
    drain: Drain,
}

/// How fast a queue empties.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drain {
    /// Bits per second.
    rate: Option<u64>,
    mtu: Option<u32>,
    /// The largest packet that is cut only by the device, or right before it, where that is on.
    uncut: Option<u32>,
}

/// v6.12 `net/core/dev.c`, `netif_skb_features` and `gso_features_check`.
fn uncut(link: &Link) -> Option<u32> {
    let features = link.features.as_ref()?;
    let cuts = |name: &String| {
        matches!(
            &**name,
            "tx-tcp-segmentation" | "tx-tcp6-segmentation" | "tx-generic-segmentation"
        )
    };
    link.gso_max_size.filter(|_| features.on.iter().any(cuts))
}

impl Drain {
    /// A slower one behind a shaper.
    fn at_most(self, rate: Option<u64>) -> Self {
        let slower = match (self.rate, rate.filter(|rate| *rate > 0)) {
            (Some(own), Some(shaped)) => Some(own.min(shaped)),
            (own, shaped) => own.or(shaped),
        };
        Self { rate: slower, ..self }
    }

    /// How long the last one waits in a queue that is full to this limit.
    fn longest_wait_ns(self, limit: Amount) -> Option<u64> {
        let bytes = match limit {
            Amount::Bytes(bytes) => bytes,
            Amount::Packets(packets) => packets.saturating_sub(1).checked_mul(self.mtu?.into())?,
        };
        let ns = u128::from(bytes) * 8_000_000_000 / u128::from(self.rate?);
        u64::try_from(ns).ok()
    }

    /// Bytes of that many full packets.
    fn bytes(self, packets: u64) -> Option<u64> {
        packets.checked_mul(self.mtu?.into())
    }

    /// What is missing to tell waits of a limit in packets, or in bytes.
    fn unseen(self, limit: Amount) -> impl Iterator<Item = String> {
        let rate = self.rate.is_none().then(|| "the rate of the link".to_owned());
        let mtu = matches!(limit, Amount::Packets(_)) && self.mtu.is_none();
        rate.into_iter().chain(mtu.then(|| "the MTU".to_owned()))
    }
}

impl Stage {
    fn new(way: Way, name: impl Into<String>) -> Self {
        Self { way, name: name.into(), ..Self::default() }
    }

    /// With a limit, and the wait that it allows.
    fn limited(mut self, limit: Option<Amount>, drain: Drain) -> Self {
        self.limit = limit;
        if let Some(limit) = limit {
            self.longest_wait_ns = drain.longest_wait_ns(limit);
            if let (Amount::Packets(_), Some(uncut)) = (limit, drain.uncut) {
                let uncut = tcpwhy_words::said::bytes(uncut.into());
                self.notes.push(format!(
                    "one that is cut behind it counts as a packet, too, and may have {uncut}: such wait longer"
                ));
            }
            self.unseen.extend(drain.unseen(limit));
        }
        self
    }

    fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    fn unseen(mut self, what: impl Into<String>) -> Self {
        self.unseen.push(what.into());
        self
    }
}

/// The sum of what is known of all; `None` if nothing is of any.
fn sum(values: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    values
        .flatten()
        .fold(None, |sum: Option<u64>, value| Some(sum.unwrap_or(0).saturating_add(value)))
}
