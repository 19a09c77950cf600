//! A report in which some connections have only what a row of the table shows.

use std::collections::BTreeSet;

use serde::{Serialize, Serializer};

use crate::report::{
    Capture, Command, Connection, Finding, IcmpErrors, Lookup, Report, Strip, Totals, With,
};

/// A report, whole or in part.
#[derive(Debug)]
pub(super) struct Listed<'a> {
    pub(super) of: &'a Report,
    /// The places of the connections that are whole; `None`: all are.
    pub(super) first: Option<BTreeSet<usize>>,
}

/// The fields of [`Report`].
#[derive(Serialize)]
struct Fields<'a> {
    format: &'a str,
    provisional: bool,
    captures: &'a [Capture],
    with: &'a [With],
    command: &'a Option<Command>,
    lookups: &'a [Lookup],
    findings: &'a [Finding],
    icmp: &'a [IcmpErrors],
    totals: &'a Totals,
    connections: Vec<Either<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Either<'a> {
    Whole(&'a Connection),
    Row(Row<'a>),
}

/// What a row shows, by the names of the report.
#[derive(Serialize)]
struct Row<'a> {
    id: u64,
    client: String,
    server: String,
    directions: [Option<Way<'a>>; 2],
}

#[derive(Serialize)]
struct Way<'a> {
    bytes: u64,
    strip: &'a Strip,
}

impl Serialize for Listed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(first) = &self.first else { return self.of.serialize(serializer) };
        let Report { format, provisional, captures, with, command, lookups, findings, .. } =
            self.of;
        let each = |(at, connection)| {
            if first.contains(&at) {
                Either::Whole(connection)
            } else {
                Either::Row(row(connection))
            }
        };
        Fields {
            format,
            provisional: *provisional,
            captures,
            with,
            command,
            lookups,
            findings,
            icmp: &self.of.icmp,
            totals: &self.of.totals,
            connections: self.of.connections.iter().enumerate().map(each).collect(),
        }
        .serialize(serializer)
    }
}

fn row(connection: &Connection) -> Row<'_> {
    let way = |at: usize| {
        let direction = connection.directions[at].as_ref()?;
        Some(Way { bytes: direction.bytes, strip: &direction.strip })
    };
    Row {
        id: connection.id,
        client: connection.client.to_string(),
        server: connection.server.to_string(),
        directions: [way(0), way(1)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::sample;

    fn json(part: &impl Serialize) -> serde_json::Value {
        serde_json::to_value(part).expect("JSON")
    }

    #[test]
    fn a_part_in_which_all_are_whole_is_the_report() {
        let report = sample::keep_alive();
        let all = (0..report.connections.len()).collect();
        assert_eq!(json(&Listed { of: &report, first: Some(all) }), json(&report));
        assert_eq!(json(&Listed { of: &report, first: None }), json(&report));
    }

    #[test]
    fn a_row_has_the_report_s_names_and_figures() {
        let report = sample::keep_alive();
        let part = json(&Listed { of: &report, first: Some(BTreeSet::new()) });
        let (row, whole) = (&part["connections"][0], &json(&report)["connections"][0]);
        for name in ["id", "client", "server"] {
            assert_eq!(row[name], whole[name], "{name}");
        }
        for side in [0, 1] {
            for name in ["bytes", "strip"] {
                assert_eq!(row["directions"][side][name], whole["directions"][side][name]);
            }
        }
        assert!(row["findings"].is_null());
    }
}
