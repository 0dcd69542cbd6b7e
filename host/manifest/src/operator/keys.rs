//! Keys as they stand in a list, and the file that has nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use nala_tenant::{KeyId, StoredKey};
use toml::{Spanned, Value};

use super::error::{self, Error};
use super::moment::moment;
use super::source::Source;
use super::{raw, unknown};

const MAKE_ONE: &str = "write `nala-sha256:ID:SALT:HASH`, as `nala-host key new` prints it";

/// A key, and where it stands.
pub(super) struct Placed<'a> {
    pub(super) key: StoredKey,
    pub(super) span: Range<usize>,
    pub(super) source: Source<'a>,
}

/// What the file of keys has.
#[derive(Default)]
pub(super) struct Kept<'a> {
    pub(super) tenants: BTreeMap<String, Vec<Placed<'a>>>,
    pub(super) admin: Vec<Placed<'a>>,
}

impl<'a> Kept<'a> {
    /// Reads the file.
    ///
    /// # Errors
    /// It is malformed, or has keys for a tenant that is not in `tenants`.
    pub(super) fn read(source: Source<'a>, tenants: &BTreeSet<String>) -> Result<Self, Error> {
        let raw = raw::keys_file(source)?;
        let mut kept = Self { tenants: BTreeMap::new(), admin: list(raw.admin.keys, source)? };
        for (name, raw) in raw.tenant {
            if !tenants.contains(name.get_ref()) {
                let known: Vec<String> = tenants.iter().cloned().collect();
                let help = match unknown::suggestion(name.get_ref(), &known) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => format!("add a table [tenant.{}] to nala.toml, or remove its keys", name.get_ref()),
                };
                let message = format!("there is no tenant `{}`", name.get_ref());
                return Err(error::at(source, name.span(), message, help));
            }
            kept.tenants.insert(name.into_inner(), list(raw.keys, source)?);
        }
        Ok(kept)
    }
}

/// The keys of a list.
///
/// # Errors
/// One of them is none.
pub(super) fn list(keys: Vec<Spanned<Value>>, source: Source<'_>) -> Result<Vec<Placed<'_>>, Error> {
    let placed = |key: Spanned<Value>| Ok(Placed { key: one(&key, source)?, span: key.span(), source });
    keys.into_iter().map(placed).collect()
}

/// Keys of which no two have the same public part.
///
/// # Errors
/// Two have; the second is shown.
pub(super) fn distinct(keys: Vec<Placed<'_>>) -> Result<Vec<StoredKey>, Error> {
    let mut ids: BTreeSet<KeyId> = BTreeSet::new();
    let mut distinct = Vec::new();
    for Placed { key, span, source } in keys {
        if !ids.insert(key.id()) {
            let message = format!("the key `{}` stands here twice", key.id());
            return Err(error::at(source, span, message, "remove one of them"));
        }
        distinct.push(key);
    }
    Ok(distinct)
}

fn one(key: &Spanned<Value>, source: Source<'_>) -> Result<StoredKey, Error> {
    match key.get_ref() {
        Value::String(text) => stored(text, key, source),
        Value::Table(table) => {
            let known: Vec<String> = raw::KEY_TABLE.iter().map(|name| (*name).to_owned()).collect();
            if let Some(name) = table.keys().find(|name| !known.contains(name)) {
                let message = format!("`{name}` is not known here");
                return Err(error::at(source, key.span(), message, unknown::help(name, &known)));
            }
            let Some(Value::String(text)) = table.get("key") else { return Err(no_key(key, source)) };
            if table.get("note").is_some_and(|note| !note.is_str()) {
                return Err(error::at(source, key.span(), "`note` is no text", "write whom the key is for, in quotes"));
            }
            let expires = match table.get("expires") {
                None => None,
                Some(Value::Datetime(written)) => Some(moment(written).ok_or_else(|| no_moment(key, source))?),
                Some(_) => return Err(no_moment(key, source)),
            };
            Ok(stored(text, key, source)?.with_expiry(expires))
        }
        _ => Err(no_key(key, source)),
    }
}

fn stored(text: &str, key: &Spanned<Value>, source: Source<'_>) -> Result<StoredKey, Error> {
    text.parse().map_err(|error: nala_tenant::InvalidKey| {
        let Error::Invalid(mut diagnostic) = error::at(source, key.span(), error.to_string(), MAKE_ONE) else {
            return no_key(key, source);
        };
        // It may be a key itself, which belongs in no log.
        diagnostic.snippet = "(not shown, since it may be a secret)".to_owned();
        diagnostic.mark = 0;
        diagnostic.column = 1;
        Error::Invalid(diagnostic)
    })
}

fn no_key(key: &Spanned<Value>, source: Source<'_>) -> Error {
    error::at(source, key.span(), "a key is a text, or a table with `key` and maybe `expires` and `note`", MAKE_ONE)
}

fn no_moment(key: &Spanned<Value>, source: Source<'_>) -> Error {
    let help = "write a date, a time and an offset without quotes, such as 2027-01-31T00:00:00Z";
    error::at(source, key.span(), "`expires` is no moment", help)
}
