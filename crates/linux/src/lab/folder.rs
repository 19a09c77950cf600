//! What a run leaves behind: the names in its folder.
//!
//! All times in these files are on one clock (nanoseconds since 1970, as the captures have them),
//! except where the manifest says how to map another.

/// The plan that was carried out, as JSON.
pub const PLAN: &str = "plan.json";
/// Kernel, backend, clock map, lateness, what went wrong; as JSON.
pub const MANIFEST: &str = "manifest.json";
/// Captures at the taps.
pub const CAPTURES: [&str; 3] = ["client.pcapng", "server.pcapng", "middle.pcapng"];
/// What the applications did: one JSON object a line (who, connection, what, from, to, bytes).
pub const APPLICATIONS: &str = "applications.jsonl";
/// The kernel's tracepoints: one JSON object a line (`t`, `event`, and the event's own fields).
pub const KERNEL: &str = "kernel.jsonl";
/// `TCP_INFO` over time: one JSON object a line.
pub const TCP_INFO: &str = "tcp_info.jsonl";
/// Counters of each host (`/proc/net/snmp`, `netstat`) before and after, as JSON.
pub const COUNTERS: &str = "counters.json";
/// What each host's sockets were at the looks that the plan asks for: snapshots, as `tcpwhy check` reads them.
pub const SOCKETS: [&str; 2] = ["client.sockets.json", "server.sockets.json"];
/// What the emulator did with each packet: one JSON object a line.
pub const PACKETS: &str = "packets.jsonl";
/// What the model's links did: one JSON object a line (`t`, `way`, `fate`; of a packet that was sent its `bytes` on the line, too).
pub const LINKS: &str = "links.jsonl";
/// True intervals by the kernel's records, as JSON.
pub const TRUTH: &str = "truth.json";
