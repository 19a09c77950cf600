//! What filters choose, and what is said of wrong ones.

use proptest::prelude::*;

use super::*;

const CLIENT: &str = "10.0.0.1:40000";
const SERVER: &str = "192.168.7.2:80";

/// Whether `text` accepts the connection from [`CLIENT`] to [`SERVER`].
fn accepts(text: &str) -> bool {
    let filter = Filter::parse(text).unwrap_or_else(|error| panic!("{error}"));
    filter.0.accepts(end(CLIENT), end(SERVER))
}

fn end(text: &str) -> End<'_> {
    End(text.parse().expect("an address"), None)
}

fn error(text: &str) -> FilterError {
    Filter::parse(text).expect_err(text)
}

#[test]
fn what_is_meant_is_accepted() {
    for text in [
        "tcp",
        "host 10.0.0.1",
        "10.0.0.1",
        "host 10.0.0.1 and port 80",
        "src host 10.0.0.1 && dst port 80",
        "client 10.0.0.1 and server 192.168.7.2",
        "net 192.168.0.0/16",
        "net 192.168",
        "dst net 192.168.7.0/24",
        "net 0.0.0.0/0",
        "tcp port 80",
        "ip host 10.0.0.1",
        "port 443 or 80",
        "portrange 79-81",
        "not port 443",
        "!(port 443 or port 22)",
        "not (src port 80)",
        "not not tcp",
        "(host 10.0.0.1 or host 10.0.0.2) and not port 22",
    ] {
        assert!(accepts(text), "{text}");
    }
}

#[test]
fn what_is_not_meant_is_refused() {
    for text in [
        "host 10.0.0.2",
        "src 192.168.7.2",
        "dst host 10.0.0.1",
        "client port 80",
        "net 192.169.0.0/16",
        "net 192.168.7.3/32",
        "net 2001:db8::/32",
        "ip6",
        "portrange 81-90",
        "not tcp",
        "port 443 or 22",
    ] {
        assert!(!accepts(text), "{text}");
    }
}

#[test]
fn ipv6_networks_count_bits() {
    let filter = Filter::parse("net 2001:db8:8000::/33").expect("parses");
    let far = end(SERVER);
    assert!(filter.0.accepts(end("[2001:db8:ffff::1]:1"), far));
    assert!(!filter.0.accepts(end("[2001:db8:7fff::1]:1"), far));
    let all = Filter::parse("net ::/0").expect("parses");
    assert!(all.0.accepts(end("[ffff::]:1"), far));
    assert!(!all.0.accepts(far, far), "IPv4 is in no IPv6 network");
}

#[test]
fn a_host_s_name_is_that_of_the_listing() {
    let named = End("240.0.0.7:80".parse().expect("an address"), Some("www.example.com:http"));
    let accepts = |text: &str| {
        let filter = Filter::parse(text).expect("parses");
        assert!(filter.names_a_host(), "{text}");
        filter.0.accepts(end(CLIENT), named)
    };
    assert!(accepts("host WWW.example.com"));
    assert!(accepts("dst host www.example.com and port 80"));
    assert!(!accepts("src host www.example.com"));
    assert!(!accepts("host example.com"));
    assert!(!Filter::parse("port 80").expect("parses").names_a_host());
}

#[test]
fn the_error_points_at_the_place() {
    assert_eq!(
        error("host and port 80").to_string(),
        "expected an address, such as 10.0.0.1, or a host's name as a listing prints it\n  \
         host and port 80\n       ^"
    );
}

#[test]
fn each_mistake_has_its_place_and_words() {
    for (text, column, word) in [
        ("", 0, "expected `host`"),
        ("port", 4, "a port number"),
        ("port 65536", 5, "a port number"),
        ("port http", 5, "port names"),
        ("host example,com", 5, "a host's name"),
        ("example.com", 0, "expected `host`"),
        ("net 10.0.0.0/33", 4, "a network"),
        ("net 1.2.3.4.5", 4, "a network"),
        ("portrange 9-1", 10, "a port range"),
        ("udp port 53", 0, "only TCP"),
        ("port 80 port 81", 8, "`and` or `or`"),
        ("(port 80", 0, "never closed"),
        ("port 80)", 7, "never opened"),
        ("port 80 and", 11, "a port number"),
        ("port 80 & port 81", 8, "`and` or `or`"),
        ("port 1 or port 2 and port 3", 17, "parentheses"),
        ("ünknown", 0, "expected `host`"),
    ] {
        let error = error(text);
        assert_eq!(error.column, column, "{text}: {error}");
        assert!(error.what.contains(word), "{text}: {error}");
    }
}

#[test]
fn deep_nesting_is_an_error_and_no_crash() {
    assert!(error(&"(".repeat(1_000_000)).what.contains("too deeply"));
    assert!(error(&"not ".repeat(1_000_000)).what.contains("too deeply"));
}

proptest! {
    #[test]
    fn no_text_panics(text in r"(\PC|and|or|not|host|port|[()! &|/.:0-9]){0,40}") {
        let _ = Filter::parse(&text);
    }
}
