//! Functions of columns.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion_common::{Result, ScalarValue, plan_err};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// The types that a function takes in place of those of its arguments; an error for arguments that it does not have.
pub(super) type Takes = fn(&[DataType]) -> Result<Vec<DataType>>;

/// A function of columns of equal length.
#[derive(Debug)]
pub(super) struct Plain {
    pub(super) name: &'static str,
    pub(super) aliases: Vec<String>,
    pub(super) takes: Takes,
    /// The type of the result, by the types that it takes.
    pub(super) returns: fn(&[DataType]) -> DataType,
    pub(super) run: fn(&[ArrayRef]) -> Result<ArrayRef>,
    signature: Signature,
}

impl PartialEq for Plain {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Plain {}

impl Hash for Plain {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl Plain {
    /// A function of a name and its aliases.
    pub(super) fn function(
        names: &[&'static str],
        takes: Takes,
        returns: fn(&[DataType]) -> DataType,
        run: fn(&[ArrayRef]) -> Result<ArrayRef>,
    ) -> Arc<ScalarUDF> {
        let (name, aliases) =
            names.split_first().map_or(("", &[][..]), |(name, rest)| (name, rest));
        Arc::new(ScalarUDF::from(Plain {
            name,
            aliases: aliases.iter().map(ToString::to_string).collect(),
            takes,
            returns,
            run,
            signature: Signature::user_defined(Volatility::Immutable),
        }))
    }
}

impl ScalarUDFImpl for Plain {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        (self.takes)(arguments)
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok((self.returns)(arguments))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_array = |argument: &ColumnarValue| matches!(argument, ColumnarValue::Array(_));
        let is_constant = !arguments.args.iter().any(is_array);
        let rows = if is_constant { 1 } else { arguments.number_rows };
        let columns: Vec<ArrayRef> =
            arguments.args.iter().map(|argument| argument.to_array(rows)).collect::<Result<_>>()?;
        let result = (self.run)(&columns)?;
        match is_constant {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?)),
            false => Ok(ColumnarValue::Array(result)),
        }
    }
}

/// Texts only, as many as there are.
pub(super) fn texts<const LEAST: usize, const MOST: usize>(
    arguments: &[DataType],
) -> Result<Vec<DataType>> {
    if !(LEAST..=MOST).contains(&arguments.len()) {
        return wrong_number(LEAST, MOST, arguments.len());
    }
    for argument in arguments {
        if !argument.is_string() && !argument.is_null() {
            return plan_err!("a text is expected, not {argument}: cast it");
        }
    }
    Ok(vec![DataType::Utf8; arguments.len()])
}

/// The error for a wrong number of arguments.
pub(super) fn wrong_number<T>(least: usize, most: usize, found: usize) -> Result<T> {
    match least == most {
        true if least == 1 => plan_err!("it has 1 argument, not {found}"),
        true => plan_err!("it has {least} arguments, not {found}"),
        false => plan_err!("it has {least} to {most} arguments, not {found}"),
    }
}
