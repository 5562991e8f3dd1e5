//! Copies of batches in one blob.
//!
//! A checkpoint has to have all batches in blobs. Those on the heap are mostly small, so copies of many are written to one
//! blob: each as a [file](mod@crate::file) that begins at a multiple of [`ALIGNMENT`]. A batch keeps its copy for as
//! long as it lives itself, so that the next checkpoint need not write it again.

use std::ops::Range;

use alluvium_storage::{BlobWriter, Result, TemporaryBlob};

use crate::batch::Batch;
use crate::file::{Image, create};
use crate::memory::StateContext;
use crate::summary::Summary;
use crate::time::PageTime;

/// Files in a pack begin at multiples of this, which is where a mapping can be advised on them.
pub const ALIGNMENT: u64 = 4096;

/// A part of a blob, which is deleted with its last owner.
#[derive(Clone, Debug)]
pub struct BlobRange {
    /// The blob.
    pub blob: TemporaryBlob,
    /// The part.
    pub range: Range<u64>,
}

/// A blob with copies of batches that is being written.
pub struct Pack<T> {
    context: StateContext,
    writer: Box<dyn BlobWriter>,
    copies: Vec<(Batch<T>, Range<u64>)>,
}

impl<T: PageTime> Pack<T> {
    /// Begins one in the storage of this context, which has one. While the disk is full, this and the other calls wait.
    pub fn create(context: &StateContext) -> Result<Self> {
        let writer = create(context, "pack")?;
        Ok(Self { context: context.clone(), writer, copies: Vec::new() })
    }

    /// Adds a copy of a batch.
    pub fn push(&mut self, batch: &Batch<T>) -> Result<()> {
        let (disk_full, writer) = (self.context.disk_full(), &mut *self.writer);
        let padding = writer.len().next_multiple_of(ALIGNMENT) - writer.len();
        disk_full.wait_for(|| writer.append(&[0; ALIGNMENT as usize][..padding as usize]))?;
        let start = writer.len();
        let column = batch.summary().map(Summary::column);
        let mut image = Image::new(column, writer, disk_full)?;
        for page in 0..batch.pages() {
            image.push(batch.page(page), writer, disk_full)?;
        }
        image.finish(batch.limits(), batch.description(), writer, disk_full)?;
        self.copies.push((batch.clone(), start..writer.len()));
        Ok(())
    }

    /// Ends it. Its batches have copies from now on.
    pub fn seal(mut self) -> Result<()> {
        let storage = self.context.storage().expect("the pack was created in it").clone();
        let blob = self.context.disk_full().wait_for(|| self.writer.seal())?;
        let blob = TemporaryBlob::new(storage, blob);
        for (batch, range) in self.copies {
            batch.copied(BlobRange { blob: blob.clone(), range });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use alluvium_storage::{MemoryStorage, Storage};
    use differential_dataflow::trace::Description;
    use timely::progress::Antichain;

    use super::*;
    use crate::builder::BatchBuilder;
    use crate::memory::MemoryBudget;

    fn batch(rows: u64, context: &StateContext) -> Batch<u64> {
        let mut builder = BatchBuilder::new(context);
        for row in 0..rows {
            builder.push(&row.to_be_bytes(), b"value", &1, 1);
        }
        let [lower, upper, since] = [0, 2, 0].map(Antichain::from_elem);
        builder.finish(Description::new(lower, upper, since))
    }

    #[test]
    fn copies_read_as_the_batches_do_and_go_with_the_last_of_them() {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::default());
        let heap = StateContext::default();
        let context = StateContext::new(MemoryBudget::unlimited(), Some(storage.clone()));
        let batches = [3, 10_000, 1].map(|rows| batch(rows, &heap));
        let mut pack = Pack::create(&context).unwrap();
        batches.iter().for_each(|batch| pack.push(batch).unwrap());
        assert!(batches[0].stored().is_none());
        pack.seal().unwrap();
        let names = storage.list("").unwrap();
        assert_eq!(names.len(), 1);
        let blob = storage.open(&names[0]).unwrap();
        let mut end: u64 = 0;
        for batch in &batches {
            let BlobRange { blob: copy, range } = batch.stored().unwrap();
            assert!(copy.name() == names[0] && range.start == end.next_multiple_of(ALIGNMENT));
            end = range.end;
            let file = storage_of(blob.read(range.clone()).unwrap().to_vec());
            let read = Batch::<u64>::open(file, context.budget()).unwrap();
            assert_eq!(read.description(), batch.description());
            let rows = |batch: &Batch<u64>| -> Vec<Vec<u8>> {
                (0..batch.pages()).map(|page| batch.page(page).bytes().to_vec()).collect()
            };
            assert_eq!(rows(&read), rows(batch));
        }
        assert_eq!(end, blob.len());
        drop(blob);
        let [first, others @ ..] = batches;
        drop(first);
        assert_eq!(storage.list("").unwrap().len(), 1);
        drop(others);
        assert!(storage.list("").unwrap().is_empty());
    }

    /// A blob of these bytes.
    fn storage_of(bytes: Vec<u8>) -> Arc<dyn alluvium_storage::Blob> {
        let storage = MemoryStorage::default();
        let mut writer = storage.create("file").unwrap();
        writer.append(&bytes).unwrap();
        writer.seal().unwrap()
    }
}
