//! Messages that are records of CSV.

use std::path::Path;

use alluvium::{Result, SourceRequest};
use arrow::error::ArrowError;

use super::messages::Messages;
use super::raw::NO_VALUE;
use super::rows::{Candidates, Operation};
use crate::csv::{LineReader, Options};

/// The columns of records.
pub(super) struct Lines {
    request: SourceRequest,
    options: Options,
    put: Operation,
}

impl Lines {
    pub(super) fn new(request: &SourceRequest, options: &Options, put: Operation) -> Result<Self> {
        Ok(Self { request: request.clone(), options: options.clone(), put })
    }

    pub(super) fn decode(
        &mut self,
        messages: &Messages,
        topic: &Path,
    ) -> std::result::Result<Candidates, ArrowError> {
        let mut lines = LineReader::new(&self.request, &self.options)?;
        let (mut of, mut refused) = (Vec::with_capacity(messages.len()), Vec::new());
        for (index, message) in messages.iter().enumerate() {
            let Some(value) = message.value else {
                refused.push((index, NO_VALUE.to_owned()));
                continue;
            };
            match lines.push(value, of.len() as u64) {
                Ok(()) => of.push((index, self.put)),
                Err(problem) => refused.push((index, problem)),
            }
        }
        let mut portion = lines.finish(topic)?;
        portion.refused.iter_mut().for_each(|refusal| refusal.line -= 1);
        Ok(Candidates { of, portion, refused })
    }
}
