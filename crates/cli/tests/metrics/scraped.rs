//! A slow reader, a look each 100 ms, and a Prometheus that scrapes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::path::apart;
use crate::common::{finish, in_repository, tcpwhy};
use crate::prometheus::{has, promtool};
use crate::server::{Prometheus, get};

/// `tcpwhy live --metrics` with these words besides, and where it listens.
struct Live(Child);

impl Live {
    fn start(words: &[&str]) -> (Self, SocketAddr) {
        let mut command: Command = tcpwhy();
        command.args(["live", "--metrics", "127.0.0.1:0", "--interval", "100ms"]).args(words);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the binary starts");
        let said = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut lines = said.lines().map_while(Result::ok);
        let address =
            lines.find_map(|line| line.split_once("http://")?.1.split('/').next()?.parse().ok());
        // What else it says must not fill the pipe.
        thread::spawn(move || lines.for_each(drop));
        (Self(child), address.expect("it says where it listens"))
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A sender whose peer reads 64 KiB each 50 ms, as long as the test runs.
fn slow_reader() {
    let listener = TcpListener::bind("127.0.0.1:8080").expect("a port");
    thread::spawn(move || {
        let (mut sender, _) = listener.accept().expect("a connection");
        let sent = vec![0; 1 << 16];
        while sender.write_all(&sent).is_ok() {}
    });
    let mut reader = TcpStream::connect("127.0.0.1:8080").expect("it listens");
    thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while reader.read(&mut buffer).is_ok_and(|read| read > 0) {
            thread::sleep(Duration::from_millis(50));
        }
    });
}

#[test]
fn who_serves_is_confined_where_the_kernel_can() {
    apart(|_| {
        let (live, address) = Live::start(&[]);
        let has_landlock = thread::spawn(|| tcpwhy_linux::live::confine(&[])).join();
        let has_landlock = has_landlock.expect("no panic").expect("it is not refused");
        let status = std::fs::read_to_string(format!("/proc/{}/task/{0}/status", live.0.id()));
        let status = status.expect("it runs");
        assert_eq!(status.contains("NoNewPrivs:\t1"), has_landlock, "{status}");
        // What it needs it may read: counters of the kernel.
        let until = Instant::now() + Duration::from_secs(20);
        let is_told = || {
            let page = get(address, "/metrics").unwrap_or_default();
            page.contains("tcpwhy_kernel_sent_segments_total")
        };
        while !is_told() {
            assert!(Instant::now() < until, "no counters of the kernel");
            thread::sleep(Duration::from_millis(100));
        }
    });
}

#[test]
fn prometheus_scrapes_and_an_alert_fires() {
    if !has("prometheus") || !has("promtool") {
        return;
    }
    apart(|folder| {
        slow_reader();
        let rules = folder.join("rules.toml");
        std::fs::write(&rules, "[ports]\nslow = 8080\n").expect("a file");
        let (_live, address) = Live::start(&["--metrics-rules", rules.to_str().expect("UTF-8")]);
        let prometheus = Prometheus::start(folder, address);
        let of = "network_local_port=\"slow\",peer=\"loopback\"";
        let held = format!(
            "sum(rate(tcpwhy_state_seconds_total{{{of},state=~\"rwnd[.].*|zero_window\"}}[2s]))"
        );
        prometheus.wait_for(&held, 0.6);
        let alert = "ALERTS{alertname=\"TcpwhyReceiverLimited\",alertstate=\"firing\",network_local_port=\"slow\"}";
        prometheus.wait_for(alert, 0.0);
        prometheus.wait_for("tcpwhy_kernel_sent_segments_total", 0.0);
        prometheus.wait_for(&format!("tcpwhy_acked_bytes_total{{{of}}}"), 100_000.0);
        prometheus.wait_for("tcpwhy_accept_queue_limit{network_local_port=\"slow\"}", 0.0);
        for query in queries_of_the_dashboard() {
            let answer = prometheus.ask(&query).expect("an answer");
            assert_eq!(answer["status"], "success", "{query}: {answer}");
        }
        let page = get(address, "/metrics").expect("a page");
        let output =
            promtool(&["check", "metrics"], page.split_once("\r\n\r\n").expect("a body").1);
        assert!(output.status.success(), "{output:?}");
    });
}

/// The dashboard's queries with a range that a test can ask for.
fn queries_of_the_dashboard() -> Vec<String> {
    let text = std::fs::read_to_string(in_repository("packaging/grafana/tcpwhy.json"))
        .expect("a dashboard");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().expect("targets"));
    let queries = targets.map(|target| {
        let query = target["expr"].as_str().expect("a query").replace("$__rate_interval", "2s");
        let query = ["$instance", "$port", "$peer"]
            .iter()
            .fold(query, |query, name| query.replace(name, ".*"));
        assert!(!query.contains('$'), "{query}");
        query
    });
    queries.collect()
}

#[test]
fn what_cannot_be_served_is_told_with_what_to_try() {
    let said = |words: &[&str]| {
        let run =
            finish(tcpwhy().args(["live", "--metrics"]).args(words).output().expect("it runs"));
        assert_eq!(run.status, Some(3), "{}", run.stderr);
        run.stderr
    };
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let in_use = said(&[&address]);
    assert!(
        in_use.contains(&format!("{address} is in use")) && in_use.contains("port 0"),
        "{in_use}"
    );
    assert!(said(&["9464"]).contains("write HOST:PORT"));
    let folder = tempfile::tempdir().expect("a folder");
    let rules = folder.path().join("rules.toml");
    std::fs::write(&rules, "groups = 10\n[ports]\nweb = \"http\"\n").expect("a file");
    let wrong = said(&["127.0.0.1:0", "--metrics-rules", rules.to_str().expect("UTF-8")]);
    assert!(wrong.contains("rules.toml: line 3: `http` is no port"), "{wrong}");
    assert!(said(&["127.0.0.1:0", "--metrics-rules", "/nowhere.toml"]).contains("/nowhere.toml"));
}
