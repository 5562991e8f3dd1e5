//! Shell commands: lines that begin with a dot.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use clap::ValueEnum;

use super::Shell;
use super::backend::{Backend, Failure, Listed, is_meant};
use super::shown::Shown;
use super::stop::{Stop, unwritten};
use crate::output::Format;
use crate::program::Program;

/// The commands: name, arguments, and description.
pub(crate) const COMMANDS: &[(&str, &str, &str)] = &[
    (".help", "", "lists these commands"),
    (".import", "FILE TABLE", "reads a file into a table, which it creates if there is none"),
    (".mode", "table|csv|json|jsonl", "sets the format of results"),
    (".output", "[FILE]", "sends results to a file, or to the screen again"),
    (".quit", "", "exits"),
    (".read", "FILE", "runs the statements of a file"),
    (
        ".schema",
        "[NAME]",
        "shows the definitions of all functions, tables and views, or of one relation",
    ),
    (".tables", "", "lists tables and views and their columns"),
    (".timer", "on|off", "prints how long each statement takes"),
    (".width", "[N]…", "shows N characters of each column of a table, of the others all"),
];

/// How many files may be read from within each other.
const DEEPEST: usize = 20;

impl<W: Write, B: Backend> Shell<W, B> {
    /// Runs a command. The inner error is the message for an invalid command.
    pub(super) fn command(&mut self, text: &str) -> Result<(), Result<Stop, String>> {
        let mut words = text.trim_end_matches(';').split_whitespace();
        let name = words.next().unwrap_or_default();
        let rest: Vec<_> = words.collect();
        match (name, &rest[..]) {
            (".help", []) => self.say(&help()).map_err(Ok),
            (".tables", []) => {
                let tables = self.tables().map_err(told)?;
                match tables.is_empty() {
                    true => Ok(()),
                    false => self.say(&tables).map_err(Ok),
                }
            }
            (".schema", []) => self.schema(None),
            (".schema", [name]) => self.schema(Some(name)),
            (".width", widths) => {
                let widths: Result<Vec<usize>, _> =
                    widths.iter().map(|width| width.parse()).collect();
                self.output.set_widths(widths.map_err(|_| Err(usage(".width")))?);
                Ok(())
            }
            (".timer", [setting @ ("on" | "off")]) => {
                self.timer = *setting == "on";
                Ok(())
            }
            (".mode", [format]) => match Format::from_str(format, true) {
                Ok(format) => {
                    self.output.set_format(format);
                    Ok(())
                }
                Err(_) => Err(Err(format!("unknown format \"{format}\"; {}", usage(".mode")))),
            },
            (".read", [_, ..]) => self.read(&rest.join(" ")),
            (".import", [path @ .., table]) if !path.is_empty() => {
                self.import(&path.join(" "), table)
            }
            (".output", []) => {
                self.output.set_file(None);
                Ok(())
            }
            (".output", [_, ..]) => {
                let path = rest.join(" ");
                let file = File::create(&path).map_err(|error| Err(format!("{path}: {error}")))?;
                self.output.set_file(Some(file));
                Ok(())
            }
            (".quit", []) => Err(Ok(Stop::Closed)),
            _ if COMMANDS.iter().any(|(known, ..)| *known == name) => Err(Err(usage(name))),
            _ => Err(Err(format!("unknown command \"{name}\"; .help lists the commands"))),
        }
    }

    /// Runs the statements of a file.
    fn read(&mut self, path: &str) -> Result<(), Result<Stop, String>> {
        if self.reading == DEEPEST {
            return Err(Err(format!("files that read each other nest at most {DEEPEST} levels")));
        }
        let program = Program::from_file(Path::new(path));
        let mut program = program.map_err(|error| Err(format!("{path}: {error}")))?;
        self.reading += 1;
        let ran = self.run_program(&mut program);
        self.reading -= 1;
        ran.map_err(Ok)
    }

    /// Reads a file into a table.
    fn import(&mut self, path: &str, table: &str) -> Result<(), Result<Stop, String>> {
        let Self { backend, output, refused, copied, is_prompt, has_failed, .. } = self;
        let (is_prompt, command) = (*is_prompt, "COPY");
        for answer in backend.import(path, table).map_err(told)? {
            let shown = Shown { output, refused, copied, is_prompt, command, has_failed };
            shown.write(answer).map_err(Ok)?.map_err(told)?;
        }
        Ok(())
    }

    /// Shows the definition of a relation with its indexes, or all definitions: functions first, and each relation after those
    /// that it names.
    fn schema(&mut self, name: Option<&str>) -> Result<(), Result<Stop, String>> {
        let relations = self.backend.relations().map_err(told)?;
        let mut shown = match name {
            None => self.backend.functions(),
            Some(_) => Vec::new(),
        };
        let shows = |relation: &Listed| name.is_none_or(|name| is_meant(name, &relation.name));
        let mut left: Vec<_> = relations.into_iter().filter(shows).collect();
        if let (Some(name), []) = (name, left.as_slice()) {
            return Err(Err(format!("there is no table or view \"{name}\"")));
        }
        while !left.is_empty() {
            let names: BTreeSet<_> = left.iter().map(|relation| relation.name.clone()).collect();
            let waits = |relation: &Listed| {
                relation.reads.iter().any(|read| *read != relation.name && names.contains(read))
            };
            let (later, now): (Vec<_>, Vec<_>) = left.into_iter().partition(waits);
            // Those that name each other.
            let (later, now) = if now.is_empty() { (now, later) } else { (later, now) };
            shown.extend(now.into_iter().flat_map(|relation| relation.statements));
            left = later;
        }
        let shown: Vec<_> = shown.into_iter().map(|sql| format!("{sql};")).collect();
        match shown.is_empty() {
            true => Ok(()),
            false => self.say(&shown.join("\n")).map_err(Ok),
        }
    }

    /// Writes a text beside the results.
    pub(crate) fn say(&mut self, text: &str) -> Result<(), Stop> {
        self.output.text(text).map_err(unwritten)
    }

    /// A line for each relation, such as `table t (a, b)`.
    fn tables(&mut self) -> Result<String, Failure> {
        let line = |relation: Listed| {
            let Listed { name, kind, columns, .. } = relation;
            format!("{kind} {name} ({})", columns.join(", "))
        };
        let lines: Vec<_> = self.backend.relations()?.into_iter().map(line).collect();
        Ok(lines.join("\n"))
    }
}

/// A failure as the message of a command; Ctrl-C ends it, and what comes after it.
fn told(failure: Failure) -> Result<Stop, String> {
    match failure {
        Failure::Interrupted => Ok(Stop::Interrupted),
        Failure::Error(message, _) => Err(message),
    }
}

fn usage(name: &str) -> String {
    let arguments =
        COMMANDS.iter().find(|(known, ..)| *known == name).map_or("", |(_, rest, _)| rest);
    format!("usage: {}", format!("{name} {arguments}").trim_end())
}

fn help() -> String {
    let lines = COMMANDS.iter().map(|(name, arguments, what)| {
        let left = format!("{name} {arguments}");
        format!("{left:<28} {what}")
    });
    lines.collect::<Vec<_>>().join("\n")
}
