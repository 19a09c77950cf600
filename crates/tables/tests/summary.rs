//! What to change where, over tables of made connections: sums, ranks, places, days and hosts.

use std::net::SocketAddr;
use std::path::Path;

use tcpwhy::report::{
    Connection, Failure, FailureKind, Finding, Gain, PredictedBy, Severity, Sure,
};
use tcpwhy::session::Session;
use tcpwhy::tracker::Config;
use tcpwhy_tables::summary::{Asked, Summary};
use tcpwhy_tables::{ReadError, Writer};

const MS: i64 = 1_000_000;

/// A connection that began at `start` and would save `cause.2` without its cause.
fn held(server: &str, start: &str, cause: (&str, Sure, i64)) -> Connection {
    let (code, sure, saves) = cause;
    let finding = Finding {
        code: code.to_owned(),
        severity: Severity::Limit,
        from: Some("server".into()),
        sure: Some(sure),
        cost_ns: saves,
        gain: Some(Gain {
            low_ns: saves / 2,
            best_ns: saves,
            high_ns: saves * 2,
            now_ns: 1000 * MS,
            by: PredictedBy::Arithmetic,
        }),
        ..Finding::default()
    };
    Connection { findings: vec![finding], ..plain(server, start) }
}

/// A real connection under these names, and nothing found.
fn plain(server: &str, start: &str) -> Connection {
    let listing = include_bytes!("../../../testdata/articles/download-512k-rtt7ms.tcpdump.txt");
    let mut session = Session::new(Config::default());
    session.begin("listing");
    session.push(listing).expect("it is sound");
    session.end().expect("it is whole");
    Connection {
        client: "192.0.2.7:40000".parse().expect("an address"),
        server: format!("{server}:443").parse::<SocketAddr>().expect("an address"),
        start: start.to_owned(),
        findings: Vec::new(),
        ..session.finish().connections.remove(0)
    }
}

fn write(folder: &Path, host: &str, connections: &[Connection]) {
    let mut writer = Writer::begin(folder, host, Some(host)).expect("it begins");
    writer.push(connections).expect("it writes");
    writer.finish().expect("it ends");
}

const FIRST: &str = "2026-11-28T10:00:00.000000000Z";
const SECOND: &str = "2026-11-29T10:00:00.000000000Z";

fn fleet() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let buffer = ("SEND_BUFFER", Sure::Shown);
    write(
        folder.path(),
        "web1",
        &[
            held("10.0.0.1", FIRST, (buffer.0, buffer.1, 300 * MS)),
            held("10.0.0.2", SECOND, (buffer.0, buffer.1, 100 * MS)),
            held("10.0.0.1", SECOND, ("WINDOW_CAP", Sure::Likely, 350 * MS)),
        ],
    );
    let failure = Failure { kind: FailureKind::Refused, ..Failure::default() };
    write(
        folder.path(),
        "web2",
        &[
            held("10.0.0.1", SECOND, (buffer.0, Sure::Possible, 100 * MS)),
            Connection { failure: Some(Box::new(failure)), ..plain("10.0.0.9", SECOND) },
        ],
    );
    folder
}

fn of(folder: &Path, asked: &Asked) -> Summary {
    Summary::of(folder, asked).expect("tables")
}

#[test]
fn what_saves_most_over_all_connections_comes_first_with_its_places() {
    let folder = fleet();
    let summary = of(folder.path(), &Asked::default());
    assert_eq!((summary.hosts, summary.connections, summary.failed), (2, 5, 1));
    assert_eq!(summary.days, Some(["2026-11-28".to_owned(), "2026-11-29".to_owned()]));
    let [buffer, window] = &summary.changes[..] else { panic!("{:?}", summary.changes) };
    assert_eq!(buffer.kind, "server: a larger send buffer");
    assert_eq!((buffer.connections, buffer.hosts, buffer.gain_ns), (3, 2, 500 * MS));
    assert_eq!((buffer.gain_low_ns, buffer.gain_high_ns), (250 * MS, 1000 * MS));
    let places: Vec<_> = buffer.places.iter().map(|at| (&*at.name, at.connections)).collect();
    assert_eq!(places, [("10.0.0.1", 2), ("10.0.0.2", 1)]);
    assert_eq!(buffer.confidence, "possible", "a fifth of the gain is no more than possible");
    assert_eq!(window.kind, "client: a larger receive window");
    assert_eq!(window.places[0].name, "192.0.2.7");
    assert_eq!(window.confidence, "likely");
    assert_eq!(summary.failures.len(), 1);
    assert_eq!(summary.failures[0].servers, [("10.0.0.9".to_owned(), 1)]);
}

#[test]
fn a_host_and_days_are_asked_for() {
    let folder = fleet();
    let asked = Asked { host: Some("web1".into()), ..Asked::default() };
    let web1 = of(folder.path(), &asked);
    assert_eq!((web1.connections, web1.failed, web1.changes[0].gain_ns), (3, 0, 400 * MS));
    assert_eq!(web1.changes[0].confidence, "shown");
    let since = Asked { since: Some("2026-11-29".into()), ..Asked::default() };
    assert_eq!(of(folder.path(), &since).connections, 4);
    let until = Asked { until: Some("2026-11-28".into()), ..Asked::default() };
    assert_eq!(of(folder.path(), &until).connections, 1);
    let none = Asked { until: Some("2026-11-27".into()), ..Asked::default() };
    assert_eq!(of(folder.path(), &none), Summary::default());
}

#[test]
fn a_folder_without_tables_and_a_damaged_file_are_named() {
    let empty = tempfile::tempdir().expect("a folder");
    let error = Summary::of(empty.path(), &Asked::default()).expect_err("nothing");
    assert!(error.to_string().contains("holds no table connections"), "{error}");
    let folder = fleet();
    let damaged = folder.path().join("connections/day=2026-11-28/host=web1/damaged.parquet");
    std::fs::write(&damaged, b"no parquet").expect("it is ours");
    let error = Summary::of(folder.path(), &Asked::default()).expect_err("damaged");
    assert!(matches!(error, ReadError::Parquet { .. }), "{error}");
    assert!(error.to_string().contains("damaged.parquet"), "{error}");
}
