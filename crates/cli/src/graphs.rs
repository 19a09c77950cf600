//! The page's graphs as files in a folder, for tickets and slides.

use std::fs;
use std::io;
use std::path::Path;

use tcpwhy::report::{Connection, Report};
use tcpwhy::view::web::{PICTURED, svg};

/// Writes `NUMBER-SENDER-GRAPH.svg` for each graph of the connections whose packets were kept.
pub(crate) fn write(report: &Report, folder: &Path) -> io::Result<()> {
    let named = |path: &Path, error: io::Error| {
        io::Error::new(error.kind(), format!("cannot write {}: {error}", path.display()))
    };
    fs::create_dir_all(folder).map_err(|error| named(folder, error))?;
    let is_kept = |connection: &&Connection| {
        connection.directions.iter().flatten().any(|direction| direction.trail.is_some())
    };
    let drawn = report.connections.iter().filter(is_kept);
    for connection in drawn.take(PICTURED) {
        for (at, sender) in ["client", "server"].into_iter().enumerate() {
            for (graph, content) in svg::graphs(connection, at) {
                let path = folder.join(format!("{}-{sender}-{graph}.svg", connection.id));
                fs::write(&path, content).map_err(|error| named(&path, error))?;
            }
        }
    }
    Ok(())
}
