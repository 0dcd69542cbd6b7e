//! A store of bytes under keys, as `wasi:keyvalue` has it.

use std::fmt;

/// What the memory is kept in.
pub(crate) trait Store {
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Error>;
    fn exists(&self, key: &str) -> Result<bool, Error>;
    fn set(&self, key: &str, value: &[u8]) -> Result<(), Error>;
    fn delete(&self, key: &str) -> Result<(), Error>;
    /// Some of the keys, in any order, and what to ask the next ones with, if there are any.
    fn keys(&self, cursor: Option<String>) -> Result<(Vec<String>, Option<String>), Error>;
}

/// Why a store did not do what it was asked.
#[derive(Debug)]
#[cfg_attr(not(any(target_family = "wasm", test)), allow(dead_code, reason = "natively there is no store to fail"))]
pub(crate) enum Error {
    NoSuchStore,
    Denied,
    Other(String),
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self {
            Self::NoSuchStore => "there is no store `default`",
            Self::Denied => "this tool may not use the store `default`",
            Self::Other(why) => return write!(out, "the store did not do it: {why}"),
        };
        write!(
            out,
            "{why}, so nothing can be remembered. The operator grants it with `key_value_stores = [\"default\"]` \
             in the table of this component in spin.toml"
        )
    }
}
