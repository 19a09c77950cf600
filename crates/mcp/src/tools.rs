//! The tools: what each is for, what it takes, and what its facts look like.

use std::sync::Arc;

use rmcp::handler::server::common::{schema_for_input, schema_for_output};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::answers::{Account, Changes, Checked, Explained, Facts, Found, Frames, Page};

/// Frames of one answer. Ours: with numbers as long as they get, their facts have 15 kB.
pub const MOST_FRAMES: usize = 80;

/// Frames of one answer, unless more are asked for. Ours.
const USUAL_FRAMES: usize = 40;

/// Seconds between two looks at this host. Ours: whoever waits longer asks the command.
pub const MOST_SECONDS: u64 = 60;

/// Seconds between two looks, unless others are asked for; as `tcpwhy check` has it.
const USUAL_SECONDS: u64 = 10;

/// Settings of one what-if. Ours.
const MOST_SETTINGS: usize = 16;

/// A question, as a client asks it.
#[derive(Debug)]
pub(crate) enum Asked {
    Explain(Explain),
    Connection(One),
    Finding(Finding),
    Frames(Listed),
    Whatif(Whatif),
    Check(Check),
    Doc(Doc),
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
#[serde(deny_unknown_fields)]
pub(crate) struct Explain {
    /// The capture: its path from one of the folders on, or from the root on.
    pub(crate) file: String,
    /// Only connections that match, in the words of tcpdump's filters: 'host 10.0.0.1 and port 80'.
    pub(crate) filter: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
#[serde(deny_unknown_fields)]
pub(crate) struct One {
    /// The capture: its path from one of the folders on, or from the root on.
    pub(crate) file: String,
    /// The connection's number, as `explain` gives it. Without it: the one with most data.
    pub(crate) connection: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
#[serde(deny_unknown_fields)]
pub(crate) struct Finding {
    /// The capture: its path from one of the folders on, or from the root on.
    pub(crate) file: String,
    /// The connection's number, as `explain` gives it. Without it: the one with most data.
    pub(crate) connection: Option<u64>,
    /// The finding's code, as `explain` and `connection` give it: `SLOW_START`.
    pub(crate) code: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
#[serde(deny_unknown_fields)]
pub(crate) struct Listed {
    /// The capture: its path from one of the folders on, or from the root on.
    pub(crate) file: String,
    /// The connection's number, as `explain` gives it. Without it: the one with most data.
    pub(crate) connection: Option<u64>,
    /// The frame number to begin with [default: the connection's first].
    #[serde(default)]
    pub(crate) from: u64,
    /// The number of frames, at most [default: 40].
    #[serde(default = "usual_frames")]
    #[schemars(range(min = 1, max = 80))]
    pub(crate) most: u64,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
#[serde(deny_unknown_fields)]
pub(crate) struct Whatif {
    /// The capture: its path from one of the folders on, or from the root on.
    pub(crate) file: String,
    /// The connection's number, as `explain` gives it. Without it: the one with most data.
    pub(crate) connection: Option<u64>,
    /// What to change together, each as KEY=VALUE: `initcwnd=20`, `client.rmem=16MiB`, `rtt=5ms`, `congctl=bbr`. A list
    /// of values (`initcwnd=20,40`) is tried one by one. Without any, every remedy that fits is tried.
    #[serde(default)]
    #[schemars(length(max = 16))]
    pub(crate) set: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
#[serde(deny_unknown_fields)]
pub(crate) struct Check {
    /// What a host's tools printed (ss, sysctl, nstat, netstat -s, ethtool, ip, tc, dmesg), as it was pasted. Without it:
    /// the host on which this server runs.
    pub(crate) text: Option<String>,
    /// Seconds between two looks at this host, in which its counters may grow; 0 looks once [default: 10].
    #[schemars(range(max = 60))]
    pub(crate) seconds: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
#[serde(deny_unknown_fields)]
pub(crate) struct Doc {
    /// A finding's or a check's code, a state such as `cwnd.slow_start`, a term such as `BDP`, a sysctl, a route metric or
    /// a socket option.
    pub(crate) word: String,
}

const fn usual_frames() -> u64 {
    USUAL_FRAMES as u64
}

impl Check {
    /// Seconds between two looks.
    pub(crate) fn seconds(&self) -> u64 {
        self.seconds.unwrap_or(USUAL_SECONDS)
    }
}

/// Why a question is none.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotAsked {
    #[error("there is no tool of that name: there are {}", NAMES.join(", "))]
    NoTool,
    #[error("these arguments make no sense: {0}")]
    Arguments(String),
}

const NAMES: [&str; 7] = ["explain", "connection", "finding", "frames", "whatif", "check", "doc"];

impl Asked {
    /// The question of a call.
    pub(crate) fn of(tool: &str, arguments: Option<JsonObject>) -> Result<Self, NotAsked> {
        let asked = match tool {
            "explain" => Self::Explain(typed(arguments)?),
            "connection" => Self::Connection(typed(arguments)?),
            "finding" => Self::Finding(typed(arguments)?),
            "frames" => Self::Frames(typed(arguments)?),
            "whatif" => Self::Whatif(typed(arguments)?),
            "check" => Self::Check(typed(arguments)?),
            "doc" => Self::Doc(typed(arguments)?),
            _ => return Err(NotAsked::NoTool),
        };
        asked.in_bounds()
    }

    fn in_bounds(self) -> Result<Self, NotAsked> {
        let most = MOST_FRAMES as u64;
        let wrong = match &self {
            Self::Frames(asked) if !(1..=most).contains(&asked.most) => {
                format!("`most` is 1 to {most}: ask again from `next_frame` on for more")
            }
            Self::Check(asked) if asked.seconds() > MOST_SECONDS => {
                format!("`seconds` is 0 to {MOST_SECONDS}: `tcpwhy check --for` takes more")
            }
            Self::Whatif(asked) if asked.set.len() > MOST_SETTINGS => {
                format!("`set` has at most {MOST_SETTINGS} settings")
            }
            _ => return Ok(self),
        };
        Err(NotAsked::Arguments(wrong))
    }

    /// What to ask to see what the answer leaves out.
    pub(crate) const fn next(&self) -> &'static str {
        match self {
            Self::Explain(_) => {
                "Ask `connection` for one connection, or `explain` with a `filter` for fewer."
            }
            Self::Connection(_) => "Ask `finding` for one finding, or `frames` for its frames.",
            Self::Finding(_) => {
                "Ask `frames` for the frames that the evidence names, or `doc` for what the code means."
            }
            Self::Frames(_) => "Ask `frames` from `next_frame` on.",
            Self::Whatif(_) => "Ask `whatif` with fewer values in `set`.",
            Self::Check(_) => {
                "Ask `check` with less text: a host at a time, or the output of one tool."
            }
            Self::Doc(_) => "Ask `doc` for a narrower word.",
        }
    }
}

fn typed<T: DeserializeOwned>(arguments: Option<JsonObject>) -> Result<T, NotAsked> {
    let arguments = Value::Object(arguments.unwrap_or_default());
    serde_json::from_value(arguments).map_err(|error| NotAsked::Arguments(error.to_string()))
}

/// The tools, for a client that lists them.
pub(crate) fn list() -> Vec<Tool> {
    vec![
        tool::<Explain, Explained>(
            "explain",
            "Why a transfer was slow",
            "Explain a capture (pcap, pcapng, tcpdump's or tshark's text, plain or packed): what its TCP transfers waited \
             for, what would make them faster and by how much, and what the capture cannot tell. Ask this first. Of many \
             connections it ranks the worst.",
        ),
        tool::<One, Account>(
            "connection",
            "One connection's account",
            "One connection in full: where its time went, state by state, each finding with why and why not, remedies, \
             ceilings and figures, with frame numbers.",
        ),
        tool::<Finding, Found>(
            "finding",
            "One finding with its evidence",
            "One finding of a connection: why it is said, what it is not, every place where it shows with frame numbers, \
             and what to do. Commands are for a person to read and decide on; this server runs none.",
        ),
        tool::<Listed, Frames>(
            "frames",
            "Frames of a connection",
            "A few frames of a connection: number, time, sender, flags, sequence number, length, acknowledgment. Payload \
             is never given.",
        ),
        tool::<Whatif, Changes>(
            "whatif",
            "The same transfer with another setting",
            "What the captured transfer would have taken with another setting, by a model of Linux TCP. The model answers \
             only if it repeats the capture as it was. It may take some seconds.",
        ),
        tool::<Check, Checked>(
            "check",
            "Is a host set up for fast TCP",
            "Check a host's TCP settings, sockets and counters: what is wrong, with fixes and their undo. Of pasted text, \
             or of the host on which this server runs. Nothing is changed.",
        ),
        tool::<Doc, Page>(
            "doc",
            "What a word means",
            "Explain a finding, a check, a state, a term, a kernel setting, a route metric or a socket option.",
        ),
    ]
}

fn tool<I: JsonSchema + 'static, O: JsonSchema + 'static>(
    name: &'static str,
    title: &str,
    description: &'static str,
) -> Tool {
    let input = schema_for_input::<I>().unwrap_or_else(|_| Arc::new(JsonObject::new()));
    let hints = ToolAnnotations::with_title(title)
        .read_only(true)
        .destructive(false)
        .idempotent(true)
        .open_world(false);
    Tool::new(name, description, input)
        .with_title(title)
        .with_raw_output_schema(schema_for_output::<Facts<O>>())
        .with_annotations(hints)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(tool: &str, arguments: Value) -> Result<Asked, String> {
        let Value::Object(arguments) = arguments else { panic!("an object") };
        Asked::of(tool, Some(arguments)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_schemas_state_the_bounds_that_hold() {
        let tools = list();
        let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, NAMES);
        let of = |name: &str| {
            let tool = tools.iter().find(|tool| tool.name == name).expect("a tool");
            assert_eq!(tool.output_schema.as_ref().expect("a schema")["type"], "object");
            Value::Object((*tool.input_schema).clone())
        };
        let frames = of("frames");
        assert_eq!(frames["properties"]["most"]["maximum"], MOST_FRAMES as u64);
        assert_eq!(frames["properties"]["most"]["default"], USUAL_FRAMES as u64);
        assert_eq!(frames["required"], json!(["file"]));
        assert_eq!(of("check")["properties"]["seconds"]["maximum"], MOST_SECONDS);
        assert_eq!(of("whatif")["properties"]["set"]["maxItems"], MOST_SETTINGS as u64);
        assert_eq!(of("doc")["additionalProperties"], false);
    }

    #[test]
    fn as_many_frames_as_an_answer_holds_and_no_more() {
        let frames = |most: u64| asked("frames", json!({ "file": "a.pcap", "most": most }));
        assert!(frames(1).is_ok() && frames(80).is_ok());
        for most in [0, 81, 1 << 30, u64::MAX] {
            let why = frames(most).expect_err("too many");
            assert!(why.contains("`most` is 1 to 80"), "{why}");
        }
    }

    #[test]
    fn arguments_that_no_tool_has_are_named() {
        let why = asked("explain", json!({ "file": "a.pcap", "sudo": true })).expect_err("none");
        assert!(why.contains("unknown field `sudo`"), "{why}");
        let why = asked("explain", json!({})).expect_err("no file");
        assert!(why.contains("missing field `file`"), "{why}");
        let why = asked("frames", json!({ "file": ["a"] })).expect_err("no text");
        assert!(why.contains("invalid type"), "{why}");
        let why = asked("exec", json!({})).expect_err("no tool");
        assert!(why.contains("explain, connection"), "{why}");
    }
}
