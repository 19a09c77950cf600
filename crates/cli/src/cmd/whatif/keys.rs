//! Short names of settings: `initcwnd`, `server.rmem`, `rtt`; all else is a key of a scenario.

use anyhow::{anyhow, bail};
use tcpwhy_model::scenario::Quantity;
use tcpwhy_model::world::Side;

use super::super::predict::grid::Axis;

/// A host's setting: its short name, its key below the host, and whether the data's sender has it.
const OF_HOSTS: [(&str, &str, bool); 9] = [
    ("initcwnd", "route.initcwnd", true),
    ("ssthresh", "route.ssthresh", true),
    ("congctl", "route.congctl", true),
    ("sndbuf", "socket.sndbuf", true),
    ("wmem", "sysctl.net.ipv4.tcp_wmem", true),
    ("initrwnd", "route.initrwnd", false),
    ("quickack", "route.quickack", false),
    ("rcvbuf", "socket.rcvbuf", false),
    ("rmem", "sysctl.net.ipv4.tcp_rmem", false),
];

const OF_THE_PATH: [&str; 6] = ["rtt", "rate", "queue", "loss", "jitter", "reorder"];

/// The pace of the receiver's program, which is no key of a scenario.
const READS: &str = "reads";

/// What was typed for a setting, with the scenario's key.
///
/// # Errors
/// It has no value, or a range that is none.
pub(super) fn axis(title: &str, typed: &str, sender: Side) -> anyhow::Result<Axis> {
    let key = key(title, sender);
    if key == READS {
        let axis = Axis::read(title, &key, typed)?;
        for value in axis.values.iter().filter(|value| *value != "at-once") {
            let rate = Quantity::Rate.read(value).map_err(|error| {
                anyhow!("{title}: {error}; it takes `at-once` or a rate, as 100mbit")
            })?;
            if rate == 0 {
                bail!(
                    "{title}: a program that reads nothing never ends; it takes `at-once` or a rate, as 100mbit"
                );
            }
        }
        return Ok(axis);
    }
    // The three values of these settings are one.
    if key.ends_with("mem") && typed.contains(' ') {
        return Ok(Axis { key, title: title.to_owned(), values: vec![typed.to_owned()] });
    }
    let mut axis = Axis::read(title, &key, typed)?;
    if axis.key.ends_with("mem") {
        for value in &mut axis.values {
            *value = three(title, value, if axis.key.contains("wmem") { 16_384 } else { 131_072 })?;
        }
    }
    Ok(axis)
}

fn key(title: &str, sender: Side) -> String {
    if OF_THE_PATH.contains(&title) {
        return format!("path.{title}");
    }
    let (host, name) = match title.split_once('.') {
        Some((host @ ("client" | "server"), name)) => (Some(host), name),
        _ => (None, title),
    };
    let of_host = OF_HOSTS.iter().find(|(short, ..)| *short == name);
    of_host.map_or_else(
        || title.to_owned(),
        |(_, key, sends)| {
            let side = if *sends { sender } else { sender.peer() };
            format!("{}.{key}", host.unwrap_or(side.name()))
        },
    )
}

/// The three values of `tcp_rmem` and `tcp_wmem` where only the largest was said.
fn three(title: &str, largest: &str, first: u64) -> anyhow::Result<String> {
    let is_bare = !largest.is_empty() && largest.bytes().all(|byte| byte.is_ascii_digit());
    let size = if is_bare { format!("{largest}B") } else { largest.to_owned() };
    let bytes = Quantity::Size.read(&size).map_err(|error| {
        anyhow!(
            "{title}: {error}; it takes a size from 1B to {MOST_BYTES}B, as 16MiB, or three in bytes: least, first, \
             most"
        )
    })?;
    if !(1..=MOST_BYTES).contains(&bytes) {
        bail!("{title}: {largest} is out of range; it goes from 1B to {MOST_BYTES}B");
    }
    Ok(format!("{} {} {bytes}", LEAST.min(bytes), first.min(bytes)))
}

/// The first of the three as Linux has it: a page (`tcp_init`).
const LEAST: u64 = 4096;

/// `INT_MAX`: what the kernel takes.
const MOST_BYTES: u64 = 2_147_483_647;

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(title: &str, typed: &str) -> (String, Vec<String>) {
        let axis = axis(title, typed, Side::Server).expect("values");
        (axis.key, axis.values)
    }

    #[test]
    fn short_names_are_of_the_host_that_has_the_part() {
        assert_eq!(asked("initcwnd", "20,40").0, "server.route.initcwnd");
        assert_eq!(asked("rcvbuf", "1MB").0, "client.socket.rcvbuf");
        assert_eq!(asked("client.initcwnd", "20").0, "client.route.initcwnd");
        assert_eq!(asked("rtt", "5ms").0, "path.rtt");
        assert_eq!(asked("path.down.jitter", "5ms").0, "path.down.jitter");
    }

    #[test]
    fn buffers_are_three_values_or_the_largest() {
        let key = "client.sysctl.net.ipv4.tcp_rmem".to_owned();
        assert_eq!(asked("rmem", "16MiB"), (key.clone(), vec!["4096 131072 16777216".to_owned()]));
        assert_eq!(asked("rmem", "4096 8192 8192"), (key, vec!["4096 8192 8192".to_owned()]));
        assert_eq!(asked("server.wmem", "8KiB").1, ["4096 8192 8192"]);
        assert_eq!(asked("wmem", "65536").1, ["4096 16384 65536"]);
    }

    #[test]
    fn a_program_reads_at_once_or_at_a_rate() {
        let values = ["at-once".to_owned(), "8mbit".to_owned()].to_vec();
        assert_eq!(asked("reads", "at-once,8mbit"), ("reads".to_owned(), values));
        for typed in ["slowly", "0mbit"] {
            let error = format!("{:#}", axis("reads", typed, Side::Server).expect_err(typed));
            assert!(error.contains("`at-once` or a rate"), "{error}");
        }
    }

    #[test]
    fn a_buffer_of_no_size_is_refused_with_what_it_takes() {
        for (typed, said) in [
            ("16TiB", "`TiB` is no unit of a size"),
            ("big", "`big` is not a size"),
            ("2GiB", "rmem: 2GiB is out of range"),
            ("0", "rmem: 0 is out of range"),
            ("99999999999999999999999", "greater than anything"),
        ] {
            let error = format!("{:#}", axis("rmem", typed, Side::Server).expect_err(typed));
            assert!(error.contains(said) && error.contains("1B to 2147483647B"), "{error}");
        }
    }
}
