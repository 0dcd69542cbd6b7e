//! `[class.NAME]`: tenants that share a process, and what it is given.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use nala_tenant::ClassName;
use toml::{Spanned, Value};

use super::error::{self, Error};
use super::source::Source;
use super::{raw, unknown};
use crate::quantity;

/// What `process` says for a process of the class's own.
const OWN: &str = "own";

/// A class of tenants that has a process of its own, and how that differs from the
/// process that was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// Its name.
    pub name: ClassName,
    /// Threads that compute in it; None for as many as in the other.
    pub threads: Option<NonZeroU32>,
    /// KV cells of each of its models; None for as many as in the other.
    pub kv_cells: Option<NonZeroU32>,
    /// Memory for its models in bytes; None for as much as in the other.
    pub model_memory: Option<u64>,
}

/// The classes by their names.
///
/// # Errors
/// A name is none, a class does not say where it runs, or a value is none.
pub(super) fn read(
    classes: BTreeMap<Spanned<String>, raw::Class>,
    source: Source<'_>,
) -> Result<Vec<(Spanned<String>, Class)>, Error> {
    let one = |(name, raw): (Spanned<String>, raw::Class)| {
        let class = class(&name, &raw, source)?;
        Ok((name, class))
    };
    classes.into_iter().map(one).collect()
}

fn class(name: &Spanned<String>, raw: &raw::Class, source: Source<'_>) -> Result<Class, Error> {
    let help = format!("write `process = \"{OWN}\"`: a class is for tenants that have a process of their own");
    match &raw.process {
        None => {
            let message = format!("the class `{}` does not say where its tenants are served", name.get_ref());
            return Err(error::at(source, name.span(), message, help));
        }
        Some(process) if process.get_ref() != OWN => {
            let message = format!("`{}` is no process", process.get_ref());
            return Err(error::at(source, process.span(), message, help));
        }
        Some(_own) => {}
    }
    let parsed = name.get_ref().parse();
    Ok(Class {
        name: parsed.map_err(|error| error::at(source, name.span(), format!("{error}"), "choose another name"))?,
        threads: count("threads", raw.threads.as_ref(), source)?,
        kv_cells: count("kv_cells", raw.kv_cells.as_ref(), source)?,
        model_memory: raw.model_memory.as_ref().map(|size| bytes(size, source)).transpose()?,
    })
}

fn count(key: &str, value: Option<&Spanned<i64>>, source: Source<'_>) -> Result<Option<NonZeroU32>, Error> {
    let Some(value) = value else { return Ok(None) };
    let number = u32::try_from(*value.get_ref()).ok().and_then(NonZeroU32::new);
    let wrong = || {
        let message = format!("`{}` is no number for `{key}`", value.get_ref());
        error::at(source, value.span(), message, "write a whole number from 1, or leave it out for that of the host")
    };
    number.map(Some).ok_or_else(wrong)
}

fn bytes(size: &Spanned<Value>, source: Source<'_>) -> Result<u64, Error> {
    size.get_ref().as_str().and_then(quantity::bytes).ok_or_else(|| {
        let message = format!("{} is no size for `model_memory`", size.get_ref());
        error::at(source, size.span(), message, "write for example \"4GiB\"")
    })
}

/// The class that a tenant names.
///
/// # Errors
/// There is none of that name.
pub(super) fn named(
    name: &Spanned<String>,
    classes: &[(Spanned<String>, Class)],
    source: Source<'_>,
) -> Result<ClassName, Error> {
    let found = classes.iter().find(|(class, _)| class.get_ref() == name.get_ref());
    found.map(|(_, class)| class.name.clone()).ok_or_else(|| {
        let known: Vec<String> = classes.iter().map(|(class, _)| class.get_ref().clone()).collect();
        let help = match unknown::suggestion(name.get_ref(), &known) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("add a table [class.{}], or leave `class` out", name.get_ref()),
        };
        error::at(source, name.span(), format!("there is no class `{}`", name.get_ref()), help)
    })
}

/// # Errors
/// A class has no tenant: its process would serve nobody.
pub(super) fn refuse_empty(
    classes: &[(Spanned<String>, Class)],
    used: &BTreeSet<&ClassName>,
    source: Source<'_>,
) -> Result<(), Error> {
    let Some((name, _)) = classes.iter().find(|(_, class)| !used.contains(&class.name)) else { return Ok(()) };
    let message = format!("no tenant is of the class `{}`", name.get_ref());
    let help = format!("write `class = \"{}\"` for one of the tenants, or remove the class", name.get_ref());
    Err(error::at(source, name.span(), message, help))
}
