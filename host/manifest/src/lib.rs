//! `spin.toml`, manifest version 2, read strictly into a typed [`Application`].
//!
//! What Spin knows and this version of Nala cannot honour is an error, never
//! ignored; so are unknown keys, everywhere but under the `tool` tables of
//! other programs. Nala's own settings stand in `[application.tool.nala]` and
//! `[component.ID.tool.nala]`, which Spin ignores.
//!
//! Source: <https://spinframework.dev/manifest-reference>.

pub mod dependencies;
pub mod files;
pub mod operator;
pub mod quantity;
pub mod routes;
pub mod source;
pub mod template;
pub mod variables;

mod application;
mod build;
mod check;
mod component;
mod diagnostic;
pub mod file;
mod hosts;
mod limits;
mod mcp;
mod names;
mod profile;
mod reader;
mod references;
mod static_response;
mod targets;
mod tool;
mod triggers;

pub use application::Application;
pub use build::Build;
pub use check::Checked;
pub use component::Component;
pub use diagnostic::{Diagnostic, Diagnostics, Error, Place, Severity, json, plain};
pub use hosts::AllowedHost;
pub use limits::Limits;
pub use mcp::{McpAccess, McpEndpoint, McpServer, check_url as check_server_url};
pub use static_response::StaticResponse;
pub use tool::{Clock, Keyed, Renderer};
pub use triggers::{Answer, HttpTrigger, TriggerRoute};
