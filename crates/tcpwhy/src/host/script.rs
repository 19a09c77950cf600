//! What would help as two scripts: one that carries it out, one that takes it back.
//!
//! Both look before they touch: a value that is there already is left, one that is neither what was seen nor
//! what is proposed belongs to somebody else and is left and told. Each value is read again after it was set.
//! Of each finding the first fix that a setting makes is taken; what is merely worth knowing is commented
//! out. Nothing is changed twice: what several findings raise is raised for all of them.

use core::fmt::Write as _;

use super::change::{Commands, quoted, within};
use super::finding::{Change, Finding, Fix, Severity};
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
    let steps = steps(findings);
    if steps.is_empty() {
        return None;
    }
    let head = |what: &str| head(snapshot, what);
    let mut fix = head("Carries out what tcpwhy proposed");
    let mut rollback = head("Takes back what fix.sh did");
    for step in &steps {
        let Commands { apply, is_done, is_as_seen, kept_by, .. } = &step.commands;
        write_step(&mut fix, step, [is_done, is_as_seen], apply);
        if let Some(line) = kept_by.as_ref().filter(|_| keeps(snapshot)) {
            write_line(&mut fix, step, &format!("keep {}", quoted(line)));
        }
    }
    // A default queueing discipline that comes back is of the kind that is the default then: settings first.
    let (settings, others): (Vec<_>, Vec<_>) = steps.iter().rev().partition(|step| step.is_sysctl);
    for step in settings.into_iter().chain(others) {
        let Commands { undo, is_done, is_as_seen, kept_by, .. } = &step.commands;
        match undo {
            Some(undo) => write_step(&mut rollback, step, [is_as_seen, is_done], undo),
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

/// Files of sysctl.d(5) are of the host: they do not reach other namespaces.
const fn keeps(snapshot: &Snapshot) -> bool {
    snapshot.netns.is_none()
}

fn steps(findings: &[Finding]) -> Vec<Step> {
    let mut chosen: Vec<Chosen<'_>> = Vec::new();
    for finding in findings {
        let Some((fix, change)) = first_change(finding) else { continue };
        let subject = change.subject();
        let is_on = finding.severity > Severity::Info;
        let Some(earlier) = chosen.iter_mut().find(|it| it.change.subject() == subject) else {
            chosen.push(Chosen { change: change.clone(), is_on, by: vec![(finding, fix)] });
            continue;
        };
        // The worst come first: what is merely worth knowing does not make more of what is done.
        if is_on == earlier.is_on
            && let Some(both) = room_for_both(&earlier.change, change)
        {
            earlier.change = both;
            earlier.by.push((finding, fix));
        }
    }
    let step = |Chosen { change, is_on, by }: Chosen<'_>| Step {
        about: by.iter().map(|(finding, fix)| about(finding, fix)).collect::<Vec<_>>().join("\n"),
        subject: one_line(&change.subject()),
        commands: change.commands(),
        is_on,
        is_sysctl: matches!(change, Change::Sysctl { .. }),
    };
    chosen.into_iter().map(step).collect()
}

/// A change, and the findings that ask for it.
struct Chosen<'a> {
    change: Change,
    is_on: bool,
    by: Vec<(&'a Finding, &'a Fix)>,
}

/// The setting with which two findings get what they ask for: where both raise its numbers, the larger of each.
fn room_for_both(one: &Change, other: &Change) -> Option<Change> {
    let (Change::Sysctl { key, from, to }, Change::Sysctl { to: too, .. }) = (one, other) else {
        return None;
    };
    let numbers = |text: &str| -> Option<Vec<i64>> {
        text.split_whitespace().map(|word| word.parse().ok()).collect()
    };
    let (from_numbers, to, too) = (numbers(from)?, numbers(to)?, numbers(too)?);
    let raises = |to: &[i64]| {
        to.len() == from_numbers.len() && to.iter().zip(&from_numbers).all(|(to, from)| to >= from)
    };
    if !raises(&to) || !raises(&too) {
        return None;
    }
    let larger: Vec<String> =
        to.iter().zip(&too).map(|(to, too)| to.max(too).to_string()).collect();
    Some(Change::Sysctl { key: key.clone(), from: from.clone(), to: larger.join(" ") })
}

fn first_change(finding: &Finding) -> Option<(&Fix, &Change)> {
    finding.fixes.iter().find_map(|fix| Some((fix, fix.set.as_ref()?)))
}

fn about(finding: &Finding, fix: &Fix) -> String {
    let mut text =
        format!("# {}: {}\n#   to {}", finding.code, one_line(&finding.title), one_line(&fix.what));
    for (label, words) in [("works", &fix.applies), ("risk:", &fix.risk)] {
        if !words.is_empty() {
            let _ = write!(text, "\n#   {label} {}", one_line(words));
        }
    }
    text
}

/// Names of a host must not end a comment.
fn one_line(text: &str) -> String {
    text.replace(|c: char| c.is_control(), "?")
}

fn write_step(script: &mut String, step: &Step, [is_there, is_expected]: [&str; 2], act: &str) {
    let Step { about, subject, is_on, .. } = step;
    let off = if *is_on {
        ""
    } else {
        "#   (worth knowing only; remove the # of the next lines to do it)\n"
    };
    let _ = write!(script, "\n{about}\n{off}");
    let words = [subject, is_there, is_expected, act].map(quoted_always);
    write_line(script, step, &format!("step {}", words.join(" \\\n  ")));
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

# step NAME IS_THERE IS_EXPECTED COMMAND
step() {
  if eval "$2"; then
    echo "$1: is so already"
  elif ! eval "$3"; then
    echo "$1: is not as it was seen; left alone" >&2
    failed=1
  elif eval "$4" > /dev/null && eval "$2"; then
    echo "$1: done"
  else
    echo "$1: '$4' did not do it" >&2
    failed=1
  fi
}
# A setting with single blanks.
setting() { sysctl -n "$1" | tr -s '\t ' ' '; }
# The value behind a label of what ethtool prints, of the current ones where there are two kinds.
now() {
  awk -F ':[ \t]*' -v name="$1" '/^Current/ { value = "" }
    { sub(/^[ \t]+/, "", $1) } $1 == name && value == "" { split($2, words, /[ \t]/); value = words[1] }
    END { print value }'
}
# The kind of an interface's root queueing discipline.
root_qdisc() { tc qdisc show dev "$1" | awk '$4 == "root" { print $2 }'; }
words() { printf '%s\n' "$@" | sort | tr '\n' ' '; }
# has_route -4|-6 WORDS...: there is such a route, whatever the order of its words.
has_route() {
  family=$1
  shift
  wanted=$(words "$@")
  ip "$family" route show table all | while read -r line; do
    # shellcheck disable=SC2086
    [ "$(words $line)" = "$wanted" ] && echo found
  done | grep -q found
}
# keep LINE: over restarts; drop LINE: no more.
keep() { grep -qxF "$1" "$file" 2>/dev/null || echo "$1" >> "$file" || failed=1; }
drop() {
  [ -f "$file" ] || return 0
  rest=$(grep -vxF "$1" "$file")
  if [ "$rest" ]; then echo "$rest" > "$file"; else rm -f "$file"; fi
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
        let steps = steps(findings).into_iter();
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
}
