//! What a path asks of this host: the route that it takes, the buffers that fill it, what the window scale lets through.
//!
//! A path holds its rate times its round trip on the way (the bandwidth-delay product). The kernel counts
//! buffers with their overhead, so a buffer must be larger than the window that it gives.

use core::net::IpAddr;

use super::finding::Change;
use super::seen::{Asked, Missing, Seen};
use super::snapshot::{Owner, PeerMetrics, Route, Socket, Source};

/// A path to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The peer.
    pub peer: IpAddr,
    /// Bits per second.
    pub rate: u64,
    /// Round trip.
    pub rtt_ns: u64,
}

impl Target {
    /// Bytes on the way that fill the path.
    pub fn bdp_bytes(&self) -> u64 {
        let bytes = u128::from(self.rate) * u128::from(self.rtt_ns) / 8_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

/// What a path asks of this host.
#[derive(Clone, Debug, PartialEq)]
pub struct Needs {
    /// The route that it takes.
    pub route: Asked<Option<Taken>>,
    /// What the kernel remembers of the peer.
    pub remembered: Asked<Option<PeerMetrics>>,
    /// Receive buffers.
    pub receive: Asked<Buffer>,
    /// Send buffers.
    pub send: Asked<Buffer>,
    /// The largest window that can be announced.
    pub scale: Asked<Scale>,
    /// Connections to the peer that are open.
    pub open: Asked<Vec<Open>>,
    /// What would let it be filled, worst first; nothing where it can be.
    pub changes: Vec<Change>,
}

/// Buffers of a connection to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// Its port on this host.
    pub port: u16,
    /// Who holds it.
    pub owner: Option<Owner>,
    /// Its receive buffer.
    pub receive: Granted,
    /// Its send buffer.
    pub send: Granted,
}

/// A buffer as the kernel granted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// Bytes with overhead.
    pub bytes: u32,
    /// What its program asked for, where it did and that was seen.
    pub asked: Option<AskedFor>,
}

/// What a program asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskedFor {
    /// This many bytes.
    Bytes(u32),
    /// This many or more: `rmem_max` or `wmem_max` cut it there.
    AtLeast(u32),
}

/// A route that is taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken {
    /// The route.
    pub route: Route,
    /// Rules choose among tables by more than the destination: another route may be taken.
    pub may_differ: bool,
}

/// The largest buffer that a connection gets by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// The setting.
    pub key: &'static str,
    /// Its third number: bytes with overhead.
    pub most: u64,
    /// Bytes on the way that it is good for.
    pub carries: u64,
    /// What it would have to be.
    pub needed: u64,
}

/// Window scaling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// The shift that is announced.
    pub shift: u8,
    /// The largest window.
    pub window: u64,
}

/// What `target` asks of the host that was seen.
pub fn needs(seen: &Seen<'_>, target: &Target) -> Needs {
    let mut needs = Needs {
        route: route(seen, target.peer),
        remembered: remembered(seen, target.peer),
        receive: receive(seen, target),
        send: send(seen, target),
        scale: scale(seen),
        open: open(seen, target.peer),
        changes: Vec::new(),
    };
    needs.changes = changes(seen, target, &needs);
    needs
}

impl Buffer {
    fn is_small(&self, target: &Target) -> bool {
        self.carries < target.bdp_bytes()
    }
}

/// The third number of `tcp_rmem`, as `tcp_rcv_space_adjust` lets buffers grow to it; `tcp_win_from_space`
/// says what of it is window.
fn receive(seen: &Seen<'_>, target: &Target) -> Asked<Buffer> {
    const KEY: &str = "net.ipv4.tcp_rmem";
    let most = third(seen, KEY)?;
    let (window, space) = window_per_buffer(seen)?;
    let needed = target.bdp_bytes().saturating_mul(space).div_ceil(window);
    Ok(Buffer { key: KEY, most, carries: most.saturating_mul(window) / space, needed })
}

/// The third number of `tcp_wmem`. A writer that found no room is woken when a third is free
/// (`sk_stream_is_writeable`, Linux v6.1 `include/net/sock.h`), so two thirds are sure to be filled; data that was
/// written in large pieces takes little more than its bytes.
fn send(seen: &Seen<'_>, target: &Target) -> Asked<Buffer> {
    const KEY: &str = "net.ipv4.tcp_wmem";
    let most = third(seen, KEY)?;
    Ok(Buffer {
        key: KEY,
        most,
        carries: most / 3 * 2,
        needed: target.bdp_bytes().saturating_mul(3).div_ceil(2),
    })
}

/// How much of a buffer is window, as a fraction (`tcp_win_from_space`). Since Linux 6.6 each socket measures it
/// and begins with a half (`TCP_DEFAULT_SCALING_RATIO`); before, `tcp_adv_win_scale` says it, a half by default.
/// Enterprise Linux 9 has the new way in a kernel that calls itself 5.14, so there a half is taken.
fn window_per_buffer(seen: &Seen<'_>) -> Asked<(u64, u64)> {
    const HALF: (u64, u64) = (1, 2);
    let scale = seen.number("net.ipv4.tcp_adv_win_scale")?;
    let measures = seen.snapshot.kernel.as_deref().is_none_or(|kernel| {
        let mut numbers = kernel.split(['.', '-']).map_while(|word| word.parse::<u32>().ok());
        let version = (numbers.next(), numbers.next());
        version >= (Some(6), Some(6)) || kernel.contains(".el9")
    });
    Ok(match scale {
        Some(scale @ 2..=31) if !measures => ((1 << scale) - 1, 1 << scale),
        Some(scale @ -31..=0) if !measures => (1, 1 << scale.unsigned_abs()),
        _ => HALF,
    })
}

fn third(seen: &Seen<'_>, key: &str) -> Asked<u64> {
    let numbers = seen.numbers::<3>(key)?;
    numbers
        .and_then(|[_, _, most]| u64::try_from(most).ok())
        .ok_or_else(|| Missing::part(Source::Settings, key))
}

/// `tcp_select_initial_window` (Linux v6.1): the shift with which 16 bits hold the larger of the third number of
/// `tcp_rmem` and `rmem_max`, at most 14 (RFC 7323 section 2.3).
fn scale(seen: &Seen<'_>) -> Asked<Scale> {
    if seen.number("net.ipv4.tcp_window_scaling")? == Some(0) {
        return Ok(Scale { shift: 0, window: u64::from(u16::MAX) });
    }
    let most = third(seen, "net.ipv4.tcp_rmem")?;
    let asked = seen.number("net.core.rmem_max")?.and_then(|most| u64::try_from(most).ok());
    let space = most.max(asked.unwrap_or(0));
    let shift = space.checked_ilog2().unwrap_or(0).saturating_sub(15).min(14);
    Ok(Scale { shift: shift as u8, window: u64::from(u16::MAX) << shift })
}

fn remembered(seen: &Seen<'_>, peer: IpAddr) -> Asked<Option<PeerMetrics>> {
    let all = seen.snapshot.tcp_metrics.as_ref().ok_or(Missing::all(Source::TcpMetrics))?;
    Ok(all.iter().find(|each| each.to == peer).cloned())
}

fn open(seen: &Seen<'_>, peer: IpAddr) -> Asked<Vec<Open>> {
    let most = |key| seen.number(key).ok().flatten();
    let (most_read, most_sent) = (most("net.core.rmem_max"), most("net.core.wmem_max"));
    let each = |socket: &Socket| {
        let (memory, locks) = (socket.memory?, socket.locks.unwrap_or_default());
        let granted = |bytes, lock: Option<bool>, most| Granted {
            bytes,
            asked: lock.filter(|lock| *lock).map(|_| asked_for(bytes, most)),
        };
        Some(Open {
            port: socket.local.port(),
            owner: socket.owner,
            receive: granted(memory.rcvbuf, locks.rcvbuf, most_read),
            send: granted(memory.sndbuf, locks.sndbuf, most_sent),
        })
    };
    Ok(seen.sockets()?.iter().filter(|it| it.remote.ip() == peer).filter_map(each).collect())
}

/// `sk_setsockopt` with `SO_RCVBUF` or `SO_SNDBUF` (Linux v6.1 `net/core/sock.c`): what is asked for is cut to the
/// bound, and doubled.
fn asked_for(granted: u32, most: Option<i64>) -> AskedFor {
    let asked = granted / 2;
    if most == Some(i64::from(asked)) { AskedFor::AtLeast(asked) } else { AskedFor::Bytes(asked) }
}

/// By the longest prefix in the tables, in the order of the rules without conditions.
///
/// # Errors
/// Routes or rules were not seen.
pub fn route(seen: &Seen<'_>, peer: IpAddr) -> Asked<Option<Taken>> {
    let routes = seen.snapshot.routes.as_ref().ok_or(Missing::all(Source::Routes))?;
    if is_own(seen, peer) {
        return Err(Missing::part(Source::Routes, "that to an address of this host itself"));
    }
    let rules = seen.snapshot.rules.as_deref().unwrap_or_default();
    let of_family = rules.iter().filter(|rule| rule.ipv6 == peer.is_ipv6());
    let may_differ = of_family.clone().any(|rule| rule.selects);
    let mut tables: Vec<u32> =
        of_family.filter(|rule| !rule.selects).map(|rule| rule.table).collect();
    if tables.is_empty() {
        tables = vec![MAIN, DEFAULT];
    }
    let best = |table: &u32| -> Option<&Route> {
        let fits = routes.iter().filter(|route| route.table == *table && route.leads_to(peer));
        fits.min_by_key(|route| {
            let length = route.to.map_or(0, |(_, length)| length);
            (core::cmp::Reverse(length), route.metric)
        })
    };
    let found = tables.iter().find_map(best).cloned();
    Ok(found.map(|route| Taken { route, may_differ }))
}

/// The table `local` leads to it, which comes before all others and is not kept.
fn is_own(seen: &Seen<'_>, peer: IpAddr) -> bool {
    let links = seen.links().unwrap_or_default();
    peer.is_loopback()
        || links.iter().flat_map(|link| &link.addresses).any(|(address, _)| *address == peer)
}

/// `RT_TABLE_MAIN` and `RT_TABLE_DEFAULT` (Linux `include/uapi/linux/rtnetlink.h`).
const MAIN: u32 = 254;
const DEFAULT: u32 = 253;

fn changes(seen: &Seen<'_>, target: &Target, needs: &Needs) -> Vec<Change> {
    let small = [&needs.receive, &needs.send].into_iter().filter_map(|buffer| buffer.as_ref().ok());
    let grown = small.filter(|buffer| buffer.is_small(target)).filter_map(|buffer| {
        let from = seen.setting(buffer.key).ok()??.to_owned();
        let numbers = seen.numbers::<3>(buffer.key).ok()??;
        let most = buffer.needed.div_ceil(MEBIBYTE).saturating_mul(MEBIBYTE).min(LARGEST);
        let to = format!("{} {} {most}", numbers[0], numbers[1]);
        Some(Change::Sysctl { key: buffer.key.to_owned(), from, to })
    });
    let scaling = seen.number("net.ipv4.tcp_window_scaling").ok().flatten() == Some(0)
        && target.bdp_bytes() > u64::from(u16::MAX);
    let scaling = scaling.then(|| Change::Sysctl {
        key: "net.ipv4.tcp_window_scaling".to_owned(),
        from: "0".to_owned(),
        to: "1".to_owned(),
    });
    scaling.into_iter().chain(grown).collect()
}

const MEBIBYTE: u64 = 1 << 20;
/// The largest window of all (RFC 7323 section 2.3: 2^30) twice over.
const LARGEST: u64 = i32::MAX as u64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::parts;
    use crate::snapshot::{Link, Locks, Look, Memory, Rule, Settings, Snapshot, State};

    fn host(settings: &[(&str, &str)]) -> Snapshot {
        let values = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Snapshot {
            settings: Some(Settings {
                complete: true,
                values: values.collect(),
                ..Settings::default()
            }),
            looks: vec![Look::default()],
            ..Snapshot::default()
        }
    }

    fn of(snapshot: &Snapshot, target: &Target) -> Needs {
        needs(&Seen::new(snapshot).expect("a look"), target)
    }

    const ACROSS: Target = Target {
        peer: IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 0, 7)),
        rate: 1_000_000_000,
        rtt_ns: 20_000_000,
    };

    #[test]
    fn a_path_holds_its_rate_times_its_round_trip() {
        assert_eq!(ACROSS.bdp_bytes(), 2_500_000);
        // Article: 0.02 s times 100 Mbit/s are 250 kB, not 250 kbit.
        assert_eq!(Target { rate: 100_000_000, ..ACROSS }.bdp_bytes(), 250_000);
    }

    #[test]
    fn buffers_that_hold_it_fill_it_and_one_that_is_a_bit_smaller_does_not() {
        let rmem = ("net.ipv4.tcp_rmem", "4096 131072 6291456");
        let enough = host(&[rmem, ("net.ipv4.tcp_wmem", "4096 16384 3750000")]);
        assert_eq!(of(&enough, &ACROSS).changes, []);
        let short = host(&[rmem, ("net.ipv4.tcp_wmem", "4096 16384 3749997")]);
        let needs = of(&short, &ACROSS);
        assert_eq!(needs.send.expect("seen").needed, 3_750_000);
        assert_eq!(
            needs.changes,
            [Change::Sysctl {
                key: "net.ipv4.tcp_wmem".to_owned(),
                from: "4096 16384 3749997".to_owned(),
                to: "4096 16384 4194304".to_owned(),
            }]
        );
    }

    #[test]
    fn what_the_scale_lets_through_is_the_larger_of_both_settings() {
        let with = |most, asked| {
            let rmem = format!("4096 131072 {most}");
            let host = host(&[("net.ipv4.tcp_rmem", &rmem), ("net.core.rmem_max", asked)]);
            of(&host, &ACROSS).scale.expect("seen").shift
        };
        assert_eq!(with("6291456", "212992"), 7);
        assert_eq!(with("65535", "212992"), 2);
        assert_eq!(with("2147483647", "0"), 14);
        let off = host(&[("net.ipv4.tcp_window_scaling", "0"), ("net.ipv4.tcp_rmem", "1 2 3")]);
        assert_eq!(of(&off, &ACROSS).scale.expect("seen").window, 65_535);
        assert_eq!(of(&off, &ACROSS).changes.len(), 2);
    }

    #[test]
    fn what_a_program_asked_for_is_half_of_what_it_has_unless_its_bound_cut_it() {
        let socket_to = |to| parts::socket(State::Established, "10.0.0.1:5000", to);
        let socket = |locks: Option<Locks>| Socket {
            memory: Some(Memory { rcvbuf: 212_992, sndbuf: 32_768, ..Memory::default() }),
            locks,
            ..socket_to("10.0.0.7:443")
        };
        let both = Locks { rcvbuf: Some(true), sndbuf: Some(true), ..Locks::default() };
        let mut host = host(&[("net.core.rmem_max", "106496"), ("net.core.wmem_max", "106496")]);
        let unasked = Locks { sndbuf: Some(false), ..Locks::default() };
        host.looks[0].sockets = Some(vec![
            socket(Some(both)),
            socket(None),
            socket(Some(unasked)),
            socket_to("10.0.0.8:443"),
        ]);
        let open = of(&host, &ACROSS).open.expect("seen");
        let asked: Vec<_> = open.iter().map(|it| (it.receive.asked, it.send.asked)).collect();
        assert_eq!(
            asked,
            [
                (Some(AskedFor::AtLeast(106_496)), Some(AskedFor::Bytes(16_384))),
                (None, None),
                (None, None)
            ]
        );
    }

    #[test]
    fn the_share_of_the_window_is_a_setting_before_6_6_only() {
        let carries = |kernel: &str, scale| {
            let rmem = ("net.ipv4.tcp_rmem", "4096 131072 8000000");
            let mut host = host(&[rmem, ("net.ipv4.tcp_adv_win_scale", scale)]);
            host.kernel = Some(kernel.to_owned());
            of(&host, &ACROSS).receive.expect("seen").carries
        };
        assert_eq!(
            [carries("6.1.0-28-amd64", "2"), carries("6.1.0", "-2")],
            [6_000_000, 2_000_000]
        );
        assert_eq!(carries("6.5.13", "1"), 4_000_000);
        assert_eq!([carries("6.6.1", "2"), carries("5.14.0-503.el9.x86_64", "2")], [4_000_000; 2]);
    }

    #[test]
    fn the_longest_prefix_of_the_first_table_with_one_is_taken() {
        let route = |to: &str, length, table, metric| Route {
            to: (length > 0).then(|| (to.parse().expect("an address"), length)),
            line: format!("{to}/{length} table {table} metric {metric}"),
            table,
            metric,
            ..Route::default()
        };
        let mut host = host(&[]);
        assert_eq!(of(&host, &ACROSS).route.expect_err("no routes").source, Source::Routes);
        host.routes = Some(vec![
            route("0.0.0.0", 0, 254, 100),
            route("0.0.0.0", 0, 254, 50),
            route("10.0.0.0", 8, 254, 0),
            route("10.0.0.0", 29, 254, 0),
            route("10.0.0.8", 29, 254, 0),
            route("10.0.0.7", 32, 77, 0),
        ]);
        let line = |host: &Snapshot, peer: &str| {
            let target = Target { peer: peer.parse().expect("an address"), ..ACROSS };
            of(host, &target)
                .route
                .expect("routes")
                .map(|taken| (taken.route.line, taken.may_differ))
        };
        let taken = |line: &str, may_differ| Some((line.to_owned(), may_differ));
        assert_eq!(line(&host, "10.0.0.7"), taken("10.0.0.0/29 table 254 metric 0", false));
        assert_eq!(line(&host, "192.0.2.1"), taken("0.0.0.0/0 table 254 metric 50", false));
        assert_eq!(line(&host, "2001:db8::1"), None);
        host.looks[0].links = Some(vec![Link {
            addresses: vec![("192.0.2.9".parse().expect("an address"), 24)],
            ..Link::default()
        }]);
        for own in ["192.0.2.9", "127.0.0.1"] {
            let target = Target { peer: own.parse().expect("an address"), ..ACROSS };
            assert_eq!(of(&host, &target).route.expect_err("its own").source, Source::Routes);
        }
        let rule = |table, selects| Rule { table, selects, ..Rule::default() };
        host.rules = Some(vec![rule(77, false), rule(88, true), rule(254, false)]);
        assert_eq!(line(&host, "10.0.0.7"), taken("10.0.0.7/32 table 77 metric 0", true));
    }
}
