//! Is a link that others have a part of told from one that is odd in another way?

mod common;

use std::path::Path;

use common::{in_repository, run};
use serde_json::Value;

/// Which connections of a capture have `BOTTLENECK_SHARED`.
fn told(capture: &Path) -> Vec<bool> {
    let told = run(&["--json", "--no-predict", capture.to_str().expect("UTF-8")]);
    assert_eq!(told.status, Some(0), "{}", told.stderr);
    let report: Value = serde_json::from_str(&told.stdout).expect("JSON");
    let is_shared = |connection: &Value| {
        let findings = connection["findings"].as_array().expect("a list");
        findings.iter().any(|finding| finding["code"] == "BOTTLENECK_SHARED")
    };
    report["connections"].as_array().expect("a list").iter().map(is_shared).collect()
}

#[test]
fn a_link_is_shared_where_others_connections_are_on_it_and_only_there() {
    let scenario = in_repository("crates/cli/tests/shared_link.toml");
    let kept = tempfile::tempdir().expect("a folder");
    let (scenario, folder) =
        (scenario.to_str().expect("UTF-8"), kept.path().to_str().expect("UTF-8"));
    let ran = run(&["lab", "run", scenario, "--backend", "model:6.1", "--keep", folder]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let variants = [
        ("two", 2),
        ("four", 4),
        ("alone", 0),
        ("beside-constant", 0),
        ("jitter", 0),
        ("reordered", 0),
        ("cells", 0),
        ("narrow-acks", 0),
        ("slower", 0),
        ("fast-and-slow", 0),
        ("fair-queue", 0),
        ("shaped-before", 0),
        ("merged", 0),
        ("bbr", 0),
    ];
    let mut wrong = Vec::new();
    for (variant, wanted) in variants {
        for host in ["server", "client"] {
            let found = told(&kept.path().join(format!("shared_link-{variant}-0/{host}.pcapng")));
            if found.iter().filter(|is_shared| **is_shared).count() != wanted {
                wrong.push(format!("{variant}, {host}: {found:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
