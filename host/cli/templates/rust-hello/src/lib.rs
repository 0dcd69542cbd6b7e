//! Greets, and says what was asked for.

use wasip2::exports::http::incoming_handler::Guest;
use wasip2::http::types::{Fields, IncomingRequest, OutgoingBody, OutgoingResponse, ResponseOutparam};

/// The most bytes that one call of the stream takes, see wasi:io.
const CHUNK: usize = 4096;

struct Hello;

impl Guest for Hello {
    fn handle(request: IncomingRequest, out: ResponseOutparam) {
        let path = request.path_with_query().unwrap_or_default();
        respond(out, &format!("Hello! You asked for {path}\n"));
    }
}

/// Sends a text. A client that hangs up ends it early.
fn respond(out: ResponseOutparam, text: &str) {
    let headers = Fields::new();
    let _valid = headers.append("content-type", b"text/plain; charset=utf-8");
    let response = OutgoingResponse::new(headers);
    let Ok(body) = response.body() else { return };
    ResponseOutparam::set(out, Ok(response));
    // The stream is the body's child and has to go first.
    if let Ok(stream) = body.write() {
        for chunk in text.as_bytes().chunks(CHUNK) {
            if stream.blocking_write_and_flush(chunk).is_err() {
                break;
            }
        }
    }
    let _sent = OutgoingBody::finish(body, None);
}

wasip2::http::proxy::export!(Hello);
