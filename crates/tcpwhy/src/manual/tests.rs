use super::*;

fn all() -> Vec<Page> {
    let entries = Kind::ALL.into_iter().flat_map(entry::pages);
    findings::pages()
        .into_iter()
        .chain(checks::pages())
        .chain(findings::states())
        .chain(entries)
        .collect()
}

fn codes(word: &str) -> Vec<&'static str> {
    look_up(word).iter().map(|page| page.code).collect()
}

#[test]
fn every_finding_check_state_term_and_setting_has_its_page() {
    for page in all() {
        let found = look_up(page.code);
        assert!(found.iter().any(|one| one.code == page.code), "{}", page.code);
        assert!(!page.title.is_empty() && !page.text.is_empty(), "{}", page.code);
    }
}

#[test]
fn names_are_found_however_they_are_written() {
    assert_eq!(codes("tcp_rmem"), ["net.ipv4.tcp_rmem"]);
    assert_eq!(codes("/proc/sys/net/ipv4/tcp_rmem"), ["net.ipv4.tcp_rmem"]);
    assert_eq!(codes("net.ipv4.conf.eth0.rp_filter"), ["net.ipv4.conf.*.rp_filter"]);
    assert_eq!(codes("rto"), ["RTO"]);
    assert_eq!(codes("Time-Wait"), ["TIME_WAIT"]);
    assert_eq!(codes("so_rcvbuf"), ["SO_RCVBUF"]);
    assert_eq!(codes("bandwidth-delay product"), ["BDP"]);
    assert_eq!(codes("tlp_wait"), ["tlp_wait"]);
}

#[test]
fn the_page_of_exactly_this_name_comes_first() {
    assert_eq!(codes("SLOW_START"), ["SLOW_START", "slow start"]);
    assert_eq!(codes("slow start"), ["slow start", "SLOW_START"]);
    assert_eq!(codes("zero_window")[0], "zero_window");
    assert_eq!(codes("ZERO_WINDOW")[0], "ZERO_WINDOW");
}

#[test]
fn a_wrong_word_is_asked_about() {
    assert_eq!(meant("SLOW_STRAT")[0], "SLOW_START");
    assert_eq!(meant("tcp_rmen")[0], "net.ipv4.tcp_rmem");
    assert!(meant("net.ipv4.tcp_rmm").contains(&"net.ipv4.tcp_rmem"));
    assert!(meant("autotun").contains(&"autotuning"));
    assert!(meant("qwertzuiop").is_empty());
    assert!(meant("").is_empty());
}

#[test]
fn pages_are_short_and_whole() {
    for kind in Kind::ALL {
        for page in entry::pages(kind) {
            assert!(page.title.ends_with('.'), "{}: {}", page.code, page.title);
            assert!(page.text.contains("# Sources\n"), "{}", page.code);
            assert!(kind == Kind::Term || page.text.contains("# Default\n"), "{}", page.code);
            let lines = set(&page, 80).lines().count();
            assert!((4..=32).contains(&lines), "{}: {lines} lines", page.code);
        }
    }
}

#[test]
fn names_of_entries_are_unique() {
    let mut names: Vec<&str> =
        Kind::ALL.into_iter().flat_map(entry::pages).map(|page| page.code).collect();
    let number = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), number);
}

#[test]
fn what_a_page_refers_to_exists() {
    for page in all() {
        let see = page.text.split("# See\n").nth(1).and_then(|text| text.lines().next());
        for name in see.unwrap_or_default().split(", ").filter(|name| !name.is_empty()) {
            assert!(!look_up(name).is_empty(), "{} refers to {name}", page.code);
        }
    }
}

/// Settings that the sources of `file` name.
fn settings(file: &str) -> Vec<String> {
    const TREES: [&str; 4] = ["net.ipv4.", "net.ipv6.", "net.core.", "net.netfilter."];
    let mut found = Vec::new();
    for tree in TREES {
        for (at, _) in file.match_indices(tree) {
            let rest = &file[at..];
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'));
            let key = rest[..end.unwrap_or(rest.len())].trim_end_matches('.');
            // Half a key is put together with the rest of it, or means many.
            let is_whole = key.matches('.').count() >= 2 && !key.ends_with('_');
            let is_interface = rest[key.len()..].starts_with(['{', '*', '.']);
            if is_whole && !is_interface {
                found.push(key.to_owned());
            }
        }
    }
    found
}

#[test]
fn every_setting_that_checks_and_findings_speak_of_has_a_page() {
    let files = checks::sources().chain(findings::sources());
    let missing: Vec<String> = files
        .flat_map(|file| settings(tcpwhy_words::doc::without_tests(file)))
        .filter(|key| look_up(key).is_empty())
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_option_that_checks_and_findings_speak_of_has_a_page() {
    // Constants of the kernel and names of lists look like options.
    const NO_OPTIONS: [&str; 5] = ["TCP_INIT_", "TCP_RTO_", "TCP_ATO_", "TCP_DELACK_", "TCP_TIME"];
    let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    for file in checks::sources().chain(findings::sources()) {
        for quoted in tcpwhy_words::doc::without_tests(file).split('`').skip(1).step_by(2) {
            let is_option = quoted.starts_with("SO_")
                || ["TCP_NO", "TCP_US", "TCP_QU", "TCP_CO", "TCP_WI", "TCP_DEF", "TCP_KEEP"]
                    .iter()
                    .any(|start| quoted.starts_with(start));
            let is_one = quoted.chars().all(is_name)
                && !NO_OPTIONS.iter().any(|start| quoted.starts_with(start));
            assert!(!is_option || !is_one || !look_up(quoted).is_empty(), "{quoted}");
        }
    }
}
