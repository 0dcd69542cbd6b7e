//! Counts the words of a text, by a dependency that is another component:
//!
//! ```sh
//! cargo build --release --target wasm32-wasip2 -p words -p word-count
//! nala-host up examples/word-count/spin.toml
//! curl 127.0.0.1:3000/ -d 'how many words are these'
//! ```

use nala_sdk::http::{Request, Response};
use nala_sdk::{Error, handler};

#[allow(
    unsafe_code,
    missing_docs,
    unreachable_pub,
    clippy::undocumented_unsafe_blocks,
    clippy::allow_attributes_without_reason,
    reason = "generated: lifting and lowering across the component boundary is unsafe"
)]
mod bindings {
    wit_bindgen::generate!({ path: "../words/wit", world: "user" });
}

fn count(request: Request) -> Result<Response, Error> {
    let words = bindings::example::words::count::words(&request.text()?);
    Ok(Response::text(200, format!("{words}\n")))
}

handler!(count);
