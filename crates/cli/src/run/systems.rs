//! Secrets, connections and sinks of a program whose state exists already.

use std::collections::BTreeSet;

use alluvium::unstable::{EngineParts, NamedForConnectors, StatementKind, tree};
use alluvium::{Engine, Statement};

use super::reconcile::{Problem, Step};
use crate::program::normalized;

/// The sinks that a program has no more, or defines otherwise, and that are dropped for it. What stays is not created. Sinks of
/// relations that do not stay go with these.
pub(super) fn sinks_gone(
    engine: &Engine,
    program: &[Statement],
    steps: &mut [Step],
    stays: impl Fn(&str) -> bool,
) -> Result<BTreeSet<String>, Problem> {
    let mut gone = BTreeSet::new();
    for NamedForConnectors { kind, name, sql, relation } in engine.named_for_connectors() {
        let is_dropped = relation.as_deref().is_some_and(|relation| !stays(relation));
        let created = program.iter().position(|statement| defines(statement, kind, &name));
        match created {
            _ if is_dropped => {}
            Some(number) if normalized(&sql) == normalized(program[number].text()) => {
                steps[number] = Step::Keep;
            }
            Some(number) if relation.is_none() => {
                let kind = kind.to_lowercase();
                let message = format!(
                    "the {kind} \"{name}\" is defined otherwise in the program: DROP it in the shell, with the same --state"
                );
                return Err(Problem { statement: Some(number), message });
            }
            _ if relation.is_some() => drop(gone.insert(name)),
            _ => {}
        }
    }
    Ok(gone)
}

/// Whether a statement creates what has this kind and name.
fn defines(statement: &Statement, kind: &str, name: &str) -> bool {
    match &tree(statement).kind {
        StatementKind::CreateSecret(it) => kind == "SECRET" && it.name == name,
        StatementKind::CreateConnection(it) => kind == "CONNECTION" && it.name == name,
        StatementKind::CreateSink(it) => kind == "SINK" && it.name == name,
        _ => false,
    }
}
