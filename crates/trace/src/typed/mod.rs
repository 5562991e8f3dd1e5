//! Typed keys and values: traces for programs of differential-dataflow.
//!
//! A [`TypedSpine`] is a [`Spine`](crate::Spine) whose rows are pairs of Rust values. It takes the place of
//! differential-dataflow's own `ValSpine` where state may grow beyond memory: its batches lie in pages, are counted in the
//! budget of a [`StateContext`](crate::memory::StateContext), and go to files when that is used up.
//!
//! - [`codec`] and [`mod@weight`]: keys and values as bytes in their order, and differences;
//! - [`encoded`]: the values of cursors, which are decoded when asked for;
//! - [`batch`] and [`cursor`]: batches that any operator of differential-dataflow can navigate;
//! - [`updates`], [`batcher`], [`builder`]: into a batch;
//! - [`spine`]: the trace;
//! - [`arrange`], [`reduce`], [`total`]: operators with these types filled in.
//!
//! # A program
//!
//! Each worker enters a context before it builds dataflows, and stays in it: traces, batchers and builders that
//! differential-dataflow makes on the thread use it.
//!
//! ```
//! use std::sync::Arc;
//!
//! use alluvium_storage::{Scratch, Storage};
//! use alluvium_trace::memory::{MemoryBudget, StateContext, context};
//! use alluvium_trace::typed::{ArrangeTyped, CountTotalTyped};
//! use differential_dataflow::input::Input;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let files: Arc<dyn Storage> = Arc::new(Scratch::create()?);
//! let state = StateContext::new(MemoryBudget::new(64 << 20), Some(files));
//!
//! timely::execute(timely::Config::process(2), move |worker| {
//!     // All workers share the budget and the folder.
//!     context::enter(state.for_worker(Arc::default()));
//!     let index = worker.index() as u64;
//!     worker.dataflow::<u64, _, _>(|scope| {
//!         let orders = scope.new_collection_from((0..100).map(move |n| (n % 7, index))).1;
//!         let names = scope.new_collection_from((0..7).map(|n| (n, format!("number {n}")))).1;
//!         let (orders, names) = (orders.arrange_typed(), names.arrange_typed());
//!         orders.clone().count_total_typed().inspect(|count| println!("{count:?}"));
//!         orders.join_core(names, |_key, _index, name| Some(name.decode()));
//!     });
//! })?;
//! # Ok(())
//! # }
//! ```
//!
//! # Known limitation
//!
//! The budget covers traces and what waits to become a batch. It does not cover messages between operators, and what
//! differential-dataflow holds while it processes a key.

use std::marker::PhantomData;

pub mod arrange;
pub mod batch;
pub mod batcher;
pub mod builder;
pub mod codec;
pub mod cursor;
pub mod encoded;
pub mod reduce;
pub mod spine;
pub mod total;
pub mod updates;
pub mod weight;

pub use arrange::{ArrangeTyped, TypedArrangement};
pub use batch::{TypedBatch, TypedMerger};
pub use batcher::TypedBatcher;
pub use builder::TypedBuilder;
pub use codec::{Codec, OrderedFloat};
pub use cursor::TypedCursor;
pub use encoded::{Encoded, EncodedList};
pub use reduce::{DistinctTyped, ReduceTyped};
pub use spine::TypedSpine;
pub use total::CountTotalTyped;
pub use updates::{TypedChunker, TypedUpdates};
pub use weight::Weight;

/// Says which types the bytes of rows stand for.
type Types<K, V, R> = PhantomData<fn() -> (K, V, R)>;
