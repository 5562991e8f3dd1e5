//! Deliveries: systems other than files that the changes of views go to.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parking_lot::Mutex;

use crate::error::Result;
use crate::source::{System, TransportConnector};

/// A system that the changes of views go to.
///
/// It is registered once, when an engine is built ([`crate::Builder::delivery`]), and serves the connectors of views that name it.
pub trait Delivery: System {
    /// Where changes go, for people, such as `kafka://host:9092/topic`; without secrets. Fails if a connector cannot have these options
    /// together, or needs more.
    fn place(&self, connector: &TransportConnector) -> Result<String>;

    /// Begins to write. Waits until the system can be reached, as long as the request says.
    ///
    /// # Errors
    /// If what the connector names is not there, or does not suit the view's columns.
    fn open(&self, request: &DeliveryRequest) -> Result<Box<dyn DeliveryWriter>>;
}

/// A request to a delivery to write the changes of a view.
#[derive(Clone)]
#[non_exhaustive]
pub struct DeliveryRequest {
    /// The connector.
    pub connector: TransportConnector,
    /// The view.
    pub relation: String,
    /// The columns of the view.
    pub schema: SchemaRef,
    /// What the system knows the output by. After a restart it is the same, and no other output ever has it.
    pub id: String,
    /// How long to wait while the system cannot be reached; `None` for ever.
    pub patience: Option<Duration>,
    is_over: IsOver,
    trouble: Arc<Trouble>,
}

/// Why changes are not taken for now.
#[derive(Default)]
pub(crate) struct Trouble(Mutex<Option<String>>);

impl Trouble {
    pub(crate) fn get(&self) -> Option<String> {
        self.0.lock().clone()
    }
}

/// Whether the changes of an output are no longer needed.
pub(crate) type IsOver = Arc<dyn Fn() -> bool + Send + Sync>;

impl DeliveryRequest {
    pub(crate) fn new(
        connector: TransportConnector,
        relation: &str,
        schema: SchemaRef,
        id: String,
        patience: Option<Duration>,
        (is_over, trouble): (IsOver, Arc<Trouble>),
    ) -> Self {
        Self { connector, relation: relation.to_owned(), schema, id, patience, is_over, trouble }
    }

    /// Why the system does not take changes for now, while a writer waits for it; `None` when it takes them again. Shown in
    /// `alluvium.outputs`, so without secrets.
    pub fn report(&self, trouble: Option<String>) {
        *self.trouble.0.lock() = trouble;
    }

    /// Whether the changes are no longer needed. A writer that waits for the system asks again and again, and fails if so.
    pub fn is_over(&self) -> bool {
        (self.is_over)()
    }
}

impl fmt::Debug for DeliveryRequest {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { connector, relation, schema, id, patience, is_over: _, trouble: _ } = self;
        to.debug_struct("DeliveryRequest")
            .field("connector", connector)
            .field("relation", relation)
            .field("schema", schema)
            .field("id", id)
            .field("patience", patience)
            .finish_non_exhaustive()
    }
}

/// Writes the changes of a view, epoch by epoch, with a mark that says how far they are there.
///
/// A writer that panics poisons the engine.
pub trait DeliveryWriter: Send {
    /// The epoch of the mark that the system has: the changes up to that epoch are there already. `None` if there is no mark.
    fn delivered(&self) -> Option<u64>;

    /// Writes the changes of an epoch: of each row as many copies are added as its weight says, or taken away if that is negative.
    /// Nobody sees them before they are committed.
    fn write(&mut self, epoch: u64, rows: &RecordBatch, weights: &[i64]) -> Result<()>;

    /// Makes what was written visible, and the mark that the changes up to `epoch` are there: both at once, and so that they
    /// last. Without a mark ([`DeliveryWriter::keeps_marks`]) just what was written.
    fn commit(&mut self, epoch: u64) -> Result<()>;

    /// Whether the mark is set in the same act as the changes. If not, changes since the last checkpoint are there twice after a
    /// restart.
    fn keeps_marks(&self) -> bool;
}
