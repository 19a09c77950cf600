//! The lab on the running kernel: two network namespaces without names, joined by our own process.
//!
//! ```text
//!    client's namespace                                        server's namespace
//!    application, TCP --- TUN <-- the emulator's thread --> TUN --- TCP, application
//! ```
//!
//! It is the user's own kernel with its own timing, so runs differ from each other, as they do on a
//! real path, and a run that the machine disturbed says so ([`lateness`]). Nothing outside the
//! namespaces is touched but the run's folder, and nothing stays when it is over or killed
//! ([`keeper`]).
//!
//! - [`emulate`] is the path as arithmetic, [`pump`] carries it out, [`journal`] writes it down;
//! - [`setup`] says what makes a namespace a host of the plan, [`stage`] does it;
//! - [`netem`] is the same path with the kernel's own parts; [`between`] is either;
//! - [`run`] is the order of things, [`players`] who plays in it, [`programs`] how they and recorders are started.

mod between;
mod clock;
pub mod emulate;
mod emulator;
mod journal;
mod keeper;
mod lateness;
mod netem;
mod packet;
mod players;
mod programs;
mod pump;
mod records;
mod report;
mod run;
pub mod setup;
mod stage;
mod sys;
mod tap;
mod thrift;

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitCode, ExitStatus, Stdio};

use tcpwhy_model::scenario::plan::{Plan, Queue};

use super::backend::{Backend, LabError, Manifest, Refusal};
use super::folder;
pub use programs::Again;
pub use report::Doors;
use report::Report;
use run::Joint;
use setup::Node;

/// The backends `tun` and `netem`.
#[derive(Clone, Debug)]
pub struct Live {
    again: Again,
    joint: Joint,
}

impl Live {
    /// The backend `tun`: our emulator. Its processes are started by `again`, which has to lead to
    /// [`inner`].
    pub fn tun(again: Again) -> Self {
        Self { again, joint: Joint::Tun }
    }

    /// The backend `netem`: the kernel's own parts, where it has them.
    pub fn netem(again: Again) -> Self {
        Self { again, joint: Joint::Netem }
    }

    /// Builds the plan's hosts and path, and lets a program run in one of the hosts while they stand; `prepare` makes it of
    /// the ways into both.
    ///
    /// # Errors
    /// They cannot be built, or the program cannot be started.
    pub fn shell(
        &self,
        plan: &Plan,
        folder: &Path,
        inside: Node,
        prepare: impl FnOnce(&Doors) -> Command,
    ) -> Result<ExitStatus, LabError> {
        let words = ["hold".into(), folder.as_os_str().to_owned()];
        let (mut keeper, lifeline) = self.keeper(plan, &words)?;
        let mut line = String::new();
        if let Some(out) = keeper.stdout.take() {
            let read = BufReader::new(out).read_line(&mut line);
            read.map_err(|error| failed("hear the lab's stage", &error))?;
        }
        let ran = match Report::hear(&line) {
            Some(Report::Open(doors)) => within(&doors, inside, prepare(&doors)),
            Some(Report::Trouble(trouble)) => Err(trouble.into_error(self.joint.name())),
            _ => Err(LabError::Ended {
                why: "its processes were killed or died".to_owned(),
                advice: "run it again".to_owned(),
            }),
        };
        drop(lifeline);
        keeper.wait().map_err(|error| failed("wait for the lab's keeper", &error))?;
        ran
    }

    /// Lets a keeper see to it; what the stage reported.
    fn ask(&self, plan: &Plan, words: &[OsString]) -> Result<Report, LabError> {
        let (mut keeper, lifeline) = self.keeper(plan, words)?;
        let mut said = String::new();
        if let Some(mut out) = keeper.stdout.take() {
            let read = out.read_to_string(&mut said);
            read.map_err(|error| failed("hear the lab's stage", &error))?;
        }
        let status = keeper.wait().map_err(|error| failed("wait for the lab's keeper", &error))?;
        drop(lifeline);
        Report::hear(&said).ok_or_else(|| LabError::Ended {
            why: format!("its processes were killed or died ({status})"),
            advice: "what was recorded until then is in its folder; run it again".to_owned(),
        })
    }

    /// A keeper at work, and what tells it by its end that we are gone.
    fn keeper(
        &self,
        plan: &Plan,
        words: &[OsString],
    ) -> Result<(Child, Option<ChildStdin>), LabError> {
        let mut command = self.again.command();
        command
            .arg("keeper")
            .arg(self.joint.name())
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        sys::start_apart(&mut command);
        let mut keeper =
            command.spawn().map_err(|error| failed("start the lab's keeper", &error))?;
        let lifeline = keeper.stdin.take().map(|mut input| {
            let line = serde_json::to_vec(plan).unwrap_or_default();
            // If the keeper is gone already, the code below reports its silence.
            let _ = input.write_all(&line).and_then(|()| input.write_all(b"\n"));
            input
        });
        Ok((keeper, lifeline))
    }
}

fn failed(doing: &str, error: &io::Error) -> LabError {
    LabError::Missing {
        doing: doing.to_owned(),
        why: error.to_string(),
        advice: "try again, or use --backend uml".to_owned(),
    }
}

/// Lets a program run in a host, to its end.
fn within(doors: &Doors, host: Node, mut program: Command) -> Result<ExitStatus, LabError> {
    let door = if host == Node::Server { &doors.server } else { &doors.client };
    let enter =
        |door: &Path| File::open(door).map_err(|error| failed("enter the lab's host", &error));
    let (users, network) = (doors.users.as_deref().map(enter).transpose()?, enter(door)?);
    sys::start_within(&mut program, users.as_ref().map(|users| users.as_fd()), network.as_fd());
    let name = program.get_program().to_string_lossy().into_owned();
    program.status().map_err(|error| LabError::Missing {
        doing: format!("start {name}"),
        why: error.to_string(),
        advice: "is it installed, and its name right?".to_owned(),
    })
}

impl Backend for Live {
    fn name(&self) -> String {
        self.joint.name().to_owned()
    }

    /// Builds all of the plan's setting once and takes it down again, so that what it says is what
    /// this kernel does.
    fn check(&self, plan: &Plan) -> Result<(), Refusal> {
        let refusal = |what: &str, why: String, instead: String| Refusal {
            backend: self.name(),
            what: what.to_owned(),
            why,
            instead,
        };
        let missing = match self.joint {
            Joint::Tun => None,
            Joint::Netem => netem::cannot(plan),
        };
        if let Some([what, why, instead]) = impossible(plan).or(missing) {
            return Err(refusal(&what, why, instead));
        }
        match self.ask(plan, &["check".into()]) {
            Ok(Report::Trouble(trouble)) => match trouble.into_error(&self.name()) {
                LabError::Refused(refused) => Err(refused),
                LabError::Missing { doing, why, advice } => {
                    Err(refusal("this", format!("cannot {doing}: {why}"), advice))
                }
                other => Err(refusal("this", other.to_string(), INSTEAD.to_owned())),
            },
            Ok(_) => Ok(()),
            Err(error) => Err(refusal("this", error.to_string(), INSTEAD.to_owned())),
        }
    }

    fn run(&self, plan: &Plan, folder: &Path) -> Result<Manifest, LabError> {
        let folder = folder.canonicalize().map_err(|e| LabError::writing(folder, e))?;
        let path = folder.join(folder::PLAN);
        // Made anew: two labs that were given one folder meet here and nowhere else.
        let written =
            OpenOptions::new().write(true).create_new(true).open(&path).and_then(|mut file| {
                file.write_all(&serde_json::to_vec_pretty(plan)?)?;
                file.write_all(b"\n")
            });
        written.map_err(|source| LabError::writing(&path, source))?;
        let words = ["run".into(), folder.clone().into_os_string()];
        match self.ask(plan, &words)? {
            Report::Done(manifest) => {
                let manifest = Manifest { backend: self.name(), ..*manifest };
                manifest.write(&folder)?;
                Ok(manifest)
            }
            Report::Trouble(trouble) => Err(trouble.into_error(&self.name())),
            Report::Possible | Report::Open(_) => Err(LabError::Ended {
                why: "the stage checked the plan and did not run it".to_owned(),
                advice: "this is an error in tcpwhy, please report it".to_owned(),
            }),
        }
    }
}

/// What no kernel could do for this backend: what, why, and what would do.
fn impossible(plan: &Plan) -> Option<[String; 3]> {
    if let Some([what, why]) = super::only_modelled(plan) {
        return Some([what, why, super::PREDICT.to_owned()]);
    }
    if plan.ipv6 && plan.flows.iter().any(|flow| flow.flood > 0) {
        let why = "the hosts that never answer are of IPv4".to_owned();
        return Some(["`flood` with `ipv6`".to_owned(), why, "leave `ipv6` out".to_owned()]);
    }
    let mut ways = vec![&plan.path.down, &plan.path.up];
    ways.extend(plan.path.changes.iter().flat_map(|change| change.down.iter().chain(&change.up)));
    if ways.iter().any(|way| way.queue == Queue::FqCodel && way.bucket.is_none()) {
        let why = "queues between the hosts are first in, first out here".to_owned();
        let instead = "use --backend uml, or `tcpwhy predict`".to_owned();
        return Some(["`path.queue = \"fq_codel\"`".to_owned(), why, instead]);
    }
    let hosts = [("client", &plan.client), ("server", &plan.server)];
    for (name, host) in hosts {
        let now = host.sysctl.keys().map(|setting| ("sysctl", setting));
        let later = host.changes.iter().flat_map(|change| change.sysctl.keys());
        let mut all = now.chain(later.map(|setting| ("changes", setting)));
        if let Some((place, setting)) = all.find(|(_, setting)| !setup::is_setting(setting)) {
            return Some([
                format!("`{name}.{place}` {setting}"),
                "only settings below `net.` belong to a host of the lab".to_owned(),
                "leave it out".to_owned(),
            ]);
        }
    }
    let mut ports: Vec<u16> = plan.flows.iter().map(|flow| flow.port).collect();
    ports.sort_unstable();
    let twice = ports.windows(2).find(|pair| pair[0] == pair[1])?;
    Some([
        format!("two flows on port {}", twice[0]),
        "each has a server of its own, and the second would find the port taken".to_owned(),
        "give each flow its own port".to_owned(),
    ])
}

/// The part of the executable that this backend starts again: `keeper`, `stage` or `agent`, each
/// with its words.
///
/// Programs that use [`Live`] call it with what follows the words they gave to [`Again::same`].
pub fn inner(again: &Again, words: &[OsString]) -> ExitCode {
    match words.split_first() {
        Some((role, words)) if role == "keeper" => keeper::main(again, words),
        Some((role, words)) if role == "stage" => run::main(again, words),
        Some((role, words)) if role == "agent" => {
            let name = OsString::from("tcpwhy-agent");
            super::agent::main(std::iter::once(name).chain(words.iter().cloned()))
        }
        _ => ExitCode::from(2),
    }
}

/// Tells the stage that it runs in a user namespace.
const ORDINARY_USER: &str = "TCPWHY_LAB_ORDINARY_USER";

const INSTEAD: &str = "use --backend uml, which needs no rights";
