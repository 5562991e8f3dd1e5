//! CREATE VIEW with its outputs.

use std::collections::HashSet;

use alluvium_sql::statement::ViewDefinition;

use crate::catalog::RelationKind;
use crate::error::{Error, Result};
use crate::instance::Instance;
use crate::session::Session;
use crate::sink::OutputMode;

impl Session {
    /// Creates a view and its outputs. If an output cannot be opened the view is not created, and another one not replaced.
    pub(in crate::session) fn create_with_outputs(
        &self,
        definition: &ViewDefinition,
    ) -> Result<()> {
        let instance = &self.engine.instance;
        let (definitions, outputs) = (&instance.definitions, &instance.connectors.outputs);
        // A replayed view may be dropped later: its readers wait until it is full.
        let waits = definition.waits && !self.is_redoing;
        let create = |base| {
            let Instance { writer, connectors, .. } = &**instance;
            let over = self.defines_over.as_ref();
            definitions.create_view(definition, base, (writer, connectors), waits, over)
        };
        let base = instance.recorded_path(&self.base)?;
        if definition.connectors.is_empty() {
            return create(&base).map(drop);
        }
        let (name, kind) = (&definition.name, RelationKind::of_view(definition.kind));
        let mut all = Vec::new();
        let mut paths = HashSet::new();
        let entries = definitions.catalog.entries();
        for connector in &definition.connectors {
            let over = (&*base, &entries.systems);
            let output = instance.connectors.formats.output(name, connector, over)?;
            output.mode_for(name, kind)?;
            if paths.insert(output.path().to_owned()) {
                all.push(output);
            }
        }
        let Some(columns) = definitions.columns_of(definition)? else { return Ok(()) };
        let of_view = |error: Error| error.of(&format!("view \"{name}\""));
        let open = |output| instance.open_output(name, kind, &columns, output);
        // One of the view that is replaced stays open until that is gone.
        let (mut opened, mut taken) = (Vec::new(), Vec::new());
        for output in all {
            instance.check_output(name, kind, &columns, &output).map_err(of_view)?;
            match outputs.has(name, output.path()).map_err(of_view)? || self.is_redoing {
                true => taken.push(output),
                false => opened.push(open(output).map_err(of_view)?),
            }
        }
        if !create(&base)? {
            return Ok(());
        }
        let has_failed = self.is_redoing && definitions.has_failed(name)?;
        let start = || {
            for output in taken {
                if has_failed && output.mode_for(name, kind)? == OutputMode::Changes {
                    outputs.leave_out(name);
                    continue;
                }
                match open(output) {
                    Ok(output) => opened.push(output),
                    // The journal may say that the view is dropped later.
                    Err(error) if self.is_redoing => outputs.miss(name, of_view(error)),
                    Err(error) => return Err(error),
                }
            }
            opened
                .into_iter()
                .try_for_each(|output| instance.start_output(name, None, output, None))
        };
        start().or_else(|error| {
            definitions.undo(name, &instance.writer, &instance.connectors)?;
            Err(of_view(error))
        })
    }
}
