//! The sources an engine knows.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use super::{Portion, Source, SourceReader, SourceRequest};
use crate::error::{Error, Result};
use crate::poison::Poison;

/// The sources an engine was built with. A panic inside any of them poisons the engine.
pub(crate) struct Registry {
    sources: Vec<Box<dyn Source>>,
    poison: Arc<Poison>,
}

impl Registry {
    pub(crate) fn new(sources: Vec<Box<dyn Source>>, poison: Arc<Poison>) -> Self {
        Self { sources, poison }
    }

    /// Begins to read with the first source that handles the path.
    pub(crate) fn open(&self, request: &SourceRequest) -> Result<Reader<'_>> {
        self.guard("a source", || {
            let source = self.find(&request.path)?;
            let reader = source.open(request)?;
            Ok(Reader { reader, name: source.name(), registry: self })
        })
    }

    fn find(&self, path: &Path) -> Result<&dyn Source> {
        let found = self.sources.iter().find(|source| source.handles(path));
        found.map(|source| &**source).ok_or_else(|| {
            let known = self.sources.iter().map(|source| source.name()).collect::<Vec<_>>();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Error::source(format!(
                "nothing here reads \"{}\"; registered sources: {known}",
                path.display()
            ))
        })
    }

    fn guard<R>(&self, who: &str, call: impl FnOnce() -> Result<R>) -> Result<R> {
        catch_unwind(AssertUnwindSafe(call))
            .unwrap_or_else(|panic| Err(self.poison.spread_panic(who, &*panic)))
    }
}

/// A reader whose panics poison the engine.
pub(crate) struct Reader<'a> {
    reader: Box<dyn SourceReader>,
    name: &'a str,
    registry: &'a Registry,
}

impl Reader<'_> {
    /// The next rows, as [`SourceReader::next`].
    pub(crate) fn next(&mut self) -> Result<Option<Portion>> {
        let who = format!("the source \"{}\"", self.name);
        self.registry.guard(&who, || self.reader.next())
    }
}
