//! `tcpwhy fleet`: the captures of many hosts, which the Python module explains.

use std::path::PathBuf;

use clap::Args;

use crate::exit::Exit;

/// What is shown below the flags.
pub const AFTER: &str = "\
The Python module carries this out (docs/scale.md): pip install '.[fleet]'

  tcpwhy fleet captures tables
  tcpwhy fleet captures tables --master spark://head:7077
  tcpwhy summary tables";

/// Flags of `tcpwhy fleet`, which the module reads.
#[derive(Args, Debug)]
pub struct FleetFlags {
    /// A folder with a folder of captures for each host
    #[arg(value_name = "INPUT")]
    pub input: PathBuf,
    /// The folder of the tables
    #[arg(value_name = "OUTPUT")]
    pub output: PathBuf,
    /// A Spark cluster, as `spark://HOST:7077`, `local[8]` or `sc://HOST:15002` [default: this machine alone]
    #[arg(long, value_name = "URL")]
    pub master: Option<String>,
    /// All captures are of this host
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// Write the tables of hosts anew whose captures have not changed
    #[arg(long)]
    pub again: bool,
}

/// Says who carries this out.
pub fn run(_: &FleetFlags) -> Exit {
    crate::complain(
        "`fleet` is carried out by the Python module: `pip install '.[fleet]'` in the sources brings the module and this command",
    );
    Exit::Usage
}
