//! Serves tools, resources and prompts by the Model Context Protocol.
//!
//! What it serves is what the manifest grants it: `tools = [...]`. One address speaks the
//! protocol without sessions (2026-07-28) and the older ones with them (2025-11-25 and
//! before, which begin with `initialize`), by Streamable HTTP. Nothing is kept between
//! requests: a session's id says all there is to know of it, under a seal.
//!
//! ```sh
//! curl 127.0.0.1:3000/mcp -H 'content-type: application/json' -d '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'
//! ```

mod ask;
mod batch;
mod era;
mod finish;
mod methods;
mod mirrored;
mod parameters;
mod run;
mod settings;
mod wire;
mod write;

use nala_sdk::http::{Method, Request, Response};
use serde_json::Value;

use crate::era::{Era, Headers};
use crate::methods::Offer;
use crate::settings::Settings;
use crate::wire::{Call, Failure, Incoming};

/// The longest message, in bytes.
const LONGEST: u64 = 4 << 20;
/// Where protected-resource metadata is (RFC 9728), with the path of the resource or
/// without it.
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// Answers a request.
pub fn handle(request: Request) -> Response {
    let settings = Settings::of_environment();
    let origin = request.header("origin").map(str::to_owned);
    if let Err(why) = settings.check(request.header("host"), origin.as_deref()) {
        return Failure::invalid_request(why).with_status(403).response(&Value::Null);
    }
    let response = answer(request, &settings);
    match origin {
        Some(origin) => shared(response, &origin),
        None => response,
    }
}

/// Lets a page of an origin that may use this read the response.
fn shared(response: Response, origin: &str) -> Response {
    response
        .with_header("access-control-allow-origin", origin)
        .with_header("access-control-expose-headers", "Mcp-Session-Id, WWW-Authenticate, Retry-After")
        .with_header("vary", "Origin")
}

fn answer(request: Request, settings: &Settings) -> Response {
    if request.path().starts_with(WELL_KNOWN) {
        return match settings.metadata() {
            Some(metadata) => Response::new(200, "application/json", metadata.to_string()),
            None => Response::text(404, "nobody gives tokens for this; it takes keys, or nothing at all"),
        };
    }
    match request.method() {
        Method::Post => {}
        Method::Options => {
            return Response::empty(204)
                .with_header("access-control-allow-methods", "POST")
                .with_header("access-control-allow-headers", "*, Authorization")
                .with_header("access-control-max-age", "86400");
        }
        // There is nothing to be told but what a request is about.
        _ => return Response::text(405, "POST a message of the protocol").with_header("allow", "POST, OPTIONS"),
    }
    if let Err(refused) = acceptable(&request) {
        return refused;
    }
    let head = head(&request);
    match request.bytes_up_to(LONGEST) {
        Ok(body) if batch::is_one(&head, &body) => batch::answer(&body, |body| one(&head, body, settings)),
        Ok(body) => one(&head, &body, settings),
        Err(error) => Failure::invalid_request(error.to_string()).with_status(413).response(&Value::Null),
    }
}

/// Answers a message.
fn one(head: &Request, body: &[u8], settings: &Settings) -> Response {
    match wire::read(body) {
        Ok(Incoming::Request(call)) => {
            let id = call.id.clone();
            called(head, call, settings).unwrap_or_else(|failure| failure.response(&id))
        }
        Ok(Incoming::Notification { method, params }) => told(head, &method, &params),
        Ok(Incoming::Reply { id, outcome }) => replied(head, &id, outcome),
        Err(failure) => failure.response(&wire::id(body)),
    }
}

/// The request without its body: what of its headers is the protocol's.
fn head(request: &Request) -> Request {
    let own = request.headers().filter(|(name, _)| name.len() > 4 && name.get(..4).is_some_and(is_ours));
    own.fold(Request::new(Method::Post, "/mcp"), |head, (name, value)| {
        head.with_header(name, &String::from_utf8_lossy(value))
    })
}

/// Whether a header begins as those of the protocol do.
fn is_ours(beginning: &str) -> bool {
    beginning.eq_ignore_ascii_case("mcp-")
}

/// A client takes both kinds of answers, and sends JSON.
fn acceptable(request: &Request) -> Result<(), Response> {
    let essence = |header: &str| header.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_json = request.header("content-type").is_some_and(|kind| essence(kind) == "application/json");
    if !is_json {
        return Err(Response::text(415, "send `Content-Type: application/json`"));
    }
    let Some(accept) = request.header("accept") else { return Ok(()) };
    let kinds: Vec<String> = accept.split(',').map(essence).collect();
    let takes = |kind: &str, group: &str| kinds.iter().any(|known| known == kind || known == group || known == "*/*");
    match takes("application/json", "application/*") && takes("text/event-stream", "text/*") {
        true => Ok(()),
        false => Err(Response::text(406, "send `Accept: application/json, text/event-stream`")),
    }
}

fn called(head: &Request, call: Call, settings: &Settings) -> Result<Response, Failure> {
    let is_modern = era::is_modern(head, &call.params);
    if call.method == "initialize" && !is_modern {
        return methods::initialize(&call, &Offer::granted(), settings);
    }
    let headers = if settings.is_stdio { Headers::None } else { Headers::Of(head) };
    let client = match is_modern {
        true => era::modern(headers, &call)?,
        false => era::legacy(head, &call.params)?,
    };
    let offer = Offer::granted();
    if is_modern && call.method == "tools/call" {
        let tool = call.params.get("name").and_then(Value::as_str).and_then(|name| offer.tool(name));
        let arguments = call.params.get("arguments").and_then(Value::as_object);
        if let Some(tool) = tool {
            mirrored::check(headers, tool, arguments)?;
        }
    }
    methods::answer(call, client, &offer, settings)
}

/// The session of a message that wants no answer.
fn session(head: &Request) -> Result<Option<String>, Response> {
    if era::is_modern(head, &serde_json::Map::new()) {
        let why = "nobody is asked anything by a message of its own in this version of the protocol";
        return Err(Failure::invalid_request(why).response(&Value::Null));
    }
    match era::legacy(head, &serde_json::Map::new()) {
        Ok(client) => Ok(match client.era {
            Era::Legacy { session } => session,
            Era::Modern => None,
        }),
        Err(failure) => Err(failure.response(&Value::Null)),
    }
}

fn told(head: &Request, method: &str, params: &serde_json::Map<String, Value>) -> Response {
    if era::is_modern(head, params) {
        // A client without a session ends a request by hanging up.
        return Response::empty(202);
    }
    let session = match session(head) {
        Ok(session) => session,
        Err(refused) => return refused,
    };
    if let ("notifications/cancelled", Some(session), Some(id)) = (method, session, params.get("requestId")) {
        run::cancel(&session, id);
    }
    Response::empty(202)
}

fn replied(head: &Request, id: &Value, outcome: Result<Value, Value>) -> Response {
    match session(head) {
        Ok(Some(session)) => match run::deliver(&session, id, outcome) {
            Ok(()) => Response::empty(202),
            Err(failure) => failure.response(&Value::Null),
        },
        Ok(None) => Failure::invalid_request("nobody was asked anything without a session").response(&Value::Null),
        Err(refused) => refused,
    }
}

nala_sdk::handler!(handle);
