//! Shell commands: lines that begin with a dot.

use std::io::Write;

use clap::ValueEnum;

use super::{Shell, Stop, unwritten};
use crate::output::Format;

/// The commands: name, arguments, and description.
pub(crate) const COMMANDS: &[(&str, &str, &str)] = &[
    (".help", "", "lists these commands"),
    (".mode", "table|csv|json|jsonl", "sets the format of results"),
    (".quit", "", "exits"),
    (".tables", "", "lists tables and views and their columns"),
    (".timer", "on|off", "prints how long each statement takes"),
];

impl<W: Write> Shell<W> {
    /// Runs a command. The inner error is the message for an invalid command.
    pub(super) fn command(&mut self, text: &str) -> Result<(), Result<Stop, String>> {
        let mut words = text.trim_end_matches(';').split_whitespace();
        let name = words.next().unwrap_or_default();
        let rest: Vec<_> = words.collect();
        match (name, &rest[..]) {
            (".help", []) => self.say(&help()).map_err(Ok),
            (".tables", []) => {
                let tables = self.tables().map_err(|error| Err(error.to_string()))?;
                match tables.is_empty() {
                    true => Ok(()),
                    false => self.say(&tables).map_err(Ok),
                }
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
            (".quit", []) => Err(Ok(Stop::Closed)),
            _ if COMMANDS.iter().any(|(known, ..)| *known == name) => Err(Err(usage(name))),
            _ => Err(Err(format!("unknown command \"{name}\"; .help lists the commands"))),
        }
    }

    /// Writes a text beside the results.
    pub(crate) fn say(&mut self, text: &str) -> Result<(), Stop> {
        self.output.text(text).map_err(unwritten)
    }

    /// A line for each relation, such as `table t (a, b)`.
    fn tables(&self) -> alluvium::Result<String> {
        let line = |relation: alluvium::RelationInfo| {
            let columns: Vec<_> =
                relation.schema.fields().iter().map(|field| field.name().as_str()).collect();
            format!("{} {} ({})", relation.kind.noun(), relation.name, columns.join(", "))
        };
        let lines: Vec<_> = self.engine.relations()?.into_iter().map(line).collect();
        Ok(lines.join("\n"))
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
