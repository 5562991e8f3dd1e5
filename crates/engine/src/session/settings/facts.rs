//! The session as its functions see it, `current_setting` and `set_config` among them.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use alluvium_sql::error::Error as SqlError;
use alluvium_sql::functions::session::SessionFacts;
use alluvium_sql::name::SCHEMA;
use alluvium_sql::planner::SystemSchemas;
use alluvium_sql::statement::Lasts;
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use parking_lot::Mutex;

use super::statements::find;
use super::table::{SETTINGS, Setting};
use super::{SUPERUSER, SessionRoles, SessionSettings, Values};
use crate::error::Error;
use crate::query::ShownSettings;

/// The setting that is the number of a session among the clients of a server.
const NUMBER: &str = "alluvium.session";
/// The setting that is the epoch of the last transaction of a session which was committed.
const COMMITTED: &str = "alluvium.committed";

/// Settings that a statement asks for, which take effect after it.
pub(super) type Requests = Arc<Mutex<Vec<Request>>>;

/// A setting with its new value.
pub(super) struct Request {
    pub(super) setting: &'static Setting,
    pub(super) value: String,
    pub(super) lasts: Lasts,
}

/// A session at the beginning of a statement.
struct Facts {
    values: Values,
    role: String,
    session_role: String,
    schemas: Vec<String>,
    system: Vec<String>,
    /// Those of the program, which nobody sets.
    constants: Arc<[(String, String)]>,
    number: Option<i32>,
    committed: Option<u64>,
    requests: Requests,
}

impl ShownSettings for SessionSettings {
    fn facts(&self, system: &SystemSchemas) -> Arc<dyn SessionFacts> {
        let role = |of: fn(&SessionRoles) -> &String| {
            self.roles.as_ref().map_or_else(|| SUPERUSER.to_owned(), |roles| of(roles).clone())
        };
        let values = SETTINGS.iter().map(|it| (it.name, self.value(it).to_owned())).collect();
        let schemas = match self.search_path() {
            None => vec![SCHEMA.to_owned()],
            Some(path) => path.to_vec(),
        };
        Arc::new(Facts {
            values,
            role: role(|roles| &roles.current),
            session_role: role(|roles| &roles.session),
            schemas,
            system: system.path().to_vec(),
            constants: system.settings().clone(),
            number: self.number,
            committed: self.committed,
            requests: self.requests.clone(),
        })
    }

    fn all(&self) -> Vec<(&'static str, String, &'static str)> {
        let shown = |it: &&'static Setting| (it.name, self.value(it).to_owned(), it.description);
        SETTINGS.iter().map(shown).collect()
    }
}

impl Debug for Facts {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Facts").field("role", &self.role).finish_non_exhaustive()
    }
}

impl Facts {
    /// The value of a setting that nobody sets.
    fn constant(&self, name: &str) -> Option<String> {
        match name {
            NUMBER => return self.number.map(|number| number.to_string()),
            COMMITTED => return self.committed.map(|epoch| epoch.to_string()),
            _ => {}
        }
        constant(&self.constants, name).map(|(_, value)| value.clone())
    }
}

/// The setting of the program that has this name, in any case.
pub(super) fn constant<'a>(
    constants: &'a [(String, String)],
    name: &str,
) -> Option<&'a (String, String)> {
    constants.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))
}

impl SessionFacts for Facts {
    fn setting(&self, name: &str) -> Option<String> {
        let Ok(setting) = find(name) else { return self.constant(name) };
        let requests = self.requests.lock();
        let requested = requests.iter().rfind(|request| request.setting.name == setting.name);
        let requested = requested.map(|request| request.value.clone());
        requested.or_else(|| self.values.get(setting.name).cloned())
    }

    fn set(&self, name: &str, value: &str, local: bool) -> DataFusionResult<String> {
        let check = || {
            let setting = find(name)?;
            Ok((setting, setting.values.check(value, setting)?))
        };
        let (setting, value) = check().map_err(|error: Error| {
            let sqlstate = error.sqlstate();
            let error = SqlError::new(error.to_string(), None).with_sqlstate(sqlstate);
            DataFusionError::External(Box::new(error))
        })?;
        let lasts = if local { Lasts::Transaction } else { Lasts::Session };
        self.requests.lock().push(Request { setting, value: value.clone(), lasts });
        Ok(value)
    }

    fn session_role(&self) -> String {
        self.session_role.clone()
    }

    fn role(&self) -> String {
        self.role.clone()
    }

    fn schemas(&self) -> Vec<String> {
        self.schemas.clone()
    }

    fn system_schemas(&self) -> Vec<String> {
        self.system.clone()
    }
}
