//! CREATE FUNCTION and DROP FUNCTION.

use alluvium_sql::statement::{Drop, FunctionDefinition, IfTaken};

use super::Definitions;
use crate::catalog::Scope;
use crate::durable::record::{Record, Recorded};
use crate::error::{Error, Result, SqlState};

impl Definitions {
    /// Creates a function that SQL defines, durably; does nothing if it may be there and is.
    pub(crate) fn create_function(&self, definition: &FunctionDefinition) -> Result<()> {
        let lock = self.lock();
        let name = &definition.name;
        let entries = self.catalog.entries();
        if entries.functions.contains_key(name) {
            return match definition.if_taken {
                IfTaken::Keep => Ok(()),
                IfTaken::Fail | IfTaken::Replace => {
                    Err(Error::sql(format!("there is already a function {name}()"))
                        .with_sqlstate(SqlState::DUPLICATE_FUNCTION))
                }
            };
        }
        let function = self.planner.function(definition, &Scope(&entries))?;
        drop(entries);
        let known = Record::name_of_function(name);
        self.sequencer.record(&Recorded::new(known, Record::function(&definition.text)))?;
        self.catalog.insert_function(function);
        drop(lock);
        self.sequencer.durable().sync_all()
    }

    /// Drops a function that nothing calls.
    pub(crate) fn drop_function(&self, function: &Drop) -> Result<()> {
        let lock = self.lock();
        let name = &function.name;
        let entries = self.catalog.entries();
        if !entries.functions.contains_key(name) {
            return match function.if_exists {
                true => Ok(()),
                false => Err(Error::sql(format!("there is no function {name}() that SQL defines"))),
            };
        }
        let views = entries.values().filter(|entry| entry.calls().contains(name));
        let views = views.map(|view| format!("\"{}\"", view.name));
        let functions = entries.functions.values();
        let functions = functions.filter(|other| other.calls().contains(name));
        let functions = functions.map(|other| format!("{}()", other.name()));
        let users: Vec<String> = views.chain(functions).collect();
        if !users.is_empty() {
            let users = users.join(", ");
            let message = format!("{name}() is called by {users}; drop what calls it first");
            return Err(Error::sql(message));
        }
        drop(entries);
        let known = Record::name_of_function(name);
        self.sequencer.record_drop(&Record::dropped_function(name), [&*known])?;
        self.catalog.remove_function(name);
        drop(lock);
        self.sequencer.durable().sync_all()
    }
}
