//! The prompt: editing, completion and history of statements on a terminal.

mod completion;
mod history;

use std::io::Write;
use std::path::PathBuf;

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper};

use crate::console;
use crate::program::{Program, is_complete};
use crate::shell::backend::Backend;
use crate::shell::{Shell, Stop, failed};
use completion::Names;

const PROMPT: &str = "alluvium> ";

/// A prompt: reads statements, runs them, and continues after an error.
pub(crate) struct Prompt<'a, W, B> {
    shell: &'a mut Shell<W, B>,
    editor: Editor<Line, DefaultHistory>,
    history: Option<PathBuf>,
}

impl<'a, W: Write, B: Backend> Prompt<'a, W, B> {
    pub(crate) fn new(shell: &'a mut Shell<W, B>) -> Result<Self, Stop> {
        let config = Config::builder().completion_type(CompletionType::List).build();
        let mut editor =
            Editor::with_config(config).map_err(|error| failed(Some(&"the terminal"), error))?;
        editor.set_helper(Some(Line(Names::new(shell.backend().names()))));
        let history = history::file();
        if let Some(file) = &history {
            // The file does not exist at first.
            let _ = editor.load_history(file);
        }
        Ok(Self { shell, editor, history })
    }

    /// Runs until the input ends or the user quits.
    pub(crate) fn run(mut self) -> Result<(), Stop> {
        self.shell.say(concat!(
            "Alluvium ",
            env!("CARGO_PKG_VERSION"),
            ". Statements end with a semicolon; .help lists commands, Ctrl-D exits."
        ))?;
        loop {
            let interrupt = self.shell.interrupt.clone();
            let text = match interrupt.while_idle(|| self.editor.readline(PROMPT)) {
                Ok(text) => text,
                // The typed text is discarded.
                Err(ReadlineError::Interrupted) => continue,
                Err(ReadlineError::Eof) => return Ok(()),
                Err(error) => return Err(failed(Some(&"the terminal"), error)),
            };
            if !history::has_password(&text) {
                // A statement runs even if it cannot be saved.
                let _ = self.editor.add_history_entry(&text);
                let _ = self.history.iter().try_for_each(|file| self.editor.append_history(file));
            }
            let stop = self.shell.run_program(&mut Program::from_prompt(text));
            self.shell.warn();
            match stop {
                // Ctrl-C may have come when the statement was done.
                Ok(()) | Err(Stop::Failed) if interrupt.is_asked() => drop(interrupt.forget()),
                Ok(()) | Err(Stop::Failed) => {}
                Err(Stop::Interrupted) if interrupt.forget() => console::report("interrupted"),
                Err(Stop::Interrupted) => return Err(Stop::Interrupted),
                Err(Stop::Closed) => return Err(Stop::Closed),
            }
        }
    }
}

/// SQL support of the line editor.
struct Line(Names);

impl Helper for Line {}
impl Highlighter for Line {}

impl Hinter for Line {
    type Hint = String;
}

impl Completer for Line {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.0.complete(&line[..at]))
    }
}

impl Validator for Line {
    /// Enter starts a new line unless the statement is complete.
    fn validate(&self, typed: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match is_complete(typed.input()) {
            true => ValidationResult::Valid(None),
            false => ValidationResult::Incomplete,
        })
    }
}
