//! `docs/tables.md` lists the columns as the schemas have them; `TABLES=write` writes it anew.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use arrow_schema::{DataType, TimeUnit};
use tcpwhy_tables::Table;

/// As SQL calls it.
fn type_of(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Int64 => "BIGINT",
        DataType::Utf8 => "VARCHAR",
        DataType::Boolean => "BOOLEAN",
        DataType::Timestamp(TimeUnit::Nanosecond, Some(_)) => "TIMESTAMP, UTC, ns",
        DataType::List(_) => "VARCHAR[]",
        DataType::Map(..) => "MAP(VARCHAR, BIGINT)",
        other => panic!("no column is {other}"),
    }
}

/// All tables with their columns.
fn columns() -> String {
    let mut text = String::new();
    for table in Table::WITH_SEGMENTS {
        let name = table.name();
        write!(
            text,
            "\n### {name}\n\n{}\n\n| column | type | what |\n|---|---|---|\n",
            table.doc()
        )
        .expect("a string takes all");
        for field in table.schema().fields() {
            let doc = &field.metadata()["description"];
            let of = type_of(field.data_type());
            writeln!(text, "| `{}` | {of} | {doc} |", field.name()).expect("a string takes all");
        }
    }
    text
}

#[test]
fn the_page_lists_the_columns_that_there_are() {
    const MARK: &str = "<!-- columns -->\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tables.md");
    let page = fs::read_to_string(&path).expect("the page");
    let (head, listed) = page.split_once(MARK).expect("a mark");
    let made = columns();
    if std::env::var_os("TABLES").is_some() {
        fs::write(&path, format!("{head}{MARK}{made}")).expect("it is ours");
    } else {
        assert_eq!(listed, made, "TABLES=write cargo test -p tcpwhy-tables writes it anew");
    }
}
