//! Composes a component with the components that answer some of its imports, as
//! `dependencies` in spin.toml asks for.
//!
//! [`compose`] gives one component, in which each dependency is an instance of its own
//! beside the main one. What remains to be imported is imported by the composed
//! component, once for all of its parts.
//!
//! A dependency has nothing of its own. What it inherits, it shares with the main
//! component; any other interface that gives a right is answered by a small component
//! that denies it with the interface's own words, and one that has no words for that is
//! refused. What is unknown is denied to all but those who inherit everything: the table
//! is in `rights.rs`.
//!
//! Rules: <https://spinframework.dev/writing-apps#using-component-dependencies>.

mod chain;
mod deny;
mod error;
mod graph;
mod rights;

use std::panic::{AssertUnwindSafe, catch_unwind};

use nala_manifest::dependencies::{DependencyName, Inheritance};

pub use error::ComposeError;

/// The component that has dependencies.
#[derive(Debug, Clone, Copy)]
pub struct Main<'a> {
    /// What it is called, for errors.
    pub name: &'a str,
    /// Its Wasm.
    pub bytes: &'a [u8],
}

/// A component that answers some imports of another.
#[derive(Debug, Clone, Copy)]
pub struct Dependency<'a> {
    /// Which imports it answers.
    pub name: &'a DependencyName,
    /// Its Wasm.
    pub bytes: &'a [u8],
    /// Its export that answers; none is the one that is called as the import.
    pub export: Option<&'a str>,
    /// What it may use of what the main component has.
    pub inherits: &'a Inheritance,
}

/// Joins a component and its dependencies. The result has at most `most` bytes.
///
/// Dependencies with the same Wasm that inherit the same are one instance, so that what
/// one of its interfaces gives can be passed to another.
///
/// It takes as long as the parts are large: call it where blocking is fine. The parts
/// may come from strangers: whatever they contain, it ends with a result. Time and memory
/// are only bounded by their size, so a host that composes for others has that done in a
/// process of its own.
///
/// # Errors
/// See [`ComposeError`]; the first that is found, in the order of the dependencies.
pub fn compose(main: &Main<'_>, dependencies: &[Dependency<'_>], most: u64) -> Result<Vec<u8>, ComposeError> {
    bounded(main, dependencies, most, graph::join)
}

/// Puts middleware before a component, the outermost first: each answers requests by
/// calling the next one. The result exports the outermost one's handler alone, and has at
/// most `most` bytes. What a dependency is denied, a middleware is denied, which may hand
/// requests on whatever it inherits; its name is for errors.
///
/// The same holds as for [`compose`]. Rules:
/// <https://github.com/spinframework/spin/tree/main/examples/http-middleware>.
///
/// # Errors
/// See [`ComposeError`]; the first that is found, from the innermost on.
pub fn behind(main: &Main<'_>, middleware: &[Dependency<'_>], most: u64) -> Result<Vec<u8>, ComposeError> {
    bounded(main, middleware, most, chain::chain)
}

/// Joins a component with others.
type Join = fn(&Main<'_>, &[Dependency<'_>]) -> Result<Vec<u8>, ComposeError>;

fn bounded(main: &Main<'_>, dependencies: &[Dependency<'_>], most: u64, join: Join) -> Result<Vec<u8>, ComposeError> {
    let parts = dependencies.iter().map(|dependency| dependency.bytes.len()).chain([main.bytes.len()]);
    let check = |bytes: u64| match bytes > most {
        true => Err(ComposeError::TooLarge { main: main.name.to_owned(), bytes, most }),
        false => Ok(()),
    };
    // One that stands there twice is only once in the result, but is read twice.
    check(parts.map(|bytes| bytes as u64).sum())?;
    // The libraries below panic where they meet what they have not thought of.
    let composed = catch_unwind(AssertUnwindSafe(|| join(main, dependencies)));
    let composed = composed.unwrap_or_else(|_panic| Err(ComposeError::Crashed { main: main.name.to_owned() }))?;
    check(composed.len() as u64)?;
    Ok(composed)
}
