//! Answers with headers that mean harm: each way is another one.

#![allow(clippy::print_stdout, reason = "what a guest prints is its log")]

use hostile::wasi::http::types::{ErrorCode, Fields, HeaderError, OutgoingBody, ResponseOutparam};
use hostile::{Asked, answer, begin, tally, write};

/// What would end one response and begin another.
const SPLIT: &str = "x\r\ncontent-length: 0\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nharm";

fn handle(asked: Asked, out: ResponseOutparam) {
    let number = asked.number(200);
    match asked.way.as_str() {
        // What it is told of who asks, and which fields it can see.
        "seen" => {
            let fields = asked.request.headers().entries();
            let names: Vec<_> =
                fields.iter().map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value))).collect();
            answer(out, &names.join("\n"));
        }
        "refused" => answer(out, &refused()),
        "forged" => respond(
            out,
            200,
            &[
                ("x-request-id", "forged"),
                ("x-nala-tenant", "good"),
                ("www-authenticate", "Basic"),
                ("server", "forged"),
                ("set-cookie", "a=b"),
            ],
            b"forged",
        ),
        // More or less of a body than is declared, and what is in it is a response.
        "longer" => respond(out, 200, &[("content-length", "3")], format!("abc{SPLIT}").as_bytes()),
        "shorter" => respond(out, 200, &[("content-length", "100000")], b"abc"),
        "two-lengths" => respond(out, 200, &[("content-length", "3"), ("content-length", "4")], b"abcd"),
        "no-length" => respond(out, 200, &[("content-length", "-1")], b"abcd"),
        "status" => respond(out, u16::try_from(number).unwrap_or(0), &[], b"body"),
        "large" => {
            let value = "v".repeat(1000);
            let fields = Fields::new();
            let held = (0..100_000).take_while(|n| fields.append(&format!("x-{n}"), value.as_bytes()).is_ok()).count();
            println!("{held} fields were taken");
            send(out, 200, fields, b"large");
        }
        "error" => ResponseOutparam::set(out, Err(ErrorCode::InternalError(Some(SPLIT.to_owned())))),
        _ => answer(out, "no such way"),
    }
}

/// Which fields the host does not let a guest set, and why.
fn refused() -> String {
    const FIELDS: [(&str, &str); 12] = [
        ("connection", "close"),
        ("keep-alive", "timeout=1"),
        ("proxy-connection", "close"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"),
        ("host", "other"),
        ("http2-settings", "AAMAAABk"),
        ("x-split", SPLIT),
        ("x-nul", "a\0b"),
        ("x bad name", "x"),
        ("x-name\r\nx-other", "x"),
        ("", "x"),
    ];
    let fields = Fields::new();
    tally(FIELDS.into_iter().map(|(name, value)| match fields.append(name, value.as_bytes()) {
        Ok(()) => format!("taken {name}"),
        Err(HeaderError::Forbidden) => "forbidden".to_owned(),
        Err(HeaderError::InvalidSyntax) => "invalid".to_owned(),
        Err(HeaderError::Immutable) => "immutable".to_owned(),
        #[allow(unreachable_patterns, reason = "the list of errors may grow")]
        Err(_) => "other".to_owned(),
    }))
}

fn respond(out: ResponseOutparam, status: u16, headers: &[(&str, &str)], body: &[u8]) {
    let fields = Fields::new();
    for (name, value) in headers {
        if let Err(error) = fields.append(name, value.as_bytes()) {
            println!("{name} was refused: {error:?}");
        }
    }
    send(out, status, fields, body);
}

fn send(out: ResponseOutparam, status: u16, fields: Fields, bytes: &[u8]) {
    let Some(body) = begin(out, status, fields) else { return };
    if let Ok(stream) = body.write() {
        let _refused = write(&stream, bytes);
    }
    let _refused = OutgoingBody::finish(body, None);
}

hostile::guest!(handle);
