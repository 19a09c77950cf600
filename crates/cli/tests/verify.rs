//! What was said of a change, carried out: by the model where any machine has to, and on a kernel in simulated time.

mod common;

use common::{Run, run};
use serde_json::Value;

fn capture(name: &str) -> String {
    format!("{}/../../testdata/kernel/{name}.server.pcap.gz", env!("CARGO_MANIFEST_DIR"))
}

fn verify(name: &str, more: &[&str]) -> Run {
    let capture = capture(name);
    run(&[&["lab", "verify", &capture], more].concat())
}

fn told(ran: &Run) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("JSON: {}", ran.stderr))
}

fn keeps_its_schema(told: &Value) {
    let schema = run(&["generate", "schema-verify"]).stdout;
    let schema = serde_json::from_str(&schema).expect("JSON");
    let (mut compiler, mut schemas) = (boon::Compiler::new(), boon::Schemas::new());
    compiler.add_resource("verify", schema).expect("a resource");
    let index = compiler.compile("verify", &mut schemas).expect("a valid schema");
    schemas.validate(told, index).unwrap_or_else(|error| panic!("{error:#}"));
}

/// Which changes were carried out, and what came of them.
fn verdicts(told: &Value) -> Vec<(&str, &str)> {
    let claims = told["claims"].as_array().expect("a list");
    claims
        .iter()
        .map(|claim| {
            (claim["what"].as_str().expect("words"), claim["verdict"].as_str().expect("a word"))
        })
        .collect()
}

#[test]
fn each_remedy_of_a_slow_start_is_as_said() {
    let ran = verify("slowstart-rtt6", &["--backend", "model:6.1", "--json"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let told = told(&ran);
    keeps_its_schema(&told);
    assert_eq!((&told["format"], &told["repeats"]), (&"tcpwhy-verify/1".into(), &true.into()));
    let held = [
        ("application: on a connection that is open already", "held"),
        ("server: initcwnd 44", "held"),
    ];
    assert_eq!(verdicts(&told), held);
}

/// One lost packet in the middle: it is lost again, and its repair costs the kernel a round trip, too.
#[test]
fn what_the_capture_lost_is_lost_on_the_kernel() {
    let ran = verify("loss-one-mid", &["--backend", "uml:6.1", "--json"]);
    let required = std::env::var_os("TCPWHY_REQUIRE_ALL").is_some_and(|v| v == "1");
    if ran.status == Some(2) && !required {
        return;
    }
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let told = told(&ran);
    keeps_its_schema(&told);
    assert_eq!(told["on_kernel"]["middle"]["resent_segments"], told["seen"]["resent_segments"]);
    assert_eq!(told["repeats"], true, "{told}");
    let no_losses = ("path: no losses", "held");
    assert!(verdicts(&told).contains(&no_losses), "{:?}", verdicts(&told));
}

#[test]
fn a_change_that_costs_time_is_told_as_one() {
    let ran = verify("slowstart-rtt6", &["--backend", "model:6.1", "--set", "rtt=12ms"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("the kernel repeats the capture (+0."), "{}", ran.stdout);
    assert!(ran.stdout.contains("as said, it costs 36."), "{}", ran.stdout);
}

/// A slow processor's pauses, which no fit has.
#[test]
fn what_the_model_does_not_repeat_is_refused_with_where_it_parts() {
    let ran = verify("rwnd-cap-rmem4096", &["--backend", "model:6.1"]);
    assert_eq!(ran.status, Some(3));
    assert!(ran.stdout.contains("they part most in rwnd.cap, by"), "{}", ran.stdout);
    assert!(ran.stderr.contains("nothing was carried out"), "{}", ran.stderr);
}

#[test]
fn bad_questions_are_refused_before_anything_runs() {
    let refused = |more: &[&str], words: &str| {
        let ran = verify("slowstart-rtt6", more);
        assert_eq!(ran.status, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    };
    refused(&["--set", "initcwnd"], "has no `=`");
    refused(&["--set", "initcwnd=many"], "cannot answer");
    refused(&["--backend", "qemu"], "there are tun and netem");
    refused(&["--backend", "model:1.0", "--set", "initcwnd=20"], "1.0");
    let missing = run(&["lab", "verify", "/nowhere.pcap"]);
    assert_eq!(missing.status, Some(3), "{}", missing.stderr);
}
