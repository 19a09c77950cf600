//! `tcpwhy explain`: why did the transfers in these captures take as long as they did?

mod beside;

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::Context;
use tcpwhy::answer;
use tcpwhy::capture::QualityKind;
use tcpwhy::evidence::lay_beside;
use tcpwhy::evidence::{self, Evidence};
use tcpwhy::report::{Capture, Report, With};
use tcpwhy::tracker::Config;
use tcpwhy::view::{self, StandIns};
use tcpwhy_model::whatif;

use super::signals::stop_on_signals;
use super::{hosts, live};
use crate::choose::{self, NoSuchConnection};
use crate::exit::{At, Exit, Refused};
use crate::fail;
use crate::options::{Form, Options, Surroundings};
use crate::read::{
    INTERNAL_ERROR, Input, Kind, Progress, Run, by_first_packet, confined, kind, kinds,
    read_attached, read_evidence,
};
use crate::screen::Screen;
use crate::{complain, graphs, output, tables};

/// Reads, explains, prints.
///
/// # Errors
/// A signal handler cannot be set, or the answer cannot be written.
pub fn run(mut options: Options, around: &Surroundings) -> anyhow::Result<Exit> {
    if around.stdin_is_terminal && options.inputs.contains(&Input::Stdin) {
        complain("reading from the terminal: paste a packet listing, then press Ctrl-D");
    }
    if let [Input::File(path)] = &*options.inputs
        && options.with.is_empty()
        && !options.anonymize
        && live::is_looks(path)
    {
        let is_json = matches!(options.form, Form::Json { .. });
        return live::replayed(path, is_json, (options.width, options.color));
    }
    let stop = stop_on_signals().context("cannot listen for Ctrl-C")?;
    let texts = sorted(&mut options, &stop);
    let (hosts, has_unreadable) = hosts::gather(&texts);
    if options.inputs.is_empty() && options.with.is_empty() && !texts.is_empty() {
        return beside::alone(&hosts, has_unreadable, &options);
    }
    options.inputs = match by_first_packet(options.inputs) {
        Ok(inputs) => inputs,
        Err(same) => {
            complain(&same.to_string());
            return Ok(Exit::Usage);
        }
    };
    // An unreadable snapshot is reported before a large capture is read.
    let snapshots = options.host_snapshots.iter().map(|(host, path)| {
        let snapshot = hosts::from_file(path)?;
        Ok((*host, path.clone(), snapshot))
    });
    let snapshots = snapshots.collect::<anyhow::Result<Vec<_>>>()?;
    let mut screen = screen(&options, around);
    let config = options.config();
    let mut tick = |run: &mut Run, progress: Progress| {
        if screen.wants_preview(&progress) {
            let began = Instant::now();
            let mut report = run.provisional();
            // The connection asked for may not have begun yet.
            if let Form::Text { rounds, plot, full } = options.form
                && shape(&mut report, &options).is_ok()
            {
                let text = output::in_words(&report, &options, rounds, plot, full);
                screen.draw_preview(&text, &progress, began.elapsed());
            }
        }
        screen.draw_progress(&progress);
    };
    let beside = beside::without_host_texts(read_evidence(&options.with), &texts);
    let mut report =
        confined(&options.inputs, || read(&options, &config, beside, &stop, &mut tick));
    screen.clear();
    for (host, path, snapshot) in &snapshots {
        if lay_beside(&mut report, host, snapshot) == 0 {
            complain(&format!(
                "no remedy for the {host} is about a setting that {} shows",
                path.display()
            ));
        }
    }
    let hosts = beside::tied(&mut report, hosts, &options);
    let exit = finish(report, &options, &stop)?;
    let judged = beside::below(&hosts, has_unreadable, &options)?;
    Ok(if exit == Exit::Analysed { judged } else { exit })
}

/// What the packets show, with the evidence beside them.
fn read(
    options: &Options,
    config: &Config,
    beside: Vec<Evidence>,
    stop: &AtomicBool,
    tick: &mut dyn FnMut(&mut Run, Progress),
) -> Report {
    let (mut report, mut evidence) =
        read_attached(&options.inputs, config, options.threads, &beside, stop, tick);
    evidence.extend(beside);
    let rate = options.rate.as_ref();
    evidence.extend(rate.map(|rate| Evidence::of_rate(&format!("--rate {}", rate.text), rate.bps)));
    evidence::apply(&mut report, &evidence);
    report
}

/// The whole report, for a program that asks; with what packets were kept for graphs where these are wanted.
///
/// # Errors
/// Nothing could be read, or no connection is of that number.
pub(crate) fn asked(
    mut options: Options,
    graphs: bool,
    stop: &AtomicBool,
    tick: &mut dyn FnMut(Progress),
    remarked: &mut dyn FnMut(&str),
) -> Result<Report, Refused> {
    if let [text, ..] = &*sorted(&mut options, stop) {
        let why = format!("{} is what a host's tools printed: ask check() about it", text.name());
        return Err(Refused::usage(why));
    }
    options.inputs = by_first_packet(options.inputs).map_err(Refused::usage)?;
    let config = Config { detail: true, trails: graphs, ..options.config() };
    let beside = read_evidence(&options.with);
    let mut report = read(&options, &config, beside, stop, &mut |_, progress| tick(progress));
    let remarks: Vec<_> = report.captures.iter().filter_map(remark).collect();
    if report.captures.iter().all(|capture| capture.packets == 0 && capture.error.is_some()) {
        let at = report
            .captures
            .first()
            .map(|capture| At { file: capture.source.clone(), damage: capture.damage });
        return Err(Refused { at, ..Refused::unreadable(remarks.join("; ")) });
    }
    for remark in &remarks {
        remarked(remark);
    }
    shape(&mut report, &options).map_err(Refused::usage)?.as_deref().into_iter().for_each(remarked);
    if options.predict {
        whatif::advise(&mut report);
    }
    answer::fill(&mut report);
    Ok(report)
}

/// Puts each input where its kind belongs. Packets stay. Traces, and what sockets and counters say, go beside them.
/// Returns hosts' texts. Some of these may go beside packets, too.
fn sorted(options: &mut Options, stop: &AtomicBool) -> Vec<Input> {
    let found = kinds(&options.inputs, stop);
    let has_text = found.iter().any(|kind| matches!(kind, Kind::Host { .. } | Kind::Calls));
    let is_alone = has_text && !found.iter().any(|kind| matches!(kind, Kind::Packets | Kind::Both));
    let is_beside = |kind: &Kind| matches!(kind, Kind::Host { .. } | Kind::Calls | Kind::Trace);
    // Beside hosts' texts alone, a text that nothing is known of is one of them: then that is said.
    let mut each = found.iter().zip(&options.inputs);
    let has_packets =
        each.any(|(kind, input)| !(is_beside(kind) || is_alone && hosts::is_no_capture(input)));
    let mut texts = Vec::new();
    let with = core::mem::take(&mut options.with);
    for (input, kind) in core::mem::take(&mut options.inputs).into_iter().zip(found) {
        match kind {
            Kind::Trace => options.with.push(input),
            Kind::Host { .. } | Kind::Calls => {
                let is_evidence = kind != Kind::Host { is_evidence: false };
                if is_evidence && has_packets {
                    options.with.push(input.clone());
                }
                texts.push(input);
            }
            Kind::Unknown if is_alone && hosts::is_no_capture(&input) => texts.push(input),
            Kind::Both => {
                texts.push(input.clone());
                options.inputs.push(input);
            }
            Kind::Packets | Kind::Unknown => options.inputs.push(input),
        }
    }
    // A host's text is one wherever it was named.
    for input in with {
        let is_text = match kind(&input, stop) {
            Kind::Host { is_evidence } => {
                !is_evidence || !has_packets || cannot_stand_beside(&input)
            }
            Kind::Calls => cannot_stand_beside(&input),
            Kind::Trace | Kind::Packets | Kind::Both | Kind::Unknown => false,
        };
        if is_text { &mut texts } else { &mut options.with }.push(input);
    }
    texts
}

fn cannot_stand_beside(input: &Input) -> bool {
    let read = read_evidence(core::slice::from_ref(input));
    read.iter().any(|evidence| matches!(evidence.content, evidence::Content::Unread(_)))
}

/// Prints the report, and what went wrong on the way where the report's form does not tell it.
fn finish(mut report: Report, options: &Options, stop: &AtomicBool) -> anyhow::Result<Exit> {
    let is_unreadable = |capture: &Capture| capture.error.is_some() && capture.packets == 0;
    let any_unreadable = report.captures.iter().any(is_unreadable)
        || report.with.iter().any(|file| file.error.is_some());
    let is_mistaken =
        |capture: &Capture| capture.error.as_deref().is_some_and(|e| e == INTERNAL_ERROR);
    let exit = if report.captures.iter().any(is_mistaken) {
        Exit::Internal
    } else if any_unreadable {
        Exit::Unreadable
    } else {
        Exit::Analysed
    };
    let nothing_read = report.captures.iter().all(|capture| capture.packets == 0);
    let is_text = matches!(options.form, Form::Text { .. });
    if !is_text || nothing_read {
        report.captures.iter().filter_map(remark).for_each(|sentence| complain(&sentence));
        let unused =
            |file: &With| Some(format!("cannot use {}: {}", file.source, file.error.as_ref()?));
        report.with.iter().filter_map(unused).for_each(|sentence| complain(&sentence));
    }
    let nothing_told = report.with.iter().all(|file| file.error.is_some());
    if any_unreadable && nothing_read && nothing_told {
        return Ok(exit);
    }
    match shape(&mut report, options) {
        Err(error) => {
            complain(&error.to_string());
            return Ok(Exit::Usage);
        }
        Ok(Some(nothing)) => {
            complain(&nothing);
            if is_text {
                return Ok(exit);
            }
        }
        Ok(None) => {}
    }
    if options.predict && shows_remedies(&report, options) {
        whatif::advise(&mut report);
    }
    answer::fill(&mut report);
    if let Some(folder) = &options.svg {
        graphs::write(&report, folder).context("cannot write the graphs")?;
    }
    if let Some(parquet) = &options.parquet {
        let written = tables::write(&report, parquet, &options.inputs, stop)?;
        output::print(&written).context("cannot write the answer")?;
    } else {
        output::answer(&report, options).context("cannot write the answer")?;
    }
    let exit = if exit == Exit::Analysed && fail::any(&report, &options.fail_on) {
        Exit::Found
    } else {
        exit
    };
    // The process ends now: freeing 100,000 connections one by one took a sixth of the time.
    core::mem::forget(report);
    Ok(exit)
}

/// What is to be said about a capture that was not read to its end, or held nothing of use.
fn remark(capture: &Capture) -> Option<String> {
    let Capture { source, packets, tcp_segments, icmp_errors, skipped, quality, error, .. } =
        capture;
    let source = spoken(source);
    let counted = if *packets == 1 { "1 packet".to_owned() } else { format!("{packets} packets") };
    let cut = || quality.iter().find(|remark| remark.kind == CUT_SHORT).map(|cut| &cut.note);
    match (error.as_ref().or_else(cut), packets, tcp_segments) {
        (Some(cut), 0, _) if error.is_none() => {
            Some(format!("{source} holds no whole packet: {cut}"))
        }
        (Some(error), 0, _) => Some(format!("cannot read {source}: {error}")),
        (Some(error), ..) => Some(format!(
            "{source} was read only in part: {error}; what came before ({counted}) is explained"
        )),
        (None, 0, _) => Some(format!(
            "{source} holds no packets; was the capture's filter or interface the right one?"
        )),
        (None, _, 0) if *icmp_errors == 0 => {
            let reasons: Vec<_> =
                skipped.iter().map(|skip| format!("{} {}", skip.count, skip.reason)).collect();
            Some(format!(
                "{source} holds {counted} but no TCP that could be read ({})",
                reasons.join(", ")
            ))
        }
        (None, ..) => None,
    }
}

/// A capture's name in a sentence.
fn spoken(source: &str) -> &str {
    if source == "-" { "standard input" } else { source }
}

/// The kind of the remark that the capture ends inside a record.
const CUT_SHORT: &str = QualityKind::CutShort.name();

/// The connections asked for, in the order asked for, under the names asked for; what to say if
/// that is none.
fn shape(report: &mut Report, options: &Options) -> Result<Option<String>, NoSuchConnection> {
    let stand_ins = options.anonymize.then(|| StandIns::of(report));
    let nothing = select(report, options)?;
    if let Some(stand_ins) = stand_ins {
        view::anonymize(report, stand_ins);
    }
    // A table has an order and a length of its own, and says how many it leaves out.
    if !matches!(options.form, Form::Text { .. }) {
        let (sort, number) = options.order();
        view::keep_first(report, sort, number);
    }
    Ok(nothing)
}

/// Keeps what the filter, the window of time and the number ask for.
fn select(report: &mut Report, options: &Options) -> Result<Option<String>, NoSuchConnection> {
    let filter = options.filter.as_ref();
    if let Some(nothing) =
        filter.and_then(|filter| choose::matching(report, filter, options.anonymize))
    {
        return Ok(Some(nothing));
    }
    if !options.window.is_open() {
        let span = view::clip(report, |first| options.window.bounds(first));
        if let (Some((first, last)), true) = (span, report.connections.is_empty()) {
            return Ok(Some(choose::outside(first, last)));
        }
    }
    if let Some(number) = options.connection {
        choose::only(report, number)?;
    }
    Ok(None)
}

/// Whether the answer has room for remedies: a table of connections, or CSV, has none.
fn shows_remedies(report: &Report, options: &Options) -> bool {
    match options.form {
        Form::Csv | Form::Summary => false,
        Form::Json { .. } | Form::Html | Form::Tables => true,
        Form::Text { .. } => options.connection.is_some() || view::text::is_in_full(report),
    }
}

fn screen(options: &Options, around: &Surroundings) -> Screen {
    let is_text = matches!(options.form, Form::Text { .. });
    let shows = is_text && around.stdout_is_terminal && !options.on_stderr;
    let preview = around.size.filter(|_| shows);
    Screen::new(around.stderr_is_terminal, preview)
}

#[cfg(test)]
mod tests {
    use tcpwhy::report::Skipped;

    use super::*;

    /// What is said about a capture with this many packets, TCP segments, and this error.
    fn said(packets: u64, tcp_segments: u64, error: Option<&str>) -> Option<String> {
        let skipped = vec![Skipped { reason: "not TCP over IP".to_owned(), count: packets }];
        let (source, error) = ("x.pcap".to_owned(), error.map(str::to_owned));
        remark(&Capture { source, packets, tcp_segments, skipped, error, ..Capture::default() })
    }

    #[test]
    fn a_good_capture_needs_no_words() {
        assert_eq!(said(5, 3, None), None);
    }

    #[test]
    fn what_is_wrong_is_said_in_one_sentence() {
        for (packets, tcp_segments, error, sentence) in [
            (0, 0, Some("it is empty"), "cannot read x.pcap: it is empty"),
            (
                7,
                7,
                Some("record 8 ends early"),
                "x.pcap was read only in part: record 8 ends early; \
                 what came before (7 packets) is explained",
            ),
            (
                0,
                0,
                None,
                "x.pcap holds no packets; was the capture's filter or interface the right one?",
            ),
            (1, 0, None, "x.pcap holds 1 packet but no TCP that could be read (1 not TCP over IP)"),
        ] {
            assert_eq!(said(packets, tcp_segments, error).as_deref(), Some(sentence));
        }
    }
}
