//! A program whose state exists already: the relations that stay, those that are rebuilt, and those that go.
//!
//! A program that is run with `--state` says what there is. Relations whose definitions are as they were stay with all
//! they hold. A view that is defined otherwise is rebuilt, with the views that read it, and one that the program no
//! longer has is dropped. So it is with functions, and the views that call them, with indexes, and with sinks. Nothing that cannot
//! be computed again is dropped: that is an error before anything is done. Statements that change tables are executed
//! once, even if others come between.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use alluvium::name::{spelled, written};
use alluvium::unstable::{StatementKind, tree};
use alluvium::{Engine, Error, FunctionInfo, IndexInfo, RelationInfo, RelationKind, Statement};
use xxhash_rust::xxh3::xxh3_128;

use super::systems;
use crate::program::normalized;

/// How many changes a program may make: an engine remembers so many.
const MOST: usize = 100_000;

/// The steps for each statement of a program, and for the relations that were there before.
pub(crate) struct Reconciled {
    steps: Vec<Step>,
    differences: Differences,
}

/// Why a program cannot be run on a state.
#[derive(Debug)]
pub(crate) struct Problem {
    /// The number of the statement that it is about, if it is about one.
    pub(crate) statement: Option<usize>,
    pub(crate) message: String,
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self { statement: None, message: error.to_string() }
    }
}

type Result<T> = std::result::Result<T, Problem>;

/// The step for a statement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// It is executed.
    Run,
    /// The relation that it creates is there.
    Keep,
    /// It is executed unless a transaction with this key was committed.
    Once(String),
    /// It belongs to the transaction that a statement before it begins.
    Inside,
}

impl Reconciled {
    /// Compares a program with the relations of an engine.
    pub(crate) fn new(engine: &Engine, program: &[Statement]) -> Result<Self> {
        let before: BTreeMap<String, RelationInfo> =
            engine.relations()?.into_iter().map(|info| (info.name.clone(), info)).collect();
        let mut steps = once(program)?;
        let mut differences = Differences::default();
        let mut defined = BTreeSet::new();
        let said = said(program);
        for (number, (statement, step)) in program.iter().zip(&mut steps).enumerate() {
            let Some((name, is_table)) = created(&tree(statement).kind) else { continue };
            defined.insert(name);
            let Some(info) = before.get(name) else { continue };
            let is_same = match (&info.definition, &*step) {
                (Some(text), _) => {
                    let said = said.get(name).map_or("", String::as_str);
                    normalized(text) == normalized(&format!("{said}{}", statement.text()))
                }
                // Of a table that has the columns of a file or a query no text is known.
                (None, Step::Once(key)) => engine.committed(key)?.is_some(),
                (None, _) => false,
            };
            match is_same {
                true => *step = Step::Keep,
                // The run before ended before its rows were there.
                false if info.definition.is_none() && is_empty(engine, name)? => {
                    let why = "its rows were not read to the end".to_owned();
                    differences.rebuilt.insert(name.to_owned(), (RelationKind::Table, why));
                }
                false if is_table || info.kind == RelationKind::Table => {
                    let message = lost(name, "is defined otherwise in the program");
                    return Err(Problem { statement: Some(number), message });
                }
                false => {
                    let why = "its definition has changed".to_owned();
                    differences.rebuilt.insert(name.to_owned(), (info.kind, why));
                }
            }
        }
        for (name, info) in before.iter().filter(|(name, _)| !defined.contains(name.as_str())) {
            if info.kind == RelationKind::Table {
                let message = lost(name, "is not in the program");
                return Err(Problem { statement: None, message });
            }
            differences.gone.insert(name.clone());
        }
        let functions = engine.functions();
        differences.functions(&functions, program, &before)?;
        differences.spread(&before)?;
        differences.check(&before)?;
        differences.kept = before.len() - differences.rebuilt.len() - differences.gone.len();
        for (statement, step) in program.iter().zip(&mut steps) {
            let created = created(&tree(statement).kind);
            if *step == Step::Keep
                && created.is_some_and(|(name, _)| differences.rebuilt.contains_key(name))
            {
                *step = Step::Run;
            }
        }
        keep_said(program, &mut steps);
        differences.indexes = indexes_gone(&before, &differences, program, &mut steps);
        let stays = |name: &str| differences.stays(name);
        differences.sinks = systems::sinks_gone(engine, program, &mut steps, stays)?;
        let (schemas, sequences) = (engine.schemas(), engine.sequences());
        for (statement, step) in program.iter().zip(&mut steps) {
            if let StatementKind::CreateSchema(schema) = &tree(statement).kind
                && schemas.contains(&schema.name)
            {
                *step = Step::Keep;
            }
            if let StatementKind::CreateSequence(sequence) = &tree(statement).kind
                && sequences.contains(&sequence.name)
            {
                *step = Step::Keep;
            }
            if let StatementKind::CreateFunction(function) = &tree(statement).kind
                && functions.iter().any(|known| known.name == function.name)
                && differences.stale.iter().all(|stale| *stale != function.name)
            {
                *step = Step::Keep;
            }
        }
        Ok(Self { steps, differences })
    }

    /// The changes to the state, if not all of it stays.
    pub(crate) fn summary(&self) -> Option<String> {
        let Differences { rebuilt, gone, indexes, sinks, kept, stale: _ } = &self.differences;
        if rebuilt.is_empty() && gone.is_empty() && indexes.is_empty() && sinks.is_empty() {
            return None;
        }
        let mut parts = vec![format!("{kept} relations stay as they are")];
        let rebuilt = rebuilt.iter();
        parts.extend(rebuilt.map(|(name, (_, why))| format!("\"{name}\" is built anew: {why}")));
        let gone = gone.iter();
        parts.extend(gone.map(|view| format!("\"{view}\" is dropped: it is not in the program")));
        let indexes = indexes.iter();
        parts
            .extend(indexes.map(|(index, why)| format!("the index \"{index}\" is dropped: {why}")));
        let sinks = sinks.iter();
        parts.extend(sinks.map(|sink| {
            format!("the sink \"{sink}\" is dropped: it is not in the program as it was")
        }));
        let lines = parts.iter().map(|part| format!("state: {part}"));
        Some(lines.collect::<Vec<_>>().join("\n"))
    }

    /// Drops the views to rebuild, and those that are gone.
    pub(crate) fn drop_old(&self, engine: &Engine) -> alluvium::Result<()> {
        let Differences { rebuilt, gone, indexes, sinks, stale, .. } = &self.differences;
        for sink in sinks {
            engine.execute(&format!("DROP SINK IF EXISTS {}", spelled(sink)))?;
        }
        for index in indexes.keys() {
            engine.execute(&format!("DROP INDEX {}", written(index)))?;
        }
        let rebuilt = rebuilt.iter().map(|(name, (kind, _))| (name, *kind));
        let gone = gone.iter().map(|name| (name, RelationKind::View));
        rebuilt.chain(gone).try_for_each(|(name, kind)| {
            let kind = if kind == RelationKind::Table { "TABLE" } else { "VIEW" };
            engine.execute(&format!("DROP {kind} IF EXISTS {} CASCADE", written(name))).map(drop)
        })?;
        stale.iter().try_for_each(|function| {
            engine.execute(&format!("DROP FUNCTION {}", spelled(function))).map(drop)
        })
    }

    /// The step for the statement of this number.
    pub(crate) fn step(&self, number: usize) -> Step {
        self.steps.get(number).cloned().unwrap_or(Step::Run)
    }
}

/// The relation that a statement creates, and whether it is a table.
fn created(statement: &StatementKind) -> Option<(&str, bool)> {
    match statement {
        StatementKind::CreateTable(table) => Some((&table.name, true)),
        StatementKind::CreateTableFrom { name, .. } | StatementKind::CreateTableAs { name, .. } => {
            Some((name, true))
        }
        StatementKind::CreateView(view) => Some((&view.name, false)),
        _ => None,
    }
}

/// The indexes that a program has no more, or defines otherwise, and why they go. Those that stay are not created.
fn indexes_gone(
    before: &BTreeMap<String, RelationInfo>,
    differences: &Differences,
    program: &[Statement],
    steps: &mut [Step],
) -> BTreeMap<String, &'static str> {
    let kept = before.iter().filter(|(name, _)| differences.stays(name));
    let mut left: BTreeMap<&str, &IndexInfo> = kept
        .flat_map(|(_, info)| &info.indexes)
        .map(|index| (index.name.as_str(), index))
        .collect();
    let mut gone = BTreeMap::new();
    for (statement, step) in program.iter().zip(steps) {
        let StatementKind::CreateIndex(created) = &tree(statement).kind else { continue };
        let Some(index) = left.remove(created.name.as_str()) else { continue };
        match normalized(&index.sql) == normalized(statement.text()) {
            true => *step = Step::Keep,
            false => drop(gone.insert(index.name.clone(), "its definition has changed")),
        }
    }
    gone.extend(left.into_keys().map(|name| (name.to_owned(), "it is not in the program")));
    gone
}

/// The declarations of a view that stays have been made.
fn keep_said(program: &[Statement], steps: &mut [Step]) {
    let kept = program.iter().zip(&*steps).filter(|(_, step)| **step == Step::Keep);
    let kept: BTreeSet<&str> = kept
        .filter_map(|(statement, _)| created(&tree(statement).kind))
        .map(|(name, _)| name)
        .collect();
    for (statement, step) in program.iter().zip(steps) {
        if said_of(statement).is_some_and(|(view, _)| kept.contains(view)) {
            *step = Step::Keep;
        }
    }
}

/// The declarations of a program about views before they are created, as their definitions begin with them.
fn said(program: &[Statement]) -> HashMap<&str, String> {
    let mut said: HashMap<&str, String> = HashMap::new();
    for (view, text) in program.iter().filter_map(said_of) {
        let texts = said.entry(view).or_default();
        texts.push_str(text);
        texts.push_str(";\n");
    }
    said
}

/// The view that a statement says something of, and its text.
fn said_of(statement: &Statement) -> Option<(&str, &str)> {
    match &tree(statement).kind {
        StatementKind::Lateness(said) => Some((&said.view, &said.text)),
        StatementKind::DeclareView(declared) => Some((&declared.name, &declared.text)),
        _ => None,
    }
}

/// Whether a table has no rows.
fn is_empty(engine: &Engine, table: &str) -> Result<bool> {
    let rows = engine.query(&format!("SELECT 1 FROM {} LIMIT 1", written(table)))?;
    Ok(rows.iter().all(|rows| rows.num_rows() == 0))
}

/// Whether a program prepares a statement of this name that changes rows.
fn prepares_change(program: &[Statement], executed: &str) -> bool {
    program.iter().any(|statement| match &tree(statement).kind {
        StatementKind::Prepare { name, statement } => {
            name.name == executed && !matches!(statement.kind, StatementKind::Query(_))
        }
        _ => false,
    })
}

/// Which statements are executed once. Fails if the program drops relations, or changes tables too often.
fn once(program: &[Statement]) -> Result<Vec<Step>> {
    // How often the same text has come before.
    let mut repeated: HashMap<String, usize> = HashMap::new();
    let mut key = |texts: &str| {
        let hash = format!("{:032x}", xxh3_128(texts.as_bytes()));
        let times = repeated.entry(hash.clone()).or_default();
        *times += 1;
        format!("run {hash} {times}")
    };
    let mut steps: Vec<Step> = Vec::with_capacity(program.len());
    let mut keys = 0;
    let mut statements = program.iter().peekable();
    while let Some(statement) = statements.next() {
        let mut text = normalized(statement.text());
        match &tree(statement).kind {
            StatementKind::DropTable(_)
            | StatementKind::DropView(_)
            | StatementKind::DropSeveral(_)
            | StatementKind::DropIndex(_)
            | StatementKind::DropSchema(_)
            | StatementKind::DropSequence(_)
            | StatementKind::DropFunction(_)
            | StatementKind::DropSecret(_)
            | StatementKind::DropConnection(_)
            | StatementKind::DropSink(_) => {
                let message = "a program that is run with --state says what there is, and drops nothing: leave the \
                               definition out"
                    .to_owned();
                return Err(Problem { statement: Some(steps.len()), message });
            }
            StatementKind::Alter(_)
            | StatementKind::AlterSource(_)
            | StatementKind::RestartSequence(_) => {
                let message = "a program that is run with --state says what there is, and alters nothing: ALTER in the shell, \
                               with the same --state, and write the definition as it then is"
                    .to_owned();
                return Err(Problem { statement: Some(steps.len()), message });
            }
            StatementKind::Begin(_) => {
                let mut inside = Vec::new();
                for next in statements.by_ref() {
                    text.push(';');
                    text.push_str(&normalized(next.text()));
                    inside.push(Step::Inside);
                    if matches!(
                        tree(next).kind,
                        StatementKind::Commit { and_chain: false }
                            | StatementKind::Rollback { and_chain: false }
                    ) {
                        break;
                    }
                }
                steps.push(Step::Once(key(&text)));
                steps.extend(inside);
                keys += 1;
            }
            StatementKind::Insert(_)
            | StatementKind::Update(_)
            | StatementKind::Delete(_)
            | StatementKind::Copy { .. }
            | StatementKind::Truncate(_)
            | StatementKind::CreateTableFrom { .. }
            | StatementKind::CreateTableAs { .. } => {
                steps.push(Step::Once(key(&text)));
                keys += 1;
            }
            StatementKind::Execute { name, .. } if prepares_change(program, &name.name) => {
                steps.push(Step::Once(key(&text)));
                keys += 1;
            }
            _ => steps.push(Step::Run),
        }
        if keys > MOST {
            let message = format!(
                "a program that is run with --state makes at most {MOST} transactions: COPY rows from a file, or change \
                 more in one transaction"
            );
            return Err(Problem { statement: Some(steps.len() - 1), message });
        }
    }
    Ok(steps)
}

/// The differences from before.
#[derive(Default)]
struct Differences {
    /// The relations to rebuild, and why.
    rebuilt: BTreeMap<String, (RelationKind, String)>,
    /// Views that the program does not have any more.
    gone: BTreeSet<String>,
    /// Indexes of relations that stay that go themselves, and why.
    indexes: BTreeMap<String, &'static str>,
    /// Sinks of relations that stay that go themselves.
    sinks: BTreeSet<String>,
    /// How many relations stay.
    kept: usize,
    /// Functions that are defined otherwise, or that the program does not have any more, each before those that it calls.
    stale: Vec<String>,
}

impl Differences {
    /// Whether a relation is as it was.
    fn stays(&self, name: &str) -> bool {
        !self.gone.contains(name) && !self.rebuilt.contains_key(name)
    }

    /// Views that call functions which are not what they were are rebuilt.
    fn functions(
        &mut self,
        functions: &[FunctionInfo],
        program: &[Statement],
        before: &BTreeMap<String, RelationInfo>,
    ) -> Result<()> {
        let defined = program.iter().filter_map(|statement| match &tree(statement).kind {
            StatementKind::CreateFunction(function) => {
                Some((function.name.as_str(), normalized(statement.text())))
            }
            _ => None,
        });
        let defined: HashMap<&str, String> = defined.collect();
        let mut stale = BTreeSet::new();
        for function in functions {
            let is_same = defined.get(&*function.name) == Some(&normalized(&function.sql));
            if !is_same || function.calls.iter().any(|called| stale.contains(called)) {
                stale.insert(&function.name);
            }
        }
        for (name, info) in before {
            let Some(function) = info.calls.iter().find(|called| stale.contains(called)) else {
                continue;
            };
            if self.gone.contains(name) || self.rebuilt.contains_key(name) {
                continue;
            }
            if !defined.contains_key(&**function) {
                let message =
                    format!("\"{name}\" calls {function}(), which is not in the program any more");
                return Err(Problem { statement: None, message });
            }
            let why = format!("it calls {function}(), whose definition has changed");
            self.rebuilt.insert(name.clone(), (info.kind, why));
        }
        let functions = functions.iter().rev().map(|function| &function.name);
        self.stale = functions.filter(|name| stale.contains(name)).cloned().collect();
        Ok(())
    }

    /// Views that read a rebuilt view are rebuilt, too.
    fn spread(&mut self, before: &BTreeMap<String, RelationInfo>) -> Result<()> {
        let others = |differences: &Self| {
            let is_other = |name: &String| {
                !differences.gone.contains(name) && !differences.rebuilt.contains_key(name)
            };
            let others = before.iter().filter(|(name, _)| is_other(name));
            others.map(|(name, info)| (name.clone(), &info.reads)).collect::<Vec<_>>()
        };
        for (name, reads) in others(self) {
            if let Some(read) = reads.iter().find(|read| self.gone.contains(*read)) {
                let message =
                    format!("\"{name}\" reads \"{read}\", which is not in the program any more");
                return Err(Problem { statement: None, message });
            }
        }
        loop {
            let known = self.rebuilt.len();
            for (name, reads) in others(self) {
                if let Some(read) = reads.iter().find(|read| self.rebuilt.contains_key(*read)) {
                    let why = format!("it reads \"{read}\"");
                    self.rebuilt.insert(name, (RelationKind::View, why));
                }
            }
            if self.rebuilt.len() == known {
                return Ok(());
            }
        }
    }

    /// Fails if a view cannot be rebuilt.
    fn check(&self, before: &BTreeMap<String, RelationInfo>) -> Result<()> {
        for (view, (_, why)) in &self.rebuilt {
            let mut read: Vec<&str> = vec![view];
            // Views that recur read each other.
            let mut seen = BTreeSet::new();
            while let Some(name) = read.pop() {
                let Some(info) = before.get(name).filter(|_| seen.insert(name)) else { continue };
                if info.has_passed {
                    let message = format!(
                        "the view \"{view}\" cannot be built anew ({why}): rows of \"{name}\" have passed that are not \
                         kept; define it as it was, or begin with another folder for --state"
                    );
                    return Err(Problem { statement: None, message });
                }
                read.extend(info.reads.iter().map(String::as_str));
            }
        }
        Ok(())
    }
}

fn lost(table: &str, what: &str) -> String {
    format!(
        "the table \"{table}\" {what}, and its rows would be lost: define it as it was, or DROP it in the shell, with the \
         same --state"
    )
}
