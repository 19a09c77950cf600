//! The report as tables in a folder of Parquet files.

use std::sync::atomic::AtomicBool;

use tcpwhy::report::Report;

use crate::options::Parquet;
use crate::read::Input;

/// Writes all tables, that of segments too if these are asked for: `inputs` are read again for them, as long as `stop`
/// is false. What was written, in a sentence.
///
/// # Errors
/// A file cannot be written, or not be read again.
#[cfg(feature = "tables")]
pub(crate) fn write(
    report: &Report,
    parquet: &Parquet,
    inputs: &[Input],
    stop: &AtomicBool,
) -> anyhow::Result<String> {
    use crate::read::read_segments;
    use tcpwhy_tables::{Writer, run_name};

    let Parquet { folder, host, captures, segments } = parquet;
    // A pipe has no name of its own: its first connection's time tells runs apart.
    let piped = captures.contains(&Input::Stdin);
    let start = report.connections.first().filter(|_| piped).map(|first| first.start.as_str());
    let start = start.map(|start| start.as_bytes().to_owned());
    let run = run_name(captures.iter().map(Input::beginning).chain(start));
    let mut writer = Writer::begin(folder, &run, host.as_deref())?;
    writer.push(&report.connections)?;
    if *segments {
        read_segments(inputs, report, stop, |some| {
            writer.push_segments(&report.connections, some).map_err(anyhow::Error::from)
        })?;
    }
    let written = writer.finish()?;
    let rows = written.rows.iter().map(|(table, rows)| {
        let name = table.name();
        let name = if *rows == 1 { name.trim_end_matches('s') } else { name };
        format!("{rows} {name}")
    });
    let rows = rows.collect::<Vec<_>>().join(", ");
    Ok(format!("wrote {}: {}", folder.display(), if rows.is_empty() { "no rows" } else { &rows }))
}

/// Options are refused before.
///
/// # Errors
/// Always.
#[cfg(not(feature = "tables"))]
pub(crate) fn write(
    _: &Report,
    _: &Parquet,
    _: &[Input],
    _: &AtomicBool,
) -> anyhow::Result<String> {
    Err(crate::options::OptionsError::NoTables.into())
}
