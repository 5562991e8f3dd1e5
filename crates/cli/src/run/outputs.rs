//! The files that views are written to.

use std::path::PathBuf;

use alluvium::{Engine, OutputMode, RelationInfo, RelationKind, Result};

use crate::args::FileFormat;

/// A folder with one file per view.
pub(crate) struct Outputs {
    pub(crate) folder: PathBuf,
    pub(crate) format: FileFormat,
}

impl Outputs {
    /// Starts to write the changes of a view, unless it is materialized or local. Returns false if it has to wait for others.
    pub(crate) fn add_changes(&self, engine: &Engine, view: &str) -> Result<bool> {
        let mut relations = engine.relations()?.into_iter();
        match relations.find(|relation| relation.name == view) {
            Some(view) if view.kind == RelationKind::View => {
                self.add(engine, &view, ".changes", OutputMode::Changes).map(|()| true)
            }
            Some(view) => Ok(view.kind != RelationKind::DeclaredView),
            None => Ok(true),
        }
    }

    /// Writes each materialized view when the engine finishes.
    pub(crate) fn add_contents(&self, engine: &Engine) -> Result<()> {
        let mut relations = engine.relations()?;
        relations.retain(|relation| relation.kind == RelationKind::MaterializedView);
        relations.iter().try_for_each(|view| self.add(engine, view, "", OutputMode::Contents))
    }

    fn add(
        &self,
        engine: &Engine,
        view: &RelationInfo,
        what: &str,
        mode: OutputMode,
    ) -> Result<()> {
        let format = self.format.name();
        let path = self.folder.join(format!("{}{what}.{format}", file_name(&view.name)));
        engine.output(&view.name, path, Some(format), &[], mode)
    }
}

/// The name of a view as part of a file name: a quoted name may contain any character.
fn file_name(view: &str) -> String {
    let special = |character: char| matches!(character, '/' | '\\' | ':') || character.is_control();
    view.replace(special, "_")
}
