//! A live host as a snapshot: what the kernel is set to, its counters, queues, devices and sockets.
//!
//! ```text
//! /proc, /sys, netlink, ioctl -> look, look -> Snapshot, and in `unseen` what was not to be had
//! ```
//!
//! No program is called, nothing is changed and no packet is sent. What cannot be read never fails the
//! whole. What changes is read twice, some seconds apart, for the checks judge how far it went; what stays
//! is read between the looks. Tables that the kernel prints are parsed by pure functions ([`tables`]).

mod alone;
mod beside;
pub(crate) mod blind;
mod devices;
mod drops;
mod glimpses;
pub(crate) mod groups;
mod info;
mod links;
mod locks;
mod look;
mod machine;
pub(crate) mod namespace;
pub(crate) mod processes;
mod qdiscs;
mod routes;
mod setting_files;
mod settings;
pub(crate) mod sockets;
mod sys;
mod tables;

use std::time::Duration;

use tcpwhy::host::snapshot::{FORMAT, Snapshot, Source};

use crate::netlink::Netlink;
use crate::record::{Clock, Stop};
pub use alone::Alone;
pub use beside::{Beside, GroupPaths};
use blind::Blind;
use drops::Watch;
use look::Kept;
pub use namespace::{Netns, NetnsError};
use processes::Owners;

/// What to look at, and how long.
#[derive(Debug, Default)]
pub struct Options {
    /// Another network namespace than that of the caller.
    pub netns: Option<Netns>,
    /// Time between two looks; `None` is one look only.
    pub apart: Option<Duration>,
    /// Find out which processes hold the sockets.
    pub processes: bool,
    /// One socket, by process and descriptor, whose options are asked for.
    pub locks: Option<(u32, u32)>,
    /// Count packets that the kernel drops between the looks, by its reason.
    pub drops: bool,
    /// Ends the time between the looks: the second is taken at once.
    pub stop: Option<Stop>,
}

/// Looks at this host.
///
/// # Errors
/// The namespace that is asked for is not there or may not be entered. All other errors are in the snapshot.
pub fn take(options: &Options) -> Result<Snapshot, NetnsError> {
    let Some(netns) = &options.netns else { return Ok(here(options)) };
    let hosts = namespace::settings_of_host();
    let mut snapshot = namespace::within(netns, || here(options))?;
    let is_another = snapshot.initial_netns == Some(false);
    if let Some(hosts) = hosts.filter(|_| is_another) {
        snapshot.host_settings = Some(hosts);
        snapshot.unseen.retain(|unseen| unseen.of.as_deref() != Some(namespace::OF_PROCESS_1));
    }
    snapshot.netns = Some(blind::shown(netns.to_string().as_bytes()));
    Ok(snapshot)
}

/// Looks at the namespace that this thread is in.
fn here(options: &Options) -> Snapshot {
    let mut blind = Blind::default();
    let mut kept = Kept::new(options.processes.then(Owners::default));
    let mut snapshot = Snapshot {
        format: FORMAT.to_owned(),
        made_by: env!("CARGO_PKG_VERSION").to_owned(),
        ..Snapshot::default()
    };
    let began = Clock::Monotonic.now();
    snapshot.looks.push(look::look(&mut kept, &mut blind));
    what_stays(&mut snapshot, &mut blind);
    match options.apart {
        Some(apart) => {
            let watch = options.drops.then(|| Watch::begin(&mut blind)).flatten();
            let due = began.saturating_add(u64::try_from(apart.as_nanos()).unwrap_or(u64::MAX));
            let glimpses = glimpses::until(due, &snapshot.looks[0], options.stop.as_ref());
            snapshot.drops = watch.and_then(|watch| watch.end(&mut blind));
            snapshot.looks.push(look::look(&mut kept, &mut blind));
            glimpses::put(glimpses, &mut snapshot.looks[1]);
        }
        None => blind.say_with(Source::SecondLook, None, "one look was asked for", "look twice"),
    }
    if let (Some(socket), Some(last)) = (options.locks, snapshot.looks.last_mut()) {
        locks::ask(last, socket, &mut blind);
    }
    snapshot.unseen = blind.into_unseen();
    snapshot
}

fn what_stays(snapshot: &mut Snapshot, blind: &mut Blind) {
    machine::describe(snapshot, blind);
    snapshot.settings = settings::settings(blind);
    snapshot.initial_netns = namespace::is_initial(snapshot.settings.as_ref());
    snapshot.host_settings = namespace::of_process_1(snapshot, blind);
    let keys = snapshot.settings.iter().flat_map(|settings| settings.values.keys());
    let keys: Vec<&str> = keys.map(String::as_str).collect();
    snapshot.set_in = Some(setting_files::set_in(&keys, blind));
    snapshot.module_parameters = machine::module_parameters();
    snapshot.agents = processes::agents(blind);
    ways(snapshot, blind);
}

/// Routes, rules and what is known of peers; interfaces are known by name since the first look.
fn ways(snapshot: &mut Snapshot, blind: &mut Blind) {
    snapshot.tcp_metrics = routes::tcp_metrics(blind);
    let links = snapshot.looks.first().and_then(|look| look.links.as_deref());
    let names = links::names(links.unwrap_or_default());
    match Netlink::open(libc::NETLINK_ROUTE) {
        Ok(mut route) => {
            snapshot.routes = routes::routes(&mut route, &names, blind);
            snapshot.rules = routes::rules(&mut route, blind);
        }
        Err(error) => blind.refused(Source::Routes, None, &error),
    }
}
