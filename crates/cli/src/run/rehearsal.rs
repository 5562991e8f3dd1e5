//! A program whose definitions are tried on an engine of its own, before anything of the state is dropped for it.

use alluvium::unstable::{StatementKind, tree, with_tree};
use alluvium::{Error, Statement};

use crate::shell;

/// The first definition that fails, by its number, and why. Rows, and files, are left alone: what follows a table with the columns
/// of a file is not tried.
pub(super) fn failure(program: &[Statement]) -> Result<(), (usize, Error)> {
    let engine = shell::engine(1, None).open_in_memory().map_err(|error| (0, error))?;
    let mut session = engine.session();
    for (number, statement) in program.iter().enumerate() {
        let mut statement = tree(statement).clone();
        match &mut statement.kind {
            StatementKind::CreateTableFrom { .. } => return Ok(()),
            StatementKind::CreateTable(table) => table.connectors.clear(),
            StatementKind::CreateView(view) => view.connectors.clear(),
            StatementKind::CreateTableAs { .. }
            | StatementKind::DeclareView(_)
            | StatementKind::Lateness(_)
            | StatementKind::CreateSchema(_)
            | StatementKind::CreateSequence(_)
            | StatementKind::CreateFunction(_)
            | StatementKind::CreateIndex(_) => {}
            _ => continue,
        }
        session.run(&with_tree(statement)).map_err(|error| (number, error))?;
    }
    Ok(())
}
