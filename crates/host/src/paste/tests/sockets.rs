//! Tables of sockets.

use super::*;

/// `TCP_INFO` of the server's socket; taken some milliseconds later, only its times differed.
const SERVER: Info = Info {
    options: Some(7),
    snd_wscale: Some(10),
    rcv_wscale: Some(10),
    backoff: Some(2),
    rto_ns: Some(208_000_000),
    snd_mss: Some(47_616),
    rcv_mss: Some(536),
    advmss: Some(65_483),
    pmtu: Some(65_535),
    unacked: Some(0),
    lost: Some(0),
    last_data_sent_ns: Some(1_288_000_000),
    last_data_recv_ns: Some(1_596_000_000),
    last_ack_recv_ns: Some(1_076_000_000),
    rtt_ns: Some(4_498_000),
    min_rtt_ns: Some(7_000),
    rcv_rtt_ns: None,
    snd_cwnd: Some(15),
    snd_ssthresh: None,
    rcv_ssthresh: Some(65_483),
    rcv_space: Some(65_483),
    reordering: Some(3),
    total_retrans: Some(1),
    dsack_dups: Some(1),
    rcv_ooopack: None,
    pacing_rate: Some(133_780_111_893),
    max_pacing_rate: None,
    delivery_rate: Some(1_082_181_818),
    delivery_rate_app_limited: Some(false),
    bytes_acked: Some(128_512),
    bytes_received: Some(0),
    bytes_sent: Some(176_128),
    bytes_retrans: Some(47_616),
    notsent_bytes: Some(3_782_144),
    busy_ns: Some(1_548_000_000),
    rwnd_limited_ns: Some(1_548_000_000),
    sndbuf_limited_ns: Some(0),
    // A window that is shut is not printed, but those of others are.
    snd_wnd: Some(0),
    rcv_wnd: None,
    bbr: Some(Bbr { bw: 1_253_050_689, min_rtt_ns: 7_000, pacing_percent: 288, cwnd_percent: 288 }),
};

#[test]
fn what_ss_prints_reads_back_as_the_kernel_told_it() {
    let look = last(NEW);
    let server = socket(&look, "10.0.0.1:8080", "10.0.0.2:40001");
    assert_eq!(server.info.as_deref(), Some(&SERVER));
    let memory = Memory {
        rcvbuf: 131_072,
        sndbuf: 4_194_304,
        forward: 2_368,
        wqueued: 3_847_872,
        ..Memory::default()
    };
    assert_eq!((server.memory, server.send_queue), (Some(memory), 3_782_144));
    assert_eq!(server.timer, Some(Timer { kind: 4, retransmits: 1, expires_ms: 196 }));
    assert_eq!((server.inode, server.is_orphan()), (4_630_654, Some(false)));
    assert_eq!(server.owner, Some(Owner { pid: 10_267, fd: Some(8) }));
    assert_eq!(look.processes.expect("processes")[&10_267].name, "python3");
    assert_eq!(server.congestion.as_deref(), Some("bbr"));

    let reader = socket(&last(NEW), "10.0.0.2:40000", "10.0.0.1:8080");
    let info = reader.info.expect("figures");
    assert_eq!(
        (info.rcv_rtt_ns, info.rcv_space, info.rcv_ssthresh),
        (Some(43_000), Some(198_656), Some(226_198))
    );
    assert_eq!((info.bytes_sent, info.notsent_bytes, info.busy_ns), (Some(100), Some(0), Some(0)));
    assert_eq!(info.delivery_rate_app_limited, Some(true));
    let waiting = socket(&last(NEW), "10.0.0.1:8080", "10.0.0.2:41000");
    assert_eq!(waiting.is_orphan(), Some(true), "not accepted yet: no descriptor holds it");
}

#[test]
fn tables_that_tell_different_things_are_one_look() {
    let looks = read(NEW).snapshot.looks;
    assert_eq!(looks.len(), 2, "ss -tan and ss -ltnme both show the listener");
    let look = &looks[1];
    let listeners = look.listeners.as_deref().expect("a listener");
    assert_eq!(listeners.len(), 1);
    assert_eq!((listeners[0].accept_queue, listeners[0].accept_max), (2, 3));
    assert_eq!(listeners[0].drops, Some(0));
    assert!(!listeners[0].inode_unseen);
    let sockets = look.sockets.as_deref().expect("sockets");
    assert_eq!(sockets.len(), 8);
    let sockstat = look.sockstat.as_ref().expect("sockstat");
    assert_eq!((sockstat["TCP"]["mem"], sockstat["TCP"]["tw"]), (992, 1));
}

#[test]
fn old_forms_of_ss_are_read() {
    let look = last(OLD);
    let listeners = look.listeners.clone().expect("listeners");
    assert_eq!((listeners[0].accept_queue, listeners[0].accept_max), (129, 128));
    assert_eq!((listeners[0].drops, listeners[0].inode_unseen), (None, true));
    assert_eq!(listeners[0].local.to_string(), "0.0.0.0:80", "beside :::22");
    assert_eq!(listeners[1].local.to_string(), "[::]:22");
    let new = last("LISTEN 0 128 *:80 *:*\n").listeners.expect("a listener");
    assert_eq!(new[0].local.to_string(), "[::]:80");
    let socket = socket(&look, "10.20.0.5:80", "10.20.0.9:51000");
    assert_eq!(socket.state, State::CloseWait, "it was asked for alone");
    assert_eq!(socket.owner, Some(Owner { pid: 2211, fd: Some(18) }));
    assert_eq!(look.processes.expect("processes")[&2211].name, "Web Server");
    assert_eq!(socket.is_orphan(), None, "without -e nothing tells");
    let info = socket.info.expect("figures");
    assert_eq!((info.pacing_rate, info.max_pacing_rate), (Some(987_500), Some(1_062_500)));
    assert_eq!((info.rtt_ns, info.snd_ssthresh), (Some(29_171_000), Some(361)));
    assert_eq!((info.notsent_bytes, info.snd_wnd), (None, None), "this ss may not know them");
}

#[test]
fn a_connection_of_mptcp_is_its_subflows() {
    let text = "Netid State Recv-Q Send-Q Local Address:Port Peer Address:Port Process\n\
        mptcp ESTAB 0 9000 10.0.0.1:80 10.0.0.2:4000 users:((\"server\",pid=811,fd=7))\n\
        \t subflows:1 subflows_max:2 token:7bf3a7a9 write_seq:1 snd_una:2 rcv_nxt:3\n\
        tcp ESTAB 0 7000 10.0.0.1:80 10.0.0.2:4000\n\
        \t cubic rto:220 rtt:20/1 mss:1000 cwnd:90 unacked:7 tcp-ulp-mptcp flags:Mmec token:0000(id:0)/7bf3a7a9(id:0) \
        seq:9f4f sfseq:1 ssnoff:5b9a maplen:1c\n";
    let paste = read(text);
    assert_eq!(paste.notes.unknown, 0, "{:?}", paste.notes.first);
    let look = last(text);
    let sockets = look.sockets.as_deref().expect("one");
    assert_eq!(sockets.len(), 1);
    assert_eq!((sockets[0].send_queue, sockets[0].owner.is_some()), (7000, false));
    assert_eq!(sockets[0].info.as_deref().and_then(|info| info.unacked), Some(7));
}

#[test]
fn what_bbr_tells_is_read() {
    let told = |bbr: &str| {
        let look = last(&format!(
            "ESTAB 0 9 10.0.0.1:80 10.0.0.2:4000\n\t bbr cwnd:9 mss:1448 rto:204 rtt:20/1 {bbr} unacked:9\n"
        ));
        look.sockets.expect("one")[0].info.as_deref().copied().expect("figures")
    };
    let info = told("bbr:(bw:15.8Mbps,mrtt:20.134,pacing_gain:1.25,cwnd_gain:2)");
    let bbr = Bbr { bw: 1_975_000, min_rtt_ns: 20_134_000, pacing_percent: 125, cwnd_percent: 200 };
    assert_eq!((info.bbr, info.unacked), (Some(bbr), Some(9)));
    let starts = told("bbr:(bw:0bps,mrtt:20,pacing_gain:2.88672,cwnd_gain:2.88672)").bbr;
    assert_eq!(starts.map(|bbr| (bbr.bw, bbr.pacing_percent)), Some((0, 288)));
    assert_eq!(told("bbr:(bw:15.8Mb").bbr, None, "cut");
}

#[test]
fn netstat_tells_states_and_not_the_room_of_listeners() {
    let (_, behind) = NEW.split_once("$ netstat -ant\n").expect("its output");
    let (netstat, _) = behind.split_once("$ ss -s").expect("its end");
    let look = last(netstat);
    assert_eq!(look.listeners, None, "it shows no limit of the queue");
    assert_eq!(socket(&look, "10.0.0.2:40002", "10.0.0.1:8080").state, State::FinWait2);
    assert_eq!(look.sockets.expect("sockets").len(), 8);
}

#[test]
fn connections_in_time_wait_are_counted_by_what_would_have_to_differ() {
    let text = "State Recv-Q Send-Q Local Address:Port Peer Address:Port\n\
        LISTEN 0 128 0.0.0.0:80 0.0.0.0:*\n\
        TIME-WAIT 0 0 10.0.0.1:80 10.0.0.2:4000\n\
        TIME-WAIT 0 0 10.0.0.1:80 10.0.0.2:4001\n\
        TIME-WAIT 0 0 10.0.0.1:5000 10.0.0.3:443\n";
    let occupied = last(text).time_wait.expect("some");
    assert_eq!((occupied[0].local_port, occupied[0].count), (None, 1));
    assert_eq!(occupied[0].remote.port(), 443);
    assert_eq!((occupied[1].local_port, occupied[1].count), (Some(80), 2));
    let range = format!("net.ipv4.ip_local_port_range = 5001\t6000\n{text}");
    let occupied = last(&range).time_wait.expect("some");
    assert_eq!(occupied[1].local_port, Some(5000), "the kernel would not choose it");
    let without = text.replace("LISTEN 0 128 0.0.0.0:80 0.0.0.0:*\n", "");
    assert_eq!(last(&without).time_wait, None, "which end connected is not seen");
}

#[test]
fn netstat_names_the_programs_where_it_was_asked_to() {
    let text = "Proto Recv-Q Send-Q Local Address Foreign Address State PID/Program name Timer\n\
        tcp 0 0 10.0.0.1:22 10.0.0.2:4000 ESTABLISHED 4711/sshd: ada [priv] keepalive (7190.47/0/0)\n\
        tcp 0 0 10.0.0.1:80 10.0.0.2:4001 CLOSE_WAIT 33 1204 99/nginx: worker\n\
        tcp 0 0 10.0.0.1:80 10.0.0.2:4002 ESTABLISHED - off (0.00/0/0)\n";
    let look = last(text);
    let owner = |local: &str, remote: &str| socket(&look, local, remote).owner;
    assert_eq!(owner("10.0.0.1:22", "10.0.0.2:4000"), Some(Owner { pid: 4711, fd: None }));
    assert_eq!(
        owner("10.0.0.1:80", "10.0.0.2:4001"),
        Some(Owner { pid: 99, fd: None }),
        "behind user and inode"
    );
    assert_eq!(owner("10.0.0.1:80", "10.0.0.2:4002"), None, "not allowed to see");
    let names =
        look.processes.expect("programs").into_iter().map(|(pid, process)| (pid, process.name));
    assert_eq!(names.collect::<Vec<_>>(), [(99, "nginx".to_owned()), (4711, "sshd".to_owned())]);
}

/// How many sockets and listeners the last look has.
fn numbers(text: &str) -> [Option<usize>; 2] {
    let look = last(text);
    [look.sockets.map(|all| all.len()), look.listeners.map(|all| all.len())]
}

#[test]
fn a_head_without_a_line_below_is_nothing_there_where_all_was_asked_for() {
    let head = "State Recv-Q Send-Q Local Address:Port Peer Address:Port Process\n";
    let of = |command: &str| numbers(&format!("{command}\n{head}$ date\n"));
    assert_eq!(of("$ ss -tin"), [Some(0), None]);
    assert_eq!(of("$ sudo ss -ltnp"), [None, Some(0)]);
    assert_eq!(of("$ ss -tan"), [Some(0), Some(0)]);
    assert_eq!(of("$ ss --tcp --info"), [Some(0), None]);
    let some = [
        "$ ss -tn dst 10.0.0.1",
        "$ ss -4tin",
        "$ ss -un",
        "$ ss -tan | grep -v LISTEN",
        "$ ss",
        "$ date",
    ];
    for command in some {
        assert_eq!(of(command), [None, None], "{command}: what is not listed is not gone");
    }
}

#[test]
fn a_listing_that_is_not_understood_is_not_an_empty_one() {
    let head = "$ ss -ta\nState Recv-Q Send-Q Local Address:Port Peer Address:Port\n";
    let of = |rows: &str| numbers(&format!("{head}{rows}"));
    assert_eq!(of("ESTAB 0 0 web-1 ada.example\n"), [None, None]);
    assert_eq!(of("Cannot open netlink socket: Permission denied\n"), [None, None]);
    let known = "ESTAB 0 0 10.0.0.1:22 10.0.0.2:4000\n";
    assert_eq!(of(known), [Some(1), Some(0)]);
    assert_eq!(of(&format!("ESTAB 0 0 web-1 ada.example\n{known}")), [Some(1), None]);
    assert_eq!(of(&format!("{known}$ ss -ta\nESTAB 0 0 web-1 ada.example\n")), [Some(1), Some(0)]);
}

#[test]
fn connections_that_are_gone_at_the_second_look_are_gone() {
    let head = "State Recv-Q Send-Q Local Address:Port Peer Address:Port\n";
    let row = "ESTAB 0 0 10.0.0.1:80 10.0.0.2:4000\n\t cubic cwnd:10 rtt:1/1\n";
    let looks = |text: &str| -> Vec<Option<usize>> {
        let looks = read(text).snapshot.looks.into_iter();
        looks.map(|look| look.sockets.map(|all| all.len())).collect()
    };
    let each = format!("$ ss -tin\n{head}{row}");
    assert_eq!(looks(&format!("{each}$ ss -tin\n{head}")), [Some(1), Some(0)]);
    assert_eq!(looks(&format!("{each}$ ss -6tin\n{head}")), [Some(1)], "of another family");
    assert_eq!(
        looks(&format!("{each}$ ss -tn\n{head}ESTAB 0 0 10.0.0.1:80 10.0.0.2:4000\n")),
        [Some(1)]
    );
}
