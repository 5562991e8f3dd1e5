//! The command line. Those of its options that say where an engine keeps its state are in [`state`].

mod state;

use std::ffi::OsString;
use std::iter;
#[cfg(feature = "serve")]
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::error::{Error, ErrorKind};
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser};
use clap_mangen::Man;

#[cfg(feature = "remote")]
use crate::journal::args::JournalCommand;
use crate::log::LogArgs;
use crate::nexmark::NexmarkArgs;
use crate::output::Format;
use crate::program::is_name;
#[cfg(feature = "connect")]
use crate::report::options::ReportArgs;
#[cfg(feature = "serve")]
use crate::serve::config;
#[cfg(feature = "serve")]
use crate::serve::options::{ServeArgs, with_variables};
use crate::size;

pub(crate) use state::{OpenArgs, StateArgs};

/// Runs SQL programs and keeps their views up to date.
///
/// Statements are read from files and commands in the given order, or else from standard input, with a prompt if
/// that is a terminal.
#[derive(Debug, Parser)]
#[command(name = "alluvium", version, args_conflicts_with_subcommands = true)]
#[command(after_help = "Exit status: 0 success, 1 error in SQL or data, 2 error in the command \
    line, 128 and the signal's number if one ended it (Ctrl-C: 130).")]
struct Line {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    shell: Shell,
}

/// The name of `alluvium serve`.
#[cfg(feature = "serve")]
const SERVE: &str = "serve";

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Runs a program until its sources are exhausted, and writes its views
    Run(RunArgs),
    /// Runs SQL statements as they are read (the default command)
    Shell(Shell),
    /// Serves an engine to many clients, who speak Postgres's protocol, until a signal ends it
    #[cfg(feature = "serve")]
    Serve(Box<ServeArgs>),
    /// Writes what a server knows of why a view is slow, big or late to a file that can be given away
    #[cfg(feature = "connect")]
    Report(ReportArgs),
    /// Runs the tutorial: real flights, views over them, and corrections of the data
    Demo(DemoArgs),
    /// Makes a small project: a program, its data, and how to run it
    Init(InitArgs),
    /// Reads everything in a state directory and lists what is damaged, missing or left over
    Check {
        /// The state directory
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Lists the checkpoints of a state directory, and what they have
    Manifest {
        /// The state directory
        #[arg(value_name = "DIR")]
        directory: PathBuf,
        /// Writes JSON
        #[arg(long)]
        json: bool,
    },
    /// Copies a state directory, also while it is used
    Backup(BackupArgs),
    /// Writes a state directory of an earlier version in the formats of this one
    Upgrade {
        /// The state directory
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Keeps the journals of engines on other machines
    #[cfg(feature = "remote")]
    #[command(subcommand)]
    Journal(JournalCommand),
    /// Lets a standby take the place of the engine that it follows
    #[cfg(feature = "remote")]
    Promote {
        /// The state directory of the standby, which runs
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Measures the queries of the Nexmark benchmark
    Nexmark(NexmarkArgs),
    /// Prints shell completions for this command line
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Prints a man page
    Man {
        /// The command that the page is about, such as run [default: all of them]
        #[arg(value_name = "COMMAND")]
        command: Option<String>,
    },
}

/// The arguments of `alluvium run`.
#[derive(Debug, PartialEq, clap::Args)]
pub(crate) struct RunArgs {
    /// The program; paths in it are relative to its folder
    #[arg(value_name = "FILE")]
    pub(crate) program: PathBuf,
    /// The number of worker threads
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) workers: NonZeroUsize,
    /// Writes materialized views to DIR/<view>.<format>, changes of other views to
    /// DIR/<view>.changes.<format>
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// The format of files [default: csv] and of printed results [default: table]
    #[arg(long, value_enum)]
    pub(crate) format: Option<FileFormat>,
    /// Sets the value of ${NAME} in the program; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    pub(crate) set: Vec<(String, String)>,
    /// Writes statistics (rows, throughput, memory) as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) stats: Option<PathBuf>,
    /// The memory budget, such as 512M; state beyond it is kept in files [default: 80% of the available memory]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub(crate) memory: Option<usize>,
    /// The number of threads that merge state in the background; 0: the workers merge their own
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) merge_threads: usize,
    /// Stops at the first refused input row or row error
    #[arg(long)]
    pub(crate) strict: bool,
    /// Serves the console while the program runs and then until Ctrl-C, on an address or else on a free port
    #[cfg(feature = "serve")]
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, require_equals = true, default_missing_value = "127.0.0.1:0")]
    pub(crate) console: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) log: LogArgs,
    #[command(flatten)]
    pub(crate) open: OpenArgs,
}

impl RunArgs {
    /// Whether there is a console.
    pub(crate) fn has_console(&self) -> bool {
        #[cfg(feature = "serve")]
        return self.console.is_some();
        #[cfg(not(feature = "serve"))]
        false
    }

    /// Runs a program as `alluvium run` does without options.
    pub(crate) fn of(program: PathBuf) -> Self {
        Self {
            program,
            workers: NonZeroUsize::MIN,
            output: None,
            format: None,
            set: Vec::new(),
            stats: None,
            memory: None,
            merge_threads: 0,
            strict: false,
            #[cfg(feature = "serve")]
            console: None,
            log: LogArgs::default(),
            open: OpenArgs::default(),
        }
    }
}

/// The arguments of `alluvium demo`.
#[derive(Debug, PartialEq, clap::Args)]
pub(crate) struct DemoArgs {
    /// Leaves the program and its data in this directory, which does not exist, or is empty
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
}

/// The arguments of `alluvium init`.
#[derive(Debug, PartialEq, clap::Args)]
pub(crate) struct InitArgs {
    /// The project's directory, which is created if it does not exist
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// The project's name [default: that of the directory]
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) name: Option<String>,
}

/// The arguments of `alluvium backup`.
#[derive(Debug, PartialEq, clap::Args)]
pub(crate) struct BackupArgs {
    /// The state directory
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// The copy: a directory that does not exist, or is empty
    #[arg(value_name = "TO")]
    pub(crate) to: PathBuf,
    /// Goes back to this checkpoint, if later ones are damaged; 0: to none
    #[arg(long, value_name = "N")]
    pub(crate) checkpoint: Option<u64>,
    /// Leaves out roles, verifiers of passwords, grants and owners
    #[arg(long, conflicts_with = "checkpoint")]
    pub(crate) without_roles: bool,
}

/// The format of a file with the rows of a view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FileFormat {
    /// With a header line; NULL is an empty field, an empty string is `""`.
    #[default]
    Csv,
    /// One array of objects.
    Json,
    /// One object per line.
    Jsonl,
    /// Compressed columns; only for files.
    Parquet,
}

impl FileFormat {
    /// Its name, which is also the extension of its files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Json => "json",
            Self::Jsonl => "jsonl",
            Self::Parquet => "parquet",
        }
    }

    /// The format of printed results; `None` for Parquet.
    pub(crate) fn of_results(self) -> Option<Format> {
        match self {
            Self::Csv => Some(Format::Csv),
            Self::Json => Some(Format::Json),
            Self::Jsonl => Some(Format::Jsonl),
            Self::Parquet => None,
        }
    }
}

/// The arguments of `alluvium shell`.
#[derive(Debug, clap::Args)]
struct Shell {
    /// Runs the statements of a file; can be repeated
    #[arg(short, long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// Runs statements; can be repeated
    #[arg(short, long, value_name = "SQL")]
    command: Vec<String>,
    /// The number of worker threads
    #[arg(long, value_name = "N", default_value = "1")]
    workers: NonZeroUsize,
    /// The memory budget, such as 512M; state beyond it is kept in files [default: 80% of the available memory]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    memory: Option<usize>,
    /// The number of threads that merge state in the background; 0: the workers merge their own
    #[arg(long, value_name = "N", default_value = "0")]
    merge_threads: usize,
    #[command(flatten)]
    log: LogArgs,
    #[command(flatten)]
    open: OpenArgs,
    /// Runs the statements on a server: postgresql://[user@]host[:port], or the folder of its socket. PGPASSWORD has the password
    #[cfg(feature = "connect")]
    #[arg(long, value_name = "URL", value_parser = NonEmptyStringValueParser::new(), conflicts_with_all = ["state", "workers", "memory", "merge_threads"])]
    connect: Option<String>,
    /// The format of results
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// The text for NULL in a table [default: NULL] or in CSV [default: empty]
    #[arg(long, value_name = "TEXT")]
    null: Option<String>,
}

/// The parsed command line.
#[derive(Debug, PartialEq)]
pub(crate) enum Args {
    Run(RunArgs),
    Shell(ShellArgs),
    #[cfg(feature = "serve")]
    Serve(Box<ServeArgs>),
    #[cfg(feature = "connect")]
    Report(ReportArgs),
    Check(PathBuf),
    /// The directory, and whether to write JSON.
    Manifest(PathBuf, bool),
    Backup(BackupArgs),
    Upgrade(PathBuf),
    #[cfg(feature = "remote")]
    Journal(JournalCommand),
    #[cfg(feature = "remote")]
    Promote(PathBuf),
    Nexmark(NexmarkArgs),
    Completions(clap_complete::Shell),
    /// The page.
    Man(Vec<u8>),
    Demo(DemoArgs),
    Init(InitArgs),
}

/// The statements that the shell runs, and its settings.
#[derive(Debug, PartialEq)]
pub(crate) struct ShellArgs {
    /// In order; empty for standard input.
    pub(crate) origins: Vec<Origin>,
    pub(crate) workers: NonZeroUsize,
    /// The memory budget in bytes; `None` for 80% of the available memory.
    pub(crate) memory: Option<usize>,
    /// How many threads merge state in the background.
    pub(crate) merge_threads: usize,
    pub(crate) log: LogArgs,
    pub(crate) open: OpenArgs,
    /// The address of the server that runs the statements.
    #[cfg(feature = "connect")]
    pub(crate) connect: Option<String>,
    pub(crate) format: Format,
    pub(crate) null: Option<String>,
}

/// A source of statements.
#[derive(Debug, PartialEq)]
pub(crate) enum Origin {
    /// The contents of a file.
    File(PathBuf),
    /// The text itself.
    Command(String),
}

/// Parses the arguments after the name of the program. The error is usage if they are wrong, or help if they ask for it.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Args, Error> {
    let line: Vec<_> = iter::once(OsString::from("alluvium")).chain(arguments).collect();
    #[cfg(feature = "serve")]
    if line.get(1).is_some_and(|command| command == SERVE) {
        return serve(line);
    }
    args(command().try_get_matches_from(line)?)
}

/// The command line, with all that can be said of it.
fn command() -> clap::Command {
    let command = Line::command();
    #[cfg(feature = "serve")]
    let command = command.mut_subcommand(SERVE, with_variables);
    command
}

/// Parses the arguments of `alluvium serve`, with those of its configuration file.
#[cfg(feature = "serve")]
fn serve(line: Vec<OsString>) -> Result<Args, Error> {
    let mut merged = line.clone();
    let given = command().ignore_errors(true).try_get_matches_from(&line).ok();
    let given = given.as_ref().and_then(|given| given.subcommand_matches(SERVE));
    let file = given.and_then(|given| given.try_get_one::<PathBuf>("config").ok().flatten());
    if let Some((given, file)) = given.zip(file) {
        let command = command();
        let Some(serve) = command.find_subcommand(SERVE) else {
            return Err(Error::new(ErrorKind::InvalidSubcommand));
        };
        merged.splice(2..2, config::arguments(file, serve, given)?);
    }
    match args(command().try_get_matches_from(merged)?)? {
        Args::Serve(args) => Ok(Args::Serve(Box::new(ServeArgs {
            line: line.into_iter().skip(1).collect(),
            ..*args
        }))),
        other => Ok(other),
    }
}

/// Completions of the command line.
pub(crate) fn completions(shell: clap_complete::Shell) -> Vec<u8> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command(), "alluvium", &mut text);
    text
}

/// The man page of one command, or of the whole command line.
fn man(name: Option<&str>) -> Result<Vec<u8>, Error> {
    let mut line = command().disable_help_subcommand(true);
    line.build();
    let version = line.render_version();
    let about = match name {
        None => line,
        Some(name) => line.find_subcommand(name).cloned().ok_or_else(|| {
            let message = format!("there is no command \"{name}\"");
            Line::command().error(ErrorKind::InvalidValue, message)
        })?,
    };
    let mut page = Vec::new();
    Man::new(about).source(version.trim_end()).render(&mut page)?;
    Ok(page)
}

/// `NAME=VALUE`
pub(crate) fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if is_name(name) => Ok((name.to_string(), value.to_string())),
        _ => Err("expected NAME=VALUE, with letters, digits and _ in the name".to_string()),
    }
}

fn args(matches: ArgMatches) -> Result<Args, Error> {
    let line = Line::from_arg_matches(&matches)?;
    let (shell, matches) = match line.command {
        Some(Command::Run(run)) => {
            if run.format == Some(FileFormat::Parquet) && run.output.is_none() {
                let message = "--format parquet writes files only: add --output DIR";
                return Err(Line::command().error(ErrorKind::MissingRequiredArgument, message));
            }
            return Ok(Args::Run(run));
        }
        #[cfg(feature = "serve")]
        Some(Command::Serve(serve)) => return Ok(Args::Serve(serve)),
        #[cfg(feature = "connect")]
        Some(Command::Report(report)) => return Ok(Args::Report(report)),
        Some(Command::Demo(demo)) => return Ok(Args::Demo(demo)),
        Some(Command::Init(init)) => return Ok(Args::Init(init)),
        Some(Command::Check { directory }) => return Ok(Args::Check(directory)),
        Some(Command::Manifest { directory, json }) => return Ok(Args::Manifest(directory, json)),
        Some(Command::Backup(backup)) => return Ok(Args::Backup(backup)),
        Some(Command::Upgrade { directory }) => return Ok(Args::Upgrade(directory)),
        #[cfg(feature = "remote")]
        Some(Command::Journal(command)) => return Ok(Args::Journal(command)),
        #[cfg(feature = "remote")]
        Some(Command::Promote { directory }) => return Ok(Args::Promote(directory)),
        Some(Command::Completions { shell }) => return Ok(Args::Completions(shell)),
        Some(Command::Man { command }) => return man(command.as_deref()).map(Args::Man),
        Some(Command::Nexmark(nexmark)) => return Ok(Args::Nexmark(nexmark)),
        Some(Command::Shell(shell)) => {
            (shell, matches.subcommand_matches("shell").cloned().unwrap_or_default())
        }
        None => (line.shell, matches),
    };
    let indices = |name| matches.indices_of(name).into_iter().flatten();
    let files = shell.file.into_iter().map(Origin::File).zip(indices("file"));
    let commands = shell.command.into_iter().map(Origin::Command).zip(indices("command"));
    let mut origins: Vec<_> = files.chain(commands).collect();
    origins.sort_by_key(|&(_, index)| index);
    let origins = origins.into_iter().map(|(origin, _)| origin).collect();
    Ok(Args::Shell(ShellArgs {
        origins,
        workers: shell.workers,
        memory: shell.memory,
        merge_threads: shell.merge_threads,
        log: shell.log,
        open: shell.open,
        #[cfg(feature = "connect")]
        connect: shell.connect,
        format: shell.format,
        null: shell.null,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_commands_keep_their_order() {
        for shell in [&[][..], &["shell"][..]] {
            let line = ["-c", "a", "-f", "b.sql", "-c", "d", "--workers", "2"];
            let line = shell.iter().chain(&line);
            let Ok(Args::Shell(args)) = parse(line.map(OsString::from)) else {
                panic!("expected the shell's arguments")
            };
            let command = |text: &str| Origin::Command(text.into());
            let expected = [command("a"), Origin::File("b.sql".into()), command("d")];
            assert_eq!(args.origins, expected);
            assert_eq!(args.workers.get(), 2);
        }
    }

    #[test]
    fn zero_workers_are_refused() {
        assert!(parse(["--workers", "0"].map(OsString::from)).is_err());
    }
}
