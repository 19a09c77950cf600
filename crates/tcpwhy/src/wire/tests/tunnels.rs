//! Tunnels: the inner connection wins, and the key names its network.

use super::*;

/// Outer IPv4 between other hosts than the inner ones.
fn outer(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = v4(protocol, payload);
    bytes[12..20].copy_from_slice(&[192, 0, 2, 1, 192, 0, 2, 2]);
    ethernet(0x0800, &bytes)
}

#[track_caller]
fn network(bytes: &[u8]) -> u32 {
    on_ethernet(bytes).expect("a segment").network
}

#[test]
fn ip_in_ip_in_all_four_ways() {
    let (four, six) = (v4(6, &data()), v6(6, &data()));
    assert_data_v4(&on_ethernet(&outer(4, &four)));
    assert_data_v6(&on_ethernet(&outer(41, &six)));
    assert_data_v4(&on_ethernet(&ethernet(0x86dd, &v6(4, &four))));
    assert_data_v6(&on_ethernet(&ethernet(0x86dd, &v6(41, &six))));
    assert_eq!(network(&outer(4, &four)), 0);
}

#[test]
fn ip_in_ip_without_end_is_malformed() {
    let mut bytes = v4(6, &data());
    for _ in 0..100 {
        bytes = v4(4, &bytes);
    }
    assert_eq!(parse(&frame(101, &bytes)).err(), Some(Skip::Malformed));
}

#[test]
fn gre_with_each_set_of_flags() {
    let inner = v4(6, &data());
    for (flags, fields) in [
        (0x00, &[][..]),
        (0x80, &[0xbe, 0xef, 0, 0]),
        (0x20, &[0, 0, 0, 9]),
        (0x10, &[0, 0, 0, 1]),
        (0xb0, &[0xbe, 0xef, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1]),
    ] {
        let bytes = outer(47, &[&[flags, 0, 0x08, 0x00], fields, &inner].concat());
        assert_data_v4(&on_ethernet(&bytes));
        assert_eq!(network(&bytes) != 0, flags & 0x20 != 0, "flags {flags:#x}: the key only");
    }
    let other_key = outer(47, &[&[0x20, 0, 0x08, 0x00, 0, 0, 0, 8], &inner[..]].concat());
    let key = outer(47, &[&[0x20, 0, 0x08, 0x00, 0, 0, 0, 9], &inner[..]].concat());
    assert_ne!(network(&other_key), network(&key));
}

#[test]
fn no_key_folds_to_no_network() {
    // This key is the mark of GRE in the fold, turned round.
    let bytes = outer(47, &join(&[0x20, 0, 0x08, 0x00, 3, 0, 0, 0], &v4(6, &data())));
    assert_ne!(network(&bytes), 0);
}

#[test]
fn gre_carries_ethernet_and_mpls() {
    let bridged = ethernet(0x86dd, &v6(6, &data()));
    assert_data_v6(&on_ethernet(&outer(47, &join(&[0, 0, 0x65, 0x58], &bridged))));
    let labelled = join(&[0, 0, 0x88, 0x47, 0, 1, 0x01, 64], &v4(6, &data()));
    assert_data_v4(&on_ethernet(&outer(47, &labelled)));
}

#[test]
fn gre_of_other_kinds_is_not_tcp() {
    let inner = v4(6, &data());
    // PPTP's version 1, a source route, keep-alives of Cisco (protocol 0), WCCP.
    for header in [[0x30, 1, 0x88, 0x0b], [0x40, 0, 8, 0], [0, 0, 0, 0], [0, 0, 0x88, 0x3e]] {
        let seen = on_ethernet(&outer(47, &join(&header, &inner))).map(|_| ());
        assert_eq!(seen, Err(Skip::NotTcp), "{header:x?}");
    }
}

#[test]
fn mirrored_ports_in_each_erspan_type() {
    let mirrored = ethernet(0x0800, &v4(6, &data()));
    let type_1 = [0, 0, 0x88, 0xbe];
    let type_2 = [0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 5, 0, 1, 0, 0, 0, 0];
    let type_3 = [0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 5, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut with_platform = type_3;
    with_platform[19] = 1;
    assert_data_v4(&on_ethernet(&outer(47, &join(&type_1, &mirrored))));
    assert_data_v4(&on_ethernet(&outer(47, &join(&type_2, &mirrored))));
    assert_data_v4(&on_ethernet(&outer(47, &join(&type_3, &mirrored))));
    let with_platform = join(&with_platform, &[9; 8]);
    assert_data_v4(&on_ethernet(&outer(47, &join(&with_platform, &mirrored))));
}

#[test]
fn vxlan_on_both_ports() {
    let vni =
        |vni, flags| join(&[flags, 0, 0, 0, 0, 0, vni, 0], &ethernet(0x0800, &v4(6, &data())));
    for port in [4789, 8472] {
        let bytes = outer(17, &udp(port, &vni(9, 0x08)));
        assert_data_v4(&on_ethernet(&bytes));
        assert_ne!(network(&bytes), network(&outer(17, &udp(port, &vni(8, 0x08)))));
    }
    // The I bit is missing; or it is another port, which then is just UDP.
    assert_eq!(on_ethernet(&outer(17, &udp(4789, &vni(9, 0)))).err(), Some(Skip::NotTcp));
    assert_eq!(on_ethernet(&outer(17, &udp(4788, &vni(9, 8)))).err(), Some(Skip::NotTcp));
}

#[test]
fn vxlan_over_ipv6_with_a_vlan_inside() {
    let inner = ethernet(0x8100, &join(&[0, 5, 0x86, 0xdd], &v6(6, &data())));
    let tunnel = v6(17, &udp(4789, &join(&[8, 0, 0, 0, 0, 0, 9, 0], &inner)));
    assert_data_v6(&on_ethernet(&ethernet(0x86dd, &tunnel)));
}

#[test]
fn geneve_with_options() {
    let inner = ethernet(0x0800, &v4(6, &data()));
    let plain = [0x00, 0, 0x65, 0x58, 0, 0, 9, 0];
    let with_options = [2, 0, 0x65, 0x58, 0, 0, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    let routed = [0x00, 0, 0x86, 0xdd, 0, 0, 9, 0];
    let bytes = outer(17, &udp(6081, &join(&plain, &inner)));
    assert_data_v4(&on_ethernet(&bytes));
    assert_data_v4(&on_ethernet(&outer(17, &udp(6081, &join(&with_options, &inner)))));
    assert_data_v6(&on_ethernet(&outer(17, &udp(6081, &join(&routed, &v6(6, &data()))))));
    let vxlan = outer(17, &udp(4789, &join(&[8, 0, 0, 0, 0, 0, 9, 0], &inner)));
    assert_ne!(network(&bytes), network(&vxlan), "equal identifiers of different tunnels");
    // Another version; a control packet.
    for header in [[0x40, 0, 0x65, 0x58, 0, 0, 9, 0], [0, 0x80, 0x65, 0x58, 0, 0, 9, 0]] {
        let seen = on_ethernet(&outer(17, &udp(6081, &join(&header, &inner)))).map(|_| ());
        assert_eq!(seen, Err(Skip::NotTcp));
    }
}

#[test]
fn mpls_tells_its_payload_by_the_first_nibble() {
    let labels = [0, 1, 0x00, 64, 0, 2, 0x01, 64];
    for ether_type in [0x8847, 0x8848] {
        assert_data_v4(&on_ethernet(&ethernet(ether_type, &join(&labels, &v4(6, &data())))));
        assert_data_v6(&on_ethernet(&ethernet(ether_type, &join(&labels, &v6(6, &data())))));
    }
    let wire = ethernet(0x0800, &v4(6, &data()));
    let with_control_word = join(&labels, &join(&[0, 0, 0, 1], &wire));
    assert_data_v4(&on_ethernet(&ethernet(0x8847, &with_control_word)));
    // Without control word, to 02:..., to 00:..., and to 84:...
    for first in [0x02, 0x00, 0x84] {
        let mut wire = wire.clone();
        wire[0] = first;
        assert_data_v4(&on_ethernet(&ethernet(0x8847, &join(&labels, &wire))));
    }
    let channel = join(&labels, &[0x10, 0, 0, 0x21, 0x45, 0, 0, 0]);
    assert_eq!(on_ethernet(&ethernet(0x8847, &channel)).err(), Some(Skip::NotTcp));
    assert_data_v4(&on_ethernet(&outer(137, &join(&labels, &v4(6, &data())))));
    assert_data_v4(&on_ethernet(&outer(17, &udp(6635, &join(&labels, &v4(6, &data()))))));
    assert_eq!(network(&ethernet(0x8847, &join(&labels, &v4(6, &data())))), 0);
}

#[test]
fn labels_without_bottom_are_malformed_or_cut() {
    let bytes = ethernet(0x8847, &[0; 400]);
    assert_eq!(on_ethernet(&bytes).err(), Some(Skip::Malformed));
    assert_eq!(parse(&cut(frame(1, &bytes), 100)).err(), Some(Skip::HeaderCut));
}

#[test]
fn keys_of_nested_tunnels_all_count() {
    let bridged = |vlan, vni| {
        let inner = ethernet(0x8100, &join(&[0, vlan, 0x08, 0x00], &v4(6, &data())));
        network(&outer(17, &udp(4789, &join(&[8, 0, 0, 0, 0, 0, vni, 0], &inner))))
    };
    assert_ne!(bridged(5, 9), bridged(6, 9));
    assert_ne!(bridged(5, 9), bridged(5, 8));
    assert_eq!(bridged(5, 9), bridged(5, 9));
}
