//! The lab: a path to run real TCP over, and the kernel's own record of it.
//!
//! A [`backend`] carries out a [`tcpwhy_model::scenario::plan::Plan`] and leaves a folder, the
//! same whatever the backend; [`folder`] has its names.

pub mod agent;
pub mod backend;
mod changing;
mod complain;
pub mod folder;
pub(crate) mod init;
pub mod layout;
pub mod live;
pub mod model;
pub mod queue;
pub mod uml;

use tcpwhy_model::TEXTBOOKS;
use tcpwhy_model::scenario::plan::{Change, Plan, Way};

/// What only the model has yet: what, and why.
fn only_modelled(plan: &Plan) -> Option<[String; 2]> {
    for (name, host) in [("client", &plan.client), ("server", &plan.server)] {
        if host.device.is_some() {
            let why = "its devices are virtual: they have no ring, and send at once";
            return Some([format!("`{name}.device`"), why.to_owned()]);
        }
        let controller = host.route.get("congctl").map(String::as_str);
        if let Some(book) = controller.filter(|name| TEXTBOOKS.contains(name)) {
            let why = "no kernel has it: it is for teaching";
            return Some([format!("`{name}.route.congctl = \"{book}\"`"), why.to_owned()]);
        }
    }
    let later = |of: fn(&Change) -> Option<&Way>| plan.path.changes.iter().filter_map(of);
    let down = later(|change| change.down.as_ref()).chain([&plan.path.down]).map(|w| ("down", w));
    let up = later(|change| change.up.as_ref()).chain([&plan.path.up]).map(|w| ("up", w));
    down.chain(up).find_map(|(name, way)| {
        let missing = [
            (way.mtu.is_some(), "mtu", "its links take packets of 1500 bytes"),
            (way.cross.is_some(), "cross", "nothing there sends at a constant rate"),
        ];
        let (_, key, why) = missing.into_iter().find(|(is_asked, ..)| *is_asked)?;
        Some([format!("`path.{name}.{key}`"), why.to_owned()])
    })
}

/// What would do where only the model can.
const PREDICT: &str = "use `tcpwhy predict`, which runs it in the model";
