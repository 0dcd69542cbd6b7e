//! `spin.toml`, manifest version 2, read strictly into a typed [`Application`].
//!
//! What Spin knows and this version of Nala cannot honour is an error, never
//! ignored; so are unknown keys, everywhere but under the `tool` tables of
//! other programs. Nala's own settings stand in `[application.tool.nala]` and
//! `[component.ID.tool.nala]`, which Spin ignores.
//!
//! Source: <https://spinframework.dev/manifest-reference>.

pub mod operator;
pub mod quantity;
pub mod routes;

mod application;
mod diagnostic;
mod file;
mod raw;
mod refused;
mod renderers;

pub use application::{Application, Build, Component, HttpTrigger, Limits, Warning};
pub use diagnostic::{Diagnostic, Error};
