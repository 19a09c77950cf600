//! What is shipped for those who install it: rules, a dashboard, a unit.

use std::fs;
use std::process::Command;

use crate::common::in_repository;
use crate::common::path::skipped;
use crate::prometheus::{has, promtool};

/// The shipped rules are rules, and each fires when it should and not before.
#[test]
fn rules_fire_when_they_should() {
    if !has("promtool") {
        return;
    }
    let file = |name: &str| in_repository("packaging/prometheus").join(name).display().to_string();
    for words in
        [["check", "rules", &file("alerts.yml")], ["test", "rules", &file("alerts.test.yml")]]
    {
        let output = promtool(&words, "");
        assert!(output.status.success(), "{words:?}: {output:?}");
    }
    let alerts = fs::read_to_string(file("alerts.yml")).expect("rules");
    let tests = fs::read_to_string(file("alerts.test.yml")).expect("tests");
    let names = alerts.lines().filter_map(|line| line.trim().strip_prefix("- alert: "));
    let untested: Vec<&str> =
        names.filter(|name| !tests.contains(&format!("alertname: {name}\n"))).collect();
    assert_eq!(untested, [""; 0], "each has a test in which it fires");
}

/// Each metric that rules or the dashboard ask for is one that a page has, and docs/metrics.md explains each.
#[test]
fn what_is_asked_for_is_there() {
    let page = std::sync::Arc::new(tcpwhy_cli::metrics::Totals::default());
    let page = page.render(tcpwhy_cli::metrics::Form::Prometheus);
    let families: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let is_there = |name: &str| {
        families.iter().any(|family| {
            name.strip_prefix(family)
                .is_some_and(|rest| ["", "_bucket", "_sum", "_count"].contains(&rest))
        })
    };
    for file in ["prometheus/alerts.yml", "grafana/tcpwhy.json"] {
        let text = fs::read_to_string(in_repository("packaging").join(file)).expect("a file");
        let asked: Vec<&str> = text
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .filter(|word| word.starts_with("tcpwhy_"))
            .collect();
        assert!(asked.len() > 10, "{file}");
        let missing: Vec<_> = asked.into_iter().filter(|name| !is_there(name)).collect();
        assert_eq!(missing, [""; 0], "{file}");
    }
    let manual = fs::read_to_string(in_repository("docs/metrics.md")).expect("a page");
    let missing: Vec<_> =
        families.iter().filter(|name| !manual.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/metrics.md lacks {missing:?}");
}

/// systemd takes the unit as it is.
#[test]
fn the_unit_is_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let text =
        fs::read_to_string(in_repository("packaging/systemd/tcpwhy-live.service")).expect("a unit");
    let unit = folder.path().join("tcpwhy-live.service");
    fs::write(&unit, text.replace("/usr/bin/tcpwhy", env!("CARGO_BIN_EXE_tcpwhy")))
        .expect("a file");
    let Ok(output) = Command::new("systemd-analyze").arg("verify").arg(&unit).output() else {
        return skipped("there is no systemd-analyze");
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("tcpwhy-live"), "{said}");
}
