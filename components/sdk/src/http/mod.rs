//! Requests, responses and streaming bodies.
//!
//! A [`Response`] is a value: what its streaming body does runs after the head
//! has been sent, so everything that should be answered with an error status
//! belongs before it.

mod body;
mod request;
mod response;
mod serve;

pub use body::{BodyWriter, Sse};
pub use request::{MAX_BODY, Method, Request, percent_decode};
pub use response::{IntoResponse, Response};
#[doc(hidden)]
pub use serve::serve;
