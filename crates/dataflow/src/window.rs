//! Window functions: what each row is among the rows of its partition.

use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion_common::ScalarValue;
use datafusion_expr::{WindowFrame, WindowFunctionDefinition};

/// One function over the rows of a partition.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowFunction {
    /// What is computed.
    pub function: WindowFunctionDefinition,
    /// Over what.
    pub arguments: Vec<Argument>,
    /// Over which rows around each row.
    pub frame: Arc<WindowFrame>,
    /// Of these, over those for which this column is true.
    pub filter: Option<usize>,
    /// Whether each value counts once.
    pub distinct: bool,
    /// Whether NULLs are passed over.
    pub ignore_nulls: bool,
    /// The column of the results.
    pub result: FieldRef,
}

impl WindowFunction {
    /// The columns of the input that it reads.
    pub fn columns(&self) -> impl Iterator<Item = usize> {
        self.arguments.iter().filter_map(Argument::column).chain(self.filter)
    }

    /// The same over an input whose columns have other numbers.
    #[must_use]
    pub fn renumbered(&self, renumber: impl Fn(usize) -> usize) -> Self {
        Self {
            arguments: Argument::renumbered(&self.arguments, &renumber),
            filter: self.filter.map(&renumber),
            ..self.clone()
        }
    }
}

/// What a function is given.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// A column of the input.
    Column(usize),
    /// A constant, which may say what the function does.
    Constant(ScalarValue),
}

impl Argument {
    /// The column, if it is one.
    pub fn column(&self) -> Option<usize> {
        match self {
            Self::Column(column) => Some(*column),
            Self::Constant(_) => None,
        }
    }

    /// The same arguments in an input whose columns have other numbers.
    pub fn renumbered(arguments: &[Self], renumber: impl Fn(usize) -> usize) -> Vec<Self> {
        let argument = |argument: &Self| match argument {
            Self::Column(column) => Self::Column(renumber(*column)),
            Self::Constant(constant) => Self::Constant(constant.clone()),
        };
        arguments.iter().map(argument).collect()
    }
}
