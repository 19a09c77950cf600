//! What real networks have besides: each run has one of these, on an otherwise plain path.

use core::fmt::Write;

use super::Dice;

/// What a path has that a plain one has not.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Trait {
    /// Two or three transfers through one link.
    Competing,
    /// Frames of somebody else at a constant rate.
    Cross,
    /// Each packet is delayed by chance.
    Jitter,
    /// Some packets are overtaken.
    Reordering,
    /// A way of the ACKs on which they queue.
    ThinAcks,
    /// One on which they are lost.
    LossyAcks,
    /// The link's rate changes.
    RateSteps,
    /// What is too fast is dropped.
    Policer,
    /// Data goes both ways.
    BothWays,
    /// A queue that drops or marks what waits too long, by flow.
    FqCodel,
}

const TRAITS: [(Trait, &str); 10] = [
    (Trait::Competing, "competing"),
    (Trait::Cross, "cross traffic"),
    (Trait::Jitter, "jitter"),
    (Trait::Reordering, "reordering"),
    (Trait::ThinAcks, "thin way of ACKs"),
    (Trait::LossyAcks, "lossy way of ACKs"),
    (Trait::RateSteps, "rate steps"),
    (Trait::Policer, "policer"),
    (Trait::BothWays, "both ways"),
    (Trait::FqCodel, "fq_codel"),
];

/// What a run is about.
pub(super) fn name(number: u32) -> &'static str {
    TRAITS[number as usize % TRAITS.len()].1
}

/// Path, hosts and applications of a run.
pub(super) fn body(dice: &mut Dice, text: &mut String, number: u32) {
    let (own, _) = TRAITS[number as usize % TRAITS.len()];
    let rtt_us = dice.between_log(5_000, 150_000);
    let rate_kbit = dice.between_log(2_000, 100_000);
    // What passes in one to eight seconds.
    let bytes = (rate_kbit * 125 * dice.between(1, 8)).min(8_000_000);
    path(dice, text, own, (rtt_us, rate_kbit));
    let controller = ["cubic", "cubic", "reno", "bbr"][dice.below(4) as usize];
    for host in ["server", "client"] {
        let _ = writeln!(text, "[{host}]\nroute.congctl = \"{controller}\"\n");
    }
    applications(dice, text, own, bytes);
}

fn path(dice: &mut Dice, text: &mut String, own: Trait, (rtt_us, rate_kbit): (u64, u64)) {
    let bdp = rate_kbit * rtt_us / 8_000;
    let queue = match own {
        Trait::FqCodel => "fq_codel".to_owned(),
        _ => format!("{}B", (bdp * dice.between(2, 16) / 4).max(30_280)),
    };
    let _ = write!(text, "[path]\nrtt = \"{rtt_us}us\"\nrate = \"{rate_kbit}kbit\"\n");
    let _ = match own {
        Trait::Policer => {
            let burst = (bdp / 2).max(15_140);
            writeln!(text, "down.bucket = {{ rate = \"{rate_kbit}kbit\", burst = \"{burst}B\" }}")
        }
        _ => writeln!(text, "queue = \"{queue}\""),
    };
    let _ = match own {
        Trait::Cross => {
            writeln!(text, "down.cross = \"{}kbit\"", rate_kbit * dice.between(20, 70) / 100)
        }
        Trait::Jitter => writeln!(text, "jitter = \"{}us\"", rtt_us / dice.between(8, 40)),
        Trait::Reordering => {
            let (share, by_us) = (dice.between(2, 30), (rtt_us / 8).max(300));
            writeln!(text, "down.reorder = \"{share}000ppm by {by_us}us\"")
        }
        Trait::ThinAcks => {
            // An ACK takes 66 bytes for two segments of 1,514: a rate below 1 in 46 holds them up.
            let thin = (rate_kbit / dice.between(50, 120)).max(16);
            writeln!(text, "up.rate = \"{thin}kbit\"\nup.queue = \"200 packets\"")
        }
        Trait::LossyAcks => writeln!(text, "up.loss = \"{}%\"", dice.between(5, 40)),
        Trait::RateSteps => {
            let other = |dice: &mut Dice| rate_kbit * dice.between(25, 250) / 100;
            let (at_ms, then_ms) = (dice.between(300, 2_000), dice.between(500, 2_000));
            let [first, second] = [other(dice), other(dice)];
            writeln!(
                text,
                "\n[[path.changes]]\nat = \"{at_ms}ms\"\nrate = \"{first}kbit\"\n\n\
                 [[path.changes]]\nat = \"{}ms\"\nrate = \"{second}kbit\"",
                at_ms + then_ms
            )
        }
        Trait::Competing | Trait::Policer | Trait::BothWays | Trait::FqCodel => Ok(()),
    };
    text.push('\n');
}

fn applications(dice: &mut Dice, text: &mut String, own: Trait, bytes: u64) {
    let _ = match own {
        Trait::Competing => {
            let flows = dice.between(2, 3);
            let mut write = Ok(());
            for flow in 0..flows {
                let start_ms = if flow == 0 { 0 } else { dice.between(0, 1_500) };
                let bytes = bytes / flows * dice.between(50, 150) / 100;
                write = writeln!(
                    text,
                    "[applications.flow{flow}]\ndownload = {}\nstart = \"{start_ms}ms\"\n",
                    bytes.max(100_000)
                );
            }
            write
        }
        Trait::BothWays => {
            let back = (bytes * dice.between(20, 90) / 100).max(50_000);
            writeln!(
                text,
                "[applications.down]\ndownload = {}\n\n[applications.up]\npost = {back}\n",
                bytes.max(100_000)
            )
        }
        _ => writeln!(text, "[application]\ndownload = {}", bytes.max(100_000)),
    };
}
