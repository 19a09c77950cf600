//! A report that keeps only the accounts that will be shown says the same as one that keeps all.

use core::net::{Ipv4Addr, SocketAddr};

use proptest::prelude::*;
use tcpwhy::report::{FORMAT, Report, Totals};
use tcpwhy::tracker::{Config, Tracker};
use tcpwhy::units::{Seq, Time};
use tcpwhy::view::{self, Options, Sort};
use tcpwhy::wire::{self, Flags, IpInfo, LinkInfo, Segment};

const SORTS: [Sort; 6] =
    [Sort::Worst, Sort::Duration, Sort::Bytes, Sort::Rate, Sort::Retransmissions, Sort::Start];

/// What one connection does: how many segments it sends, in milliseconds each, how many of them
/// again, and whether it ends.
type Life = (u32, i64, u32, bool);

/// The segments of all connections, each begun a millisecond after the one before.
fn segments(lives: &[Life]) -> Vec<Segment<'static>> {
    let mut all = Vec::new();
    for (number, (sends, gap, again, ends)) in (0_u32..).zip(lives) {
        let hosts = [number, 1 << 24].map(|host| Ipv4Addr::from_bits(0x0a00_0000 + host));
        let [client, server] = hosts.map(|host| SocketAddr::from((host, 5000)));
        let mut now = i64::from(number) * 1_000_000;
        let mut push = |from_client: bool, flags: Flags, seq: u32, len: u32| {
            let (source, destination) =
                if from_client { (client, server) } else { (server, client) };
            now += gap * 1_000_000;
            all.push(Segment {
                time: Time(now),
                frame: 0,
                network: 0,
                source,
                destination,
                seq: Seq(seq),
                ack: Seq(1),
                flags,
                window: 500,
                payload_len: len,
                payload: &[],
                options: wire::Options::default(),
                ip: IpInfo { id: None, ttl: Some(64), ecn: None },
                link: LinkInfo::default(),
            });
        };
        push(true, Flags::SYN, 0, 0);
        push(false, Flags::SYN.with(Flags::ACK), 0, 0);
        (0..*sends).for_each(|at| push(false, Flags::ACK, 1 + at * 1000, 1000));
        (0..(*again).min(*sends)).for_each(|at| push(false, Flags::ACK, 1 + at * 1000, 1000));
        if *ends {
            push(true, Flags::RST, 1, 0);
        }
    }
    all.sort_by_key(|segment| segment.time);
    (1..).zip(&mut all).for_each(|(frame, segment)| segment.frame = frame);
    all
}

fn report(segments: &[Segment<'_>], config: Config) -> Report {
    let mut tracker = Tracker::new(config);
    for segment in segments {
        tracker.push(segment);
    }
    let (connections, sums, _) = tracker.finish();
    Report { format: FORMAT.to_owned(), totals: sums.totals, connections, ..Report::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_not_kept_is_not_missed(
        lives in proptest::collection::vec((0..4_u32, 0..40_i64, 0..3_u32, any::<bool>()), 1..700),
        number in 0..30_usize,
    ) {
        let segments = segments(&lives);
        let all = report(&segments, Config::default());
        prop_assert_eq!(&all.totals, &Totals::of(&all.connections));
        for sort in SORTS {
            let keep = Some(view::keep(sort, number));
            let mut few = report(&segments, Config { keep, ..Config::default() });
            prop_assert!(few.connections.len() <= number + 64);
            let options = Options { sort, top: number, ..Options::default() };
            prop_assert_eq!(
                view::text::render(&few, &options),
                view::text::render(&all, &options)
            );
            let mut all = all.clone();
            view::keep_first(&mut all, sort, number);
            view::keep_first(&mut few, sort, number);
            prop_assert_eq!(few, all);
        }
    }
}
