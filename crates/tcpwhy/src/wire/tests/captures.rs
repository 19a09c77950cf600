//! Captures of real and wrapped traffic: what tshark saw, line by line (`testdata/links`).

use super::*;

/// A capture and tshark's reading of it.
macro_rules! capture {
    ($name:literal) => {
        (
            $name,
            include_bytes!(concat!("../../../../../testdata/links/", $name, ".pcap")).as_slice(),
            include_str!(concat!("../../../../../testdata/links/", $name, ".tsv")),
        )
    };
}

const CAPTURES: [(&str, &[u8], &str); 14] = [
    capture!("loop"),
    capture!("null"),
    capture!("null-big-endian"),
    capture!("ppp"),
    capture!("ppp-direction"),
    capture!("ppp-hdlc"),
    capture!("raw"),
    capture!("sll"),
    capture!("sll2"),
    capture!("sll2-v6"),
    capture!("srh"),
    capture!("tunnels"),
    capture!("tunnels-cut"),
    capture!("vxlan"),
];

/// The frames of a little-endian classic pcap, which all of these are.
fn frames(pcap: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
    assert_eq!(word(&pcap[..4]), 0xa1b2_c3d4);
    let link_type = word(&pcap[20..24]);
    let (mut at, mut number) = (24, 0);
    core::iter::from_fn(move || {
        let header = pcap.get(at..at + 16)?;
        let data = &pcap[at + 16..][..word(&header[8..12]) as usize];
        let wire_len = word(&header[12..]);
        (at, number) = (at + 16 + data.len(), number + 1);
        Some(Frame { frame: number, wire_len, ..frame(link_type, data) })
    })
}

/// A segment as a line of the fields that `truth.sh` asks tshark for.
fn line(segment: &Segment<'_>) -> String {
    let or_empty = |number: Option<u32>| number.map_or(String::new(), |n| n.to_string());
    let options = segment.options;
    // tshark shows the acknowledgement field as it is, with or without the flag.
    [
        segment.frame.to_string(),
        segment.source.ip().to_string(),
        segment.destination.ip().to_string(),
        segment.source.port().to_string(),
        segment.destination.port().to_string(),
        segment.seq.0.to_string(),
        segment.ack.0.to_string(),
        segment.payload_len.to_string(),
        format!("0x{:04x}", segment.flags.0),
        segment.window.to_string(),
        or_empty(options.mss.map(u32::from)),
        or_empty(options.window_scale.map(u32::from)),
        or_empty(options.timestamps.map(|(value, _)| value)),
        or_empty(options.timestamps.map(|(_, echo)| echo)),
    ]
    .join("\t")
}

#[test]
fn the_walk_sees_what_tshark_sees() {
    for (name, pcap, truth) in CAPTURES {
        let segments: Vec<_> = frames(pcap).map(|frame| parse(&frame)).collect();
        let seen: Vec<_> = segments.iter().flatten().map(line).collect();
        let truth: Vec<_> = truth.lines().collect();
        assert!(!truth.is_empty(), "{name}");
        for (ours, theirs) in seen.iter().zip(&truth) {
            assert_eq!(ours, theirs, "{name}");
        }
        assert_eq!(seen.len(), truth.len(), "{name}");
        for skip in segments.iter().filter_map(|seen| seen.as_ref().err()) {
            assert!(matches!(skip, Skip::HeaderCut | Skip::NotTcp), "{name}: {skip:?}");
        }
    }
}

#[test]
fn both_directions_of_a_transfer_are_in_one_network() {
    for name in ["vxlan", "srh", "sll2"] {
        let (_, pcap, _) = CAPTURES.into_iter().find(|(other, ..)| *other == name).expect("listed");
        let mut networks: Vec<_> =
            frames(pcap).filter_map(|frame| parse(&frame).ok()).map(|seen| seen.network).collect();
        networks.sort_unstable();
        networks.dedup();
        assert_eq!(networks.len(), 1, "{name}");
    }
}

#[test]
fn checksums_of_a_transfer_on_one_host_were_left_to_the_card() {
    let (_, pcap, _) = CAPTURES.into_iter().find(|(name, ..)| *name == "srh").expect("listed");
    let mut found: Vec<_> = frames(pcap).map(|frame| checksum(&frame)).collect();
    found.dedup();
    assert_eq!(found, [Some(Checksum::Offloaded)]);
}
