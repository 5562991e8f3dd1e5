//! Python's classes and objects that conversions look at, each found once.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDateTime, PyDelta, PyDict, PyInt, PyTzInfo};

/// Units of numpy that are finer than microseconds.
const FINER: [&str; 4] = ["ns", "ps", "fs", "as"];

/// The class `decimal.Decimal`.
pub(super) fn decimal(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    CLASS.import(py, "decimal", "Decimal")
}

/// 1970-01-01 00:00:00, of no time zone.
pub(super) fn epoch(py: Python<'_>) -> PyResult<&Bound<'_, PyDateTime>> {
    static EPOCH: PyOnceLock<Py<PyDateTime>> = PyOnceLock::new();
    let made = || PyDateTime::new(py, 1970, 1, 1, 0, 0, 0, 0, None).map(Bound::unbind);
    Ok(EPOCH.get_or_try_init(py, made)?.bind(py))
}

/// 1970-01-01 00:00:00 UTC.
pub(super) fn epoch_utc(py: Python<'_>) -> PyResult<&Bound<'_, PyDateTime>> {
    static EPOCH: PyOnceLock<Py<PyDateTime>> = PyOnceLock::new();
    let made = || {
        let utc = PyTzInfo::utc(py)?;
        PyDateTime::new(py, 1970, 1, 1, 0, 0, 0, 0, Some(&utc)).map(Bound::unbind)
    };
    Ok(EPOCH.get_or_try_init(py, made)?.bind(py))
}

/// A microsecond.
pub(super) fn microsecond(py: Python<'_>) -> PyResult<&Bound<'_, PyDelta>> {
    static MICROSECOND: PyOnceLock<Py<PyDelta>> = PyOnceLock::new();
    let made = || PyDelta::new(py, 0, 0, 1, false).map(Bound::unbind);
    Ok(MICROSECOND.get_or_try_init(py, made)?.bind(py))
}

/// Whether it is a `decimal.Decimal`.
pub(super) fn is_decimal(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    value.is_instance(decimal(value.py())?)
}

/// Whether it is a `uuid.UUID`.
pub(super) fn is_uuid(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    match loaded(value.py(), &CLASS, "uuid", "UUID")? {
        Some(class) => value.is_instance(&class),
        None => Ok(false),
    }
}

/// Whether it is `pandas.NA` or `pandas.NaT`.
pub(super) fn is_missing(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    static NA: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static NAT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = value.py();
    let is = |missing: Option<Bound<'_, PyAny>>| missing.is_some_and(|missing| value.is(&missing));
    Ok(is(loaded(py, &NA, "pandas", "NA")?) || is(loaded(py, &NAT, "pandas", "NaT")?))
}

/// The value of Python that is in a scalar of another library, such as numpy; `None` if it is in none.
pub(super) fn unwrapped<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = value.py();
    let Some(item) = value.getattr_opt(intern!(py, "item"))? else { return Ok(None) };
    if !item.is_callable() {
        return Ok(None);
    }
    if let Some(dimensions) = value.getattr_opt(intern!(py, "ndim"))?
        && dimensions.extract::<usize>().ok() != Some(0)
    {
        return Ok(None);
    }
    match time(value)? {
        Some(time) => {
            let item = time.call_method0(intern!(py, "item"))?;
            // A count of units, of a time that Python's classes cannot hold.
            Ok((!item.is_instance_of::<PyInt>()).then_some(item))
        }
        None => item.call0().map(Some),
    }
}

/// A time of numpy, in microseconds if its unit is finer: in those, it would become a number.
fn time<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    static INSTANT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static SPAN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static UNIT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = value.py();
    let is = |class: Option<Bound<'py, PyAny>>| match class {
        Some(class) => value.is_instance(&class),
        None => Ok(false),
    };
    let unit = if is(loaded(py, &INSTANT, "numpy", "datetime64")?)? {
        "datetime64[us]"
    } else if is(loaded(py, &SPAN, "numpy", "timedelta64")?)? {
        "timedelta64[us]"
    } else {
        return Ok(None);
    };
    let Some(unit_of) = loaded(py, &UNIT, "numpy", "datetime_data")? else { return Ok(None) };
    let own = unit_of.call1((value.getattr(intern!(py, "dtype"))?,))?.get_item(0)?;
    match own.extract::<String>()? {
        own if FINER.contains(&own.as_str()) => {
            value.call_method1(intern!(py, "astype"), (unit,)).map(Some)
        }
        _ => Ok(Some(value.clone())),
    }
}

/// An object of a module, if the module is loaded: no value is of a class of another.
fn loaded<'py>(
    py: Python<'py>,
    found: &'static PyOnceLock<Py<PyAny>>,
    module: &str,
    name: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    static MODULES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    if let Some(object) = found.get(py) {
        return Ok(Some(object.bind(py).clone()));
    }
    let modules = MODULES.import(py, "sys", "modules")?;
    let Some(module) = modules.get_item(module)? else { return Ok(None) };
    // A module that is still being loaded may lack it.
    let Some(object) = module.getattr_opt(name)? else { return Ok(None) };
    Ok(Some(found.get_or_init(py, || object.unbind()).bind(py).clone()))
}
