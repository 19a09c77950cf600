//! The report as tables in a folder of Parquet files.

use tcpwhy::report::Report;

use crate::options::Parquet;

/// Writes all tables; what was written, in a sentence.
///
/// # Errors
/// A file cannot be written.
#[cfg(feature = "tables")]
pub(crate) fn write(report: &Report, parquet: &Parquet) -> anyhow::Result<String> {
    use tcpwhy_tables::{Writer, run_name};

    use crate::read::Input;

    let Parquet { folder, host, captures } = parquet;
    // A pipe has no name of its own: its first connection's time tells runs apart.
    let piped = captures.contains(&Input::Stdin);
    let start = report.connections.first().filter(|_| piped).map(|first| first.start.as_str());
    let start = start.map(|start| start.as_bytes().to_owned());
    let run = run_name(captures.iter().map(Input::beginning).chain(start));
    let mut writer = Writer::begin(folder, &run, host.as_deref())?;
    writer.push(&report.connections)?;
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
pub(crate) fn write(_: &Report, _: &Parquet) -> anyhow::Result<String> {
    Err(crate::options::OptionsError::NoTables.into())
}
