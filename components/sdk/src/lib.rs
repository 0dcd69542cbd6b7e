//! Handlers that run beside a language model.
//!
//! A handler is a function from a [`Request`](http::Request) to a
//! [`Response`](http::Response). Compiled for `wasm32-wasip2` as a `cdylib` it
//! is a component that `nala-host run` serves; the model's tokens reach it by
//! function calls instead of over the network.
//!
//! ```
//! use nala_sdk::chat::{self, Message};
//! use nala_sdk::http::{Request, Response};
//! use nala_sdk::llm::{GenerateOptions, Model, Session};
//!
//! fn haiku(request: Request) -> Result<Response, nala_sdk::Error> {
//!     let subject = request.query("about").unwrap_or("the sea".to_owned());
//!     let model = Model::open_default()?;
//!     let prompt = chat::prompt(&model, &[Message::user(format!("A haiku about {subject}."))])?;
//!
//!     let session = Session::open(&model)?;
//!     session.prefill(&prompt)?;
//!     let poem = session.generate(&GenerateOptions::greedy(64))?;
//!
//!     // What fails up to here is answered with an error status. Now the head
//!     // goes out, and then every token as it comes. A poem that the host cuts
//!     // short ends with an error, and the client sees the answer break off.
//!     Ok(Response::stream("text/plain; charset=utf-8", move |out| {
//!         for chunk in poem {
//!             out.write(chunk?.text)?;
//!         }
//!         Ok(())
//!     }))
//! }
//!
//! nala_sdk::handler!(haiku);
//! ```
//!
//! On any other target than Wasm the crate compiles, so that the logic of a
//! handler can be tested natively with [`Request::new`](http::Request::new) and
//! [`Response::into_bytes`](http::Response::into_bytes); calls that need the
//! host (models, sessions, rendering) panic there.

pub mod chat;
mod error;
pub mod http;
pub mod library;
pub mod llm;
pub mod relay;
pub mod telemetry;
pub mod tools;

pub use error::Error;

/// The bindings of WASI 0.2 that [`handler!`] exports the handler with, for
/// what this crate does not wrap.
pub use wasip2 as wasi;

/// What wit-bindgen makes of `wit/`.
#[allow(
    unsafe_code,
    missing_docs,
    unreachable_pub,
    clippy::undocumented_unsafe_blocks,
    clippy::allow_attributes_without_reason,
    reason = "generated: lifting and lowering across the component boundary is unsafe"
)]
mod bindings {
    wit_bindgen::generate!({
        inline: "
            package nala:sdk;

            world sdk {
                include nala:llm/agent@0.1.0;
                include nala:chat/user@0.1.0;
                include nala:tools/user@0.1.0;
                include nala:relay/user@0.1.0;
                include nala:machine/user@0.1.0;
            }
        ",
        path: [
            "../../wit/wasi-io", "../../wit/nala-llm", "../../wit/nala-chat", "../../wit/nala-tools",
            "../../wit/nala-relay", "../../wit/nala-machine",
        ],
        with: { "wasi:io/poll@0.2.6": wasip2::io::poll },
        additional_derives: [PartialEq],
        // Holds a session, which is like no other.
        additional_derives_ignore: ["step"],
        generate_all,
    });
}

/// Makes a component of a handler: `handler!(my_function);`.
///
/// The function takes a [`Request`](http::Request) and returns what is
/// [`IntoResponse`](http::IntoResponse): a [`Response`](http::Response), or a
/// `Result` of one.
#[macro_export]
macro_rules! handler {
    ($handle:path) => {
        // Natively the handler is only checked, so that it can be tested.
        #[cfg(not(target_family = "wasm"))]
        const _: () = {
            let _: fn($crate::http::Request) -> _ = $handle;
        };

        #[cfg(target_family = "wasm")]
        #[allow(
            unsafe_code,
            clippy::undocumented_unsafe_blocks,
            reason = "generated: exporting a function from a component"
        )]
        const _: () = {
            struct Handler;

            impl $crate::wasi::exports::http::incoming_handler::Guest for Handler {
                fn handle(
                    request: $crate::wasi::http::types::IncomingRequest,
                    out: $crate::wasi::http::types::ResponseOutparam,
                ) {
                    $crate::http::serve(request, out, $handle);
                }
            }

    $crate::wasi::http::proxy::export!(Handler with_types_in $crate::wasi);
        };
    };
}
