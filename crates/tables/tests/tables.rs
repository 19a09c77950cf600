//! Tables of real captures: what is in them, and what is in the folder they are written to.

mod folder;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, TimestampNanosecondType};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use folder::files;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use tcpwhy::report::{Connection, Report};
use tcpwhy::session::{Captured, Session};
use tcpwhy::tracker::Config;
use tcpwhy::wire::Flags;
use tcpwhy_tables::{Table, VERSION, VERSION_KEY, Writer, Written};

/// A report with all detail over a capture of the test data.
fn report(name: &str) -> Report {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name);
    let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut session = Session::new(Config { detail: true, ..Config::default() });
    session.begin(name);
    session.push(&bytes).expect("it is sound");
    session.end().expect("it is whole");
    let mut report = session.finish();
    tcpwhy::answer::fill(&mut report);
    report
}

const DOWNLOAD: &str = "articles/download-512k-rtt7ms.tcpdump.txt";

fn batch(table: Table, connections: &[Connection]) -> RecordBatch {
    table.batch(connections).expect("it fits")
}

/// A column of numbers, null as `None`.
fn ints(batch: &RecordBatch, name: &str) -> Vec<Option<i64>> {
    let column = batch.column_by_name(name).unwrap_or_else(|| panic!("no column {name}"));
    column.as_primitive::<Int64Type>().iter().collect()
}

fn texts(batch: &RecordBatch, name: &str) -> Vec<Option<String>> {
    let column = batch.column_by_name(name).unwrap_or_else(|| panic!("no column {name}"));
    column.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect()
}

#[test]
fn rows_are_what_the_report_says() {
    let report = report(DOWNLOAD);
    let [connection] = &report.connections[..] else { panic!("one connection") };
    let row = batch(Table::Connections, &report.connections);
    assert_eq!(ints(&row, "duration_ns"), [Some(connection.duration_ns)]);
    let server = connection.directions[1].as_ref().expect("it sent");
    assert_eq!(ints(&row, "server_bytes"), [Some(server.bytes as i64)]);
    assert_eq!(texts(&row, "client_name"), [connection.client_name.as_deref().map(str::to_owned)]);
    let answer = texts(&row, "answer").remove(0).expect("it is answered");
    assert_eq!(answer, connection.answer);

    let transfers = batch(Table::Transfers, &report.connections);
    assert_eq!(transfers.num_rows(), connection.transfers.len());
    let most = connection.transfers.iter().map(|t| t.time_in.ranked()[0].0.name().to_owned());
    assert_eq!(texts(&transfers, "state"), most.map(Some).collect::<Vec<_>>());

    let findings = batch(Table::Findings, &report.connections);
    let codes = connection.findings.iter().map(|finding| Some(finding.code.clone()));
    assert_eq!(texts(&findings, "code"), codes.collect::<Vec<_>>());
    let gains = connection.findings.iter().map(|finding| finding.gain.map(|gain| gain.best_ns));
    assert_eq!(ints(&findings, "gain_ns"), gains.collect::<Vec<_>>());

    let rounds = batch(Table::Rounds, &report.connections);
    let sent: i64 = ints(&rounds, "payload_bytes").into_iter().flatten().sum();
    let bytes: u64 = connection.present().map(|(_, direction)| direction.bytes).sum();
    assert_eq!(sent, bytes as i64, "each byte is first sent in one round");
}

#[test]
fn intervals_of_a_direction_add_up_to_its_lifetime() {
    let report = report(DOWNLOAD);
    let limits = batch(Table::Limits, &report.connections);
    let (senders, spans) = (texts(&limits, "sender"), ints(&limits, "duration_ns"));
    for sender in ["client", "server"] {
        let of = senders.iter().zip(&spans).filter(|(of, _)| of.as_deref() == Some(sender));
        let sum: i64 = of.filter_map(|(_, span)| *span).sum();
        assert!(sum == 0 || sum == report.connections[0].duration_ns, "{sender}: {sum}");
    }
    let starts = limits.column_by_name("start_time").expect("a column");
    assert_eq!(starts.null_count(), limits.num_rows(), "a listing has no dates");
}

#[test]
fn every_column_is_documented_and_says_its_unit() {
    // What counts things that are named by the column itself.
    let counts = ["connection", "stream", "packets", "requests", "status", "transfer", "request"]
        .into_iter()
        .chain(["request_transfer", "response_transfer", "round", "finding", "rank"])
        .chain(["client_port", "server_port", "first_frame", "last_frame"])
        .chain(["frame", "seq", "ack", "window_field"]);
    let counts: BTreeSet<_> = counts.collect();
    let units = ["_ns", "_bytes", "_bps", "_segments"];
    for table in Table::WITH_SEGMENTS {
        let schema = table.schema();
        assert_eq!(schema.metadata().get(VERSION_KEY).map(String::as_str), Some(VERSION));
        let names: BTreeSet<_> = schema.fields().iter().map(|field| field.name()).collect();
        assert_eq!(names.len(), schema.fields().len(), "{table:?} has a name twice");
        for field in schema.fields() {
            let name = field.name();
            let doc = field.metadata().get("description").expect("a description");
            assert!(doc.ends_with('.') && doc.len() > 6, "{name}: {doc}");
            let has_unit = units.iter().any(|unit| name.ends_with(unit));
            match field.data_type() {
                DataType::Int64 => assert!(has_unit || counts.contains(&**name), "{name}"),
                DataType::Timestamp(..) => assert!(name.ends_with("_time"), "{name}"),
                _ => {}
            }
        }
    }
}

fn rows(path: &Path) -> usize {
    let file = File::open(path).expect("it is there");
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("it is Parquet");
    let batches = reader.build().expect("it can be read");
    batches.map(|batch| batch.expect("a batch").num_rows()).sum()
}

/// Writes these connections; the files.
fn write(folder: &Path, run: &str, connections: &[Connection]) -> Written {
    let mut writer = Writer::begin(folder, run, Some("web1")).expect("a folder");
    writer.push(connections).expect("it writes");
    writer.finish().expect("it ends")
}

#[test]
fn files_lie_by_day_and_host_and_a_run_replaces_what_it_wrote() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut connections = report(DOWNLOAD).connections;
    let mut later = connections[0].clone();
    connections[0].start = "2026-11-29T23:59:59.000000000Z".to_owned();
    later.start = "2026-11-30T00:00:01.000000000Z".to_owned();
    connections.push(later);
    write(folder.path(), "run", &connections);
    write(folder.path(), "run2", &connections);
    let days = ["2026-11-29", "2026-11-30"];
    let both = |table: &str| {
        let runs = ["run-0", "run2-0"];
        let of_day = |day| runs.map(|run| format!("{table}/day={day}/host=web1/{run}.parquet"));
        days.map(of_day).concat()
    };
    let found = files(folder.path());
    for table in Table::ALL {
        let of_table: Vec<_> =
            found.iter().filter(|name| name.starts_with(table.name())).cloned().collect();
        let expected = if table == Table::Requests && of_table.is_empty() {
            Vec::new()
        } else {
            both(table.name())
        };
        assert_eq!(of_table, expected);
    }
    assert!(!found.iter().any(|name| name.contains(".part")), "{found:?}");

    // The same run without the second day: its file goes, the other run's stays.
    write(folder.path(), "run", &connections[..1]);
    let left: Vec<_> =
        files(folder.path()).into_iter().filter(|name| name.starts_with("connections")).collect();
    assert_eq!(
        left,
        [
            "connections/day=2026-11-29/host=web1/run-0.parquet",
            "connections/day=2026-11-29/host=web1/run2-0.parquet",
            "connections/day=2026-11-30/host=web1/run2-0.parquet",
        ]
    );
    assert_eq!(rows(&folder.path().join(&left[0])), 1);
}

#[test]
fn a_day_that_comes_back_gets_a_second_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let one = report(DOWNLOAD).connections.remove(0);
    let at = |start: &str| Connection { start: start.to_owned(), ..one.clone() };
    let (a, b) = ("2026-11-29T10:00:00.000000000Z", "2026-11-30T10:00:00.000000000Z");
    write(folder.path(), "run", &[at(a), at(b), at(a), at(a)]);
    let folder = folder.path().join("connections");
    assert_eq!(rows(&folder.join("day=2026-11-29/host=web1/run-0.parquet")), 1);
    assert_eq!(rows(&folder.join("day=2026-11-29/host=web1/run-1.parquet")), 2);
    assert_eq!(rows(&folder.join("day=2026-11-30/host=web1/run-0.parquet")), 1);
}

/// Three segments of the connection at this place, by their frames.
fn segments(connection: usize, frames: [u64; 3]) -> Vec<Captured> {
    let of = |frame| Captured {
        connection,
        frame,
        at_ns: 1000,
        flags: Flags::SYN.with(Flags::ACK),
        sacked: vec![(1, 9), (20, 30)],
        ..Captured::default()
    };
    frames.map(of).to_vec()
}

#[test]
fn segments_lie_with_the_day_of_their_connection_and_a_run_without_them_removes_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let one = report(DOWNLOAD).connections.remove(0);
    let days = ["2026-11-29", "2026-11-30"];
    // More days than are written at once, and each comes back.
    let starts = (1..=6).map(|day| format!("2026-12-{day:02}T00:00:00.000000000Z"));
    let others: Vec<_> = starts.map(|start| Connection { start, ..one.clone() }).collect();
    let own = days.map(|day| {
        let start = format!("{day}T10:00:00.000000000Z");
        Connection { start, ..one.clone() }
    });
    let connections = [&own[..], &others[..]].concat();
    let mut writer = Writer::begin(folder.path(), "run", Some("web1")).expect("a folder");
    writer.push(&connections).expect("it writes");
    for frame in [1, 10] {
        let places = 0..connections.len();
        let some: Vec<_> =
            places.flat_map(|place| segments(place, [frame, frame + 1, frame + 2])).collect();
        writer.push_segments(&connections, &some).expect("it writes");
    }
    let written = writer.finish().expect("it ends");
    assert_eq!(written.rows[&Table::Segments], 8 * 6);
    let of_segments = |folder: &Path| -> Vec<String> {
        files(folder).into_iter().filter(|name| name.starts_with("segments/")).collect()
    };
    let found = of_segments(folder.path());
    let sum: usize = found.iter().map(|name| rows(&folder.path().join(name))).sum();
    assert_eq!(sum, 8 * 6);
    assert!(found.contains(&"segments/day=2026-11-29/host=web1/run-0.parquet".to_owned()));
    write(folder.path(), "run", &connections);
    assert_eq!(of_segments(folder.path()), Vec::<String>::new());
}

#[test]
fn a_row_of_a_segment_says_what_was_captured() {
    let folder = tempfile::tempdir().expect("a folder");
    let connections = vec![Connection {
        start: "2026-11-29T10:00:00.000000000Z".to_owned(),
        ..report(DOWNLOAD).connections.remove(0)
    }];
    let mut writer = Writer::begin(folder.path(), "run", Some("web1")).expect("a folder");
    writer.push_segments(&connections, &segments(0, [7, 8, 9])).expect("it writes");
    let file = writer.finish().expect("it ends").files.remove(0);
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(file).expect("a file"));
    let batch = reader.expect("Parquet").build().expect("readable").next().expect("a batch");
    let batch = batch.expect("rows");
    assert_eq!(ints(&batch, "frame"), [Some(7), Some(8), Some(9)]);
    assert_eq!(texts(&batch, "flags")[0].as_deref(), Some("SYN ACK"));
    assert_eq!(texts(&batch, "sender")[0].as_deref(), Some("client"));
    assert_eq!(ints(&batch, "ack"), [None; 3]);
    let sacked = batch.column_by_name("sacked").expect("a column").as_list::<i32>().value(0);
    let sacked: Vec<_> = sacked.as_string::<i32>().iter().flatten().map(str::to_owned).collect();
    assert_eq!(sacked, ["1-9", "20-30"]);
    let times = batch.column_by_name("captured_time").expect("a column");
    let times = times.as_primitive::<TimestampNanosecondType>();
    assert_eq!(times.value(0), 1_795_946_400_000_001_000);
}

#[test]
fn a_run_that_does_not_end_leaves_nothing_and_a_crashed_one_s_rest_goes() {
    let folder = tempfile::tempdir().expect("a folder");
    let connections = report(DOWNLOAD).connections;
    let mut writer = Writer::begin(folder.path(), "run", None).expect("a folder");
    writer.push(&connections).expect("it writes");
    drop(writer);
    assert_eq!(files(folder.path()), Vec::<String>::new());

    let crashed = folder.path().join(".run.1.part");
    fs::create_dir(&crashed).expect("a folder");
    fs::write(crashed.join("lock"), "").expect("a file");
    fs::write(crashed.join("0.parquet"), "half").expect("a file");
    let at_work = Writer::begin(folder.path(), "other", None).expect("a folder");
    assert!(!crashed.exists(), "nobody holds its lock");
    let third = Writer::begin(folder.path(), "third", None).expect("a folder");
    drop(third);
    drop(at_work.finish().expect("what is at work was left alone"));
}

#[test]
fn hosts_are_written_side_by_side_by_one_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let connections = report(DOWNLOAD).connections;
    let mut writers = ["web1", "web2"]
        .map(|host| Writer::begin(folder.path(), "run", Some(host)).expect("a place of its own"));
    for writer in &mut writers {
        writer.push(&connections).expect("it writes");
    }
    let rows = writers.map(|writer| writer.finish().expect("it ends").rows);
    assert_eq!(rows[0], rows[1]);
    for host in ["web1", "web2"] {
        let of_host = format!("host={host}/");
        assert!(files(folder.path()).iter().any(|file| file.contains(&of_host)), "{host}");
    }
}

#[test]
fn without_a_day_or_a_host_the_partition_is_null() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut writer = Writer::begin(folder.path(), "run", None).expect("a folder");
    writer.push(&report(DOWNLOAD).connections).expect("it writes");
    let files = writer.finish().expect("it ends").files;
    let null = "__HIVE_DEFAULT_PARTITION__";
    let first = folder.path().join(format!("connections/day={null}/host={null}/run-0.parquet"));
    assert!(files.contains(&first), "{files:?}");
}

#[test]
fn names_that_would_leave_the_folder_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["", "..", "a/b", "a=b", ".hidden", "a b", "\u{202e}"] {
        let refused = Writer::begin(folder.path(), "run", Some(name)).expect_err(name).to_string();
        assert!(refused.contains("cannot be a part of a path"), "{refused}");
    }
    assert_eq!(files(folder.path()), Vec::<String>::new());
}

#[test]
fn the_same_connection_has_the_same_key_in_every_run() {
    let (one, again) = (report(DOWNLOAD), report(DOWNLOAD));
    let keys =
        |report: &Report| texts(&batch(Table::Findings, &report.connections), "connection_key");
    assert_eq!(keys(&one), keys(&again));
    let mut other = one.clone();
    let port = other.connections[0].client.port();
    other.connections[0].client.set_port(port + 1);
    assert_ne!(keys(&one)[0], keys(&other)[0]);
}
