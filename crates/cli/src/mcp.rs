//! `tcpwhy mcp`: answers for assistants, by the Model Context Protocol over standard input and output.
//!
//! It is no room of `cmd`, for it asks the commands by [`crate::ask`].

#[cfg(feature = "mcp")]
mod facts;
#[cfg(feature = "mcp")]
mod frames;
#[cfg(feature = "mcp")]
mod teller;

use crate::cmd::mcp::McpFlags;
use crate::complain;
use crate::exit::Exit;

#[cfg(feature = "mcp")]
pub use teller::Teller;

/// Serves until the client is gone.
///
/// # Errors
/// The client does not begin as it should.
#[cfg(feature = "mcp")]
pub fn run(flags: &McpFlags) -> anyhow::Result<Exit> {
    use std::io::{IsTerminal as _, stdin};

    let folders = match tcpwhy_mcp::Folders::open(&flags.folders) {
        Ok(folders) => folders,
        Err((path, why)) => {
            complain(&format!("cannot read below {}: {why}", path.display()));
            return Ok(Exit::Usage);
        }
    };
    if stdin().is_terminal() {
        complain(
            "an assistant starts this program and asks it by standard input; docs/mcp.md says how",
        );
    }
    tcpwhy_mcp::serve(folders, Teller::default())?;
    Ok(Exit::Analysed)
}

/// Says that this program has no such server.
///
/// # Errors
/// None.
#[cfg(not(feature = "mcp"))]
pub fn run(_: &McpFlags) -> anyhow::Result<Exit> {
    complain("this tcpwhy was built without `mcp`: `cargo build --features mcp` builds it with it");
    Ok(Exit::Usage)
}
