//! Checked options: what the flags mean on this terminal, with these files.

use std::env;
use std::io::{self, IsTerminal};
use std::num::NonZero;
use std::path::PathBuf;
use std::thread;

use tcpwhy::tracker::Config;
use tcpwhy::view;

use crate::choose::Sort;
use crate::fail::FailOn;
use crate::filter::{Filter, FilterError};
use crate::flags::{Color, ExplainFlags};
use crate::rate::PathRate;
use crate::read::{Input, OpenError};
use crate::window::Window;

/// What `tcpwhy explain` is to do.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "one for each flag without a value")]
pub struct Options {
    /// What to read; not yet in the order of time.
    pub inputs: Vec<Input>,
    /// Evidence to lay beside it.
    pub with: Vec<Input>,
    /// Snapshots of the hosts, and which end each is.
    pub host_snapshots: Vec<(&'static str, PathBuf)>,
    /// The path's rate, if the user knows it.
    pub rate: Option<PathRate>,
    /// In which form to answer.
    pub form: Form,
    /// Where a page is written.
    pub html: Option<PathBuf>,
    /// Where graphs are written.
    pub svg: Option<PathBuf>,
    /// Where tables are written.
    pub parquet: Option<Parquet>,
    /// Only this connection.
    pub connection: Option<u64>,
    /// Only connections this accepts.
    pub filter: Option<Filter>,
    /// Only packets inside this.
    pub window: Window,
    /// At most this many connections, if asked for.
    pub top: Option<usize>,
    /// The order asked for.
    pub sort: Option<Sort>,
    /// Replace addresses.
    pub anonymize: bool,
    /// Whether the model is run for what is advised.
    pub predict: bool,
    /// Threads that analyse.
    pub threads: usize,
    /// Use colour.
    pub color: bool,
    /// Columns of text.
    pub width: usize,
    /// What among the findings makes the exit status 1.
    pub fail_on: Vec<FailOn>,
    /// Answer on standard error: standard output is a recorded command's.
    pub on_stderr: bool,
}

/// In which form to answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Form {
    /// Words and tables.
    Text {
        /// With the table of rounds.
        rounds: bool,
        /// With the time-sequence picture.
        plot: bool,
        /// All that was found, and not the first screen.
        full: bool,
    },
    /// The whole report.
    Json {
        /// Indented.
        pretty: bool,
    },
    /// A line for each transfer.
    Csv,
    /// A line for each connection.
    Summary,
    /// A page for the browser.
    Html,
    /// Tables in Parquet files.
    Tables,
}

/// Where tables are written.
#[derive(Clone, Debug)]
pub struct Parquet {
    /// The folder.
    pub folder: PathBuf,
    /// Whose captures these are.
    pub host: Option<String>,
    /// The captures: a run of the same replaces what this one wrote.
    pub captures: Vec<Input>,
    /// With the table of segments.
    pub segments: bool,
}

/// Why the options cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// Nothing was named and nobody pipes anything in.
    #[error("nothing to read")]
    NothingToRead,
    /// There is only one standard input.
    #[error("`-` is named {0} times: standard input can be read only once")]
    StdinTwice(usize),
    /// The filter does not parse.
    #[error("the filter cannot be read: {0}")]
    Filter(#[from] FilterError),
    /// `--to` is before `--from`.
    #[error("--to is before --from: no packet can be in between")]
    EmptyWindow,
    /// `--parquet`, in a program that was built without it.
    #[error(
        "this tcpwhy was built without tables: `cargo build --features tables` builds it with them"
    )]
    NoTables,
    /// `--host`, which is a part of the path of each table.
    #[error("--host: {0}")]
    Host(String),
    /// `--segments` of what cannot be read twice.
    #[error(
        "--segments reads the captures twice, and {0} can be read only once: write it into a file first"
    )]
    Once(String),
    /// No input can be opened.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Open(Vec<OpenError>),
}

/// What of the surroundings changes the meaning of flags.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "five independent facts about the process")]
pub struct Surroundings {
    /// Standard input is a terminal.
    pub stdin_is_terminal: bool,
    /// Standard output is a terminal.
    pub stdout_is_terminal: bool,
    /// Standard error is a terminal.
    pub stderr_is_terminal: bool,
    /// Size of that terminal: columns and rows.
    pub size: Option<(u16, u16)>,
    /// `NO_COLOR` is set and not empty (no-color.org).
    pub no_color: bool,
    /// `CLICOLOR_FORCE` is set and neither empty nor 0 (bixense.com/clicolors).
    pub clicolor_force: bool,
}

impl Surroundings {
    /// Those of this process.
    pub fn of_process() -> Self {
        Self {
            stdin_is_terminal: io::stdin().is_terminal(),
            stdout_is_terminal: io::stdout().is_terminal(),
            stderr_is_terminal: io::stderr().is_terminal(),
            size: terminal_size::terminal_size().map(|(columns, rows)| (columns.0, rows.0)),
            no_color: env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
            clicolor_force: env::var_os("CLICOLOR_FORCE")
                .is_some_and(|value| !value.is_empty() && value != "0"),
        }
    }

    pub(crate) const fn color(&self, asked: Color) -> bool {
        match asked {
            Color::Always => true,
            Color::Never => false,
            Color::Auto if self.no_color => false,
            Color::Auto => self.clicolor_force || self.stdout_is_terminal,
        }
    }

    /// Columns: those asked for, or the terminal's.
    pub(crate) fn columns(&self, asked: Option<u16>) -> usize {
        asked.map_or_else(|| self.width(), usize::from)
    }

    fn width(&self) -> usize {
        let columns = self.size.filter(|_| self.stdout_is_terminal).map(|size| size.0);
        columns.map_or(DEFAULT_WIDTH, |columns| usize::from(columns).max(MIN_WIDTH))
    }
}

impl Options {
    /// Checks the flags.
    ///
    /// # Errors
    /// They contradict themselves or the files they name.
    pub fn check(flags: &ExplainFlags, around: &Surroundings) -> Result<Self, OptionsError> {
        let inputs = inputs(flags, around)?;
        let filter = flags.filter.as_deref().map(Filter::parse).transpose()?;
        let window = Window { from: flags.from, to: flags.to };
        if window.is_empty() {
            return Err(OptionsError::EmptyWindow);
        }
        let parquet = parquet(flags, &inputs)?;
        let unreadable: Vec<_> = inputs.iter().filter_map(|input| input.check().err()).collect();
        // Of several, the others are explained, and the report names what could not be read.
        if !unreadable.is_empty() && unreadable.len() == inputs.len() {
            return Err(OptionsError::Open(unreadable));
        }
        Ok(Self {
            inputs,
            with: flags.with.iter().map(|file| Input::named(file)).collect(),
            host_snapshots: flags.host_snapshot.clone(),
            rate: flags.rate.clone(),
            html: flags.html.clone(),
            svg: flags.svg.clone(),
            parquet,
            form: if flags.html.is_some() {
                Form::Html
            } else if flags.parquet.is_some() {
                Form::Tables
            } else if flags.json {
                Form::Json { pretty: around.stdout_is_terminal }
            } else if flags.csv {
                Form::Csv
            } else if flags.summary {
                Form::Summary
            } else {
                Form::Text { rounds: flags.rounds, plot: flags.plot, full: flags.full }
            },
            connection: flags.connection,
            filter,
            window,
            top: flags.top.map(|count| count as usize),
            sort: flags.sort,
            anonymize: flags.anonymize,
            predict: !flags.no_predict,
            threads: flags.threads.map_or_else(cores, NonZero::get),
            color: around.color(flags.color),
            width: around.columns(flags.width),
            fail_on: flags.fail_on.clone(),
            on_stderr: false,
        })
    }

    /// What is to be kept of the connections.
    pub fn config(&self) -> Config {
        // Stand-ins are given to the addresses of all connections, in their order.
        let chooses = self.filter.is_some()
            || self.connection.is_some()
            || !self.window.is_open()
            || self.anonymize
            || !self.with.is_empty();
        let (sort, number) = self.order();
        // What was found of all connections is asked about, not of those shown alone.
        let asks = !self.fail_on.is_empty();
        let keep = (number < usize::MAX && !chooses && !asks).then(|| view::keep(sort, number));
        let passed = !self.with.is_empty();
        let detail = self.wants_detail();
        let trails = self.form == Form::Html || self.svg.is_some();
        // The page's own model repeats transfers, too.
        let predicts = self.predict || self.form == Form::Html;
        Config { detail, passed, predicts, trails, keep, ..Config::default() }
    }

    /// In which order connections are to be shown, and how many at most.
    pub fn order(&self) -> (view::Sort, usize) {
        let (sort, number) = match self.form {
            Form::Text { .. } => (view::Sort::Worst, TABLE_ROWS),
            Form::Json { .. } | Form::Csv | Form::Summary | Form::Html | Form::Tables => {
                (view::Sort::Start, usize::MAX)
            }
        };
        (self.sort.map_or(sort, Into::into), self.top.unwrap_or(number))
    }

    /// Whether rounds, intervals and retransmissions are wanted one by one.
    fn wants_detail(&self) -> bool {
        // A part of the time is cut out of the intervals.
        !self.window.is_open()
            || !self.with.is_empty()
            || match self.form {
                Form::Json { .. } | Form::Tables => true,
                Form::Csv | Form::Summary => false,
                Form::Html => self.connection.is_some(),
                Form::Text { rounds, plot, .. } => rounds || plot || self.connection.is_some(),
            }
    }
}

/// Where tables are to be written, if this program can.
fn parquet(flags: &ExplainFlags, inputs: &[Input]) -> Result<Option<Parquet>, OptionsError> {
    let Some(folder) = flags.parquet.clone() else { return Ok(None) };
    if !cfg!(feature = "tables") {
        return Err(OptionsError::NoTables);
    }
    #[cfg(feature = "tables")]
    if let Some(host) = &flags.host {
        tcpwhy_tables::check_name(host).map_err(|why| OptionsError::Host(why.to_string()))?;
    }
    let once = |input: &&Input| !(input.is_there_again() || input.check().is_err());
    if let Some(input) = inputs.iter().find(once).filter(|_| flags.segments) {
        return Err(OptionsError::Once(spoken(input)));
    }
    let (host, captures, segments) = (flags.host.clone(), inputs.to_vec(), flags.segments);
    Ok(Some(Parquet { folder, host, captures, segments }))
}

/// An input's name in a sentence.
fn spoken(input: &Input) -> String {
    match input {
        Input::Stdin => "standard input".to_owned(),
        Input::File(_) => input.name(),
    }
}

/// Rows of a table unless `--top` says otherwise.
const TABLE_ROWS: usize = 10;

fn inputs(flags: &ExplainFlags, around: &Surroundings) -> Result<Vec<Input>, OptionsError> {
    let mut inputs: Vec<_> = flags.files.iter().map(|file| Input::named(file)).collect();
    // Evidence explains itself, too: then standard input is read only if it is named.
    if inputs.is_empty() && flags.with.is_empty() {
        if around.stdin_is_terminal {
            return Err(OptionsError::NothingToRead);
        }
        inputs.push(Input::Stdin);
    }
    let with = flags.with.iter().map(|file| Input::named(file));
    match inputs.iter().cloned().chain(with).filter(|input| *input == Input::Stdin).count() {
        0 | 1 => Ok(inputs),
        times => Err(OptionsError::StdinTwice(times)),
    }
}

/// The processors that this process may use.
fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Columns where there is no terminal. Ours: fits a ticket and a side-by-side window.
const DEFAULT_WIDTH: usize = 100;

/// Narrower terminals get lines that wrap: below this the text has no sensible form.
const MIN_WIDTH: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    const TERMINAL: Surroundings = Surroundings {
        stdin_is_terminal: true,
        stdout_is_terminal: true,
        stderr_is_terminal: true,
        size: Some((133, 50)),
        no_color: false,
        clicolor_force: false,
    };
    const PIPE: Surroundings = Surroundings {
        stdin_is_terminal: false,
        stdout_is_terminal: false,
        stderr_is_terminal: false,
        ..TERMINAL
    };

    fn flags(files: &[&str]) -> ExplainFlags {
        ExplainFlags { files: files.iter().map(Into::into).collect(), ..ExplainFlags::default() }
    }

    #[test]
    fn colour_is_for_terminals_unless_the_user_says_otherwise() {
        let no_color = Surroundings { no_color: true, ..TERMINAL };
        let forced = Surroundings { clicolor_force: true, ..PIPE };
        let both = Surroundings { no_color: true, ..forced };
        assert!(TERMINAL.color(Color::Auto));
        assert!(!PIPE.color(Color::Auto));
        assert!(!no_color.color(Color::Auto));
        assert!(forced.color(Color::Auto));
        assert!(!both.color(Color::Auto));
        assert!(both.color(Color::Always));
        assert!(!TERMINAL.color(Color::Never));
    }

    #[test]
    fn the_width_is_the_terminal_s_when_there_is_one() {
        assert_eq!(TERMINAL.width(), 133);
        assert_eq!(PIPE.width(), DEFAULT_WIDTH);
        assert_eq!(Surroundings { size: Some((3, 3)), ..TERMINAL }.width(), MIN_WIDTH);
    }

    #[test]
    fn without_files_a_pipe_is_read_and_a_terminal_is_not() {
        let options = Options::check(&flags(&[]), &PIPE).expect("a pipe");
        assert_eq!(options.inputs, [Input::Stdin]);
        let nothing = Options::check(&flags(&[]), &TERMINAL);
        assert!(matches!(nothing, Err(OptionsError::NothingToRead)));
    }

    #[test]
    fn standard_input_is_read_once() {
        let twice = Options::check(&flags(&["-", "-"]), &PIPE);
        assert!(matches!(twice, Err(OptionsError::StdinTwice(2))));
    }

    #[test]
    fn all_unreadable_inputs_are_named_at_once() {
        let error = Options::check(&flags(&["no-a", "no-b"]), &PIPE)
            .expect_err("both are missing")
            .to_string();
        assert_eq!(error.lines().count(), 2, "{error}");
        Options::check(&flags(&["no-a", "Cargo.toml"]), &PIPE).expect("one is there");
    }

    #[test]
    fn a_reversed_window_is_refused() {
        let reversed = ExplainFlags {
            from: "+2s".parse().ok(),
            to: "+1s".parse().ok(),
            ..flags(&["Cargo.toml"])
        };
        assert!(matches!(Options::check(&reversed, &PIPE), Err(OptionsError::EmptyWindow)));
    }

    #[test]
    fn json_carries_all_detail_and_is_indented_for_people() {
        let json = ExplainFlags { json: true, ..flags(&["Cargo.toml"]) };
        let options = Options::check(&json, &TERMINAL).expect("valid");
        assert_eq!(options.form, Form::Json { pretty: true });
        assert!(options.wants_detail());
    }
}
