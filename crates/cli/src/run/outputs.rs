//! The files that views are written to.

use std::path::PathBuf;

use alluvium::{Engine, OutputMode, RelationInfo, RelationKind, Result};

use crate::args::FileFormat;

/// A folder with a file for each view.
pub struct Outputs {
    pub folder: PathBuf,
    pub format: FileFormat,
}

impl Outputs {
    /// Has the changes of a view written from now on, if it is neither materialized nor local.
    pub fn add_changes(&self, engine: &Engine, view: &str) -> Result<()> {
        let mut relations = engine.relations()?.into_iter();
        match relations.find(|relation| relation.name == view) {
            Some(view) if view.kind == RelationKind::View => {
                self.add(engine, &view, ".changes", OutputMode::Changes)
            }
            _ => Ok(()),
        }
    }

    /// Has what each materialized view holds written when the engine finishes.
    pub fn add_contents(&self, engine: &Engine) -> Result<()> {
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

/// A view's name as a part of a file's name: a quoted name may hold anything.
fn file_name(view: &str) -> String {
    let special = |character: char| matches!(character, '/' | '\\' | ':') || character.is_control();
    view.replace(special, "_")
}
