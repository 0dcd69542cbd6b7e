//! What the tools do with a store.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::describe::{FORGET, LIST, RECALL, REMEMBER};
use crate::store::{Error, Store};

const KEY_BYTES: usize = 256;
const VALUE_BYTES: usize = 64 << 10;
/// Keys that are listed at once, and their bytes.
const KEYS: usize = 1000;
const KEYS_BYTES: usize = 128 << 10;
/// Pages of keys that are looked through for them: a store may be full of what is not ours.
const PAGES: usize = 1000;

/// What every key of ours begins with.
pub(crate) const OURS: &str = "memory:";

/// The arguments of all the tools; each has some of them.
#[derive(Deserialize)]
pub(crate) struct Arguments {
    key: Option<String>,
    value: Option<String>,
    prefix: Option<String>,
}

/// Texts in a store.
pub(crate) struct Memory<S> {
    store: S,
}

impl<S: Store> Memory<S> {
    pub(crate) fn new(store: S) -> Self {
        Self { store }
    }

    /// Does what a tool does, and tells what comes of it.
    pub(crate) fn call(&self, name: &str, arguments: Arguments) -> Result<Value, String> {
        let Arguments { key, value, prefix } = arguments;
        let key = || key.ok_or_else(|| "name a `key`".to_owned()).and_then(check);
        match name {
            REMEMBER => self.remember(&key()?, &value.ok_or("give the text to remember as `value`")?),
            RECALL => self.recall(&key()?),
            FORGET => self.forget(&key()?),
            LIST => self.list(&prefix.unwrap_or_default()),
            _ => Err(format!("there is no tool `{name}`")),
        }
    }

    fn remember(&self, key: &str, value: &str) -> Result<Value, String> {
        let bytes = value.len();
        if bytes > VALUE_BYTES {
            return Err(format!(
                "the value has {bytes} bytes and may have {VALUE_BYTES}: shorten it, or use several keys"
            ));
        }
        let place = place(key);
        let replaced = self.store.exists(&place).map_err(tell)?;
        self.store.set(&place, value.as_bytes()).map_err(tell)?;
        Ok(json!({"key": key, "bytes": bytes, "replaced": replaced}))
    }

    fn recall(&self, key: &str) -> Result<Value, String> {
        let value = match self.store.get(&place(key)).map_err(tell)? {
            // Whoever else writes to the store may have put anything there.
            Some(bytes) if bytes.len() > VALUE_BYTES => return Err("what is kept there is too long".to_owned()),
            Some(bytes) => Some(String::from_utf8(bytes).map_err(|_| "what is kept there is no text".to_owned())?),
            None => None,
        };
        Ok(json!({"key": key, "found": value.is_some(), "value": value}))
    }

    fn forget(&self, key: &str) -> Result<Value, String> {
        let place = place(key);
        let found = self.store.exists(&place).map_err(tell)?;
        self.store.delete(&place).map_err(tell)?;
        Ok(json!({"key": key, "found": found}))
    }

    fn list(&self, prefix: &str) -> Result<Value, String> {
        let prefix = place(prefix);
        let (mut keys, mut bytes) = (Vec::new(), 0);
        let mut cursor = None;
        for _ in 0..PAGES {
            let (page, next) = self.store.keys(cursor).map_err(tell)?;
            for key in page {
                if !key.starts_with(&prefix) {
                    continue;
                }
                let Some(key) = key.strip_prefix(OURS) else { continue };
                bytes += key.len();
                if keys.len() == KEYS || bytes > KEYS_BYTES {
                    return Ok(listed(keys, true));
                }
                keys.push(key.to_owned());
            }
            cursor = next;
            if cursor.is_none() {
                return Ok(listed(keys, false));
            }
        }
        Ok(listed(keys, true))
    }
}

/// The store has them in any order.
fn listed(mut keys: Vec<String>, truncated: bool) -> Value {
    keys.sort_unstable();
    json!({"keys": keys, "truncated": truncated})
}

fn check(key: String) -> Result<String, String> {
    match key.len() {
        0 => Err("the key is empty: name one".to_owned()),
        1..=KEY_BYTES => Ok(key),
        bytes => Err(format!("the key has {bytes} bytes and may have {KEY_BYTES}: shorten it")),
    }
}

/// Where a key is in the store.
fn place(key: &str) -> String {
    format!("{OURS}{key}")
}

#[allow(clippy::needless_pass_by_value, reason = "it is what `map_err` gives")]
fn tell(error: Error) -> String {
    error.to_string()
}
