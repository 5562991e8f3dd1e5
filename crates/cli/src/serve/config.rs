//! The configuration file.
//!
//! Its keys are the options of the command line, which check its values: a key that neither the command line nor the environment sets
//! becomes the option of its name.

use std::error::Error as _;
use std::ffi::OsString;
use std::fs;
use std::path::{self, Path};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, Error};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Options that are no keys.
const NO_KEYS: [&str; 4] = ["check", "config", "help", "version"];
/// The keys whose values are paths.
const PATHS: [&str; 10] = [
    "files",
    "journal_authority",
    "journal_certificate",
    "journal_key",
    "program",
    "secrets",
    "socket",
    "state",
    "tls_certificate",
    "tls_key",
];

/// The arguments that a configuration file stands for, but for those that `given` has from the command line or the environment. `serve` is
/// the command that they are arguments of.
///
/// # Errors
/// If the file cannot be read, is not TOML, has a key that is no option, or a value that its option does not take.
pub(crate) fn arguments(
    file: &Path,
    serve: &Command,
    given: &ArgMatches,
) -> Result<Vec<OsString>, Error> {
    let name = file.display();
    let text = fs::read_to_string(file)
        .map_err(|error| failed(format!("cannot read the configuration {name}: {error}")))?;
    let line = |start: usize| text[..start].matches('\n').count() + 1;
    let table = DeTable::parse(&text).map_err(|error| {
        let line = line(error.span().map_or(0, |span| span.start.min(text.len())));
        failed(format!("{name}:{line}: {}", error.message()))
    })?;
    let folder = path::absolute(file).ok();
    let folder = folder.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
    let mut arguments = Vec::new();
    for (key, value) in table.get_ref() {
        let at = format!("{name}:{}", line(key.span().start));
        let key: &str = key.get_ref();
        let option = option(serve, key)
            .ok_or_else(|| failed(format!("{at}: there is no key \"{key}\": {}", keys(serve))))?;
        let of_key = values(option, key, value, folder)
            .and_then(|values| {
                check(serve, &values)?;
                Ok(values)
            })
            .map_err(|reason| failed(format!("{at}: {key}: {reason}")))?;
        let is_given = matches!(
            given.value_source(option.get_id().as_str()),
            Some(ValueSource::CommandLine | ValueSource::EnvVariable)
        );
        if !is_given {
            arguments.extend(of_key);
        }
    }
    Ok(arguments)
}

fn failed(message: String) -> Error {
    Error::raw(ErrorKind::InvalidValue, message + "\n")
}

/// The option that a key is.
fn option<'a>(serve: &'a Command, key: &str) -> Option<&'a Arg> {
    serve.get_arguments().find(|option| name(option).is_some_and(|name| name == key))
}

/// The key that an option is.
fn name(option: &Arg) -> Option<String> {
    let name = match option.is_positional() {
        true => option.get_id().as_str(),
        false => option.get_long()?,
    };
    (!NO_KEYS.contains(&name)).then(|| name.replace('-', "_"))
}

fn keys(serve: &Command) -> String {
    let mut keys: Vec<String> = serve.get_arguments().filter_map(name).collect();
    keys.sort();
    format!("keys are {}", keys.join(", "))
}

/// The arguments of a key. Several values are an array.
fn values(
    option: &Arg,
    key: &str,
    value: &Spanned<DeValue>,
    folder: &Path,
) -> Result<Vec<OsString>, String> {
    let is_flag = matches!(option.get_action(), ArgAction::SetTrue);
    let takes_several = matches!(option.get_action(), ArgAction::Append);
    let values = match value.get_ref() {
        DeValue::Boolean(is_set) if is_flag => {
            return Ok(is_set.then(|| flag(key)).into_iter().collect());
        }
        _ if is_flag => return Err("expected true or false".to_owned()),
        DeValue::Array(values) if takes_several => {
            values.iter().map(|value| scalar(value.get_ref())).collect::<Result<Vec<_>, _>>()?
        }
        value => vec![scalar(value)?],
    };
    let argument = |value: String| {
        let value = match PATHS.contains(&key) {
            true => folder.join(value).into_os_string(),
            false => value.into(),
        };
        match option.is_positional() {
            true => value,
            false => {
                let mut argument = flag(key);
                argument.push("=");
                argument.push(value);
                argument
            }
        }
    };
    Ok(values.into_iter().map(argument).collect())
}

fn flag(key: &str) -> OsString {
    format!("--{}", key.replace('_', "-")).into()
}

fn scalar(value: &DeValue) -> Result<String, String> {
    match value {
        DeValue::String(text) if text.contains('\0') => Err("a text has no zeros".to_owned()),
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().to_owned()),
        DeValue::Integer(_) => Err("expected a decimal number".to_owned()),
        value => Err(format!(
            "expected a text or a whole number, not a value of the type {}",
            value.type_str()
        )),
    }
}

/// Fails if an option does not take a value, whatever others there are.
fn check(serve: &Command, arguments: &[OsString]) -> Result<(), String> {
    let line = [OsString::from("serve")].into_iter().chain(arguments.iter().cloned());
    // Not what the environment has.
    let serve = serve.clone().mut_args(|option| option.env(None::<&'static str>));
    let Err(error) = serve.try_get_matches_from(line) else {
        return Ok(());
    };
    match error.kind() {
        // Of other keys.
        ErrorKind::MissingRequiredArgument | ErrorKind::ArgumentConflict => Ok(()),
        ErrorKind::InvalidValue => match error.get(ContextKind::ValidValue) {
            Some(ContextValue::Strings(values)) if !values.is_empty() => {
                Err(format!("expected one of {}", values.join(", ")))
            }
            _ => Err("expected another value".to_owned()),
        },
        _ => Err(error.source().map_or_else(|| error.to_string(), |reason| reason.to_string())),
    }
}
