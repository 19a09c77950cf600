//! A report without its addresses, to be shown to others.
//!
//! Every IP address is replaced by one from a range kept for private networks or documentation:
//! IPv4 by `10.0.0.1`, `10.0.0.2`, ... (RFC 1918), IPv6 by `2001:db8::1`, ... (RFC 3849), numbered in
//! the order in which they appear, so that the same address keeps the same stand-in everywhere:
//! in the connections and in every sentence, filter and command. Ports stay, since they tell the
//! protocol. Host names that a packet listing prints get such addresses too, names that were asked for
//! become `name-1.example`, servers' names and the targets of requests go, and what is quoted of a listing's unreadable lines goes. Capture names lose their directory. Loopback and unspecified
//! addresses name no one and stay.
//!
//! Not hidden, since the account needs them: times and sizes.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::collections::BTreeMap;

use crate::report::{Connection, Direction, Finding, IcmpErrors, Lookup, Report};

/// Replaces all addresses in `report` by their stand-ins.
pub fn anonymize(report: &mut Report, mut names: StandIns) {
    for (number, capture) in report.captures.iter_mut().enumerate() {
        let path = core::mem::take(&mut capture.source);
        capture.source = stand_in("capture", number, &path);
        let texts = capture
            .error
            .iter_mut()
            .chain(capture.skipped.iter_mut().map(|each| &mut each.reason))
            .chain(capture.quality.iter_mut().map(|each| &mut each.note));
        for text in texts {
            if !path.is_empty() {
                *text = text.replace(&path, &capture.source);
            }
            *text = names.hide(&without_quotation(text));
        }
    }
    // What was attached is as it was recorded.
    report.attachments.clear();
    for (number, with) in report.with.iter_mut().enumerate() {
        let path = core::mem::take(&mut with.source);
        with.source = stand_in("with", number, &path);
        for text in with.notes.iter_mut().chain(&mut with.error) {
            *text = names.hide(&without_quotation(text));
        }
    }
    let mut hide = |text: &mut String| *text = names.hide(text);
    for connection in &mut report.connections {
        in_connection(connection, &mut hide);
    }
    for failed in &mut report.totals.failures {
        failed.server = SocketAddr::new(names.of_address(failed.server.ip()), failed.server.port());
    }
    let asked = in_lookups(&mut report.lookups, &mut names);
    for finding in &mut report.findings {
        in_finding(finding, &mut |text| {
            *text = names.hide(&without_names(text, &asked));
        });
    }
    let theirs = report.connections.iter_mut().flat_map(|connection| &mut connection.icmp);
    report.icmp.iter_mut().chain(theirs).for_each(|errors| in_icmp(errors, &mut names));
    for connection in &mut report.connections {
        for end in [&mut connection.client, &mut connection.server] {
            *end = SocketAddr::new(names.of_address(end.ip()), end.port());
        }
        (connection.client_name, connection.server_name) = (None, None);
    }
}

/// `text` with the stand-in of each name in it: where the name is a word, or anywhere if it is no word.
fn without_names(text: &str, asked: &[(String, String)]) -> String {
    let ends_word = |c: char| c.is_whitespace() || c == ',';
    let mut text = text.to_owned();
    for (name, stand_in) in asked.iter().filter(|(name, _)| name.contains(ends_word)) {
        text = text.replace(name, stand_in);
    }
    let hidden = |word: &str| {
        let bare = word.trim_end_matches(ends_word);
        let known = asked.iter().find(|(name, _)| name == bare);
        known
            .map_or_else(|| word.to_owned(), |(_, stand_in)| stand_in.clone() + &word[bare.len()..])
    };
    text.split_inclusive(ends_word).map(hidden).collect()
}

/// Names that were asked for get numbers, the same name the same; which got which.
fn in_lookups(lookups: &mut [Lookup], names: &mut StandIns) -> Vec<(String, String)> {
    let mut asked: Vec<String> = Vec::new();
    for lookup in lookups {
        let known = asked.iter().position(|name| *name == lookup.name);
        let number = known.unwrap_or(asked.len());
        if known.is_none() {
            asked.push(core::mem::take(&mut lookup.name));
        }
        // RFC 2606 section 2: a name that belongs to no host.
        lookup.name = format!("name-{}.example", number + 1);
        for end in [&mut lookup.client, &mut lookup.resolver] {
            *end = SocketAddr::new(names.of_address(end.ip()), end.port());
        }
        for address in &mut lookup.addresses {
            *address = names.of_address(*address);
        }
    }
    let stand_in = |(number, name): (u64, String)| (name, format!("name-{number}.example"));
    (1..).zip(asked).map(stand_in).filter(|(name, _)| !name.is_empty()).collect()
}

fn in_icmp(errors: &mut IcmpErrors, names: &mut StandIns) {
    let IcmpErrors { from, to, source, destination, .. } = errors;
    for host in [from, to, source].into_iter().chain(destination) {
        *host = names.of_address(*host);
    }
}

/// The part of a path after its last separator, of either kind.
fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// A name in place of a file's, which may be a customer's or a host's: its kind stays, and so does standard input.
fn stand_in(kind: &str, number: usize, path: &str) -> String {
    if matches!(path, "-" | "") {
        return path.to_owned();
    }
    let is_kind =
        |end: &str| (1..=6).contains(&end.len()) && end.bytes().all(|b| b.is_ascii_alphanumeric());
    let end = file_name(path).rsplit_once('.').map(|(_, end)| end).filter(|end| is_kind(end));
    match end {
        Some(end) => format!("{kind}-{}.{end}", number + 1),
        None => format!("{kind}-{}", number + 1),
    }
}

/// `text` without what is between its first and its last quotation mark: lines of a listing.
fn without_quotation(text: &str) -> String {
    match (text.find('"'), text.rfind('"')) {
        (Some(first), Some(last)) if first < last => {
            format!("{}\"...{}", &text[..first], &text[last..])
        }
        _ => text.to_owned(),
    }
}

fn in_connection(connection: &mut Connection, hide: &mut impl FnMut(&mut String)) {
    hide(&mut connection.vantage_evidence);
    hide(&mut connection.answer);
    connection.window_scaling_note.iter_mut().for_each(&mut *hide);
    for stack in &mut connection.sender_stack {
        hide(stack.name.to_mut());
        hide(stack.evidence.to_mut());
    }
    for direction in connection.directions.iter_mut().flatten() {
        in_direction(direction, hide);
    }
    // What they are called names their owners.
    if let Some(names) = &mut connection.names {
        (names.server, names.server_by) = (None, None);
    }
    for http in connection.exchanges.iter_mut().filter_map(|each| each.http.as_mut()) {
        "/...".clone_into(&mut http.target);
    }
    for flight in connection.tls.iter_mut().flat_map(|tls| &mut tls.flights) {
        flight.records.iter_mut().for_each(&mut *hide);
    }
    hide(&mut connection.answer);
    for finding in &mut connection.findings {
        in_finding(finding, hide);
    }
    for beside in &mut connection.beside {
        let longest = beside.calls.iter_mut().find_map(|calls| calls.longest.as_mut());
        if let Some(target) = longest.and_then(|longest| longest.target.as_mut()) {
            // Folders have the names of users and customers.
            let name = file_name(target).to_owned();
            beside.text = beside.text.replace(target.as_str(), &name);
            *target = name;
            hide(target);
        }
        hide(&mut beside.text);
    }
}

fn in_direction(direction: &mut Direction, hide: &mut impl FnMut(&mut String)) {
    hide(direction.rtt.method.to_mut());
    for limit in &mut direction.limits {
        hide(&mut limit.evidence.text);
        hide(&mut limit.evidence.filter);
    }
    direction.idle_restarts.iter_mut().for_each(|each| hide(&mut each.reason));
}

fn in_finding(finding: &mut Finding, hide: &mut impl FnMut(&mut String)) {
    for text in [&mut finding.title, &mut finding.why, &mut finding.not] {
        hide(text);
    }
    for evidence in &mut finding.evidence {
        hide(&mut evidence.text);
        hide(&mut evidence.filter);
    }
    for remedy in &mut finding.remedies {
        hide(&mut remedy.what);
        for text in [&mut remedy.command, &mut remedy.rollback, &mut remedy.knob] {
            text.iter_mut().for_each(&mut *hide);
        }
    }
}

/// The stand-ins given out so far.
#[derive(Debug, Default)]
pub struct StandIns {
    given: BTreeMap<IpAddr, IpAddr>,
    v4: u32,
    v6: u128,
}

impl StandIns {
    /// Those of all addresses in `report`. To be made before connections are chosen from it: then an
    /// address has the same one whatever was chosen.
    pub fn of(report: &Report) -> Self {
        let mut names = Self::default();
        for connection in &report.connections {
            names.of_address(connection.client.ip());
            names.of_address(connection.server.ip());
        }
        names
    }

    fn of_address(&mut self, address: IpAddr) -> IpAddr {
        if address.is_unspecified() || address.is_loopback() {
            return address;
        }
        let Self { given, v4, v6 } = self;
        *given.entry(address).or_insert_with(|| match address {
            IpAddr::V4(_) => {
                // 10.0.0.0/8 holds 2^24; beyond that stand-ins repeat rather than leave it.
                *v4 = v4.wrapping_add(1);
                Ipv4Addr::from(0x0a00_0000 | (*v4 & 0x00ff_ffff)).into()
            }
            IpAddr::V6(_) => {
                *v6 += 1;
                Ipv6Addr::from((0x2001_0db8_u128 << 96) | *v6).into()
            }
        })
    }

    /// `text` with every address in it replaced.
    fn hide(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find(is_address_char) {
            let end = rest[start..].find(|c| !is_address_char(c)).map_or(rest.len(), |n| start + n);
            out.push_str(&rest[..start]);
            self.hide_token(&rest[start..end], &mut out);
            rest = &rest[end..];
        }
        out.push_str(rest);
        out
    }

    /// A run of characters that addresses are made of: `1.2.3.4`, `1.2.3.4:80`, `1.2.3.4.80` (as
    /// tcpdump writes ports), `2001:db8::1`, perhaps with the end of a word before it and
    /// punctuation after it. At each place the longest address that can be read is replaced.
    fn hide_token(&mut self, token: &str, out: &mut String) {
        let mut at = 0;
        while at < token.len() {
            if let Some((end, address)) = longest_address(token, at) {
                out.push_str(&self.of_address(address).to_string());
                at = end;
            } else {
                out.push_str(&token[at..=at]);
                at += 1;
            }
        }
    }
}

/// The longest address in `token` (ASCII) that starts at `at`, and its end.
fn longest_address(token: &str, at: usize) -> Option<(usize, IpAddr)> {
    /// `ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255`
    const LONGEST: usize = 45;
    let bytes = token.as_bytes();
    let separator = |at: usize| matches!(bytes.get(at), None | Some(b'.' | b':'));
    if at > 0 && !separator(at - 1) {
        return None;
    }
    let last = token.len().min(at + LONGEST);
    (at + 2..=last)
        .rev()
        .filter(|&end| separator(end) || separator(end - 1))
        .find_map(|end| Some((end, token[at..end].parse().ok()?)))
}

const fn is_address_char(c: char) -> bool {
    c.is_ascii_hexdigit() || matches!(c, '.' | ':')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(text: &str) -> String {
        StandIns::default().hide(text)
    }

    #[test]
    fn addresses_are_found_in_every_form_people_write_them() {
        assert_eq!(hidden("ip.addr == 192.168.247.129 && tcp"), "ip.addr == 10.0.0.1 && tcp");
        assert_eq!(hidden("192.168.1.7:80 -> 192.168.1.8.443."), "10.0.0.1:80 -> 10.0.0.2.443.");
        assert_eq!(hidden("[2a00:1450::68]:443, fe80::1"), "[2001:db8::1]:443, 2001:db8::2");
        assert_eq!(hidden("from 2a00:1450::: late"), "from 2001:db8::1: late");
        assert_eq!(hidden("source:9.9.9.9 node:[::1]"), "source:10.0.0.1 node:[::1]");
        assert_eq!(hidden("9.9.9.9, 9.9.9.9; 8.8.8.8"), "10.0.0.1, 10.0.0.1; 10.0.0.2");
    }

    #[test]
    fn what_is_no_address_stays() {
        for text in
            ["at 10:45:49.051409", "1.5 s", "rwnd: 46,080 B", "0.0.0.0", "::", "127.0.0.1", "a.b."]
        {
            assert_eq!(hidden(text), text);
        }
    }

    #[test]
    fn lines_of_a_listing_are_not_quoted() {
        let quoted = "the first is line 7: \"ann@vpn.example.com:~$ \"ls\"\", read on";
        assert_eq!(without_quotation(quoted), "the first is line 7: \"...\", read on");
        assert_eq!(without_quotation("one \" alone"), "one \" alone");
    }

    #[test]
    fn paths_are_cut_to_their_names() {
        assert_eq!(file_name("/home/ann/x.pcap"), "x.pcap");
        assert_eq!(file_name("C:\\Users\\ann\\x.pcap"), "x.pcap");
        assert_eq!(file_name("-"), "-");
        assert_eq!(stand_in("capture", 0, "/home/ann/of-acme.pcapng"), "capture-1.pcapng");
        assert_eq!(stand_in("capture", 1, "db7.acme.example/x"), "capture-2");
        assert_eq!(stand_in("capture", 1, "host.of-acme-bank"), "capture-2", "no kind of a file");
        assert_eq!(stand_in("capture", 2, "-"), "-");
    }
}
