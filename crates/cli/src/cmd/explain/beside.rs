//! What a host's tools printed, given together with packets or alone.

use tcpwhy::evidence::lay_by_address;
use tcpwhy::evidence::{Content, Evidence};
use tcpwhy::host::view::HostOptions;
use tcpwhy::report::Report;

use crate::cmd::hosts::{self, Host};
use crate::complain;
use crate::exit::Exit;
use crate::options::{Form, Options};
use crate::read::Input;

/// The answer where there is nothing but hosts' texts.
///
/// # Errors
/// The answer cannot be written.
pub(super) fn alone(
    hosts: &[Host],
    has_unreadable: bool,
    options: &Options,
) -> anyhow::Result<Exit> {
    if let Form::Csv | Form::Summary | Form::Html | Form::Tables = options.form {
        let form = match options.form {
            Form::Csv => "CSV",
            Form::Html => "a page",
            Form::Tables => "a table",
            _ => "--summary",
        };
        complain(&format!(
            "{form} is of connections in packets: what a host's tools printed is answered as text"
        ));
    }
    if options.anonymize {
        complain("--anonymize is for packets: an answer about a host would keep its addresses");
        return Ok(Exit::Usage);
    }
    answer(hosts, has_unreadable, options, false)
}

/// Evidence that cannot stand beside packets is none of the report's where the same text is judged by itself.
pub(super) fn without_host_texts(evidence: Vec<Evidence>, texts: &[Input]) -> Vec<Evidence> {
    let is_used = |each: &Evidence| {
        let Content::Unread(why) = &each.content else { return true };
        let is_judged = texts.iter().any(|text| text.name() == each.source);
        if is_judged {
            let name = &each.source;
            complain(&format!("{name} is judged by itself and not beside the packets: {why}"));
        }
        !is_judged
    };
    evidence.into_iter().filter(is_used).collect()
}

/// Lays settings and routes beside the remedies for the host whose address is an end of a connection; of others one line
/// says what ties them.
pub(super) fn tied(report: &mut Report, hosts: Vec<Host>, options: &Options) -> Vec<Host> {
    // What a host shows of itself names addresses.
    if options.anonymize {
        return hosts;
    }
    let has_packets = report.captures.iter().any(|capture| capture.packets > 0);
    let lay = |mut host: Host| {
        host.end = lay_by_address(report, &host.snapshot);
        let shows_settings = host.snapshot.settings.is_some() || host.snapshot.routes.is_some();
        if has_packets && host.end.is_none() && host.has_more_than_calls() {
            complain(&untied(&host, shows_settings));
        }
        host
    };
    hosts.into_iter().map(lay).collect()
}

fn untied(host: &Host, shows_settings: bool) -> String {
    let files = host.files.join(", ");
    let addresses = host.snapshot.addresses();
    let why = match addresses.first() {
        Some(first) if addresses.len() == 1 => {
            format!("is of a host with the address {first}, no end of these connections")
        }
        Some(first) => {
            format!("is of a host with {first} and other addresses, no ends of these connections")
        }
        None => "names no address, so whose host it is cannot be told".to_owned(),
    };
    let flag = match &*host.files {
        [only] if shows_settings => {
            format!("; `--host-snapshot server={only}` (or client=) ties it")
        }
        _ if shows_settings => "; `--host-snapshot server=FILE` (or client=) ties one".to_owned(),
        _ => String::new(),
    };
    format!("{files} {why}: it is judged by itself{flag}")
}

/// The answers about hosts below that about packets.
///
/// # Errors
/// The answer cannot be written.
pub(super) fn below(
    hosts: &[Host],
    has_unreadable: bool,
    options: &Options,
) -> anyhow::Result<Exit> {
    let files: Vec<&str> = hosts.iter().flat_map(|host| &host.files).map(String::as_str).collect();
    let left_out = match options.form {
        Form::Json { .. } => Some("the JSON"),
        Form::Csv => Some("the CSV"),
        Form::Summary => Some("the summary"),
        Form::Html => Some("the page"),
        Form::Tables => Some("the tables"),
        Form::Text { .. } if options.anonymize => Some("an answer without addresses"),
        Form::Text { .. } => None,
    };
    match left_out {
        Some(form) if !files.is_empty() => {
            let files = files.join(" ");
            complain(&format!(
                "{form} is about the packets: what {files} says of its host by itself is left out; `tcpwhy {files}` \
                 tells it"
            ));
        }
        None => return answer(hosts, has_unreadable, options, true),
        Some(_) => {}
    }
    Ok(if has_unreadable { Exit::Unreadable } else { Exit::Analysed })
}

fn answer(
    hosts: &[Host],
    has_unreadable: bool,
    options: &Options,
    is_below: bool,
) -> anyhow::Result<Exit> {
    let text = HostOptions { width: options.width, color: options.color, all: false };
    let json = matches!(options.form, Form::Json { .. });
    let exit = hosts::answer(hosts, hosts::Form { json, text, is_below, fail_on: None })?;
    Ok(if has_unreadable { Exit::Unreadable } else { exit })
}
