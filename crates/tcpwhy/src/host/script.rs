//! What would help as two scripts: one that carries it out, one that takes it back.
//!
//! Both look before they touch: a value that is there already is left, one that is neither what was seen nor
//! what is proposed belongs to somebody else and is left and told. Each value is read again after it was set.
//! Of each finding the first fix that a setting makes is taken; what is merely worth knowing is commented
//! out, and nothing is changed twice.

use core::fmt::Write as _;
use std::collections::BTreeSet;

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
    let mut taken = BTreeSet::new();
    let mut steps = Vec::new();
    for finding in findings {
        let Some((fix, change)) = first_change(finding) else { continue };
        if !taken.insert(change.subject()) {
            continue;
        }
        steps.push(Step {
            about: about(finding, fix),
            subject: one_line(&change.subject()),
            commands: change.commands(),
            is_on: finding.severity > Severity::Info,
            is_sysctl: matches!(change, Change::Sysctl { .. }),
        });
    }
    steps
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
