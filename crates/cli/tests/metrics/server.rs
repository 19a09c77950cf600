//! A Prometheus server of a test's own.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::in_repository;

/// A server that scrapes one target five times a second and judges the shipped rules, with times that a test can wait for.
pub(crate) struct Prometheus {
    child: Child,
    address: SocketAddr,
}

impl Prometheus {
    pub(crate) fn start(folder: &Path, target: SocketAddr) -> Self {
        let alerts =
            fs::read_to_string(in_repository("packaging/prometheus/alerts.yml")).expect("rules");
        let mut alerts = alerts.replace("[5m]", "[2s]");
        for time in ["10m", "5m", "2m", "1m"] {
            alerts = alerts.replace(&format!("for: {time}"), "for: 1s");
        }
        fs::write(folder.join("alerts.yml"), alerts).expect("a file");
        let config = format!(
            "global: {{ scrape_interval: 200ms, scrape_timeout: 200ms, evaluation_interval: 200ms }}\n\
             rule_files: [alerts.yml]\n\
             scrape_configs: [{{ job_name: tcpwhy, static_configs: [{{ targets: [\"{target}\"] }}] }}]\n"
        );
        fs::write(folder.join("prometheus.yml"), config).expect("a file");
        let address =
            TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port");
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", folder.join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .arg("--log.level=error")
            .stdin(Stdio::null())
            .spawn()
            .expect("prometheus starts");
        Self { child, address }
    }

    /// What the API answers to `query`.
    pub(crate) fn ask(&self, query: &str) -> Option<Value> {
        let coded: Vec<_> = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let answer = get(self.address, &format!("/api/v1/query?query={}", coded.concat()))?;
        serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
    }

    /// The first value that `query` has, once it is more than `least`.
    pub(crate) fn wait_for(&self, query: &str, least: f64) -> f64 {
        let until = Instant::now() + Duration::from_mins(1);
        loop {
            let answer = self.ask(query);
            let value = answer.as_ref().and_then(|answer| {
                assert_eq!(answer["status"], "success", "{query}: {answer}");
                answer["data"]["result"][0]["value"][1].as_str()?.parse::<f64>().ok()
            });
            if let Some(value) = value.filter(|value| *value > least) {
                return value;
            }
            assert!(Instant::now() < until, "{query} is not more than {least}: {answer:?}");
            thread::sleep(Duration::from_millis(200));
        }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A page of a server that closes the connection behind it.
pub(crate) fn get(server: SocketAddr, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(server).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {server}\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}
