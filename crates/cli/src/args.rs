//! The command line.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser};

use crate::output::Format;

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
    /// Runs SQL programs (what is done when no command is named)
    Shell(Shell),
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
    /// How results are written
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// What NULL looks like in a table [default: NULL] or in CSV [default: nothing]
    #[arg(long, value_name = "TEXT")]
    null: Option<String>,
}

/// What to do.
#[derive(Debug)]
pub struct Args {
    /// What is run, in order; nothing stands for standard input.
    pub origins: Vec<Origin>,
    pub workers: NonZeroUsize,
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

fn args(matches: ArgMatches) -> Args {
    let line = Line::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let (shell, matches) = match line.command {
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
    Args { origins, workers: shell.workers, format: shell.format, null: shell.null }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_commands_keep_their_order() {
        for shell in [&[][..], &["shell"][..]] {
            let line = ["-c", "a", "-f", "b.sql", "-c", "d", "--workers", "2"];
            let line = ["alluvium"].iter().chain(shell).chain(&line);
            let args = args(Line::command().get_matches_from(line));
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
