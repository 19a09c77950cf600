//! Text as people paste it: wrapped by a mail program, by name, or only some lines of it.

use super::*;

const WRAPPED: &str = "> # ss --tcp -timo
> ESTAB    0      186408    192.0.2.8:6945
> 192.0.2.6:35432
>    timer:(on,35sec,0)
>          skmem:(r0,rb2420208,t0,tb332800,f3032,w332840,o0,bl0,d2821) ts
> sack cubic wscale:7,7 rto:120000 rtt:0.066/0.015 mss:1434 cwnd:1 ssthresh:2
> bytes_sent:1852143 bytes_retrans:1707732 bytes_acked:102223 pacing_rate
> 6.64Gbps delivery_rate 6.98Gbps busy:346940689ms
> rwnd_limited:209ms(0.0%) unacked:32 retrans:1/2834 lost:1 notsent:144220
";

#[test]
fn a_socket_that_mail_wrapped_has_all_its_words() {
    let pasted = read(WRAPPED);
    assert_eq!(pasted.notes.unknown, 0, "{:?}", pasted.notes.first);
    let sockets = pasted.snapshot.looks[0].sockets.clone().expect("sockets");
    let socket = &sockets[0];
    assert_eq!((sockets.len(), socket.remote.to_string()), (1, "192.0.2.6:35432".to_owned()));
    assert_eq!(socket.memory.expect("memory").drops, 2821);
    let info = socket.info.as_ref().expect("information");
    assert_eq!((info.total_retrans, info.notsent_bytes), (Some(2834), Some(144_220)));
    assert_eq!(info.pacing_rate, Some(825_000_000), "its value is on the next line");
    assert_eq!(info.options, Some(7));
    assert_eq!(socket.timer.expect("a timer").expires_ms, 35_000);
}

#[test]
fn both_ends_of_a_connection_in_one_mail_are_one_look() {
    let row = |local: &str, remote: &str| {
        format!("# ss -ti\nESTAB 0 0 {local} {remote}\n\t cubic cwnd:10 rtt:1/1 unacked:1\n")
    };
    let looks = |second: String| {
        let text = row("192.0.2.6:35432", "192.0.2.8:6945") + &second;
        read(&text)
            .snapshot
            .looks
            .iter()
            .map(|look| look.sockets.as_ref().map_or(0, Vec::len))
            .collect::<Vec<_>>()
    };
    assert_eq!(looks(row("192.0.2.8:6945", "192.0.2.6:35432")), [2]);
    let again = row("192.0.2.6:35432", "192.0.2.8:6945");
    assert_eq!(looks(again.replace("cwnd:10", "cwnd:11")), [1, 1], "the same end again");
    assert_eq!(looks(again), [1], "quoted twice");
}

#[test]
fn lines_of_information_alone_are_sockets_without_a_name() {
    let info =
        " cubic wscale:7,7 rto:204 rtt:3.5/1.1 mss:8949 cwnd:45 unacked:2 notsent:100 minrtt:0.2\n";
    for indent in ["\t", ""] {
        let other = info.replace("minrtt:0.2", "minrtt:0.3");
        let text = format!("$ ss -ti | grep cubic\n{indent}{info}{indent}{other}");
        let pasted = read(&text);
        let sockets = pasted.snapshot.looks[0].sockets.clone().expect("sockets");
        assert_eq!((sockets.len(), sockets[0].send_queue), (2, 17_998));
        assert_eq!(pasted.snapshot.named.len(), 4);
    }
}

#[test]
fn ends_by_name_are_kept_under_it() {
    let text = "ESTAB 0 2896 web-1.example:https client-7.example:54022\n\t cubic cwnd:10\n";
    let snapshot = read(text).snapshot;
    let socket = snapshot.looks[0].sockets.as_ref().expect("sockets")[0].clone();
    assert_eq!(snapshot.named.get(&socket.local.ip()).map(String::as_str), Some("web-1.example"));
    assert_eq!(socket.local.port(), 443);
}

const BOND: &str = "Ethernet Channel Bonding Driver: v6.1.0-18-amd64

Bonding Mode: load balancing (round-robin)
MII Status: up
MII Polling Interval (ms): 100

Slave Interface: eth1
MII Status: up
Speed: 1000 Mbps
Duplex: full
Link Failure Count: 3
Permanent HW addr: 02:00:00:00:00:01
Slave queue ID: 0

Slave Interface: eth2
MII Status: going back
Speed: 100 Mbps
Duplex: full
Link Failure Count: 0
";

#[test]
fn a_bond_is_read_with_its_interfaces() {
    let pasted = read(&format!("$ cat /proc/net/bonding/bond7\n{BOND}"));
    assert_eq!(pasted.notes.unknown, 0, "{:?}", pasted.notes.first);
    let look = &pasted.snapshot.looks[0];
    let bond = &look.bonds.as_ref().expect("a bond")[0];
    assert_eq!(
        (bond.name.as_str(), bond.mode.as_str(), bond.partner),
        ("bond7", "balance-rr", None)
    );
    let slave = |name: &str, up, failures| (name.to_owned(), up, failures, None);
    assert_eq!(bond.slaves, [slave("eth1", true, 3), slave("eth2", false, 0)]);
    let speeds: Vec<_> = look.links.iter().flatten().map(|link| link.speed).collect();
    assert_eq!(speeds, [Some(1_000_000_000), Some(100_000_000)]);
}

#[test]
fn masks_are_put_to_their_interrupts() {
    let text = "           CPU0       CPU1\n  52:   9   0   PCI-MSI-edge   eth0-TxRx-0\n  53:   8   0   PCI-MSI-edge   eth0-TxRx-1\n\
                $ for i in 52 53; do cat /proc/irq/$i/smp_affinity; done\n1\n3\n";
    let pasted = read(text);
    assert_eq!(pasted.notes.unknown, 0, "{:?}", pasted.notes.first);
    let all = pasted.snapshot.looks[0].interrupts.clone().expect("interrupts");
    let masks: Vec<_> = all.iter().map(|irq| irq.affinity.as_deref()).collect();
    assert_eq!(masks, [Some("0"), Some("0-1")]);
}

#[test]
fn memory_is_read_in_the_unit_of_the_command() {
    let table = "       total   used   free   shared  buff/cache   available\nMem:   3934   3702   101   12   130   45\nSwap:   2047   1990   57\n";
    let snapshot = read(&format!("$ free -m\n{table}")).snapshot;
    assert_eq!(snapshot.memory_bytes, Some(3934 << 20));
    assert_eq!(snapshot.looks[0].available_bytes, Some(45 << 20));
    assert_eq!(read(table).snapshot.memory_bytes, None, "the unit is not told");
}
