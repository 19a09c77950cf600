//! What is printed around lines: dates, colours, the kernel's log.

use super::*;
use crate::snapshot::Event;

/// The times of the looks in seconds, and whether dates go back.
fn times(text: &str) -> (Vec<Option<u64>>, bool) {
    let Pasted { snapshot, notes } = read(text);
    let looks = snapshot.looks.iter();
    (looks.map(|look| look.t_ns.map(|ns| ns / 1_000_000_000)).collect(), notes.backwards)
}

#[test]
fn a_date_above_two_readings_is_the_time_of_the_first() {
    let reading = |count: u32| format!("TcpInSegs {count} 0.0\n");
    let [one, two] = [7, 9].map(reading);
    let (then, now) = ("1700000000\n", "1700000010\n");
    assert_eq!(times(&[then, &one, &two].concat()), (vec![Some(1_700_000_000), None], false));
    let each = [then, &one, now, &two].concat();
    assert_eq!(times(&each), (vec![Some(1_700_000_000), Some(1_700_000_010)], false));
    assert_eq!(times(&[one.as_str(), &two].concat()), (vec![None, None], false));
    assert!(times(&[now, &one, then, &two].concat()).1, "the later one first");
}

#[test]
fn colours_are_passed_over_and_what_a_terminal_obeys_is_escaped() {
    let text = "\u{1b}[01;31m\u{1b}[Knet.ipv4.tcp_sack\u{1b}[m\u{1b}[K = 1\r\n\
        net.ipv4.tcp_timestamps\u{a0}=\u{a0}0\n\
        2: a\u{1b}]0;x\u{7}: <BROADCAST,UP> mtu 1500 qdisc fq state UP\n";
    let snapshot = read(text).snapshot;
    let values = snapshot.settings.clone().expect("settings").values;
    let values: Vec<(&str, &str)> = values.iter().map(|(key, value)| (&**key, &**value)).collect();
    assert_eq!(values, [("net.ipv4.tcp_sack", "1"), ("net.ipv4.tcp_timestamps", "0")]);
    let names = snapshot.looks[0].links.iter().flatten().map(|link| link.name.clone());
    assert!(names.into_iter().all(|name| !name.contains(char::is_control)));
}

#[test]
fn lines_of_the_kernel_s_log_are_read_and_the_others_passed_over() {
    let full = "nf_conntrack: nf_conntrack: table full, dropping packet";
    let text = format!(
        "[12345.678901] {full}\n[Mon Nov 23 08:42:01 2026] {full}\nNov 23 08:42:01 web-1 kernel: {full}\n\
         Nov 23 08:42:01 web-1 kernel: [    1.234567] {full}\n2026-11-23T08:42:01+0000 web-1 kernel: {full}\n\
         [12345.678902] igb 0000:01:00.0 eth1: NIC Link is Up 1000 Mbps\n\
         We do not see \"{full}\" on the other host.\n"
    );
    let Pasted { snapshot, notes } = read(&text);
    let said: Vec<_> = snapshot.said.iter().map(|said| (said.event, said.lines)).collect();
    assert_eq!(said, [(Event::ConntrackFull, 5)]);
    assert_eq!(
        (notes.read, notes.unknown),
        (5, 1),
        "a letter is not understood, other lines of the log are"
    );
}

#[test]
fn a_long_text_without_a_known_line_is_given_up() {
    let letter = |lines: u64| "it is slow\n".repeat(lines as usize) + "net.ipv4.tcp_sack = 1\n";
    let read_of = |lines| read(&letter(lines)).notes;
    assert_eq!(read_of(LONGEST_LETTER - 1).read, 1);
    let given_up = read_of(LONGEST_LETTER);
    assert_eq!((given_up.read, given_up.unknown), (0, LONGEST_LETTER));
}
