//! Functions of SQL that are written in Python.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use alluvium::Engine;
use alluvium::arrow::array::{Array, ArrayRef, new_empty_array};
use alluvium::arrow::compute::{CastOptions, cast, cast_with_options, concat};
use alluvium::arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use alluvium::functions::{
    ColumnarValue, DataFusionError, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    TypeSignature, Volatility,
};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use pyo3_arrow::input::AnyArray;

use crate::call;
use crate::column::Column;
use crate::convert;
use crate::error;

/// A function of SQL that is written in Python.
///
/// One that is not vectorized is called for each row, with Python's values. Where an argument is NULL, it is not called, and the result is NULL.
/// A vectorized one is called for many rows at once, with an array of Arrow for each argument, and returns Arrow data.
#[pyclass(module = "alluvium", frozen, weakref)]
pub(crate) struct Function {
    call: Arc<Call>,
}

/// What is called.
struct Call {
    name: String,
    callable: Py<PyAny>,
    signature: Signature,
    arguments: Vec<DataType>,
    returns: DataType,
    is_vectorized: bool,
}

#[pymethods]
impl Function {
    #[new]
    #[pyo3(signature = (call, *, name, arguments, returns, vectorized, volatile))]
    fn new(
        py: Python<'_>,
        call: Py<PyAny>,
        name: String,
        arguments: Vec<String>,
        returns: &str,
        vectorized: bool,
        volatile: bool,
    ) -> PyResult<Self> {
        let mut names: Vec<&str> = arguments.iter().map(String::as_str).collect();
        names.push(returns);
        let mut types = types(py, &names)?;
        let returns = types.pop().unwrap_or(DataType::Null);
        let volatility = if volatile { Volatility::Volatile } else { Volatility::Immutable };
        let signature = match types.is_empty() {
            true => Signature::nullary(volatility),
            false => Signature::one_of(accepted(&types), volatility),
        };
        let call = Call {
            name,
            callable: call,
            signature,
            arguments: types,
            returns,
            is_vectorized: vectorized,
        };
        Ok(Self { call: Arc::new(call) })
    }

    /// Its name in SQL.
    #[getter]
    fn name(&self) -> &str {
        &self.call.name
    }

    /// Calls it as Python's functions are called.
    #[pyo3(signature = (*arguments))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        arguments: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.call.callable.bind(py).call1(arguments)
    }

    fn __repr__(&self) -> String {
        format!("<alluvium.Function {}>", self.call.name)
    }
}

impl Function {
    /// The function for the engine of this number.
    pub(crate) fn registered(&self, engine: u64) -> ScalarUDF {
        ScalarUDF::new_from_impl(Registered { call: self.call.clone(), engine })
    }
}

/// The types of these names in SQL.
fn types(py: Python<'_>, names: &[&str]) -> PyResult<Vec<DataType>> {
    let casts: Vec<String> = names.iter().map(|name| format!("CAST(NULL AS {name})")).collect();
    let sql = format!("SELECT {}", casts.join(", "));
    let described = py.detach(|| {
        let engine = Engine::builder().workers(1).open_in_memory()?;
        engine.session().describe(&sql)
    });
    let described = described.map_err(|error| error::raised(py, &error.into(), Some(&sql)))?;
    let types: Vec<DataType> = described.columns.map_or_else(Vec::new, |columns| {
        columns.fields().iter().map(|field| field.data_type().clone()).collect()
    });
    match types.len() == names.len() {
        true => Ok(types),
        false => {
            Err(error::interface(py, "the type of an argument is the name of one type of SQL"))
        }
    }
}

/// The types that a function of these types is planned with. Constants of TIMESTAMP have nanoseconds until the plan is complete.
fn accepted(types: &[DataType]) -> Vec<TypeSignature> {
    let mut all = vec![Vec::new()];
    for data_type in types {
        let mut kinds = vec![data_type.clone()];
        if let DataType::Timestamp(TimeUnit::Microsecond, zone) = data_type
            // There are twice as many for each.
            && all.len() < 16
        {
            kinds.push(DataType::Timestamp(TimeUnit::Nanosecond, zone.clone()));
        }
        let longer = all.iter().flat_map(|types: &Vec<DataType>| {
            kinds.iter().map(|kind| [&types[..], std::slice::from_ref(kind)].concat())
        });
        all = longer.collect();
    }
    all.into_iter().map(TypeSignature::Exact).collect()
}

/// A function as the engine calls it.
struct Registered {
    call: Arc<Call>,
    engine: u64,
}

impl std::fmt::Debug for Registered {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "Registered({})", self.call.name)
    }
}

impl PartialEq for Registered {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.call, &other.call) && self.engine == other.engine
    }
}

impl Eq for Registered {}

impl Hash for Registered {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.call).hash(state);
    }
}

impl ScalarUDFImpl for Registered {
    fn name(&self) -> &str {
        &self.call.name
    }

    fn signature(&self) -> &Signature {
        &self.call.signature
    }

    fn return_type(&self, _: &[DataType]) -> alluvium::functions::Result<DataType> {
        Ok(self.call.returns.clone())
    }

    fn invoke_with_args(
        &self,
        arguments: ScalarFunctionArgs,
    ) -> alluvium::functions::Result<ColumnarValue> {
        let count = arguments.number_rows;
        let columns = arguments.args.iter().zip(&self.call.arguments);
        let columns = columns.map(|(column, wanted)| Ok(cast(&column.to_array(count)?, wanted)?));
        let columns = columns.collect::<alluvium::functions::Result<Vec<_>>>()?;
        let called = call::from_engine(self.engine, |py| {
            self.call.call(py, &columns, count).map_err(|raised| {
                let message = format!("function {}: {raised}", self.call.name);
                call::caused(raised);
                DataFusionError::Execution(message)
            })
        });
        let ended = || {
            let name = &self.call.name;
            DataFusionError::Execution(format!("function {name}: the interpreter has ended"))
        };
        Ok(ColumnarValue::Array(called.ok_or_else(ended)??))
    }
}

impl Call {
    fn call(&self, py: Python<'_>, columns: &[ArrayRef], count: usize) -> PyResult<ArrayRef> {
        let returned = match self.is_vectorized {
            true => self.call_once(py, columns, count)?,
            false => self.call_each(py, columns, count)?,
        };
        if returned.len() != count {
            let message = format!("it returned {} values for {count} rows", returned.len());
            return Err(error::data(py, &message));
        }
        Ok(returned)
    }

    /// Calls it for each row.
    fn call_each(&self, py: Python<'_>, columns: &[ArrayRef], count: usize) -> PyResult<ArrayRef> {
        let callable = self.callable.bind(py);
        let columns = columns.iter().map(|column| convert::column(py, column));
        let columns = columns.collect::<PyResult<Vec<_>>>()?;
        let mut results = Vec::with_capacity(count);
        for row in 0..count {
            let values: Vec<_> = columns.iter().map(|column| &column[row]).collect();
            results.push(match values.iter().any(|value| value.is_none()) {
                true => py.None().into_bound(py),
                false => callable.call1(PyTuple::new(py, values)?)?,
            });
        }
        convert::array(&results, &Field::new(&self.name, self.returns.clone(), true), 0)
    }

    /// Calls it for all rows.
    fn call_once(&self, py: Python<'_>, columns: &[ArrayRef], count: usize) -> PyResult<ArrayRef> {
        let mut arguments = Vec::with_capacity(columns.len());
        for (column, data_type) in columns.iter().zip(&self.arguments) {
            let field: FieldRef = Arc::new(Field::new("", data_type.clone(), true));
            arguments.push(Bound::new(py, Column::new(field, column.clone()))?);
        }
        let callable = self.callable.bind(py);
        let returned = match arguments.is_empty() {
            true => callable.call1((count,))?,
            false => callable.call1(PyTuple::new(py, arguments)?)?,
        };
        let Ok(returned) = returned.extract::<AnyArray>() else {
            let kind = returned.get_type().name()?;
            let message = format!("a vectorized function returns Arrow data, and this is a {kind}");
            return Err(error::data(py, &message));
        };
        let chunks = returned.into_chunked_array()?;
        let chunks: Vec<&dyn Array> = chunks.chunks().iter().map(AsRef::as_ref).collect();
        let returned = match &chunks[..] {
            [] => new_empty_array(&self.returns),
            chunks => concat(chunks).map_err(|error| error::arrow(py, &error))?,
        };
        // What does not fit is no NULL.
        let options = CastOptions { safe: false, ..CastOptions::default() };
        cast_with_options(&returned, &self.returns, &options)
            .map_err(|error| error::arrow(py, &error))
    }
}
