//! The file as TOML has it, with positions.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::{Spanned, Value};

use super::error::{self, Error};
use super::source::Source;
use super::unknown;

/// Values by the names of limits, which `limits` knows.
pub(super) type LimitTable = BTreeMap<Spanned<String>, Spanned<Value>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) anonymous: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) keys: Keys,
    #[serde(default)]
    pub(super) defaults: Defaults,
    #[serde(default)]
    pub(super) class: BTreeMap<Spanned<String>, Class>,
    #[serde(default)]
    pub(super) tenant: BTreeMap<Spanned<String>, Tenant>,
    #[serde(default)]
    pub(super) tokens: Vec<Spanned<TokenIssuer>>,
    #[serde(default)]
    pub(super) listen: Listen,
    #[serde(default)]
    pub(super) admin: Admin,
    #[serde(default)]
    pub(super) egress: Egress,
    #[serde(default)]
    pub(super) state: State,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct Keys {
    pub(super) file: Option<Spanned<String>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct Defaults {
    #[serde(default)]
    pub(super) limits: LimitTable,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Class {
    pub(super) process: Option<Spanned<String>>,
    pub(super) threads: Option<Spanned<i64>>,
    pub(super) kv_cells: Option<Spanned<i64>>,
    pub(super) model_memory: Option<Spanned<Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tenant {
    pub(super) class: Option<Spanned<String>>,
    pub(super) weight: Option<Spanned<i64>>,
    #[serde(default)]
    pub(super) hosts: Vec<Spanned<String>>,
    pub(super) prefix: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) keys: Vec<Spanned<Value>>,
    pub(super) models: Option<Vec<String>>,
    #[serde(default)]
    pub(super) telemetry: bool,
    #[serde(default)]
    pub(super) limits: LimitTable,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct Listen {
    pub(super) http: Option<Spanned<String>>,
    pub(super) admin: Option<Spanned<String>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct Admin {
    #[serde(default)]
    pub(super) keys: Vec<Spanned<Value>>,
    #[serde(default)]
    pub(super) registries: Vec<Spanned<String>>,
}

/// What of it stands in the file of keys.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct AdminKeys {
    #[serde(default)]
    pub(super) keys: Vec<Spanned<Value>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct Egress {
    #[serde(default)]
    pub(super) private: Vec<String>,
    #[serde(default)]
    pub(super) refused: Vec<String>,
    #[serde(default)]
    pub(super) credentials: Vec<Spanned<Credential>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Credential {
    pub(super) origin: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) components: Vec<String>,
    pub(super) application: Option<String>,
    pub(super) tenants: Option<Vec<Spanned<String>>>,
    pub(super) bearer_file: Option<Spanned<PathBuf>>,
    pub(super) bearer_env: Option<String>,
    pub(super) header: Option<Spanned<String>>,
    pub(super) value_file: Option<Spanned<PathBuf>>,
    pub(super) value_env: Option<String>,
    pub(super) ca_file: Option<Spanned<PathBuf>>,
    #[serde(default)]
    pub(super) allow_plain: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TokenIssuer {
    pub(super) issuer: Option<Spanned<String>>,
    pub(super) audience: Option<Spanned<String>>,
    pub(super) keys: Option<Spanned<String>>,
    pub(super) keys_file: Option<Spanned<PathBuf>>,
    pub(super) tenant: Option<Spanned<String>>,
    pub(super) tenant_claim: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) scopes: Vec<Spanned<String>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    pub(super) dir: Option<Spanned<String>>,
}

/// The file of keys.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeysFile {
    #[serde(default)]
    pub(super) tenant: BTreeMap<Spanned<String>, KeysOf>,
    #[serde(default)]
    pub(super) admin: AdminKeys,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeysOf {
    pub(super) keys: Vec<Spanned<Value>>,
}

/// A key with more than its hash.
pub(super) const KEY_TABLE: &[&str] = &["key", "expires", "note"];

/// The operator's file.
///
/// # Errors
/// It is not TOML, has a key that is not known, or a value of another type.
pub(super) fn file(source: Source<'_>) -> Result<File, Error> {
    read(source)
}

/// The file of keys.
///
/// # Errors
/// As for the operator's file.
pub(super) fn keys_file(source: Source<'_>) -> Result<KeysFile, Error> {
    read(source)
}

fn read<T: DeserializeOwned>(source: Source<'_>) -> Result<T, Error> {
    toml::from_str(source.text).map_err(|error| {
        let span = error.span().unwrap_or(0..0);
        match unknown::field(error.message()) {
            Some((field, known)) => {
                let message = format!("`{field}` is not known here");
                error::at(source, span, message, unknown::help(&field, &known))
            }
            None => {
                error::at(source, span, error.message().trim(), "see docs/tenants.md for the keys and their values")
            }
        }
    })
}
