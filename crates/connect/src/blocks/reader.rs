//! A reader whose blocks are decoded at once.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;

use alluvium::{Portion, Result, SourcePosition, SourceReader};

use super::workers::{Work, Workers};
use super::{Block, Blocks, Boundaries};
use crate::input::{Counter, failed};

/// Decodes blocks of rows.
pub trait Decode: Send + Sized + 'static {
    /// Gives the rows of a block, until nobody wants more.
    fn decode(&mut self, block: Block, give: &mut dyn FnMut(Portion) -> bool) -> Result<()>;

    /// Rows, or refusals, that are known only at the end of the text.
    fn finish(&mut self) -> Result<Option<Portion>> {
        Ok(None)
    }
}

/// Reads the blocks of a file.
pub struct BlockReader<B, D> {
    path: PathBuf,
    blocks: Blocks<B>,
    counter: Counter,
    threads: usize,
    make: Box<dyn Fn() -> Result<D> + Send>,
    /// For text of one block, and for the end.
    own: D,
    workers: Option<Workers<Block, Result<Portion>>>,
    /// Portions that are there.
    ready: VecDeque<Portion>,
    /// Whether there are no more blocks, and nothing comes after them.
    is_read: bool,
    is_finished: bool,
}

impl<B: Boundaries + Send, D: Decode> BlockReader<B, D> {
    /// Reads the blocks of a file after the rows that are `ready`, each with what `make` makes.
    pub fn new(
        path: PathBuf,
        blocks: Blocks<B>,
        counter: Counter,
        threads: usize,
        ready: Option<Portion>,
        make: impl Fn() -> Result<D> + Send + 'static,
    ) -> Result<Self> {
        let own = make()?;
        Ok(Self {
            path,
            blocks,
            counter,
            threads,
            make: Box::new(make),
            own,
            workers: None,
            ready: ready.into_iter().collect(),
            is_read: false,
            is_finished: false,
        })
    }

    /// Decodes the first block here if there is no other one, or else begins to decode several at once.
    fn begin(&mut self) -> Result<()> {
        let failed = |error: io::Error| failed("read", &self.path, &error);
        let Some(first) = self.blocks.next().map_err(failed)? else {
            self.is_read = true;
            return Ok(());
        };
        if self.blocks.is_over().map_err(failed)? {
            self.is_read = true;
            let ready = &mut self.ready;
            return self.own.decode(first, &mut |portion| {
                ready.push_back(portion);
                true
            });
        }
        let work = |_| -> Result<Work<Block, Result<Portion>>> {
            let mut decoder = (self.make)()?;
            Ok(Box::new(move |block, give| {
                let mut is_wanted = true;
                let decoded = decoder.decode(block, &mut |portion| {
                    is_wanted = give(Ok(portion));
                    is_wanted
                });
                if let Err(error) = decoded
                    && is_wanted
                {
                    give(Err(error));
                }
            }))
        };
        let works = (0..self.threads).map(work).collect::<Result<Vec<_>>>()?;
        let mut workers = Workers::new(works).map_err(failed)?;
        workers.add(first);
        self.workers = Some(workers);
        Ok(())
    }
}

impl<B: Boundaries + Send, D: Decode> SourceReader for BlockReader<B, D> {
    fn next(&mut self) -> Result<Option<Portion>> {
        let mut portion = loop {
            if let Some(portion) = self.ready.pop_front() {
                break portion;
            }
            match &mut self.workers {
                Some(workers) => {
                    while !self.is_read && workers.want_jobs() {
                        let block = self.blocks.next();
                        match block.map_err(|error| failed("read", &self.path, &error))? {
                            Some(block) => workers.add(block),
                            None => self.is_read = true,
                        }
                    }
                    match workers.next() {
                        Some(portion) => break portion?,
                        None => self.workers = None,
                    }
                }
                None if !self.is_read => self.begin()?,
                None if self.is_finished => return Ok(None),
                None => {
                    self.is_finished = true;
                    self.ready.extend(self.own.finish()?);
                }
            }
        };
        portion.bytes += self.counter.take();
        Ok(Some(portion))
    }

    /// Rows come from several places at once.
    fn position(&self) -> Option<SourcePosition> {
        None
    }
}
