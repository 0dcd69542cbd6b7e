//! Handlers that mean harm: one in `examples/` for each thing that a tenant could do to
//! the host or to its neighbours.
//!
//! ```sh
//! cargo build --release --target wasm32-wasip2 -p hostile --features guests --examples
//! ```
//!
//! What each of them must end in stands in `tests/e2e/hostile/`, and what its neighbours
//! notice of it is measured by `tests/benches/neighbours/`. They use the bindings of WASI
//! as they are, since the SDK keeps handlers from much of what these want to do.

pub use nala_sdk::wasi;

use wasi::http::types::{ErrorCode, Fields, IncomingRequest, OutgoingBody, OutgoingRequest, OutgoingResponse};
use wasi::http::types::{ResponseOutparam, Scheme};
use wasi::io::streams::{OutputStream, StreamError};

/// What a guest is asked, and by whom it can be answered.
#[derive(Debug)]
pub struct Asked {
    /// The request, whose body nobody has touched.
    pub request: IncomingRequest,
    /// The last segment of the path: which of its ways the guest is to take.
    pub way: String,
    /// What stands behind the question mark.
    pub query: String,
}

impl Asked {
    /// Reads where the request goes to.
    #[must_use]
    pub fn new(request: IncomingRequest) -> Self {
        let target = request.path_with_query().unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let way = path.rsplit('/').next().unwrap_or_default().to_owned();
        let query = query.to_owned();
        Self { request, way, query }
    }

    /// The query as a number.
    #[must_use]
    pub fn number(&self, default: usize) -> usize {
        self.query.parse().unwrap_or(default)
    }
}

/// Makes a component of a function from [`Asked`] and a [`ResponseOutparam`].
#[macro_export]
macro_rules! guest {
    ($handle:path) => {
        #[cfg(not(target_family = "wasm"))]
        const _: fn($crate::Asked, $crate::wasi::http::types::ResponseOutparam) = $handle;

        #[cfg(target_family = "wasm")]
        #[allow(
            unsafe_code,
            clippy::undocumented_unsafe_blocks,
            reason = "generated: exporting a function from a component"
        )]
        const _: () = {
            struct Guest;

            impl $crate::wasi::exports::http::incoming_handler::Guest for Guest {
                fn handle(
                    request: $crate::wasi::http::types::IncomingRequest,
                    out: $crate::wasi::http::types::ResponseOutparam,
                ) {
                    $handle($crate::Asked::new(request), out);
                }
            }

    $crate::wasi::http::proxy::export!(Guest with_types_in $crate::wasi);
        };
    };
}

/// Sends the head of a response.
#[must_use]
pub fn begin(out: ResponseOutparam, status: u16, fields: Fields) -> Option<OutgoingBody> {
    let response = OutgoingResponse::new(fields);
    let status = response.set_status_code(status);
    let body = response.body().ok();
    match status {
        Ok(()) => ResponseOutparam::set(out, Ok(response)),
        Err(()) => ResponseOutparam::set(out, Err(ErrorCode::InternalError(Some("no such status".to_owned())))),
    }
    body
}

/// Writes all of it, waiting for the client.
///
/// # Errors
/// The client is gone, or the host takes no more.
pub fn write(stream: &OutputStream, bytes: &[u8]) -> Result<(), StreamError> {
    bytes.chunks(4096).try_for_each(|part| stream.blocking_write_and_flush(part))
}

/// Answers 200 with a text.
pub fn answer(out: ResponseOutparam, text: &str) {
    let Some(body) = begin(out, 200, Fields::new()) else { return };
    if let Ok(stream) = body.write() {
        let _gone = write(&stream, text.as_bytes());
    }
    let _gone = OutgoingBody::finish(body, None);
}

/// Computes without end, and never looks up.
pub fn spin() -> ! {
    loop {
        compute(u64::MAX);
    }
}

/// Adds up, and nobody wants the sum.
pub fn compute(additions: u64) {
    let mut n = 0_u64;
    for _ in 0..additions {
        n = std::hint::black_box(n.wrapping_add(1));
    }
}

/// Asks another server by HTTP, and says what came of it.
///
/// # Errors
/// Why nothing did, by the name of WASI.
pub fn fetch(authority: &str, path: &str) -> Result<u16, String> {
    let request = OutgoingRequest::new(Fields::new());
    let _kept = request.set_scheme(Some(&Scheme::Http));
    request.set_authority(Some(authority)).map_err(|()| "no authority".to_owned())?;
    request.set_path_with_query(Some(path)).map_err(|()| "no path".to_owned())?;
    let name = |code: ErrorCode| format!("{code:?}").split(['(', ' ']).next().unwrap_or_default().to_owned();
    let future = wasi::http::outgoing_handler::handle(request, None).map_err(name)?;
    future.subscribe().block();
    match future.get() {
        Some(Ok(Ok(response))) => Ok(response.status()),
        Some(Ok(Err(code))) => Err(name(code)),
        Some(Err(())) | None => Err("nothing".to_owned()),
    }
}

/// How often each of some words was said, as `word count` in the order of the words.
#[must_use]
pub fn tally(words: impl IntoIterator<Item = String>) -> String {
    let mut counts = std::collections::BTreeMap::<String, usize>::new();
    for word in words {
        *counts.entry(word).or_default() += 1;
    }
    let counts: Vec<_> = counts.into_iter().map(|(word, count)| format!("{word} {count}")).collect();
    counts.join(", ")
}
