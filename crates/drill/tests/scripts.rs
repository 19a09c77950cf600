//! Scripts of our own run against the model, and the runner tells what is not as a script says.
//!
//! `tests/scripts/VERSION/*.pkt` are about the kernel of that version. What they expect comes from the
//! specification (docs/reference) and the kernel's source, never from what the model prints.

#![expect(clippy::expect_used, reason = "tests")]

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use tcpwhy_drill::{Setup, Verdict, run};
use tcpwhy_model::profile::Version;

/// The verdict in a line.
fn told(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Pass => "passes".into(),
        Verdict::Fail { place, expected, got } => {
            format!("line {}: {} | {}", place.line, expected.trim(), got.trim())
        }
        Verdict::Unsupported { place, construct } => format!("line {}: no {construct}", place.line),
        Verdict::Broken(error) => error.to_string(),
    }
}

#[test]
fn the_model_does_what_our_scripts_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut count = 0;
    let mut wrong = Vec::new();
    for version in fs::read_dir(folder).expect("the folder of scripts").flatten() {
        let name = version.file_name().into_string().expect("a version");
        let (major, minor) = name.split_once('.').expect("a version such as 6.18");
        let version_number =
            Version::new(major.parse().expect("a number"), minor.parse().expect("a number"));
        let setup = Setup { version: version_number, ..Setup::default() };
        for script in fs::read_dir(version.path()).expect("a folder of scripts").flatten() {
            let text = fs::read_to_string(script.path()).expect("a script");
            count += 1;
            let verdict = run(&text, &setup);
            if verdict != Verdict::Pass {
                wrong.push(format!("{name}/{}: {}", script.file_name().display(), told(&verdict)));
            }
        }
    }
    wrong.sort();
    assert!(wrong.is_empty(), "of {count} scripts\n{}", wrong.join("\n"));
    assert!(count >= 20, "only {count} scripts were found");
}

/// A connection that was accepted, as descriptor 4, 10 ms after the start.
const ACCEPTED: &str = "\
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 65535 <mss 1000,sackOK,nop,nop,nop,wscale 7>
+0 > S. 0:0(0) ack 1 <...>
+.01 < . 1:1(0) ack 1 win 4096
+0 accept(3, ..., ...) = 4
";

/// What drill says of a script that goes on from there, times left out.
fn after_accept(rest: &str) -> String {
    let told = told(&run(&format!("{ACCEPTED}{rest}"), &Setup::default()));
    let is_time = |word: &&str| word.len() == "0.000000".len() && word.as_bytes()[1] == b'.';
    let words: Vec<&str> = told.split(' ').filter(|word| !is_time(word)).collect();
    words.join(" ").replace(" at |", " |").trim_end_matches(" at").to_string()
}

#[test]
fn what_differs_is_told_with_what_came() {
    for (rest, said) in [
        ("+0 write(4, ..., 100) = 100\n+0 > P. 1:101(100) ack 1", "passes"),
        (
            "+0 write(4, ..., 100) = 100\n+0 > . 1:101(100) ack 1",
            "line 9: . 1:101(100) ack 1 | P. 1:101(100) ack 1 win 63 (flags differs)",
        ),
        (
            "+0 write(4, ..., 100) = 100\n+0 > P. 1:102(101) ack 1",
            "line 9: P. 1:102(101) ack 1 | P. 1:101(100) ack 1 win 63 (length differs)",
        ),
        (
            "+0 write(4, ..., 100) = 100\n+0 > P. 1:101(100) ack 2",
            "line 9: P. 1:101(100) ack 2 | P. 1:101(100) ack 1 win 63 (acknowledgement number differs)",
        ),
        (
            "+0 write(4, ..., 100) = 100\n+0 > P. 1:101(100) ack 1 <nop,nop,TS val 1 ecr 2>",
            "line 9: P. 1:101(100) ack 1 <nop,nop,TS val 1 ecr 2> | P. 1:101(100) ack 1 win 63 (options differs)",
        ),
        (
            "+0 write(4, ..., 100) = 100\n+.005 > P. 1:101(100) ack 1",
            "line 9: P. 1:101(100) ack 1 | P. 1:101(100) ack 1 win 63 (time differs)",
        ),
        ("+0 write(4, ..., 100) = 100\n+.00398 > P. 1:101(100) ack 1", "passes"),
        ("+0 write(4, ..., 100) = 99", "line 8: write(..) = 99 | 100"),
        (
            "+0 fcntl(4, F_SETFL, O_RDWR|O_NONBLOCK) = 0\n+0 read(4, ..., 9) = -1 EPIPE (no)",
            "line 9: read(..) = -1 EPIPE | -1 EAGAIN",
        ),
        ("+0 read(4, ..., 9) = 9", "line 8: read(..) = 9 | it blocks"),
        ("+0...0.1 read(4, ..., 9) = 9", "line 8: read(..) = 9 to return | it blocks"),
        (
            "+0...0.1 read(4, ..., 9) = 9\n+.05 < P. 1:10(9) ack 1 win 4096",
            "line 8: read(..) = 9 to return | it returned",
        ),
        ("+0 > . 1:1(0) ack 1", "line 8: . 1:1(0) ack 1 | no packet"),
        (
            "+0 getsockopt(4, SOL_TCP, TCP_NODELAY, [1], [4]) = 0",
            "line 8: getsockopt(..) = 0 | the value 0 instead of 1",
        ),
        (
            "+0 %{\nassert tcpi_snd_cwnd == 11, tcpi_snd_cwnd }%",
            "line 9: assert tcpi_snd_cwnd == 11, tcpi_snd_cwnd | 10",
        ),
        ("+0 poll([{fd=4, events=POLLOUT, revents=POLLOUT}], 1, 0) = 1", "passes"),
        (
            "+0 poll([{fd=4, events=POLLOUT|POLLIN, revents=POLLIN}], 1, 0) = 1",
            "line 8: poll(..) = 1 | revents 4 instead of 1",
        ),
    ] {
        assert_eq!(after_accept(rest), said, "{rest}");
    }
}

#[test]
fn older_kernels_wait_two_ticks_more_for_what_is_out_of_order() {
    // A quarter of the round trip, 25 ms, and two ticks: 7 + 2 ticks of 4 ms; now 27 ms, 7 ticks. The
    // timer is up to one tick late.
    for (version, time) in [((4, 18), "+.036~+.040"), ((6, 18), "+.028~+.032")] {
        let script = format!(
            "\
--tolerance_usecs=50
--tolerance_percent=0
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 65535 <mss 1000,sackOK,nop,nop,nop,wscale 7>
+0 > S. 0:0(0) ack 1 <...>
+.1 < . 1:1(0) ack 1 win 4096
+0 accept(3, ..., ...) = 4
+0 write(4, ..., 3000) = 3000
+0 > P. 1:3001(3000) ack 1
+.1 < . 1:1(0) ack 1 win 4096 <sack 2001:3001,nop,nop>
{time} > . 1:1001(1000) ack 1
"
        );
        let setup =
            Setup { version: Version::new(version.0, version.1), hz: 250, ..Setup::default() };
        assert_eq!(told(&run(&script, &setup)), "passes", "{version:?}");
    }
}

#[test]
fn a_defined_name_may_say_why_the_peer_is_out_of_reach() {
    let script = "\
0 socket(..., SOCK_STREAM|SOCK_NONBLOCK, IPPROTO_TCP) = 3
+0 connect(3, ..., ...) = -1 EINPROGRESS
+0 > S 0:0(0) <...>
+0 < icmp unreachable REASON [0:0(0)]
+0 write(3, ..., 1) = -1 EHOSTUNREACH
";
    let defined = [("REASON".into(), "host_unreachable".into())].into_iter().collect();
    assert_eq!(told(&run(script, &Setup { defined, ..Setup::default() })), "passes");
}

#[test]
fn a_syn_that_crosses_ours_is_not_answered() {
    let script = "\
0 socket(..., SOCK_STREAM|SOCK_NONBLOCK, IPPROTO_TCP) = 3
+0 connect(3, ..., ...) = -1 EINPROGRESS
+0 > S 0:0(0) <...>
+0 < S 0:0(0) win 1000 <mss 1000>
";
    assert_eq!(
        told(&run(script, &Setup::default())),
        "line 4: no a SYN that crosses ours (simultaneous opening)"
    );
}

#[test]
fn what_the_model_does_not_have_is_named() {
    for (rest, said) in [
        ("+0 splice(4, NULL, 6, NULL, 99, 0) = 99", "line 8: no the system call splice"),
        ("+0 < U. 1:101(100) ack 1 win 257 urg 100", "line 8: no urgent data"),
        ("+0 < . 1:1(0) ack 1 win 1 <md5 00>", "line 8: no signatures (MD5)"),
        ("+0 `sysctl -q net.ipv4.tcp_what=1`", "line 8: no sysctl net.ipv4.tcp_what=1"),
        ("+0 `reboot`", "line 8: no the command `reboot`"),
        ("+0 %{ assert tcpi_magic == 1 }%", "line 8: no the name `tcpi_magic`"),
        (
            "+0 setsockopt(4, SOL_SOCKET, SO_TIMESTAMPING, [1], 4) = 0",
            "line 8: no setting SO_TIMESTAMPING",
        ),
    ] {
        assert_eq!(after_accept(rest), said, "{rest}");
    }
}

#[test]
fn equal_segments_in_a_row_are_one_that_a_script_expects() {
    let written = "+0 setsockopt(4, SOL_TCP, TCP_NODELAY, [1], 4) = 0\n+0 write(4, ..., 500) = 500\n+0 write(4, ..., 500) = 500\n";
    assert_eq!(after_accept(&format!("{written}+0 > P. 1:1001(1000) ack 1")), "passes");
    let uneven = format!("{}+0 write(4, ..., 500) = 500\n", written.replacen("500", "400", 2));
    let verdict = after_accept(&format!("{uneven}+0 > P. 1:1401(1400) ack 1"));
    assert!(verdict.ends_with("(length differs)"), "400, 500 and 500 are not alike: {verdict}");
}

#[test]
fn timestamps_are_the_scripts_own() {
    let script = "\
--tcp_ts_tick_usecs=1000
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 65535 <mss 1000,sackOK,TS val 7 ecr 0>
+0 > S. 0:0(0) ack 1 <mss 1460,sackOK,TS val 5000 ecr 7>
+.05 < . 1:1(0) ack 1 win 65535 <nop,nop,TS val 57 ecr 5000>
+0 accept(3, ..., ...) = 4
+0 %{ assert 48000 <= tcpi_rtt <= 52000, tcpi_rtt }%
+0 write(4, ..., 100) = 100
+0 > P. 1:101(100) ack 1 <nop,nop,TS val 5050 ecr 57>
";
    assert_eq!(told(&run(script, &Setup::default())), "passes");
    let late = script.replace("val 5050", "val 5060");
    assert!(
        told(&run(&late, &Setup::default())).ends_with("(options differs)"),
        "10 ms are over the tolerance"
    );
}

#[test]
fn a_script_that_is_none_is_told_with_line_and_column() {
    let said = "line 8, column 4: expected `<`, `>`, a system call, a command or code, found `=`";
    assert_eq!(after_accept("+0 = what"), said);
}

/// Events that a script may have, so that random ones get far.
const EVENTS: &[&str] = &[
    "+0 write(4, ..., 5000) = ...",
    "+0 read(4, ..., 5000) = ...",
    "+0 shutdown(4, SHUT_WR) = ...",
    "+0 close(4) = ...",
    "+0 close(3) = ...",
    "+0 setsockopt(4, SOL_TCP, TCP_NODELAY, [1], 4) = 0",
    "+0 setsockopt(4, SOL_SOCKET, SO_SNDBUF, [3000], 4) = 0",
    "+0 setsockopt(4, SOL_SOCKET, SO_RCVBUF, [3000], 4) = 0",
    "+.1 < . 1:1(0) ack 1001 win 4096",
    "+0 < . 1:1(0) ack 4001 win 4096",
    "+.3 < . 1:1(0) ack 1 win 0",
    "+.01 < P. 1:1001(1000) ack 1 win 4096",
    "+.01 < P. 3001:4001(1000) ack 1 win 4096",
    "+0 < . 1:1(0) ack 1 win 4096 <sack 2001:4001,nop,nop>",
    "+0 < . 1:1(0) ack 5001 win 4096 <sack 2001:4001,nop,nop>",
    "+0 < F. 1:1(0) ack 1 win 4096",
    "+0 < R. 1:1(0) ack 1 win 4096",
    "+0 < S 0:0(0) win 65535 <mss 1000>",
    "+0 < SF 4294967295:4294967295(0) win 0",
    "+0 < . 4294967000:964(1260) ack 4294967295 win 1",
    "+9 %{ print(tcpi_rtt) }%",
    "* > . 1:1(0) ack 1",
    "+0 < icmp unreachable frag_needed mtu 68 [1:1001(1000)]",
    "+0 < icmp unreachable frag_needed mtu 0 [0:1(1)]",
    "+0 < icmp unreachable host_unreachable [1:1001(1000)]",
    "+0 connect(4, AF_UNSPEC, ...) = ...",
    "+0 sendto(5, ..., 3000, MSG_FASTOPEN|MSG_DONTWAIT, ..., ...) = ...",
    "+0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 5",
    "+.1 < S. 0:10(10) ack 1 win 9 <mss 100,FO 01020304,nop,nop>",
    "+.1 < SF. 0:0(0) ack 101 win 9",
    "+31536000 < . 1:1(0) ack 1 win 4096",
    "+0...31536000 read(4, ..., 5000) = ...",
];

/// Settings at the borders of what a kernel takes, and beyond.
const SETTINGS: &[&str] = &[
    "sysctl net.ipv4.tcp_rmem=\"0 0 0\"",
    "sysctl net.ipv4.tcp_rmem=\"4096 4294967295 4294967295\"",
    "sysctl net.ipv4.tcp_wmem=\"0 0 0\"",
    "sysctl net.ipv4.tcp_wmem=\"4096 4294967295 4294967295\"",
    "sysctl net.ipv4.tcp_min_tso_segs=0",
    "sysctl net.ipv4.tcp_min_tso_segs=4294967295",
    "sysctl net.ipv4.tcp_tso_win_divisor=0",
    "sysctl net.ipv4.tcp_pacing_ss_ratio=0 net.ipv4.tcp_pacing_ca_ratio=0",
    "sysctl net.ipv4.tcp_reordering=0",
    "sysctl net.ipv4.tcp_reordering=4294967295",
    "sysctl net.ipv4.tcp_retries2=4294967295",
    "sysctl net.ipv4.tcp_retries2=0",
    "sysctl net.ipv4.tcp_syn_retries=0 net.ipv4.tcp_synack_retries=0",
    "sysctl net.ipv4.tcp_notsent_lowat=0",
    "sysctl net.ipv4.tcp_adv_win_scale=-31",
    "sysctl net.ipv4.tcp_app_win=0",
    "sysctl net.ipv4.tcp_timestamps=0 net.ipv4.tcp_sack=0 net.ipv4.tcp_window_scaling=0",
    "sysctl net.ipv4.tcp_congestion_control=reno",
    "ip route change default dev tun0 initcwnd 0",
    "ip route change default dev tun0 initcwnd 4294967295",
    "ip route change default dev tun0 initrwnd 4294967295",
    "ip route change default dev tun0 rto_min 0ms",
    "ip route change default dev tun0 mtu 68",
    "ip route change default dev tun0 mtu 0",
    "ip route change default dev tun0 mtu 1",
    "sysctl net.ipv4.tcp_mtu_probing=2 net.ipv4.tcp_base_mss=0 net.ipv4.tcp_probe_threshold=0",
    "sysctl net.ipv4.tcp_mtu_probing=1 net.ipv4.tcp_base_mss=65535 net.ipv4.tcp_retries1=0",
    "sysctl net.ipv4.tcp_fastopen=0x607",
    "sysctl net.ipv4.tcp_no_ssthresh_metrics_save=0 net.ipv4.tcp_rto_max_ms=1000",
    "ip route change default dev tun0 advmss 0",
    "ip route change default dev tun0 window 0",
    "ip route change default dev tun0 ssthresh 0",
    "ip link set dev tun0 mtu 0",
    "ip link set dev tun0 mtu 68",
    "ip link set dev tun0 mtu 65535",
    "tc qdisc add dev tun0 root fq",
    "ethtool -K tun0 tso off",
];

/// First packets that few send.
const SYNS: &[&str] = &[
    "+0 < S 0:0(0) win 0",
    "+0 < S 0:0(0) win 65535 <mss 0>",
    "+0 < S 4294967295:4294967295(0) win 65535 <mss 1,nop,wscale 255>",
    "+0 < SEW 0:0(0) win 65535 <mss 65535,sackOK,TS val 0 ecr 0,nop,wscale 14>",
    "+0 < S 0:1000(1000) win 65535 <mss 1000>",
    "+0 < SF 0:1000(1000) win 0 <FO 3021b9d889017eeb>",
    "+0 < S 0:1000(1000) win 65535 <mss 1000,FOEXP>",
];

proptest! {
    #[test]
    fn no_setting_makes_it_panic(
        settings in prop::collection::vec(prop::sample::select(SETTINGS), 1..4),
        syn in prop::sample::select(SYNS),
        events in prop::collection::vec(prop::sample::select(EVENTS), 0..10),
        version in prop::sample::select(vec![(4, 18), (5, 4), (5, 15), (6, 1), (6, 12), (6, 18)]),
    ) {
        let opened =
            "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0";
        let made = "+.01 < . 1:1(0) ack 1 win 4096\n+0 accept(3, ..., ...) = 4";
        let (settings, events) = (settings.join("\n"), events.join("\n"));
        let script = format!("`{settings}`\n{opened}\n{syn}\n{made}\n{events}");
        let version = Version::new(version.0, version.1);
        let _ = run(&script, &Setup { version, ..Setup::default() });
    }
}

proptest! {
    #[test]
    fn no_mixture_of_events_makes_it_panic(events in prop::collection::vec(prop::sample::select(EVENTS), 0..14)) {
        let _ = run(&format!("{ACCEPTED}{}", events.join("\n")), &Setup::default());
    }
}
