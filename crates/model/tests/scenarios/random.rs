//! Random text does no harm, and every number arrives as it was written.

use proptest::prelude::*;
use tcpwhy_model::scenario::Scenario;
use tcpwhy_model::scenario::plan::{Loss, Plan, Queue, Step};

use super::{MINIMAL, only};

/// Pieces that keep random text near the language.
fn piece() -> impl Strategy<Value = String> {
    let words = [
        "[path]",
        "[application]",
        "[variants.a]",
        "[[path.changes]]",
        "at = \"1s\"",
        "rtt = \"6ms\"",
        "rate = \"1mbit\"",
        "queue = \"1 bdp\"",
        "loss = \"exact 1 2\"",
        "download = \"1MB\"",
        "client = [",
        "{ repeat = 3, steps = [\"drain\"] }",
        "]",
        "\n",
        "\n",
        "=",
        "\"",
        "path.down",
        ".",
        "server.egress = \"fq\"",
        "-1",
        "99999999999999999999",
        "1e9",
        "1979-05-27",
        "{",
        "}",
        "#",
        "\u{e9}",
    ];
    prop_oneof![
        4 => proptest::sample::select(words.to_vec()).prop_map(str::to_owned),
        1 => "\\PC{0,8}",
    ]
}

proptest! {
    #[test]
    fn no_text_panics(text: String) {
        let _ = Scenario::read("x", &text, &[]);
    }

    #[test]
    fn no_text_near_the_language_panics(pieces in prop::collection::vec(piece(), 0..24)) {
        let text = pieces.concat();
        let _ = Scenario::read("x", &text, &[]);
        let _ = Scenario::read("x", MINIMAL, &[text]);
    }

    #[test]
    fn numbers_reach_the_plan_exactly(
        rtt in 0_u64..60_000_000_000,
        rate in 8_u64..1_000_000_000_000,
        queue in 1514_u64..4_000_000_000,
        loss in 1_u32..1_000_000,
        bytes in 1_u64..1_000_000_000_000,
    ) {
        let plan = only(&format!(
            "[path]\nrtt = \"{rtt}ns\"\nrate = \"{rate}bit\"\nqueue = \"{queue}B\"\nloss = \"{loss}ppm\"\n[application]\nsend = {bytes}\n"
        ));
        let way = &plan.path.up;
        prop_assert_eq!(plan.path.down.delay_ns + way.delay_ns, rtt);
        prop_assert_eq!((way.rate, way.queue), (rate, Queue::Bytes(queue)));
        prop_assert_eq!(&way.loss, &Loss::Random(loss));
        let sent = matches!(plan.flows[0].server[0], Step::Write { bytes: b, .. } if b == bytes);
        prop_assert!(sent);
        let json = serde_json::to_string(&plan).expect("a plan is data");
        prop_assert_eq!(serde_json::from_str::<Plan>(&json).expect("reads back"), plan);
    }
}
