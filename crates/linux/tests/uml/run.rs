//! Plans, runs, and what their captures show.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;
use tcpwhy_linux::lab::backend::{Backend as _, Manifest};
use tcpwhy_linux::lab::uml::Uml;
use tcpwhy_model::scenario::Scenario;
use tcpwhy_model::scenario::plan::{Flow, Path as Route, Plan, Records, Step, Way};

use crate::packets::{Packet, packets};

pub(crate) const MS: u64 = 1_000_000;

/// 512 KiB after a request, at a round trip of 6 ms and 1 Gbit/s.
pub(crate) fn download() -> Plan {
    let way = Way { rate: 1_000_000_000, delay_ns: 3 * MS, ..Way::default() };
    Plan {
        scenario: "slow-start".to_owned(),
        seed: 1,
        path: Route { down: way.clone(), up: way, changes: vec![] },
        flows: vec![Flow {
            port: 80,
            connections: 1,
            client: vec![Step::WriteHead(78), Step::ReadToEnd { chunk: 65_536, pause_ns: 0 }],
            server: vec![Step::ReadHead, Step::Write { bytes: SIZE, chunk: SIZE, pause_ns: 0 }],
            ..Flow::default()
        }],
        records: Records { snap_length: 128, middle: true, ..Records::default() },
        limit_ns: 120_000 * MS,
        tail_ns: 1000 * MS,
        ..Plan::default()
    }
}

pub(crate) const SIZE: u64 = 512 << 10;

pub(crate) fn down(change: impl FnOnce(&mut Way)) -> Plan {
    let mut plan = download();
    change(&mut plan.path.down);
    plan
}

/// What a scenario means whose `lines` stand above its application.
pub(crate) fn scenario(lines: &str, application: &str) -> Plan {
    let text = format!("{lines}\n[application]\nport = 80\n{application}\n");
    let read = Scenario::read("path", &text, &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
    read.variants[0].clone()
}

/// The backend, or why the test is skipped.
pub(crate) fn uml(version: Option<&str>) -> Option<Uml> {
    let uml = Uml::new(version);
    match uml.check(&download()) {
        Ok(()) => Some(uml),
        Err(why) => {
            let required = std::env::var_os("TCPWHY_REQUIRE_ALL").is_some_and(|v| v == "1");
            assert!(!required, "{why}");
            eprintln!("skipped: {why}");
            None
        }
    }
}

pub(crate) struct Run {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) manifest: Manifest,
}

impl Run {
    pub(crate) fn of(uml: &Uml, plan: &Plan) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let manifest = uml.run(plan, folder.path()).unwrap_or_else(|e| panic!("{e}"));
        assert!(manifest.valid, "{:?}", manifest.problems);
        Self { folder, manifest }
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.folder.path().join(name)).unwrap()
    }

    pub(crate) fn packets(&self, tap: &str) -> Vec<Packet> {
        packets(&self.bytes(&format!("{tap}.pcapng")))
    }

    /// Data from the server at a tap.
    pub(crate) fn data(&self, tap: &str) -> Vec<Packet> {
        self.packets(tap).into_iter().filter(|p| p.source_port == 80 && p.payload > 0).collect()
    }

    /// All packets from the server at a tap.
    pub(crate) fn sent(&self, tap: &str) -> Vec<Packet> {
        self.packets(tap).into_iter().filter(|p| p.source_port == 80).collect()
    }

    /// Each packet of one tap with the times at which it came to another, in order.
    pub(crate) fn met(&self, sent: Vec<Packet>, tap: &str) -> Vec<(Packet, Vec<u64>)> {
        let mut came: BTreeMap<_, Vec<u64>> = BTreeMap::new();
        for packet in self.packets(tap) {
            came.entry(packet.name()).or_default().push(packet.at);
        }
        sent.into_iter().map(|p| (p.clone(), came.remove(&p.name()).unwrap_or_default())).collect()
    }

    /// The kernel's records of one kind.
    pub(crate) fn events(&self, event: &str) -> Vec<Value> {
        let text = String::from_utf8(self.bytes("kernel.jsonl")).unwrap();
        let all = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        all.filter(|line| line["event"] == event).collect()
    }

    /// How much a counter of a host grew.
    pub(crate) fn counted(&self, host: &str, group: &str, name: &str) -> i64 {
        let all: Value = serde_json::from_slice(&self.bytes("counters.json")).unwrap();
        let of = |when: &str| all[host][when]["counters"][group][name].as_i64().unwrap();
        of("after") - of("before")
    }

    /// Bytes of data that came together, apart from the next by more than a millisecond.
    pub(crate) fn bursts(&self) -> Vec<u64> {
        let mut bursts: Vec<(u64, u64)> = vec![];
        for packet in self.data("server") {
            match bursts.last_mut() {
                Some((last, bytes)) if packet.at - *last < MS => {
                    *last = packet.at;
                    *bytes += packet.payload;
                }
                _ => bursts.push((packet.at, packet.payload)),
            }
        }
        bursts.into_iter().map(|(_, bytes)| bytes).collect()
    }

    /// From the first packet to the last data at the client.
    pub(crate) fn lasted_ns(&self) -> u64 {
        let all = self.packets("client");
        self.data("client").last().unwrap().at - all.first().unwrap().at
    }
}
