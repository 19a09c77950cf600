//! What would help as two scripts: one that carries it out, one that takes it back.
//!
//! Both look before they touch: a value that is there already is left, one that is neither what was seen nor
//! what is proposed belongs to somebody else and is left and told. Each value is read again after it was set.
//! Of each finding the first fix that a setting makes is taken, with those that belong to it; other ways to the
//! same end, and what is merely worth knowing, are commented out. Nothing is changed twice: what several findings
//! raise is raised for all of them.

use core::fmt::Write as _;

use super::change::{Commands, quoted, within};
use super::finding::{Change, Finding, Fix, Severity, Ways};
use super::shown::shown;
use super::snapshot::Snapshot;

/// The two scripts, for sh(1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scripts {
    /// Carries the fixes out.
    pub fix: String,
    /// Takes them back.
    pub rollback: String,
}

/// A fix as both scripts have it.
struct Step {
    about: String,
    subject: String,
    commands: Commands,
    is_on: bool,
    is_sysctl: bool,
}

/// The scripts for what was found on a host; `None` where no setting would help.
pub fn scripts(snapshot: &Snapshot, findings: &[Finding]) -> Option<Scripts> {
    let steps = steps(findings, snapshot.netns.as_deref());
    if steps.is_empty() {
        return None;
    }
    let head = |what: &str| head(snapshot, what);
    let mut fix = head("Carries out what tcpwhy proposed");
    let mut rollback = head("Takes back what fix.sh did");
    for step in &steps {
        let Commands { apply, is_done, is_as_seen, kept_by, .. } = &step.commands;
        let kept = kept_by.as_ref().filter(|_| keeps(snapshot));
        // What was left alone is not brought by the next restart either.
        let keep = kept.map_or_else(String::new, |line| format!(" && keep {}", quoted(line)));
        write_step(&mut fix, step, [is_done, is_as_seen], apply, &keep);
    }
    // A default queueing discipline that comes back is of the kind that is the default then: settings first.
    let (settings, others): (Vec<_>, Vec<_>) = steps.iter().rev().partition(|step| step.is_sysctl);
    for step in settings.into_iter().chain(others) {
        let Commands { undo, is_done, is_as_seen, kept_by, .. } = &step.commands;
        match undo {
            Some(undo) => write_step(&mut rollback, step, [is_as_seen, is_done], undo, ""),
            None => {
                let _ = writeln!(
                    rollback,
                    "\n# {}: cannot be put back; it is learned anew",
                    step.subject
                );
            }
        }
        if let Some(line) = kept_by.as_ref().filter(|_| keeps(snapshot)) {
            write_line(&mut rollback, step, &format!("drop {}", quoted(line)));
        }
    }
    for script in [&mut fix, &mut rollback] {
        script.push_str("\nexit \"$failed\"\n");
    }
    Some(Scripts { fix, rollback })
}

/// Files of sysctl.d(5) are of the host: they do not reach other namespaces, named or not.
fn keeps(snapshot: &Snapshot) -> bool {
    snapshot.netns.is_none() && snapshot.initial_netns != Some(false)
}

fn steps(findings: &[Finding], netns: Option<&str>) -> Vec<Step> {
    let mut chosen: Vec<Chosen<'_>> = Vec::new();
    for finding in findings {
        let Ways { first, others } = finding.ways();
        for (nth, fix) in first.into_iter().enumerate() {
            // Told once.
            let others = if nth == 0 { others.clone() } else { Vec::new() };
            choose(&mut chosen, By { finding, fix, others }, netns);
        }
    }
    let step = |Chosen { change, is_on, by }: Chosen<'_>| Step {
        about: by.iter().map(about).collect::<Vec<_>>().join("\n"),
        subject: one_line(&change.subject()),
        commands: change.commands(),
        is_on,
        is_sysctl: matches!(change, Change::Sysctl { .. }),
    };
    chosen.into_iter().map(step).collect()
}

fn choose<'a>(chosen: &mut Vec<Chosen<'a>>, by: By<'a>, netns: Option<&str>) {
    let Some(change) = by.fix.set.as_ref().filter(|change| change.is_sayable(netns)) else {
        return;
    };
    let (subject, is_on) = (change.subject(), by.finding.severity > Severity::Info);
    let Some(earlier) = chosen.iter_mut().find(|it| it.change.subject() == subject) else {
        chosen.push(Chosen { change: change.clone(), is_on, by: vec![by] });
        return;
    };
    // The worst come first: what is merely worth knowing does not make more of what is done.
    if is_on == earlier.is_on
        && let Some(both) = room_for_both(&earlier.change, change)
    {
        earlier.change = both;
        earlier.by.push(by);
    }
}

/// A change, and the findings that ask for it.
struct Chosen<'a> {
    change: Change,
    is_on: bool,
    by: Vec<By<'a>>,
}

/// A fix of a finding, and what would do instead.
struct By<'a> {
    finding: &'a Finding,
    fix: &'a Fix,
    others: Vec<&'a Fix>,
}

/// The change with which two findings get what they ask for.
fn room_for_both(one: &Change, other: &Change) -> Option<Change> {
    match (one, other) {
        (Change::Sysctl { key, from, to }, Change::Sysctl { to: too, .. }) => {
            let to = larger(from, to, too)?;
            Some(Change::Sysctl { key: key.clone(), from: from.clone(), to })
        }
        (Change::Route { from, to, ipv6 }, Change::Route { to: too, .. }) => {
            let left_out = [left_out(from, to)?, left_out(from, too)?];
            let words = from.split_whitespace().enumerate();
            let kept = words.filter(|(place, _)| left_out.iter().all(|out| !out.contains(place)));
            let to = kept.map(|(_, word)| word).collect::<Vec<_>>().join(" ");
            Some(Change::Route { from: from.clone(), to, ipv6: *ipv6 })
        }
        _ => None,
    }
}

/// Where both raise the numbers of a setting, the larger of each.
fn larger(from: &str, to: &str, too: &str) -> Option<String> {
    let numbers = |text: &str| -> Option<Vec<i64>> {
        text.split_whitespace().map(|word| word.parse().ok()).collect()
    };
    let (from, to, too) = (numbers(from)?, numbers(to)?, numbers(too)?);
    let raises =
        |to: &[i64]| to.len() == from.len() && to.iter().zip(&from).all(|(to, from)| to >= from);
    if !raises(&to) || !raises(&too) {
        return None;
    }
    let larger: Vec<String> =
        to.iter().zip(&too).map(|(to, too)| to.max(too).to_string()).collect();
    Some(larger.join(" "))
}

/// The places of the words that a route loses; `None` where it does not merely lose some. A metric's name comes in a
/// route but once, so that the first word which is missing is always such a name.
fn left_out(from: &str, to: &str) -> Option<Vec<usize>> {
    let mut kept = to.split_whitespace().peekable();
    let mut out = Vec::new();
    for (place, word) in from.split_whitespace().enumerate() {
        if kept.next_if_eq(&word).is_none() {
            out.push(place);
        }
    }
    kept.next().is_none().then_some(out)
}

fn about(By { finding, fix, others }: &By<'_>) -> String {
    let mut text =
        format!("# {}: {}\n#   to {}", finding.code, one_line(&finding.title), one_line(&fix.what));
    for (label, words) in [("works", &fix.applies), ("risk:", &fix.risk)] {
        if !words.is_empty() {
            let _ = write!(text, "\n#   {label} {}", one_line(words));
        }
    }
    for other in others {
        let command = other.set.as_ref().map_or_else(String::new, |set| set.commands().apply);
        let [what, command] = [&other.what, &command].map(|text| one_line(text));
        let _ = write!(text, "\n#   or, to {what}:\n#     {command}");
    }
    text
}

/// Names of a host must not end a comment.
fn one_line(text: &str) -> String {
    shown(text.as_bytes())
}

fn write_step(
    script: &mut String,
    step: &Step,
    [is_there, is_expected]: [&str; 2],
    act: &str,
    then: &str,
) {
    let Step { about, subject, is_on, .. } = step;
    let off = if *is_on {
        ""
    } else {
        "#   (worth knowing only; remove the # of the next lines to do it)\n"
    };
    let _ = write!(script, "\n{about}\n{off}");
    let words = [subject, is_there, is_expected, act].map(quoted_always);
    write_line(script, step, &format!("step {}{then}", words.join(" \\\n  ")));
}

fn write_line(script: &mut String, step: &Step, line: &str) {
    for line in line.lines() {
        let _ = writeln!(script, "{}{line}", if step.is_on { "" } else { "#" });
    }
}

fn quoted_always(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn head(snapshot: &Snapshot, what: &str) -> String {
    let of = [&snapshot.kernel, &snapshot.system].map(|text| text.as_deref().unwrap_or("unknown"));
    let [kernel, system] = of.map(one_line);
    let inside = snapshot.netns.as_deref().map_or_else(String::new, |netns| {
        format!("[ \"${{INSIDE-}}\" ] || INSIDE=1 exec {}sh \"$0\" \"$@\"\n", within(netns))
    });
    format!(
        "#!/bin/sh\n# {what}: on Linux {kernel}, {system}.\n# Run it as root. It may be run again: what is done is \
         left.\n{inside}{FUNCTIONS}"
    )
}

/// What the steps are made of: POSIX sh, and awk(1).
const FUNCTIONS: &str = r#"set -u
failed=0
file=${KEPT_IN-/etc/sysctl.d/90-tcpwhy.conf}

# As it is: echo(1) of some shells reads backslashes.
say() { printf '%s\n' "$1"; }
# step NAME IS_THERE IS_EXPECTED COMMAND; fails where it is not there then.
step() {
  if eval "$2"; then
    say "$1: is so already"
    return 0
  elif ! eval "$3"; then
    say "$1: is not as it was seen; left alone" >&2
  elif eval "$4" > /dev/null && eval "$2"; then
    say "$1: done"
    return 0
  else
    say "$1: '$4' did not do it" >&2
  fi
  failed=1
  return 1
}
# A setting with single blanks.
setting() { sysctl -n "$1" | tr -s '\t ' ' '; }
# The value behind a label of what ethtool prints, of the current ones where there are two kinds.
now() {
  awk -F ':[ \t]*' -v name="$1" '/^Current/ { value = "" }
    { sub(/^[ \t]+/, "", $1) } $1 == name && value == "" { split($2, words, /[ \t]/); value = words[1] }
    END { print value }'
}
# The word behind another one in what ip(8) prints of an interface.
of_link() {
  ip -d link show dev "$1" |
    awk -v name="$2" '{ for (i = 1; i < NF; i++) if ($i == name) { print $(i + 1); exit } }'
}
# The kind of an interface's root queueing discipline, and its handle, which is 0: where nobody asked for it.
root_qdisc() { tc qdisc show dev "$1" | awk '$4 == "root" { print $2 }'; }
root_handle() { tc qdisc show dev "$1" | awk '$4 == "root" { print $3 }'; }
# The first word of a file; a mask of processors in a file, without the zeros in front.
first_word() { awk '{ print $1; exit }' "$1"; }
mask() { tr -d , < "$1" | sed 's/^0*//'; }
words() { printf '%s\n' "$@" | sort | tr '\n' ' '; }
# has_route -4|-6 WORDS...: there is such a route, whatever the order of its words. ip(8) prints a lock of
# rto_min and does not take it.
has_route() {
  family=$1
  shift
  wanted=$(words "$@")
  ip "$family" route show table all | sed 's/ rto_min lock / rto_min /' | while read -r line; do
    # shellcheck disable=SC2086
    [ "$(words $line)" = "$wanted" ] && echo found
  done | grep -q found
}
# keep LINE: over restarts; drop LINE: no more.
keep() { grep -qxF "$1" "$file" 2>/dev/null || say "$1" >> "$file" || failed=1; }
drop() {
  [ -f "$file" ] || return 0
  rest=$(grep -vxF "$1" "$file")
  if [ "$rest" ]; then say "$rest" > "$file"; else rm -f "$file"; fi
}
"#;

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(code: &str, to: &str) -> Finding {
        let set = Change::Sysctl {
            key: "net.ipv4.tcp_rmem".to_owned(),
            from: "4096 131072 6291456".to_owned(),
            to: to.to_owned(),
        };
        let fix = Fix { what: "make room".to_owned(), set: Some(set), ..Fix::default() };
        Finding {
            code: code.to_owned(),
            severity: Severity::Warning,
            fixes: vec![fix],
            ..Finding::default()
        }
    }

    /// What fix.sh sets, and for whom.
    fn set(findings: &[Finding]) -> Vec<(String, usize)> {
        let steps = steps(findings, None).into_iter();
        steps.map(|it| (it.commands.apply, it.about.matches("to make room").count())).collect()
    }

    #[test]
    fn what_two_findings_raise_is_raised_for_both() {
        let found = [asks("ONE", "4096 131072 16777216"), asks("TWO", "4096 262144 8388608")];
        let once = "sysctl -w 'net.ipv4.tcp_rmem=4096 262144 16777216'".to_owned();
        assert_eq!(set(&found), [(once, 2)]);
    }

    #[test]
    fn what_is_merely_worth_knowing_makes_no_more_of_what_is_done() {
        let raised = "4096 131072 16777216";
        let known = Finding { severity: Severity::Info, ..asks("TWO", "4096 131072 33554432") };
        let once = format!("sysctl -w 'net.ipv4.tcp_rmem={raised}'");
        assert_eq!(set(&[asks("ONE", raised), known]), [(once, 1)]);
    }

    #[test]
    fn of_findings_that_contradict_one_another_the_graver_is_followed() {
        let raised = "4096 131072 16777216";
        for other in ["4096 131072 4194304", "4096 131072", "many"] {
            let once = format!("sysctl -w 'net.ipv4.tcp_rmem={raised}'");
            assert_eq!(set(&[asks("ONE", raised), asks("TWO", other)]), [(once, 1)], "{other}");
        }
    }

    fn sysctl(key: &str) -> Fix {
        let [key, from, to] = [key, "1", "2"].map(str::to_owned);
        Fix {
            what: format!("set {key}"),
            set: Some(Change::Sysctl { key, from, to }),
            ..Fix::default()
        }
    }

    fn three() -> Finding {
        let fixes = vec![sysctl("a"), Fix::default(), sysctl("b"), sysctl("c")];
        Finding { severity: Severity::Warning, fixes, ..Finding::default() }
    }

    #[test]
    fn what_belongs_together_is_carried_out_together_and_the_rest_is_a_remark() {
        let subjects = |found: Finding| -> Vec<String> {
            steps(&[found], None).into_iter().map(|step| step.subject).collect()
        };
        assert_eq!(subjects(three()), ["a"]);
        assert_eq!(subjects(Finding { with_first: 1, ..three() }), ["a", "b"]);
        assert_eq!(subjects(three().all_together()), ["a", "b", "c"]);
        assert_eq!(subjects(Finding { with_first: usize::MAX, ..three() }), ["a", "b", "c"]);
        let fix = scripts(&Snapshot::default(), &[Finding { with_first: 1, ..three() }]);
        let fix = fix.expect("something to set").fix;
        assert_eq!(fix.matches("#   or, to set c:\n#     sysctl -w c=2\n").count(), 1, "{fix}");
    }

    #[test]
    fn a_setting_is_kept_once_it_is_there_and_of_the_host_only() {
        let keeps = |netns: Option<&str>, initial_netns| {
            let netns = netns.map(str::to_owned);
            let host = Snapshot { netns, initial_netns, ..Snapshot::default() };
            let fix = scripts(&host, &[three()]).expect("something to set").fix;
            fix.contains("'sysctl -w a=2' && keep 'a = 2'\n")
        };
        assert!(keeps(None, Some(true)) && keeps(None, None));
        assert!(!keeps(None, Some(false)) && !keeps(Some("blue"), None));
    }

    #[test]
    fn a_route_loses_what_each_finding_leaves_out() {
        let route = |to: &str| Change::Route {
            from: "default mtu 1400 advmss 1400 initcwnd 4".to_owned(),
            to: to.to_owned(),
            ipv6: false,
        };
        let [one, other] = ["default advmss 1400 initcwnd 4", "default mtu 1400 advmss 1400"];
        assert_eq!(room_for_both(&route(one), &route(other)), Some(route("default advmss 1400")));
        assert_eq!(room_for_both(&route(one), &route("default mtu 1300")), None);
    }
}
