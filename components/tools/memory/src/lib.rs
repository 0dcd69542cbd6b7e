//! Tools that keep small texts between calls, each under a key, in the key-value store
//! `default` of the component.
//!
//! Other components of the application may use the same store for what a model is not to
//! read or change, so everything here is kept under keys that begin with `memory:`.

use nala_sdk::tools::{Answer, Error, Tool};

mod describe;
mod host;
mod memory;
mod store;
#[cfg(test)]
mod tests;

use memory::{Arguments, Memory};

fn tools() -> Vec<Tool> {
    describe::tools()
}

fn call(name: &str, arguments: &str) -> Result<Answer, Error> {
    answer(name, arguments, host::open)
}

/// Answers from a store, which is opened when it is needed.
fn answer<S: store::Store>(
    name: &str,
    arguments: &str,
    open: impl FnOnce() -> Result<S, store::Error>,
) -> Result<Answer, Error> {
    if !describe::NAMES.contains(&name) {
        return Err(Error::UnknownTool(name.to_owned()));
    }
    let arguments: Arguments =
        serde_json::from_str(arguments).map_err(|error| Error::InvalidArguments(error.to_string()))?;
    let done = match open() {
        Ok(store) => Memory::new(store).call(name, arguments),
        Err(error) => Err(error.to_string()),
    };
    Ok(done.map_or_else(Answer::error, |json| Answer::structured(json.to_string())))
}

nala_sdk::provider!(tools, call);
