//! Every key of the scenario language, table by table, with unit, range, default and meaning.

use core::fmt::Write;

use super::section::Kind::{Count, List, Of, Switch, Table, Text};
use super::section::{Key, key};
use super::units::Quantity::{Rate, Share, Size, Time};

const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3600 * SECOND;
const GIB: u64 = 1 << 30;
/// Ours: a terabit is beyond what any backend can emulate.
const TERABIT: u64 = 1_000_000_000_000;
const ALL: u64 = 1_000_000;

/// A run may not take longer than this on its own clock.
const RUN: u64 = 24 * HOUR;

pub(super) const TOP: &[Key] = &[
    key("name", Text("text"), "", "what tables and folders call it; else the file's name"),
    key("about", Text("text"), "", "one line for `lab list`"),
    key("subject", Text("one word"), "", "what `lab list` puts it under"),
    key("ipv6", Switch, "false", "addresses are IPv6"),
    key("repeats", Count(1, 10_000), "3", "runs of each variant"),
    key("seed", Count(0, i64::MAX as u64), "1", "of all that is random; each repeat has its own"),
    key(
        "limit",
        Of(Time, SECOND / 1000, RUN),
        "2min",
        "longest time a run may take, on its own clock",
    ),
    key(
        "tail",
        Of(Time, 0, HOUR),
        "500ms",
        "time that captures stay open after the last application",
    ),
    key("client", Table("see `[client]` and `[server]`"), "", "the end that connects"),
    key("server", Table("see `[client]` and `[server]`"), "", "the end that accepts"),
    key("path", Table("see `[path]`"), "", "what lies between them"),
    key("application", Table("see `[application]`"), "", "the conversation, if there is one"),
    key(
        "applications",
        Table("tables like `[application]`, by name"),
        "",
        "the conversations, if there are more",
    ),
    key("records", Table("see `[records]`"), "", "what is recorded"),
    key("article", Table("see `[article]`"), "", "what was published of it"),
    key("expect", Table("see `[expect]`"), "", "what must come of it"),
    key("variants", Table("by name: any of the above"), "", "each is run with its changes"),
];

pub(super) const HOST: &[Key] = &[
    key(
        "sysctl",
        Table("names to values"),
        "",
        "settings of its network namespace, as `net.ipv4.tcp_sack = 0`",
    ),
    key(
        "route",
        Table("words to values"),
        "",
        "words of its route to the peer (ip-route(8)), as `initcwnd = 100`",
    ),
    key("socket", Table("see `[client.socket]`"), "", "options of its sockets"),
    key(
        "offload",
        Switch,
        "false",
        "segmentation and receive offloads (TSO, GSO, GRO) of its interface",
    ),
    key(
        "egress",
        Text(
            "\"fq\", \"fq_codel\", \"fifo SIZE\", \"fifo N packets\", \"pfifo_fast\" or a token bucket",
        ),
        "",
        "queueing discipline at its way out, before its own capture",
    ),
    key("device", Table("see `[client.device]`"), "", "its network device, below that"),
    key(
        "tap_delay",
        Of(Time, 0, 10 * SECOND),
        "0",
        "delay between its stack and its capture, each way; adds to the round trip",
    ),
    key(
        "second_nic",
        Switch,
        "false",
        "a second interface, which the route to the peer leaves by; what the peer sends arrives by the first",
    ),
    key(
        "changes",
        List("list of tables: `at` and what changes"),
        "",
        "what changes at it while it runs",
    ),
];

/// What a change of a host has.
pub(super) const HOST_CHANGE: &[Key] = &[
    key("at", Of(Time, 0, RUN), "", "when, after the first application started"),
    key("sysctl", Table("names to values"), "", "settings, from then on"),
    key(
        "metrics",
        Text("\"flush\""),
        "",
        "the kernel forgets its peers, as by `ip tcp_metrics flush`: thresholds, round trips, cookies of Fast Open",
    ),
];

pub(super) const SOCKET: &[Key] = &[
    key("sndbuf", Of(Size, 1, GIB), "", "SO_SNDBUF as given to setsockopt (the kernel doubles it)"),
    key("rcvbuf", Of(Size, 1, GIB), "", "SO_RCVBUF, likewise"),
    key("nodelay", Switch, "false", "TCP_NODELAY: no waiting to fill segments"),
    key("cork", Switch, "false", "TCP_CORK while the steps run"),
    key(
        "congestion",
        Text("name of a controller"),
        "",
        "TCP_CONGESTION, as `reno`, `cubic`, `bbr`",
    ),
    key("notsent_lowat", Of(Size, 1, GIB), "", "TCP_NOTSENT_LOWAT"),
    key("max_pacing", Of(Rate, 8, TERABIT), "", "SO_MAX_PACING_RATE"),
    key("window_clamp", Of(Size, 1, GIB), "", "TCP_WINDOW_CLAMP"),
    key("fast_open", Switch, "false", "TCP Fast Open: data with the SYN"),
    key("backlog", Count(0, 65_535), "", "backlog of listen"),
];

/// What a network device has.
pub(super) const DEVICE: &[Key] = &[
    key("rate", Of(Rate, 8, TERABIT), "1gbit", "rate at which it sends, on layer 2"),
    key(
        "ring",
        Count(1, 65_536),
        "256",
        "descriptors of its ring; each packet handed down takes one",
    ),
    key("bql", Switch, "true", "byte queue limits, which keep the ring short"),
    key("limit_min", Of(Size, 0, GIB), "0", "their least limit"),
    key("limit_max", Of(Size, 0, GIB), "", "their greatest limit"),
];

/// What a token bucket has.
pub(super) const BUCKET: &[Key] = &[
    key("rate", Of(Rate, 8, TERABIT), "", "refill, on layer 2"),
    key("burst", Of(Size, 1, GIB), "", "credit"),
    key("queue", Of(Size, 0, GIB), "0", "queue for what finds no credit; 0 drops it (a policer)"),
];

/// What both ways of the path have together.
pub(super) const PATH: &[Key] = &[
    key(
        "rtt",
        Of(Time, 0, 60 * SECOND),
        "20ms",
        "round trip of the distance, half each way; queues and `tap_delay` add to it",
    ),
    key("rate", Text("rate or \"unlimited\""), "1gbit", "rate of the link on layer 2"),
    key(
        "queue",
        Text("size, \"N packets\", \"X bdp\", \"fq_codel\" or \"endless\""),
        "endless",
        "where packets wait for the link; what finds no room is dropped",
    ),
    key("bucket", Table("see token bucket"), "", "a token bucket in place of the plain link"),
    key(
        "overhead",
        Text("size, \"atm\", \"SIZE atm\" or \"none\""),
        "none",
        "what the link adds to each packet, and whether it then sends cells of 53 bytes for 48",
    ),
    key(
        "mtu",
        Of(Size, 68, 65_535),
        "",
        "largest IP packet that the link takes; what is longer is dropped and its sender told",
    ),
    key("black_hole", Switch, "false", "its sender is not told"),
    key(
        "cross",
        Text("rate, \"RATE by SIZE\" or \"none\""),
        "none",
        "other traffic on the link: frames of 1514B, or so large, at a constant rate",
    ),
    key(
        "loss",
        Text("share, \"burst ENTER LEAVE [BAD]\", \"exact N N ...\" or \"none\""),
        "none",
        "what is lost behind the link",
    ),
    key(
        "jitter",
        Of(Time, 0, 10 * SECOND),
        "0",
        "uniform spread around the delay, to either side; packets may overtake",
    ),
    key(
        "reorder",
        Text("\"SHARE by TIME\" or \"none\""),
        "none",
        "packets that are delayed more, so that later ones overtake them",
    ),
    key("duplicate", Of(Share, 0, ALL), "0", "packets delivered twice"),
    key("corrupt", Of(Share, 0, ALL), "0", "packets with a flipped bit in the TCP payload"),
    key("down", Table("see `[path.down]`"), "", "from server to client, where it differs"),
    key("up", Table("see `[path.down]`"), "", "from client to server, where it differs"),
    key("changes", List("list of tables: `at` and what changes"), "", "what changes while it runs"),
];

/// What one way has.
pub(super) const WAY: &[Key] = &[
    key("delay", Of(Time, 0, 60 * SECOND), "", "delay of this way alone, instead of half of `rtt`"),
    key("rate", Text("as in `[path]`"), "", "as in `[path]`, for this way"),
    key("queue", Text("as in `[path]`"), "", "as in `[path]`, for this way"),
    key("bucket", Table("see token bucket"), "", "as in `[path]`, for this way"),
    key("overhead", Text("as in `[path]`"), "", "as in `[path]`, for this way"),
    key("mtu", Of(Size, 68, 65_535), "", "as in `[path]`, for this way"),
    key("black_hole", Switch, "", "as in `[path]`, for this way"),
    key("cross", Text("as in `[path]`"), "", "as in `[path]`, for this way"),
    key("loss", Text("as in `[path]`"), "", "as in `[path]`, for this way"),
    key("jitter", Of(Time, 0, 10 * SECOND), "", "as in `[path]`, for this way"),
    key("reorder", Text("as in `[path]`"), "", "as in `[path]`, for this way"),
    key("duplicate", Of(Share, 0, ALL), "", "as in `[path]`, for this way"),
    key("corrupt", Of(Share, 0, ALL), "", "as in `[path]`, for this way"),
];

/// What a change of the path has; all but `at` stays as it was if absent.
pub(super) const CHANGE: &[Key] = &[
    key("at", Of(Time, 0, RUN), "", "when, after the first application started"),
    key("rtt", Of(Time, 0, 60 * SECOND), "", "from then on"),
    key("rate", Text("as in `[path]`"), "", "from then on"),
    key("queue", Text("as in `[path]`"), "", "from then on; what waits in it stays"),
    key("bucket", Table("see token bucket"), "", "from then on"),
    key("overhead", Text("as in `[path]`"), "", "from then on"),
    key("mtu", Of(Size, 68, 65_535), "", "from then on"),
    key("black_hole", Switch, "", "from then on"),
    key("cross", Text("as in `[path]`"), "", "from then on"),
    key("loss", Text("as in `[path]`"), "", "from then on"),
    key("jitter", Of(Time, 0, 10 * SECOND), "", "from then on"),
    key("reorder", Text("as in `[path]`"), "", "from then on"),
    key("duplicate", Of(Share, 0, ALL), "", "from then on"),
    key("corrupt", Of(Share, 0, ALL), "", "from then on"),
    key("down", Table("see `[path.down]`"), "", "from then on, this way alone"),
    key("up", Table("see `[path.down]`"), "", "from then on, this way alone"),
];

pub(super) const APPLICATION: &[Key] = &[
    key(
        "download",
        Of(Size, 1, 1 << 40),
        "",
        "a request, a response head and this many bytes from the server",
    ),
    key(
        "post",
        Of(Size, 1, 1 << 40),
        "",
        "a head and this many bytes from the client, and an answer",
    ),
    key(
        "exchange",
        Of(Size, 1, 1 << 40),
        "",
        "requests and responses of this many bytes, one after the other",
    ),
    key("send", Of(Size, 1, 1 << 40), "", "this many bytes from the server, unasked"),
    key("client", List("list of steps"), "", "the client's steps, written freely"),
    key("server", List("list of steps"), "", "the server's steps, written freely"),
    key("start", Of(Time, 0, HOUR), "0", "when the client starts, after the first one"),
    key("port", Count(1, 65_535), "", "that the server listens on; else 8000, 8001 and so on"),
    key("connections", Count(1, 100_000), "1", "one after the other, each new (cold)"),
    key("gap", Of(Time, 0, HOUR), "0", "pause between connections"),
    key("together", Switch, "", "no connection waits for the one before it to end"),
    key("may_fail", Switch, "", "a connection that fails ends nothing but itself"),
    key("flood", Count(1, 10_000), "", "SYNs of hosts that never answer, before the connections"),
    key(
        "accept",
        Text("time or \"never\""),
        "0",
        "how long the server listens before it takes connections off its accept queue",
    ),
    key("times", Count(1, 1_000_000), "1", "how often on one connection, which stays open (warm)"),
    key(
        "idle",
        Of(Time, 0, HOUR),
        "0",
        "pause before each repetition, of the end that speaks first",
    ),
    key("think", Of(Time, 0, HOUR), "0", "work of the server between request and response"),
    key("request", Of(Size, 4, GIB), "78B", "size of the request or head that the client writes"),
    key(
        "head",
        Of(Size, 4, GIB),
        "200B",
        "size of the head before a response, or of the answer to a post",
    ),
    key("write", Of(Size, 1, GIB), "64KiB", "size of one write of the data"),
    key("pause", Of(Time, 0, HOUR), "0", "after each write of the data"),
    key("read", Of(Size, 1, GIB), "64KiB", "most that one read of the data takes"),
    key("read_pause", Of(Time, 0, HOUR), "0", "after each read of the data: a slow reader"),
    key("stall", Of(Time, 0, HOUR), "0", "pause of the data's reader, once: a stalled reader"),
    key("stall_after", Of(Size, 0, 1 << 40), "0", "data it reads before that"),
    key("client_socket", Table("see `[client.socket]`"), "", "over the client's own"),
    key("server_socket", Table("see `[client.socket]`"), "", "over the server's own"),
];

/// A repetition among steps.
pub(super) const REPEAT: &[Key] = &[
    key("repeat", Count(1, 1_000_000), "", "how often"),
    key("steps", List("list of steps"), "", "what"),
];

pub(super) const RECORDS: &[Key] = &[
    key("snap", Of(Size, 96, 262_144), "128B", "bytes kept of each packet"),
    key("middle", Switch, "true", "a capture in the middle of the path too"),
    key(
        "tcp_info",
        Of(Time, 0, HOUR),
        "10ms",
        "how often TCP_INFO of every socket is read; 0 is never",
    ),
    key(
        "sockets",
        List("list of times, 0 to 1h"),
        "",
        "when the states of all sockets are looked at, after the first application started; the run lasts at least to the last look",
    ),
];

pub(super) const ARTICLE: &[Key] = &[
    key("number", Text("three digits"), "", "which article; `lab list 000` finds it"),
    key("figure", Text("text"), "", "what it measured, as a fact"),
    key("differs", Text("text"), "", "why the figure here differs"),
];

pub(super) const EXPECT: &[Key] = &[
    key(
        "most",
        Text("name of a state, or its first word"),
        "",
        "what `explain` says the sender waited for longest, opening and closing left out",
    ),
    key("named", List("list of states and codes of findings"), "", "what `explain` must name"),
    key("absent", List("list of states and codes of findings"), "", "what it must not name"),
    key(
        "rounds",
        Text("amount, or list of amounts"),
        "",
        "rounds of the first transfer; as a list, segments of its first rounds",
    ),
    key(
        "counters",
        Table("by host and name: amount"),
        "",
        "by how much the kernel's counters moved, as `server.TcpRetransSegs = \">= 1\"`",
    ),
    key("failed", Text("amount"), "", "connections that failed at the client, of all applications"),
    key(
        "sockets",
        Table("by host and state: amount, list of amounts, or `[expect.sockets.HOST.STATE]`"),
        "",
        "sockets in a state at the last look, or one amount for each look, as `server.close-wait = [4, 8]`",
    ),
    key(
        "checked",
        Table("by host: list of codes of checks"),
        "",
        "what `check` must find by those looks, as `server = [\"CLOSE_WAIT\"]`",
    ),
    key(
        "model",
        Text("share, or \"none\""),
        "10%",
        "how far the model's time may lie outside those seen; \"none\" asks nothing of it",
    ),
];

pub(super) const SOCKETS: &[Key] = &[
    key("count", Text("amount, or list of amounts"), "", "how many are in it"),
    key(
        "recv_q",
        Text("amount, or list of amounts"),
        "",
        "Recv-Q of each of them, as `ss` shows it",
    ),
    key("send_q", Text("amount, or list of amounts"), "", "Send-Q of each of them"),
    key(
        "no_program",
        Text("amount, or list of amounts"),
        "",
        "how many of them no program holds: not accepted yet, or closed",
    ),
];

/// Words of a route (ip-route(8)) that TCP obeys; all others would take traffic elsewhere.
pub(super) const ROUTE: &[&str] = &[
    "advmss",
    "congctl",
    "cwnd",
    "fastopen_no_cookie",
    "features",
    "initcwnd",
    "initrwnd",
    "mtu",
    "quickack",
    "reordering",
    "rto_min",
    "rtt",
    "rttvar",
    "ssthresh",
    "window",
];

/// Every key as Markdown, a table for each; `docs/scenarios.md` holds just this.
pub fn manual() -> String {
    let mut text = String::new();
    for (title, keys) in TABLES {
        let _ =
            write!(text, "### {title}\n\n| key | value | default | meaning |\n|---|---|---|---|\n");
        for Key { name, kind, default, meaning } in *keys {
            let default = if default.is_empty() { String::new() } else { format!("`{default}`") };
            let _ = writeln!(text, "| `{name}` | {} | {default} | {meaning} |", kind.form());
        }
        text.push('\n');
    }
    text
}

/// Every table, as the manual titles it.
const TABLES: &[(&str, &[Key])] = &[
    ("The file", TOP),
    ("`[client]` and `[server]`", HOST),
    ("`[client.socket]` and `[server.socket]`", SOCKET),
    ("`[client.device]` and `[server.device]`", DEVICE),
    ("`[[client.changes]]` and `[[server.changes]]`", HOST_CHANGE),
    ("`[path]`", PATH),
    ("`[path.down]` and `[path.up]`", WAY),
    ("Token bucket", BUCKET),
    ("`[[path.changes]]`", CHANGE),
    ("`[application]`", APPLICATION),
    ("A repetition among steps", REPEAT),
    ("`[records]`", RECORDS),
    ("`[article]`", ARTICLE),
    ("`[expect]`", EXPECT),
    ("`[expect.sockets.HOST.STATE]`", SOCKETS),
];
