//! DBSP's side: a program for each query, in the form in which its authors write theirs.
//!
//! A program takes streams of changes of the [`tables`] and gives that of its [`view`]. The rows are those of the SQL
//! tables, as structures of Rust. They are staged before the clock starts, also as the workers take them, so
//! that the clock counts no step of their way in. Nothing reads the view unless the answer is asked for, and the clock
//! stops when the last epoch is complete; both are as on Alluvium's side. Epochs are not pipelined, because DBSP completes
//! one before it takes the next.
//!
//! The [`queries`] compute what the SQL says, for all windows that there are, so that their answers can be compared. The
//! programs of DBSP's authors follow the newest window alone in some. They aggregate in the same ways: by linear sums where
//! there are such, by the greatest or least row of a group, over all rows of a group where nothing else will do.
//! With a lateness, the programs of windows take a waterline and forget by it.

pub mod queries;
pub mod tables;
pub mod view;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use alluvium_nexmark::resources;
use alluvium_nexmark::source::{Input, Source};
use dbsp::circuit::{CircuitConfig, CircuitStorageConfig, StorageConfig, StorageOptions};
use dbsp::{DBSPHandle, Runtime};

use self::queries::PROGRAMS;
use self::tables::{Handles, Staged, Tables};
use self::view::{Reader, View};
use crate::Result;
use crate::answer::Answer;
use crate::task::{Figures, Goal, Task};

/// A program: from the tables to the view.
pub type Program = fn(&Tables) -> View;

/// The program for a query.
pub fn program(query: &str) -> Option<Program> {
    PROGRAMS.iter().find(|(name, _)| *name == query).map(|(_, program)| *program)
}

/// Runs the task for its time or its memory.
pub fn run(task: &Task, goal: Goal) -> Result<Figures> {
    let mut circuit = Circuit::new(task, false)?;
    let input = Input::prepare(&Source::Generator, task.extent, task.mode.has_revisions())?;
    let staged = input.epochs().map(|events| circuit.handles.stage(&events?));
    let mut epochs: Box<dyn Iterator<Item = Result<Staged>>> = match goal.source(task) {
        Source::Memory => Box::new(staged.collect::<Vec<_>>().into_iter()),
        _ => Box::new(staged),
    };
    let timed = || {
        let begun = Instant::now();
        let processor = resources::processor_time()?;
        let driven = epochs.try_for_each(|epoch| {
            epoch?.flush();
            circuit.dbsp.transaction().map_err(crate::Error::from)
        });
        let seconds = begun.elapsed().as_secs_f64();
        Ok((driven, seconds, resources::processor_time()? - processor))
    };
    let ((driven, seconds, processor), used) = resources::sampled(|| 0, timed)?;
    driven?;
    drop(epochs);
    circuit.end()?;
    Ok(Figures { seconds, processor, used_bytes: used.most })
}

/// Runs the task for its answer.
pub fn answer(task: &Task) -> Result<Answer> {
    let mut circuit = Circuit::new(task, true)?;
    let input = Input::prepare(&Source::Generator, task.extent, task.mode.has_revisions())?;
    let mut answer = Answer::default();
    for events in input.epochs() {
        circuit.handles.stage(&events?)?.flush();
        circuit.dbsp.transaction()?;
        if let Some(read) = &mut circuit.read {
            read(&mut answer);
        }
    }
    circuit.end()?;
    Ok(answer)
}

/// A circuit that runs.
struct Circuit {
    dbsp: DBSPHandle,
    handles: Handles,
    read: Option<Reader>,
    storage: Option<Folder>,
}

impl Circuit {
    /// Starts the program of a query, with its side input.
    fn new(task: &Task, is_read: bool) -> Result<Self> {
        let name = task.query.name;
        let program = program(name).ok_or_else(|| format!("DBSP has no program for {name}"))?;
        let tables = task.mode.tables();
        let storage = task.memory.map(|_| Folder::new(&task.directory)).transpose()?;
        let config = config(task, storage.as_ref())?;
        let (mut dbsp, (handles, read)) = Runtime::init_circuit(config, move |circuit| {
            let (tables, handles) = Tables::new(circuit, tables);
            let view = program(&tables);
            let read = is_read.then(|| view.read());
            Ok((handles, read))
        })?;
        handles.stage_side_input().flush();
        dbsp.transaction()?;
        let mut circuit = Self { dbsp, handles, read, storage };
        // The rows of the view before the first event: none, in every query.
        if let Some(read) = &mut circuit.read {
            read(&mut Answer::default());
        }
        Ok(circuit)
    }

    /// Ends its threads, and removes its files.
    fn end(self) -> Result<()> {
        let Self { dbsp, storage, .. } = self;
        dbsp.kill().map_err(|_| "a thread of DBSP panicked")?;
        drop(storage);
        Ok(())
    }
}

fn config(task: &Task, storage: Option<&Folder>) -> Result<CircuitConfig> {
    let config = CircuitConfig::with_workers(task.workers.get());
    let (Some(memory), Some(Folder(folder))) = (task.memory, storage) else { return Ok(config) };
    let path = folder.to_string_lossy().into_owned();
    let options = StorageOptions {
        // A quarter of the memory, in MiB; the default of 256 for each thread is more than all of it.
        cache_mib: Some((memory / 4).div_ceil(1 << 20)),
        ..StorageOptions::default()
    };
    let storage = StorageConfig { path, cache: Default::default() };
    // The limit is of the whole process, with what it takes before the first event.
    let before = resources::memory()?;
    let limit = before.anonymous + before.file + memory as u64;
    Ok(config
        .with_max_rss_bytes(Some(limit))
        .with_storage(Some(CircuitStorageConfig::for_config(storage, options)?)))
}

/// A folder that is removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(directory: &Path) -> Result<Self> {
        let folder = directory.join(format!("alluvium-race-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Files that cannot be removed are left to the system's cleaning of temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}
