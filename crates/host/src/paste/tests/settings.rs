//! Settings that a text has more than once.

use super::*;

const KEY: &str = "net.ipv4.tcp_rmem";

/// The value that was taken; what was said of the lines that differ; what was not seen.
fn told(text: &str) -> (Option<String>, Vec<String>, Vec<String>) {
    let Pasted { snapshot, notes } = read(text);
    let value = snapshot.settings.and_then(|all| all.values.get(KEY).cloned());
    let said = notes.differing.into_iter().filter_map(|note| note.why).collect();
    (value, said, snapshot.unseen.into_iter().map(|unseen| unseen.why).collect())
}

#[test]
fn of_two_values_without_an_order_neither_is_taken_and_both_are_named() {
    let text = "net.ipv4.tcp_rmem = 4096 131072 6291456\n\
        net.ipv4.tcp_sack = 1\n\
        net.ipv4.tcp_rmem = 4096 87380 174760\n";
    let (value, said, unseen) = told(text);
    assert_eq!(value, None);
    let line =
        "line 1 says `4096 131072 6291456`; nothing tells which came later, so neither is taken";
    assert_eq!(said, [line]);
    let both =
        "two values were pasted: `4096 131072 6291456` (line 1) and `4096 87380 174760` (line 3)";
    assert_eq!(unseen, [both]);

    let snapshot = read(text).snapshot;
    let seen = Seen::new(&snapshot).expect("a look");
    assert_eq!(seen.setting(KEY), Err(Missing::part(Source::Settings, KEY)));
    assert_eq!(seen.setting("net.ipv4.tcp_sack"), Ok(Some("1")), "told once");

    let back = format!("{text}net.ipv4.tcp_rmem = 4096 131072 6291456\n");
    assert_eq!(told(&back).0, None, "told thrice, the first once more");
}

#[test]
fn the_same_value_twice_is_one() {
    let text = "net.ipv4.tcp_rmem = 4096 131072 6291456\n\
        /proc/sys/net/ipv4/tcp_rmem:4096\t131072\t6291456\n";
    assert_eq!(told(text), (Some("4096 131072 6291456".to_owned()), vec![], vec![]));
}

#[test]
fn a_value_that_plainly_came_later_is_taken_with_a_word() {
    let later = Some("4096 131072 33554432".to_owned());
    let said = "line 2 says `4096 131072 6291456`; this value came later and is taken";
    for (before, after) in [
        ("# sysctl net.ipv4.tcp_rmem", "# sysctl -w net.ipv4.tcp_rmem='4096 131072 33554432'"),
        ("# sysctl net.ipv4.tcp_rmem", "# sysctl -p /etc/sysctl.d/99-web.conf"),
        ("$ sysctl net.ipv4.tcp_rmem", "$ sudo sysctl --system"),
        ("$ sysctl net.ipv4.tcp_rmem", "* Applying /etc/sysctl.d/99-web.conf ..."),
        ("1700000000", "1700000010"),
    ] {
        let text = format!(
            "{before}\n{KEY} = 4096 131072 6291456\n{after}\n{KEY} = 4096 131072 33554432\n"
        );
        assert_eq!(told(&text), (later.clone(), vec![said.to_owned()], vec![]), "{after}");
    }
    let twice = format!(
        "$ sysctl {KEY}\n{KEY} = 4096 131072 6291456\n$ sysctl {KEY}\n{KEY} = 4096 131072 33554432\n"
    );
    assert_eq!(told(&twice).0, None, "two questions, perhaps to two hosts");
}

#[test]
fn what_the_kernel_counts_may_change_and_is_as_it_was_told_last() {
    let text = "net.netfilter.nf_conntrack_count = 7\nnet.netfilter.nf_conntrack_count = 9\n";
    let Pasted { snapshot, notes } = read(text);
    let values = snapshot.settings.expect("settings").values;
    assert_eq!(values["net.netfilter.nf_conntrack_count"], "9");
    assert_eq!(notes.differ, 0);
}

#[test]
fn many_lines_that_differ_are_counted_and_the_first_are_kept() {
    let of = |value: usize| -> Vec<String> {
        (0..2 * KEPT).map(|nth| format!("net.ipv4.key_{nth} = {value}\n")).collect()
    };
    let notes = read(&[of(1).concat(), of(2).concat()].concat()).notes;
    assert_eq!((notes.differ, notes.differing.len()), (2 * KEPT as u64, KEPT));
}
