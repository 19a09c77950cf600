//! Steps written freely: `["write head 78", "read head", "read to end by 16KiB pause 10ms"]`.
//!
//! ```text
//! write SIZE [by SIZE] [pause TIME]      read SIZE [by SIZE] [pause TIME]
//! write head SIZE                        read to end [by SIZE] [pause TIME]
//! sleep TIME                             read head
//! drain                                  end writing                        reset
//! keep open
//! { repeat = N, steps = [...] }
//! ```

use super::error::{Place, ScenarioError, shown};
use super::keys::REPEAT;
use super::plan::Step;
use super::section::Section;
use super::tree::{Node, Value};
use super::units::Quantity;

/// Steps that an end may carry out, with all repetitions. Ours: they are laid out one by one, in 32 bytes each.
const MOST: u64 = 4_000_000;

/// Reads the list of steps under a key.
pub(super) fn read(section: &Section<'_>, key: &str) -> Result<Vec<Step>, ScenarioError> {
    let nodes = section.list(key)?;
    let steps = nodes.iter().map(step).collect::<Result<Vec<_>, _>>()?;
    let may_keep = |at: usize| section.path != REPEATED && at + 1 == steps.len();
    if let Some(at) = steps.iter().position(|step| *step == Step::KeepOpen)
        && !may_keep(at)
    {
        let what = "`keep open` is the last step of an end: the connection then stays as it is until the run ends";
        return Err(ScenarioError::new(&nodes[at].place, what));
    }
    match nodes.first() {
        Some(first) if count(&steps) > MOST => {
            let place = &first.place;
            Err(ScenarioError::new(
                place,
                format!("with all repetitions there are more than {MOST} steps"),
            ))
        }
        _ => Ok(steps),
    }
}

/// How many steps there are with all repetitions.
pub(super) fn count(steps: &[Step]) -> u64 {
    let of = |step: &Step| match step {
        Step::Repeat { times, steps } => u64::from(*times).saturating_mul(count(steps)),
        _ => 1,
    };
    steps.iter().map(of).fold(0, u64::saturating_add)
}

fn step(node: &Node) -> Result<Step, ScenarioError> {
    match &node.value {
        Value::Text(text) => words(&node.place, text),
        Value::Table(_) => repeat(node),
        _ => Err(ScenarioError::new(
            &node.place,
            "a step is text, as \"write 512KiB\", or { repeat = 10, steps = [...] }",
        )),
    }
}

fn repeat(node: &Node) -> Result<Step, ScenarioError> {
    let section = Section::open(REPEATED, REPEAT, Some(node))?;
    let needed =
        |what: &str| ScenarioError::new(&node.place, format!("a repetition needs `{what}`"));
    Ok(Step::Repeat {
        times: section.number("repeat")?.ok_or_else(|| needed("repeat"))? as u32,
        steps: match read(&section, "steps")? {
            steps if steps.is_empty() => return Err(needed("steps")),
            steps => steps,
        },
    })
}

fn words(place: &Place, text: &str) -> Result<Step, ScenarioError> {
    let words: Vec<_> = text.split_whitespace().collect();
    let size = |word: &str| quantity(place, Quantity::Size, word, 1 << 40);
    let time = |word: &str| quantity(place, Quantity::Time, word, 3_600_000_000_000);
    match *words.as_slice() {
        ["write", "head", bytes] => match size(bytes)? {
            4.. => Ok(Step::WriteHead(size(bytes)?)),
            short => Err(ScenarioError::new(
                place,
                format!("a head of {short} bytes has no room for its empty line; 4 is the least"),
            )),
        },
        ["write", bytes, ref rest @ ..] => {
            let bytes = size(bytes)?;
            let (chunk, pause_ns) = pace(place, text, rest)?;
            Ok(Step::Write { bytes, chunk: chunk.unwrap_or(CHUNK).min(bytes).max(1), pause_ns })
        }
        ["read", "head"] => Ok(Step::ReadHead),
        ["read", "to", "end", ref rest @ ..] => {
            let (chunk, pause_ns) = pace(place, text, rest)?;
            Ok(Step::ReadToEnd { chunk: chunk.unwrap_or(CHUNK), pause_ns })
        }
        ["read", bytes, ref rest @ ..] => {
            let bytes = size(bytes)?;
            let (chunk, pause_ns) = pace(place, text, rest)?;
            Ok(Step::Read { bytes, chunk: chunk.unwrap_or(CHUNK).min(bytes).max(1), pause_ns })
        }
        ["sleep", span] => time(span).map(Step::Sleep),
        ["drain"] => Ok(Step::Drain),
        ["end", "writing"] => Ok(Step::EndWriting),
        ["reset"] => Ok(Step::Reset),
        ["keep", "open"] => Ok(Step::KeepOpen),
        _ => Err(unknown(place, text)),
    }
}

/// `[by SIZE] [pause TIME]`
fn pace(place: &Place, text: &str, words: &[&str]) -> Result<(Option<u64>, u64), ScenarioError> {
    let size = |word: &str| match quantity(place, Quantity::Size, word, 1 << 30)? {
        0 => Err(ScenarioError::new(place, "`by 0` would never come to an end")),
        bytes => Ok(Some(bytes)),
    };
    let time = |word: &str| quantity(place, Quantity::Time, word, 3_600_000_000_000);
    match *words {
        [] => Ok((None, 0)),
        ["by", bytes] => Ok((size(bytes)?, 0)),
        ["pause", span] => Ok((None, time(span)?)),
        ["by", bytes, "pause", span] => Ok((size(bytes)?, time(span)?)),
        _ => Err(unknown(place, text)),
    }
}

fn quantity(
    place: &Place,
    quantity: Quantity,
    word: &str,
    most: u64,
) -> Result<u64, ScenarioError> {
    let is_bare = quantity == Quantity::Size && word.bytes().all(|b| b.is_ascii_digit());
    let read = if is_bare { quantity.read(&format!("{word}B")) } else { quantity.read(word) };
    match read {
        Ok(value) if value <= most => Ok(value),
        Ok(_) => {
            let what =
                format!("{} is out of range; {} is the most", shown(word), quantity.write(most));
            Err(ScenarioError::new(place, what))
        }
        Err(error) => Err(ScenarioError::new(place, error.to_string())),
    }
}

fn unknown(place: &Place, text: &str) -> ScenarioError {
    let text = shown(text);
    let what = format!(
        "`{text}` is no step; steps are `write 512KiB by 8KiB pause 20ms`, `write head 78`, \
         `read 100`, `read head`, `read to end`, `sleep 10ms`, `drain`, `end writing`, `reset`, \
         `keep open`"
    );
    ScenarioError::new(place, what)
}

/// What a table of repeated steps is called.
const REPEATED: &str = "repeat";

/// What one call writes or reads if nothing is said. Ours: what programs that copy files use.
const CHUNK: u64 = 1 << 16;
