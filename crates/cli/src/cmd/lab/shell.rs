//! `tcpwhy lab shell`: a scenario's hosts and path, for the user's own programs.

use std::env;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus};

use anyhow::Context;
use clap::{Args, ValueEnum};
use tcpwhy::units::{BitRate, Duration};
use tcpwhy_linux::lab::backend::Backend as _;
use tcpwhy_linux::lab::folder;
use tcpwhy_linux::lab::live::setup::Node;
use tcpwhy_linux::lab::live::{Doors, Live};
use tcpwhy_model::scenario::plan::Plan;

use super::backends;
use super::runs::Ended;
use crate::cmd::scenarios;
use crate::complain;
use crate::exit::Exit;
use crate::run_folder::Held;

pub(super) const AFTER: &str = "\
The scenario's hosts and its path stand while the shell runs: two network namespaces with the addresses 192.0.2.1 (the
client) and 192.0.2.2 (the server). Its applications are not started, and what a host changes later ([[server.changes]])
stays as it is. When the shell ends, all of it is gone.

  tcpwhy lab shell rate-8
  tcpwhy lab shell slow-start --set path.rtt=80ms -- iperf3 -c 192.0.2.2
  $ON_SERVER iperf3 -s -D        (in the shell: a program at the other host)

Exit status: the shell's; 2 where this machine cannot do it.";

/// Flags of `tcpwhy lab shell`.
#[derive(Args, Debug)]
pub struct ShellFlags {
    /// A scenario's name (see `tcpwhy lab list`), or a .toml file
    #[arg(value_name = "NAME|FILE")]
    scenario: String,
    /// Which of its variants [default: the first]
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Change a key of the scenario, as path.rtt=20ms
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The host that the shell runs on
    #[arg(long, value_name = "HOST", default_value = "client")]
    on: Host,
    /// What runs there [default: your shell]
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The ends of the path.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Host {
    Client,
    Server,
}

impl Host {
    const fn node(self) -> Node {
        match self {
            Self::Client => Node::Client,
            Self::Server => Node::Server,
        }
    }

    const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// Builds, runs, tears down.
///
/// # Errors
/// The scenario cannot be read, or this machine cannot build it.
pub(super) fn run(flags: &ShellFlags) -> anyhow::Result<Exit> {
    let scenario = scenarios::open(&flags.scenario, &flags.set)?;
    let mut plans = scenario.variants.into_iter();
    let plan = match &flags.variant {
        None => plans.next().context("a scenario has a variant")?,
        Some(name) => {
            let Some(plan) = plans.find(|plan| plan.variant == *name) else {
                complain(&format!(
                    "{} has no variant `{name}`; `tcpwhy lab list` names them",
                    flags.scenario
                ));
                return Ok(Exit::Usage);
            };
            plan
        }
    };
    let live = Live::tun(backends::again());
    live.check(&plan).map_err(Ended::Refused)?;
    let swept = Held::create_in(&env::temp_dir(), super::runs::SWEPT)
        .context("cannot make a temporary folder")?;
    // What the path writes of each packet would fill the disk while the shell stays open.
    for record in folder::CAPTURES.into_iter().chain([folder::PACKETS]) {
        symlink("/dev/null", swept.path().join(record)).context("cannot make a temporary file")?;
    }
    if flags.command.is_empty() {
        complain(&welcome(&plan, flags.on));
    }
    let ended = ignoring_interrupts(|| {
        live.shell(&plan, swept.path(), flags.on.node(), |doors| program(flags, &plan, doors))
    })?;
    Ok(Exit::OfCommand(status(ended)))
}

/// What is said before the prompt comes.
fn welcome(plan: &Plan, on: Host) -> String {
    let address = |host: Host| host.node().address(plan.ipv6);
    let rate = |bps: u64| if bps == 0 { "no rate".to_owned() } else { BitRate(bps).to_string() };
    let rtt = Duration((plan.path.down.delay_ns + plan.path.up.delay_ns) as i64);
    let mut text = format!(
        "this shell is on the {}, {}; the {} is {}\n",
        on.node().name(),
        address(on),
        on.other().node().name(),
        address(on.other())
    );
    let _ = write!(
        text,
        "the path: round trip {rtt}, {} down, {} up\n\
         $ON_{} COMMAND runs a program there; exit ends both",
        rate(plan.path.down.rate),
        rate(plan.path.up.rate),
        on.other().node().name().to_uppercase(),
    );
    text
}

fn program(flags: &ShellFlags, plan: &Plan, doors: &Doors) -> Command {
    let mut program = match flags.command.split_first() {
        Some((name, words)) => {
            let mut program = Command::new(name);
            program.args(words);
            program
        }
        None => Command::new(env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into())),
    };
    for (name, host, door) in
        [("CLIENT", Host::Client, &doors.client), ("SERVER", Host::Server, &doors.server)]
    {
        program.env(name, host.node().address(plan.ipv6).to_string());
        program.env(format!("ON_{name}"), entering(doors.users.as_deref(), door));
    }
    program
}

/// The words that lead a program into a host (nsenter(1)).
fn entering(users: Option<&Path>, door: &Path) -> String {
    let users = users
        .map(|users| format!(" --user={} --preserve-credentials", users.display()))
        .unwrap_or_default();
    format!("nsenter{users} --net={}", door.display())
}

/// Ctrl-C is the shell's; ours is to clean up behind it.
fn ignoring_interrupts<T>(act: impl FnOnce() -> T) -> T {
    let flag = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let caught = signal_hook::flag::register(signal_hook::consts::SIGINT, flag);
    let done = act();
    if let Ok(id) = caught {
        signal_hook::low_level::unregister(id);
    }
    done
}

/// As a shell tells how a program ended.
fn status(ended: ExitStatus) -> u8 {
    let code = ended.code().or_else(|| ended.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_into_a_host_can_be_typed() {
        let door = Path::new("/proc/7/fd/9");
        assert_eq!(entering(None, door), "nsenter --net=/proc/7/fd/9");
        let users = Path::new("/proc/7/ns/user");
        assert_eq!(
            entering(Some(users), door),
            "nsenter --user=/proc/7/ns/user --preserve-credentials --net=/proc/7/fd/9"
        );
    }

    #[test]
    fn the_welcome_names_both_hosts_and_the_path() {
        let mut plan = Plan::default();
        (plan.path.down.delay_ns, plan.path.up.delay_ns) = (3_000_000, 3_000_000);
        plan.path.down.rate = 8_000_000;
        assert_eq!(
            welcome(&plan, Host::Client),
            "this shell is on the client, 192.0.2.1; the server is 192.0.2.2\n\
             the path: round trip 6.00 ms, 8.00 Mbit/s down, no rate up\n\
             $ON_SERVER COMMAND runs a program there; exit ends both"
        );
    }
}
