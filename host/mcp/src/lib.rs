//! MCP servers elsewhere, whose tools components may call: connections to them, what
//! they have, and calls.
//!
//! The protocol is rmcp's; what is here is where messages may go, who may use which
//! connection, and how long things may take.
//!
//! - A [`Server`] is one that a manifest names: at a URL ([`Endpoint::Remote`]), or a
//!   program that speaks over its standard input and output ([`Endpoint::Program`]).
//! - Requests to a URL go through [`nala_egress`], so the addresses that a guest may not
//!   reach are not reached on its behalf either.
//! - Programs are started by a process of its own ([`keep`]), because the host gives up
//!   the right to do so before it serves.
//! - Each tenant has its own connections, and with them its own sessions and programs.
//!   What a server remembers of one is never shown to another.
//! - A server can ask back ([`Hear::ask`]) where whoever calls can be asked; calls that can
//!   be asked have a connection of their own while they go on, so that a question is
//!   always that call's.
//!
//! A server that cannot be reached has no tools until it can; nothing else waits for it.

mod ask;
mod call;
mod connect;
mod endpoint;
mod error;
#[expect(deprecated, reason = "servers of earlier versions of the protocol log, and ask for texts and folders")]
mod handler;
mod http;
mod keeper;
mod lines;
mod oauth;
mod server;

pub use ask::{Abilities, Hear, Inquiry, Severity};
pub use call::Asked;
pub use endpoint::{Access, Endpoint, Grant, Program, Remote};
pub use error::ServerError;
pub use keeper::{Keeper, Known, MOST_PROGRAMS, keep};
pub use oauth::{Login, LoginError, Tokens, login};
pub use rmcp::model::{CallToolResult, ContentBlock, ResourceContents, Tool};
pub use server::{Server, Settings, Who};
