//! Does every report keep the contract of `docs/report.schema.json`?

mod common;

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::{Map, Value, json};
use tcpwhy::report::{FORMAT, Report, State};

use common::{all_captures, in_repository, report::full, run};

/// The compiled contract.
struct Contract(Schemas, SchemaIndex);

impl Contract {
    fn read() -> Self {
        let mut compiler = Compiler::new();
        compiler.add_resource("report", schema()).expect("a resource");
        let mut schemas = Schemas::new();
        let index = compiler.compile("report", &mut schemas).expect("a valid schema");
        Self(schemas, index)
    }

    /// What breaks the contract, if anything does.
    fn breach(&self, report: &Value) -> Option<String> {
        self.0.validate(report, self.1).err().map(|error| format!("{error:#}"))
    }
}

fn schema() -> Value {
    let path = in_repository("docs/report.schema.json");
    serde_json::from_slice(&std::fs::read(path).expect("is there")).expect("is JSON")
}

fn sample() -> Value {
    serde_json::to_value(full()).expect("serialises")
}

/// Places of all values inside `value`, as JSON pointers.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                places(value, &format!("{at}/{index}"), found);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                places(value, &format!("{at}/{name}"), found);
            }
        }
        _ => {}
    }
}

fn fields_at<'a>(value: &'a mut Value, place: &str) -> Option<&'a mut Map<String, Value>> {
    value.pointer_mut(place)?.as_object_mut()
}

#[test]
fn a_full_report_keeps_the_contract_and_comes_back_the_same() {
    let sample = sample();
    assert_eq!(Contract::read().breach(&sample), None);
    assert_eq!(serde_json::from_value::<Report>(sample).expect("comes back"), full());
}

#[test]
fn an_empty_report_keeps_the_contract() {
    let empty = Report { format: FORMAT.to_owned(), ..Report::default() };
    assert_eq!(Contract::read().breach(&serde_json::to_value(empty).expect("serialises")), None);
}

#[test]
fn no_field_may_be_missing_added_or_of_another_type() {
    let (contract, sample) = (Contract::read(), sample());
    let mut found = Vec::new();
    places(&sample, "", &mut found);
    assert!(found.len() > 300, "the sample is full");
    for place in found {
        let mut mutated = sample.clone();
        *mutated.pointer_mut(&place).expect("a place") = json!({ "no such": "thing" });
        assert!(contract.breach(&mutated).is_some(), "{place} may be anything");

        let mut mutated = sample.clone();
        if let Some(fields) = fields_at(&mut mutated, &place) {
            fields.insert("surprise".to_owned(), json!(1));
            assert!(contract.breach(&mutated).is_some(), "{place} may hold a surprise");
        }
        let (parent, name) = place.rsplit_once('/').unwrap_or_default();
        let mut mutated = sample.clone();
        if let Some(fields) = fields_at(&mut mutated, parent)
            .filter(|_| !parent.ends_with("time_in") && !parent.ends_with("waited"))
            && fields.remove(name).is_some()
        {
            assert!(contract.breach(&mutated).is_some(), "{place} may be missing");
        }
    }
}

#[test]
fn values_out_of_range_break_the_contract() {
    let contract = Contract::read();
    for (place, value) in [
        ("/format", json!("tcpwhy/0")),
        ("/captures/0/packets", json!(-1)),
        ("/captures/0/quality/0/kind", json!("bad_mood")),
        ("/connections/0/client", json!("localhost:80")),
        ("/connections/0/start", json!("2026-11-21T10:45:49Z")),
        ("/connections/0/vantage", json!("Server")),
        ("/connections/0/directions", json!([null])),
        ("/connections/0/directions/0/limits/0/confidence", json!("sure")),
        ("/connections/0/directions/0/limits/0/state", json!("slow_start")),
        ("/connections/0/directions/0/strip", json!("z")),
        ("/connections/0/directions/0/time_in", json!({"waiting": 5})),
        ("/connections/0/directions/0/loss_pattern/p_value", json!(1.5)),
        ("/connections/0/transfers/0/from", json!("peer")),
    ] {
        let mut mutated = sample();
        *mutated.pointer_mut(place).expect(place) = value;
        assert!(contract.breach(&mutated).is_some(), "{place}");
    }
}

#[test]
fn what_may_be_unknown_may_be_null_and_nothing_else() {
    let contract = Contract::read();
    let mut found = Vec::new();
    let sample = sample();
    places(&sample, "", &mut found);
    for place in found {
        let mut mutated = sample.clone();
        *mutated.pointer_mut(&place).expect("a place") = Value::Null;
        let types_take_it = serde_json::from_value::<Report>(mutated.clone()).is_ok();
        assert_eq!(contract.breach(&mutated).is_none(), types_take_it, "{place}");
    }
}

#[test]
fn the_states_of_the_contract_are_those_of_the_code() {
    let names: Vec<_> = State::all().map(State::name).collect();
    assert_eq!(schema()["$defs"]["state"]["enum"], json!(names));
}

#[test]
fn every_definition_is_closed_and_described() {
    fn walk(value: &Value, at: &str) {
        if let Some(properties) = value.get("properties").and_then(Value::as_object) {
            let names: Vec<_> = properties.keys().collect();
            let mut required: Vec<_> =
                value["required"].as_array().expect(at).iter().filter_map(Value::as_str).collect();
            required.sort_unstable();
            assert_eq!(json!(names), json!(required), "{at}: all fields are always there");
            assert_eq!(value["additionalProperties"], json!(false), "{at}");
            for (name, property) in properties {
                assert!(property["description"].is_string(), "{at}/{name} is not described");
            }
        }
        match value {
            Value::Object(fields) => fields.iter().for_each(|(k, v)| walk(v, &format!("{at}/{k}"))),
            Value::Array(values) => values.iter().for_each(|v| walk(v, at)),
            _ => {}
        }
    }
    walk(&schema(), "");
}

#[test]
fn every_capture_of_the_repository_gives_a_valid_report() {
    let contract = Contract::read();
    let captures = all_captures();
    assert!(captures.len() >= 7, "{captures:?}");
    let mut breaches = Vec::new();
    for capture in captures {
        let name = capture.display().to_string();
        for more in [&[][..], &["--anonymize"][..]] {
            let run = run(&[&["--json", "--no-predict", &name], more].concat());
            assert_eq!(run.status, Some(0), "{name}: {}", run.stderr);
            let report = serde_json::from_str(&run.stdout).expect("JSON");
            breaches.extend(contract.breach(&report).map(|breach| format!("{name}: {breach}")));
        }
    }
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}
