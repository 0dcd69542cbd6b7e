//! The HTTP server: sockets in, [`Handler`] calls out.
//!
//! This crate accepts connections, speaks HTTP/1.1 and HTTP/2 (prior
//! knowledge), and defends the process from its clients: sizes, times and
//! numbers are all bounded by [`HttpConfig`]. It knows neither prompts nor
//! components; whoever answers requests implements [`Handler`].
//!
//! What it promises to a handler:
//! - Dropping is the cancel signal. When a client goes away, the handler's
//!   future or its response body is dropped at once, even while no byte is
//!   being written. A client that closes only its sending half counts as gone:
//!   the two cannot be told apart before a write fails.
//! - A response body is flushed frame by frame: what was yielded is on the
//!   wire before the body is waited for again.
//! - A panic in one handler is a 500 for that request and nothing for others.
//!
//! Errors made by the host itself, and by no handler, have the shape of
//! OpenAI's: `{"error": {"message", "type", "code", "param"}}`; see
//! [`HostError`].

mod activity;
mod admin;
mod body;
mod check;
mod clients;
mod config;
mod connection;
mod error;
mod handler;
mod lifecycle;
mod metrics;
mod observe;
mod request_id;
mod server;
mod service;
mod stall;
mod wire;

pub use admin::AdminHandler;
pub use body::{BodyError, BoxError, RequestBody, ResponseBody};
pub use config::HttpConfig;
pub use error::{BindError, HostError};
pub use handler::{Asked, Handler, handler_fn};
pub use lifecycle::{Phase, Readiness, Shutdown, ShutdownSignal};
pub use metrics::HttpMetrics;
pub use request_id::RequestId;
pub use server::{DrainReport, Server};
pub use service::HEALTH_PATH;
