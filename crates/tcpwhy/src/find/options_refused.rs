//! The SYN offered options that the SYN-ACK did not agree to.
//!
//! # What it says
//! Selective acknowledgements and timestamps hold only if both SYNs carry them. Without SACK
//! several losses in one flight are repaired one a round trip; without timestamps round trips are
//! measured less often, and needless repairs are recognised later or not at all.
//!
//! # How we know
//! Both SYNs were captured; the client's carried the option and the server's answer did not. Window
//! scaling has a finding of its own (`WINDOW_SCALE`).
//!
//! # What it is not
//! Not proof of a middlebox: the other end may have the option switched off, may be a small stack,
//! or may have answered with SYN cookies, which keep SACK and scaling only where timestamps can
//! carry them. A capture at the other end tells what was sent there.
//!
//! # What to do
//! On the other host: `net.ipv4.tcp_sack` and `net.ipv4.tcp_timestamps` belong on (old tuning
//! guides switch them off; they are wrong). Look for SYN cookies (`TcpExtSyncookiesSent`) and for
//! proxies that open connections in the server's name.
//!
//! # Sources
//! RFC 2018 section 2, RFC 7323 sections 3.2 and 4.1; Linux `cookie_timestamp_decode`,
//! `tcp_synack_options` (v6.1, `net/ipv4/syncookies.c`, `tcp_output.c`).

use super::case::{active_ns, syns};
use super::{Rule, remedies};
use crate::report::{Connection, Finding, Remedy, ScalingRefusedBy, Severity, Syn};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "OPTIONS_REFUSED",
    severity: Severity::Limit,
    file: include_str!("options_refused.rs"),
    find,
};

fn find(connection: &Connection) -> Vec<Finding> {
    let [Some(client), Some(server)] = &connection.syns else { return Vec::new() };
    let refused = refused(client, server);
    if refused.is_empty() {
        return Vec::new();
    }
    let names = said::listed(&refused);
    vec![Finding {
        code: RULE.code.to_owned(),
        // What it costs shows in what else is found.
        severity: Severity::Note,
        title: format!("{names}: offered by the client, not agreed to"),
        why: "the SYN carried the option, the SYN-ACK did not; both must for it to hold.".to_owned(),
        not: "not proof of a device on the way: the other end may lack it, or have answered with SYN cookies"
            .to_owned(),
        evidence: vec![syns(connection)],
        cost_ns: 0,
        of_ns: active_ns(connection),
        remedies: vec![help(connection)], ..Finding::default() }]
}

fn help(connection: &Connection) -> Remedy {
    if connection.window_scaling_refused_by == Some(ScalingRefusedBy::Device) {
        return remedies::path(
            "a device nearer than the server answers in its name (SYN proxy, load balancer): let it pass these \
             options on",
        );
    }
    remedies::host(
        remedies::SERVER,
        "see that the options are on and whether SYN cookies or a proxy answer",
        "sysctl net.ipv4.tcp_sack net.ipv4.tcp_timestamps; nstat -az TcpExtSyncookiesSent",
    )
}

/// What the client offered and the server did not.
fn refused(client: &Syn, server: &Syn) -> Vec<String> {
    [
        ("selective acknowledgements", client.sack, server.sack),
        ("timestamps", client.timestamps, server.timestamps),
    ]
    .into_iter()
    .filter(|(_, offered, agreed)| *offered && !*agreed)
    .map(|(name, ..)| name.to_owned())
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn agreed(sack: bool, timestamps: bool) -> Vec<Finding> {
        let mut connection = sample::download();
        let answer = connection.syns[1].as_mut().expect("SYN-ACK");
        (answer.sack, answer.timestamps) = (sack, timestamps);
        find(&connection)
    }

    #[test]
    fn options_that_the_answer_lacks_are_told() {
        insta::assert_snapshot!(sample::shown(&agreed(false, false)));
        assert!(agreed(true, false)[0].title.starts_with("timestamps"));
    }

    #[test]
    fn where_a_device_answers_the_server_is_not_told_to_change() {
        let mut connection = sample::download();
        connection.syns[1].as_mut().expect("SYN-ACK").sack = false;
        connection.window_scaling_refused_by = Some(ScalingRefusedBy::Device);
        assert_eq!(find(&connection)[0].remedies[0].who, "path");
    }

    #[test]
    fn options_that_both_carry_are_not() {
        assert!(agreed(true, true).is_empty());
    }

    #[test]
    fn what_the_client_did_not_offer_nobody_refused() {
        let mut connection = sample::download();
        for syn in connection.syns.iter_mut().flatten() {
            (syn.sack, syn.timestamps) = (false, false);
        }
        assert!(find(&connection).is_empty());
    }
}
