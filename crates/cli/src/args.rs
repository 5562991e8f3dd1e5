//! The command line.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser};

use crate::nexmark::NexmarkArgs;
use crate::output::Format;
use crate::program::is_name;
use crate::size;

/// Runs SQL programs whose views are always up to date.
///
/// Statements come from files and commands, in the order given; without any, from standard input, or
/// from a prompt if that is a terminal.
#[derive(Debug, Parser)]
#[command(name = "alluvium", version, args_conflicts_with_subcommands = true)]
#[command(after_help = "Exit status: 0 done, 1 an error in SQL or data, 2 an error in the \
    command line, 130 interrupted.")]
struct Line {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    shell: Shell,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Runs a program with its sources to their end, and writes what its views hold
    Run(RunArgs),
    /// Runs SQL statements as they come (what is done when no command is named)
    Shell(Shell),
    /// Measures the queries of the Nexmark benchmark
    Nexmark(NexmarkArgs),
    /// Writes completions of this command line for a shell
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
}

/// A program, and what becomes of its views.
#[derive(Debug, PartialEq, clap::Args)]
pub struct RunArgs {
    /// The program; its relative paths count from its folder
    #[arg(value_name = "FILE")]
    pub program: PathBuf,
    /// The number of threads that keep the views up to date
    #[arg(long, value_name = "N", default_value = "1")]
    pub workers: NonZeroUsize,
    /// Writes materialized views to DIR/<view>.<format>, changes of other views to
    /// DIR/<view>.changes.<format>
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// How files are written [default: csv], and what is shown [default: as tables]
    #[arg(long, value_enum)]
    pub format: Option<FileFormat>,
    /// Gives ${NAME} in the program a value; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
    /// Writes how much was read, how fast and with how much memory, as JSON
    #[arg(long, value_name = "FILE")]
    pub stats: Option<PathBuf>,
    /// How much memory may be taken, as in 512M; what goes beyond is kept in files [default: four fifths of what there is]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub memory: Option<usize>,
    /// Stops at the first row that is refused or has an error
    #[arg(long)]
    pub strict: bool,
}

/// How the rows of a view are written to a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum FileFormat {
    /// With a header line; NULL is an empty field, an empty string is `""`.
    #[default]
    Csv,
    /// One array of objects.
    Json,
    /// One object a line.
    Jsonl,
    /// Columns, compressed; for files only.
    Parquet,
}

impl FileFormat {
    /// Its name, which is also how the names of its files end.
    pub fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Json => "json",
            Self::Jsonl => "jsonl",
            Self::Parquet => "parquet",
        }
    }

    /// How results are shown in it; not at all in Parquet.
    pub fn of_results(self) -> Option<Format> {
        match self {
            Self::Csv => Some(Format::Csv),
            Self::Json => Some(Format::Json),
            Self::Jsonl => Some(Format::Jsonl),
            Self::Parquet => None,
        }
    }
}

/// What the shell runs, and how.
#[derive(Debug, clap::Args)]
struct Shell {
    /// Runs the statements of a file; may be given several times
    #[arg(short, long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// Runs statements; may be given several times
    #[arg(short, long, value_name = "SQL")]
    command: Vec<String>,
    /// The number of threads that keep the views up to date
    #[arg(long, value_name = "N", default_value = "1")]
    workers: NonZeroUsize,
    /// How much memory may be taken, as in 512M; what goes beyond is kept in files [default: four fifths of what there is]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    memory: Option<usize>,
    /// How results are written
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// What NULL looks like in a table [default: NULL] or in CSV [default: nothing]
    #[arg(long, value_name = "TEXT")]
    null: Option<String>,
}

/// What to do.
#[derive(Debug, PartialEq)]
pub enum Args {
    Run(RunArgs),
    Shell(ShellArgs),
    Nexmark(NexmarkArgs),
    Completions(clap_complete::Shell),
}

/// What the shell runs, in order, and how.
#[derive(Debug, PartialEq)]
pub struct ShellArgs {
    /// Nothing stands for standard input.
    pub origins: Vec<Origin>,
    pub workers: NonZeroUsize,
    /// How many bytes of memory state may take; `None` for four fifths of what there is.
    pub memory: Option<usize>,
    pub format: Format,
    pub null: Option<String>,
}

/// Where statements come from.
#[derive(Debug, PartialEq)]
pub enum Origin {
    /// What a file holds.
    File(PathBuf),
    /// The text itself.
    Command(String),
}

/// Reads the command line; ends the program if it is wrong, or asks for help.
pub fn parse() -> Args {
    args(Line::command().get_matches())
}

/// Completions of the command line.
pub fn completions(shell: clap_complete::Shell) -> Vec<u8> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Line::command(), "alluvium", &mut text);
    text
}

/// `NAME=VALUE`
fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if is_name(name) => Ok((name.to_string(), value.to_string())),
        _ => Err("write NAME=VALUE, with letters, digits and _ in the name".to_string()),
    }
}

fn args(matches: ArgMatches) -> Args {
    let line = Line::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let (shell, matches) = match line.command {
        Some(Command::Run(run)) => {
            if run.format == Some(FileFormat::Parquet) && run.output.is_none() {
                let message = "--format parquet is for files: add --output DIR";
                Line::command().error(ErrorKind::MissingRequiredArgument, message).exit();
            }
            return Args::Run(run);
        }
        Some(Command::Completions { shell }) => return Args::Completions(shell),
        Some(Command::Nexmark(nexmark)) => return Args::Nexmark(nexmark),
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
    Args::Shell(ShellArgs {
        origins,
        workers: shell.workers,
        memory: shell.memory,
        format: shell.format,
        null: shell.null,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_commands_keep_their_order() {
        for shell in [&[][..], &["shell"][..]] {
            let line = ["-c", "a", "-f", "b.sql", "-c", "d", "--workers", "2"];
            let line = ["alluvium"].iter().chain(shell).chain(&line);
            let Args::Shell(args) = args(Line::command().get_matches_from(line)) else {
                panic!("these are arguments of the shell")
            };
            let command = |text: &str| Origin::Command(text.into());
            let expected = [command("a"), Origin::File("b.sql".into()), command("d")];
            assert_eq!(args.origins, expected);
            assert_eq!(args.workers.get(), 2);
        }
    }

    #[test]
    fn there_is_no_running_without_workers() {
        assert!(Line::command().try_get_matches_from(["alluvium", "--workers", "0"]).is_err());
    }
}
