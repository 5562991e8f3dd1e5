//! `current_setting`, `set_config`, `current_schema`, `current_user` and similar functions: the session that runs a statement.
//!
//! As those of sequences, they are planned by their names, and bound when a statement runs.

use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, AsArray, StringArray};
use arrow::datatypes::{DataType, Field};
use datafusion_common::{Result, ScalarValue, exec_err, internal_err};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};

/// The session that runs a statement, as its functions see it.
pub trait SessionFacts: Debug + Send + Sync {
    /// The value of a setting, if there is one of this name.
    fn setting(&self, name: &str) -> Option<String>;

    /// Sets a setting, for the open transaction only if it is `local`, once the statement has ended. Returns the value, as
    /// it is kept.
    ///
    /// # Errors
    /// If there is no such setting, or if it does not take the value.
    fn set(&self, name: &str, value: &str, local: bool) -> Result<String>;

    /// The role whose rights its statements have.
    fn role(&self) -> String;

    /// The role of the session, which SET ROLE does not change.
    fn session_role(&self) -> String;

    /// The schemas in which names without one are looked for, without those of the engine.
    fn schemas(&self) -> Vec<String>;

    /// The schemas of the program's own in which they are looked for as well.
    fn system_schemas(&self) -> Vec<String>;
}

/// The functions, which fail unless they are bound.
pub(crate) fn functions() -> impl Iterator<Item = Arc<ScalarUDF>> {
    KINDS.into_iter().map(|kind| {
        let (aliases, signature) = (kind.aliases(), kind.signature());
        let aliases = aliases.iter().map(|alias| (*alias).to_owned()).collect();
        Arc::new(ScalarUDF::from(SessionFunction { kind, facts: None, aliases, signature }))
    })
}

const KINDS: [Kind; 7] = [
    Kind::Setting,
    Kind::Set,
    Kind::Schema,
    Kind::Schemas,
    Kind::Database,
    Kind::Role,
    Kind::SessionRole,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Setting,
    Set,
    Schema,
    Schemas,
    Database,
    Role,
    SessionRole,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Setting => "current_setting",
            Self::Set => "set_config",
            Self::Schema => "current_schema",
            Self::Schemas => "current_schemas",
            Self::Database => "current_database",
            Self::Role => "current_user",
            Self::SessionRole => "session_user",
        }
    }

    fn aliases(self) -> &'static [&'static str] {
        match self {
            Self::Database => &["current_catalog"],
            Self::Role => &["current_role", "user"],
            _ => &[],
        }
    }

    fn signature(self) -> Signature {
        let (text, boolean) = (DataType::Utf8, DataType::Boolean);
        let exact = |types: &[&DataType]| {
            TypeSignature::Exact(types.iter().map(|it| (*it).clone()).collect())
        };
        let types = match self {
            Self::Setting => TypeSignature::OneOf(vec![exact(&[&text]), exact(&[&text, &boolean])]),
            Self::Set => exact(&[&text, &text, &boolean]),
            Self::Schemas => exact(&[&boolean]),
            Self::Schema | Self::Database | Self::Role | Self::SessionRole => {
                TypeSignature::Nullary
            }
        };
        Signature::new(types, Volatility::Volatile)
    }
}

/// One of the functions.
#[derive(Clone, Debug)]
pub struct SessionFunction {
    kind: Kind,
    facts: Option<Arc<dyn SessionFacts>>,
    aliases: Vec<String>,
    signature: Signature,
}

impl PartialEq for SessionFunction {
    fn eq(&self, other: &Self) -> bool {
        let address = |of: &Self| of.facts.as_ref().map(|facts| Arc::as_ptr(facts).addr());
        (self.kind, address(self)) == (other.kind, address(other))
    }
}

impl Eq for SessionFunction {}

impl Hash for SessionFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind.hash(state);
    }
}

impl SessionFunction {
    /// The same function of a session.
    pub fn bound(&self, facts: Arc<dyn SessionFacts>) -> ScalarUDF {
        ScalarUDF::from(Self { facts: Some(facts), ..self.clone() })
    }

    fn call(
        &self,
        facts: &dyn SessionFacts,
        arguments: &ScalarFunctionArgs,
    ) -> Result<ColumnarValue> {
        match self.kind {
            Kind::Schema => {
                return Ok(ScalarValue::Utf8(facts.schemas().into_iter().next()).into());
            }
            Kind::Database => return Ok(ScalarValue::from(DATABASE).into()),
            Kind::Role => return Ok(ScalarValue::from(facts.role()).into()),
            Kind::SessionRole => return Ok(ScalarValue::from(facts.session_role()).into()),
            Kind::Setting | Kind::Set | Kind::Schemas => {}
        }
        let columns = ColumnarValue::values_to_arrays(&arguments.args)?;
        let is_constant =
            arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { arguments.number_rows };
        if self.kind == Kind::Schemas {
            let with_system = columns[0].as_boolean();
            let list = |row: usize| {
                let mut schemas = facts.schemas();
                if with_system.is_valid(row) && with_system.value(row) {
                    schemas.splice(0..0, facts.system_schemas());
                }
                let schemas: Vec<ScalarValue> =
                    schemas.into_iter().map(ScalarValue::from).collect();
                ScalarValue::List(ScalarValue::new_list(&schemas, &DataType::Utf8, true))
            };
            return match is_constant {
                true => Ok(list(0).into()),
                false => {
                    let lists = ScalarValue::iter_to_array((0..rows).map(list))?;
                    Ok(ColumnarValue::Array(lists))
                }
            };
        }
        let text = |column: usize, row: usize| {
            let column = columns[column].as_string::<i32>();
            column.is_valid(row).then(|| column.value(row))
        };
        let flag = |column: usize, row: usize| {
            columns.get(column).is_some_and(|column| {
                let column = column.as_boolean();
                column.is_valid(row) && column.value(row)
            })
        };
        let of_row = |row: usize| {
            let Some(name) = text(0, row) else { return Ok(None) };
            match self.kind {
                Kind::Set => {
                    facts.set(name, text(1, row).unwrap_or_default(), flag(2, row)).map(Some)
                }
                _ => match facts.setting(name) {
                    None if !flag(1, row) => exec_err!("there is no setting \"{name}\""),
                    value => Ok(value),
                },
            }
        };
        let values: StringArray = (0..rows).map(of_row).collect::<Result<_>>()?;
        match is_constant {
            true => Ok(ScalarValue::try_from_array(&values, 0)?.into()),
            false => Ok(ColumnarValue::Array(Arc::new(values))),
        }
    }
}

/// The name of the database, which is the only one.
const DATABASE: &str = "alluvium";

impl ScalarUDFImpl for SessionFunction {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        match self.kind {
            Kind::Schemas => {
                Ok(DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))))
            }
            _ => Ok(DataType::Utf8),
        }
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match &self.facts {
            Some(facts) => self.call(&**facts, &arguments),
            None => internal_err!("{}() is bound before a plan runs", self.kind.name()),
        }
    }
}
