//! Middleware by Spin's own SDK: what is behind it answers in capitals, and it says what it
//! finds in its environment.

use spin_sdk::http::body::IncomingBodyExt;
use spin_sdk::http::{IntoResponse, Request, Response, next};
use spin_sdk::http_service;
use spin_sdk::wasip3::http::types::ErrorCode;

#[http_service]
async fn answer(request: Request) -> Result<impl IntoResponse, ErrorCode> {
    let (mut parts, body) = request.into_parts();
    // It is set by whoever sends a request.
    parts.headers.remove("host");
    let answered = next(Request::from_parts(parts, body)).await?;
    let (mut parts, body) = answered.into_parts();
    let text = String::from_utf8_lossy(&body.bytes().await?).to_uppercase();
    let environment = std::env::vars().count().to_string();
    for name in ["content-length", "x-environment"] {
        parts.headers.remove(name);
    }
    if let Ok(value) = environment.parse() {
        parts.headers.append("x-environment", value);
    }
    Ok(Response::from_parts(parts, text))
}
