//! Files of `/proc`, and what looks like another thing.

use super::super::read;

#[test]
fn counters_of_ten_digits_are_no_dates() {
    let pasted = read(
        "    1610612736 segments received\nTcpOutSegs                      1610612737         0.0\n\
         net.ipv4.tcp_mem = 1073741824 1610612736 2147483648\nNIC statistics:\n     rx_bytes: 1610612738\n",
    );
    let look = &pasted.snapshot.looks[0];
    assert_eq!((look.t_ns, pasted.notes.unknown), (None, 0));
    let tcp = &look.counters.as_ref().expect("counters")["Tcp"];
    assert_eq!((tcp["InSegs"], tcp["OutSegs"]), (1_610_612_736, 1_610_612_737));
    let settings = pasted.snapshot.settings.expect("settings");
    assert_eq!(settings.values["net.ipv4.tcp_mem"], "1073741824 1610612736 2147483648");
    let driver = look.links.as_ref().expect("a link")[0].driver_counters.as_ref().expect("some");
    assert_eq!(driver["rx_bytes"], 1_610_612_738);
    // A date alone, and above what it is of.
    let dated = read("1610612736\nTcpOutSegs 7 0.0\n=== 1610612800 look ===\nTcpOutSegs 9 0.0\n");
    let times: Vec<_> = dated.snapshot.looks.iter().map(|look| look.t_ns).collect();
    assert_eq!(times, [Some(1_610_612_736_000_000_000), Some(1_610_612_800_000_000_000)]);
}

#[test]
fn a_container_without_ss_shows_its_sockets() {
    let text = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
         \x20  0: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 7 1 0 100 0 0 10 0\n\
         \x20  1: 0A0200C0:8B44 140200C0:1538 01 000FE7C0:00000000 04:0000000A 00000000     0        6 8 2 0 23 0 0 74 146\n\
         \x20 sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
         \x20  0: 0000000000000000FFFF00000A0200C0:1F90 0000000000000000FFFF0000140200C0:1539 08 00000000:00000011 00:00000000 00000000     0        0 9 1 0 20 4 30 10 -1\n";
    let pasted = read(text);
    assert_eq!((pasted.notes.unknown, pasted.snapshot.looks.len()), (0, 1));
    let sockets = pasted.snapshot.looks[0].sockets.as_ref().expect("sockets");
    assert_eq!(sockets.len(), 2);
    assert_eq!(sockets[1].local.to_string(), "192.0.2.10:8080");
    assert_eq!(sockets[1].receive_queue, 17);
    let udp = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n\
         \x20 270: 0100007F:0035 00000000:0000 07 00000000:00033C00 00:00000000 00000000   101        0 7 2 0 0\n";
    let udp = read(udp);
    assert_eq!((udp.notes.unknown, udp.snapshot.looks[0].sockets.is_none()), (0, true));
}

#[test]
fn rows_of_interrupts_are_read_without_their_head_and_softirqs_are_none() {
    let rows = " 44:  918  3  0  0   PCI-MSI 524288-edge  eth0-rx-0\n 45:  801  0  0  0   PCI-MSI 524289-edge  eth0-rx-1\n";
    let pasted = read(rows);
    let all = pasted.snapshot.looks[0].interrupts.as_ref().expect("interrupts");
    assert_eq!((all.len(), all[0].counts.len(), pasted.notes.unknown), (2, 4, 0));
    let asked = "$ grep eth0 /proc/interrupts\n";
    let twice = read(&format!("{asked}{rows}{asked}{}", rows.replace("918", "919")));
    assert_eq!(twice.snapshot.looks.len(), 2);
    let other = read(" 33:  0  0 PCI-MSIX-0000:00:05.0   0-edge      virtio4-config\n");
    assert_eq!((other.notes.unknown, other.snapshot.looks[0].interrupts.is_none()), (0, true));
    let soft = "                    CPU0       CPU1\n          HI:          0          0\n    IRQ_POLL:          0          0\n      NET_RX:        178      10144\n";
    let soft = read(soft);
    assert_eq!((soft.notes.unknown, soft.snapshot.looks[0].interrupts.is_none()), (0, true));
}
