//! How often each word of a report's certainty is right, by vantage and state.

use core::fmt::Write;

use truth::compare::{Agreement, share};
use truth::words::WORDS;

use crate::cmd::columns::percent;

/// States said wrongly for longest that are shown of each word.
const WORST: usize = 4;

/// A table: of what was said in each word, how much was right, and which states were said wrongly for longest.
pub(super) fn render(by_vantage: &[(&'static str, Agreement)], text: &mut String) {
    text.push_str("\nof what is said so sure, right by time\n");
    for word in WORDS {
        let _ = write!(text, "{word:<32}");
        for (_, sum) in by_vantage {
            let [right, said] = sum.words.of(word);
            let part = format!("{} of {:.1} s", percent(share(right, said)), said as f64 / 1e9);
            let _ = write!(text, "{part:>18}");
        }
        text.push('\n');
    }
    for word in WORDS {
        for (vantage, sum) in by_vantage {
            let states = sum.words.states(word).into_iter();
            let wrong = states.filter(|(_, [right, said])| right < said).take(WORST);
            let wrong: Vec<String> = wrong
                .map(|(state, [right, said])| {
                    let of = percent(share(right, said));
                    format!("{state} {of} of {:.1} s", said as f64 / 1e9)
                })
                .collect();
            if !wrong.is_empty() {
                let _ = writeln!(text, "  {word}, {vantage}: {}", wrong.join("; "));
            }
        }
    }
}
