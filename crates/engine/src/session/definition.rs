//! CREATE VIEW with its outputs.

use alluvium_sql::statement::ViewDefinition;

use super::Session;
use crate::error::Result;

impl Session {
    /// Creates a view and its outputs. If an output cannot be added, the view is dropped again.
    pub(super) fn create_view(&self, definition: &ViewDefinition) -> Result<()> {
        let instance = &self.engine.instance;
        let name = &definition.name;
        let base = instance.recorded_path(&self.base)?;
        let outputs = definition.connectors.iter();
        let outputs = outputs.map(|connector| {
            let output = instance.connectors.formats.output(name, connector, &base)?;
            output.mode_for(name, definition.kind.into())?;
            Ok(output)
        });
        let outputs = outputs.collect::<Result<Vec<_>>>()?;
        let (definitions, writer) = (&instance.definitions, &instance.writer);
        if !definitions.create_view(definition, &base, writer, &instance.connectors)? {
            return Ok(());
        }
        for output in outputs {
            if let Err(error) = instance.add_output(name, output) {
                definitions.undo(name, writer, &instance.connectors)?;
                return Err(error.of(&format!("view \"{name}\"")));
            }
        }
        Ok(())
    }
}
