//! DataFusion's side: it evaluates the query once, over all events in memory, which is what a change would cost without
//! views that follow. It takes the SQL of the views, or their batch form where it has no such windows or ties are open.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use alluvium::unstable::{StatementKind, tree};
use alluvium_nexmark::query::Query;
use alluvium_nexmark::source::Input;
use alluvium_nexmark::{Stream, harness, resources};
use arrow::array::RecordBatch;
use datafusion::datasource::MemTable;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use tokio::runtime::{Builder, Runtime};

use crate::Result;
use crate::answer::Answer;
use crate::mode::Mode;
use crate::task::{Figures, Goal, Task};

/// Whether all events are there in the end, and the memory is not limited.
pub fn takes(task: &Task) -> bool {
    !task.mode.has_revisions() && task.mode != Mode::Budget
}

/// Runs the task for its time and its memory.
pub fn run(task: &Task) -> Result<Figures> {
    let session = Session::new(task)?;
    let timed = || {
        let begun = Instant::now();
        let processor = resources::processor_time()?;
        let rows = session.evaluate(&task.query);
        let seconds = begun.elapsed().as_secs_f64();
        Ok((rows, seconds, resources::processor_time()? - processor))
    };
    let ((rows, seconds, processor), used) = resources::sampled(|| 0, timed)?;
    rows?;
    Ok(Figures { seconds, processor, used_bytes: used.most })
}

/// Runs the task for its answer.
pub fn answer(task: &Task) -> Result<Answer> {
    let mut answer = Answer::default();
    for rows in Session::new(task)?.evaluate(&task.query)? {
        answer.contents.add_all(&rows)?;
        answer.decided.add_all(&harness::without(&rows, task.query.open())?)?;
    }
    Ok(answer)
}

/// A session with all events.
struct Session {
    runtime: Runtime,
    context: SessionContext,
}

impl Session {
    fn new(task: &Task) -> Result<Self> {
        let workers = task.workers.get();
        let config = SessionConfig::new()
            .with_target_partitions(workers)
            .set_bool("datafusion.sql_parser.map_string_types_to_utf8view", false)
            .set_bool("datafusion.sql_parser.parse_float_as_decimal", true);
        let state = SessionStateBuilder::new().with_config(config).with_default_features().build();
        let context = SessionContext::new_with_state(state);
        let input = Input::prepare(&Goal::Time.source(task), task.extent, false)?;
        let mut tables: [Vec<Vec<RecordBatch>>; 3] = Default::default();
        tables.iter_mut().for_each(|table| table.resize(workers, Vec::new()));
        for (epoch, events) in input.epochs().enumerate() {
            for (table, batch) in tables.iter_mut().zip(events?.arrive()?) {
                table[epoch % workers].push(batch);
            }
        }
        for (stream, partitions) in Stream::ALL.into_iter().zip(tables) {
            let table = MemTable::try_new(stream.table_schema(), partitions)?;
            context.register_table(stream.name(), Arc::new(table))?;
        }
        let side = harness::side_input()?;
        let side = MemTable::try_new(side.schema(), vec![vec![side]])?;
        context.register_table("side_input", Arc::new(side))?;
        let runtime = Builder::new_multi_thread().worker_threads(workers).build()?;
        Ok(Self { runtime, context })
    }

    fn evaluate(&self, query: &Query) -> Result<Vec<RecordBatch>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../nexmark/queries");
        let batch_form = folder.join(format!("{}.batch.sql", query.name));
        if batch_form.exists() {
            return self.collect(&fs::read_to_string(batch_form)?);
        }
        for statement in alluvium::parse(query.sql) {
            let statement = statement?;
            let StatementKind::CreateView(view) = &tree(&statement).kind else {
                return Err(format!("{}.sql defines more than views", query.name).into());
            };
            self.collect(&format!("CREATE OR REPLACE VIEW {} AS {}", view.name, view.query))?;
        }
        self.collect(&format!("SELECT * FROM {}", query.name))
    }

    fn collect(&self, sql: &str) -> Result<Vec<RecordBatch>> {
        let rows = async { self.context.sql(sql).await?.collect().await };
        Ok(self.runtime.block_on(rows)?)
    }
}
