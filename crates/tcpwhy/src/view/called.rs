//! What people call a connection and its requests by, in a few words.

use super::words;
use crate::report::{Connection, Exchange, Http};

/// Requests that are named in one line. Ours.
const NAMED: usize = 2;

/// The server by its name and address, by address and what its port is for, or as the capture shows it.
pub(super) fn server(connection: &Connection) -> String {
    let program = program(connection, 1);
    if let Some(name) = connection.server_called() {
        let program = program.map_or_else(String::new, |program| format!(", {program}"));
        return format!("{name} ({}{program})", connection.server.ip());
    }
    let shown = connection.server_shown();
    match program.or_else(|| service(connection)) {
        Some(more) => format!("{shown} ({more})"),
        None => shown,
    }
}

/// The program that held the socket of end `at`, where a recording tells.
pub(super) fn program(connection: &Connection, at: usize) -> Option<&str> {
    connection.names.as_ref()?.programs.get(at)?.as_deref()
}

/// What the server's port is for, where its number does not tell everybody.
fn service(connection: &Connection) -> Option<&str> {
    let service = connection.names.as_ref()?.service.as_deref()?;
    let is_known = connection.server_name.is_some() || matches!(service, "http" | "https");
    (!is_known).then_some(service)
}

/// `GET /report (200)`
pub(super) fn request(http: &Http) -> String {
    let Http { method, target, status } = http;
    match status {
        Some(status) => format!("{method} {target} ({status})"),
        None => format!("{method} {target}"),
    }
}

/// What went over the connection: `GET /a (200), GET /b (404) and 8 more`, `TLS 1.3, h2`.
pub(super) fn talk(connection: &Connection) -> Option<String> {
    if let Some(asked) = asked(&connection.exchanges) {
        return Some(asked);
    }
    let parts = inside(connection);
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The first requests that differ, those first that failed or found no answer, and how many more there are; of one kind how often it was sent.
fn asked(exchanges: &[Exchange]) -> Option<String> {
    let mut known: Vec<&Http> = exchanges.iter().filter_map(|each| each.http.as_deref()).collect();
    known.sort_by_key(|http| http.status.is_some_and(|status| status < 400));
    let all: Vec<String> = known.into_iter().map(request).collect();
    let mut named: Vec<&String> = Vec::new();
    for each in &all {
        if named.len() < NAMED && !named.contains(&each) {
            named.push(each);
        }
    }
    let told = all.iter().filter(|each| named.contains(each)).count();
    let more = exchanges.len() - told;
    Some(match (&*named, more) {
        ([], _) => return None,
        ([one], 0) if told > 1 => format!("{one}, {told} times"),
        (_, 0) => named.iter().map(|each| each.as_str()).collect::<Vec<_>>().join(", "),
        (_, more) => {
            let list: Vec<&str> = named.iter().map(|each| each.as_str()).collect();
            format!("{} and {} more", list.join(", "), words::grouped(more as u64))
        }
    })
}

/// The version of TLS, and the protocol inside.
fn inside(connection: &Connection) -> Vec<String> {
    let Some(names) = &connection.names else { return Vec::new() };
    let mut parts: Vec<String> =
        names.tls_version.iter().map(|version| (**version).into()).collect();
    parts.extend(match (&names.alpn, &*names.alpn_offered) {
        (Some(chosen), _) => Some(chosen.clone()),
        (None, []) => None,
        (None, offered) => Some(format!("client offers {}", offered.join(" or "))),
    });
    parts
}

/// All that is known of it, for the account in full.
pub(super) fn facts(connection: &Connection) -> Option<String> {
    let names = connection.names.as_ref()?;
    let by = match names.server_by.as_deref() {
        Some("sni") => "by the name that the client asked for in TLS",
        Some("dns") => "by the last DNS answer with its address",
        _ => "by the Host field of its request",
    };
    let named = names.server.as_ref().map(|name| format!("the server is {name}, {by}"));
    let programs = ["client", "server"].into_iter().enumerate().filter_map(|(at, end)| {
        program(connection, at).map(|program| format!("the {end}'s program is {program}"))
    });
    let parts: Vec<String> = named.into_iter().chain(programs).chain(inside(connection)).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Of several connections the server's name, else what the capture shows.
pub(super) fn in_a_row(connection: &Connection) -> String {
    connection.server_called().unwrap_or_else(|| connection.server_shown())
}

/// The first request, for a table.
pub(super) fn first_request(connection: &Connection) -> Option<String> {
    connection.exchanges.iter().find_map(|each| each.http.as_deref()).map(request)
}

/// `GET /report: ` in front of what is said of a request.
pub(super) fn before(exchange: &Exchange) -> String {
    let named = exchange.http.as_deref().map(|http| format!("{}: ", request(http)));
    named.map(|text| words::tie_numbers(&text)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::report::Names;

    fn named(names: Names, asked: &[&str]) -> Connection {
        let mut connection = sample::connection(0, "10.0.0.7:4000", "192.0.2.9:5432", 1);
        let http = |target: &&str| Http {
            method: "GET".into(),
            target: (*target).to_owned(),
            status: Some(200),
        };
        let exchange =
            |target| Exchange { http: Some(Box::new(http(target))), ..Exchange::default() };
        connection.exchanges = asked.iter().map(exchange).collect();
        connection.names = Some(Box::new(names));
        connection
    }

    #[test]
    fn a_name_comes_before_a_service_and_both_keep_the_address() {
        let service = Names { service: Some("postgresql".into()), ..Names::default() };
        assert_eq!(server(&named(service.clone(), &[])), "192.0.2.9:5432 (postgresql)");
        let both = Names { server: Some("db.example".to_owned()), ..service };
        assert_eq!(server(&named(both, &[])), "db.example:5432 (192.0.2.9)");
        let web = Names { service: Some("https".into()), ..Names::default() };
        assert_eq!(server(&named(web, &[])), "192.0.2.9:5432");
    }

    #[test]
    fn what_failed_is_named_first() {
        let mut connection = named(Names::default(), &["/a", "/b", "/c", "/d"]);
        let set = |exchange: &mut Exchange, status| {
            exchange.http.as_mut().expect("is there").status = status;
        };
        set(&mut connection.exchanges[2], Some(503));
        set(&mut connection.exchanges[3], None);
        assert_eq!(talk(&connection).as_deref(), Some("GET /c (503), GET /d and 2 more"));
    }

    #[test]
    fn requests_come_before_what_is_known_of_tls() {
        let tls = Names {
            tls_version: Some("TLS 1.3".into()),
            alpn_offered: vec!["h2".to_owned(), "http/1.1".to_owned()],
            ..Names::default()
        };
        let told = |asked: &[&str]| talk(&named(tls.clone(), asked));
        assert_eq!(told(&[]).as_deref(), Some("TLS 1.3, client offers h2 or http/1.1"));
        assert_eq!(told(&["/a"]).as_deref(), Some("GET /a (200)"));
        let many = told(&["/a", "/b", "/c", "/d"]);
        assert_eq!(many.as_deref(), Some("GET /a (200), GET /b (200) and 2 more"));
        assert_eq!(told(&["/a", "/a", "/a"]).as_deref(), Some("GET /a (200), 3 times"));
        assert_eq!(told(&["/a", "/a", "/b"]).as_deref(), Some("GET /a (200), GET /b (200)"));
        assert_eq!(talk(&named(Names::default(), &[])), None);
    }
}
