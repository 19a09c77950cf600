//! Settings of a host's kernel (sysctl), as a scenario writes them.

use std::collections::BTreeMap;

use super::error::ScenarioError;
use super::section::Section;
use super::tree::{Table, Value};

/// Settings by their names, of a host or of a change of it.
pub(super) fn sysctl(section: &Section<'_>) -> Result<BTreeMap<String, String>, ScenarioError> {
    let mut settings = BTreeMap::new();
    let Some(table) = section.table("sysctl")? else { return Ok(settings) };
    flatten(section, "", table, &mut settings)?;
    Ok(settings)
}

/// `net.ipv4.tcp_sack` may come as one key or as tables in tables.
fn flatten(
    section: &Section<'_>,
    prefix: &str,
    table: &Table,
    settings: &mut BTreeMap<String, String>,
) -> Result<(), ScenarioError> {
    for (key, (place, node)) in table {
        let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        if let Value::Table(inner) = &node.value {
            flatten(section, &name, inner, settings)?;
            continue;
        }
        let dotted = format!("{}.{name}", section.name("sysctl"));
        let refuse = |what: &str| Err(ScenarioError::new(place, format!("`{dotted}` {what}")));
        let is_plain = name.split('.').all(is_word);
        if !is_plain || !name.starts_with("net.") {
            return refuse(
                "cannot be set: only names below `net.` belong to one host alone; leave it out",
            );
        }
        if HOST_WIDE.contains(&name.as_str()) {
            return refuse(
                "holds for the whole machine, which no experiment may touch; leave it out",
            );
        }
        let value = section.text_of(&format!("sysctl.{name}"), node)?;
        if value.contains(['\n', '\0']) {
            return refuse("has a value of more than one line");
        }
        settings.insert(name, value);
    }
    Ok(())
}

/// What may stand in a command or a file's name: nothing that a shell or a path would understand.
pub(super) fn is_word(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    !text.is_empty() && text.len() <= 64 && !text.starts_with('-') && text.chars().all(plain)
}

/// Not kept per namespace (Linux v6.12 `net/ipv4/sysctl_net_ipv4.c`, `ipv4_table`): writing one
/// inside a namespace would be refused, or would change the machine.
const HOST_WIDE: &[&str] = &[
    "net.ipv4.tcp_mem",
    "net.ipv4.udp_mem",
    "net.ipv4.tcp_max_orphans",
    "net.ipv4.tcp_low_latency",
    "net.ipv4.inet_peer_threshold",
    "net.ipv4.inet_peer_minttl",
    "net.ipv4.inet_peer_maxttl",
    "net.ipv4.tcp_available_congestion_control",
    "net.ipv4.tcp_available_ulp",
];
