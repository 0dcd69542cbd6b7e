//! Which version of the protocol a request is of, and what it says of its client.
//!
//! From 2026-07-28 on a request says all there is to say of its client itself (`_meta`).
//! Before that, `initialize` says it once, and a session's id stands for it: here the id
//! *is* what was said, under a seal, so nothing is kept between requests.

use nala_sdk::http::Request;
use nala_sdk::relay;
use nala_sdk::tools::Abilities;
use serde_json::{Map, Number, Value, json};

use crate::wire::{Call, Failure};
use crate::write;

/// The version that knows no sessions.
pub(crate) const MODERN: &str = "2026-07-28";
/// Those with sessions, the newest first.
pub(crate) const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// What a client speaks that says nothing.
const UNSAID: &str = "2025-03-26";

/// The headers.
const VERSION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";
pub(crate) const SESSION: &str = "mcp-session-id";

/// The keys of `_meta`.
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const META_LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// What the seal of a session is about.
const ABOUT: &str = "session";

/// Who asks, and how.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Client {
    pub(crate) era: Era,
    /// What it can be asked.
    pub(crate) abilities: Abilities,
    /// How much a line of a log has to matter to be told. None: no line is.
    pub(crate) log: Option<usize>,
    /// What its reports of progress are told by. None: there are to be none.
    pub(crate) progress: Option<Value>,
}

/// How it is answered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Era {
    /// With all it needs in one response.
    Modern,
    /// In a session, if it has one.
    Legacy {
        /// Its id.
        session: Option<String>,
    },
}

/// Whether a request is one of the protocol without sessions. The body decides: a client of
/// the older kind that names the newer version in a header is told so.
pub(crate) fn is_modern(request: &Request, params: &Map<String, Value>) -> bool {
    let meta = params.get("_meta").and_then(Value::as_object);
    let says = meta.is_some_and(|meta| meta.contains_key(META_VERSION) || meta.contains_key(META_CAPABILITIES));
    says || request.header(VERSION) == Some(MODERN)
}

/// Reads what a request of the protocol without sessions says.
pub(crate) fn modern(headers: Headers<'_>, call: &Call) -> Result<Client, Failure> {
    let missing = |what: &str| Failure::invalid_params(format!("`_meta` lacks `{what}`")).with_status(400);
    let Some(meta) = call.params.get("_meta").and_then(Value::as_object) else {
        return Err(Failure::invalid_params("`params` lacks `_meta`, which says who asks").with_status(400));
    };
    let version = meta.get(META_VERSION).and_then(Value::as_str).ok_or_else(|| missing(META_VERSION))?;
    headers.check(VERSION, version)?;
    if version != MODERN {
        return Err(Failure::version(version, &[MODERN]));
    }
    let capabilities = meta.get(META_CAPABILITIES).filter(|all| all.is_object());
    let capabilities = capabilities.ok_or_else(|| missing(META_CAPABILITIES))?;
    headers.check(METHOD, &call.method)?;
    if let Some(name) = named(call) {
        headers.check(NAME, name)?;
    }
    let log = match meta.get(META_LOG_LEVEL) {
        None => None,
        Some(level) => {
            let weight = level.as_str().and_then(write::weight);
            Some(weight.ok_or_else(|| Failure::invalid_params(format!("there is no log level {level}")))?)
        }
    };
    Ok(Client { era: Era::Modern, abilities: write::abilities(capabilities), log, progress: progress(&call.params) })
}

/// Reads what a request of the protocol with sessions says.
pub(crate) fn legacy(request: &Request, params: &Map<String, Value>) -> Result<Client, Failure> {
    let version = request.header(VERSION).unwrap_or(UNSAID);
    if !LEGACY.contains(&version) {
        let supported: Vec<&str> = [MODERN].into_iter().chain(LEGACY).collect();
        return Err(Failure::version(version, &supported).with_status(400));
    }
    let session = request.header(SESSION).map(str::to_owned);
    let mut abilities = Abilities::empty();
    if let Some(session) = &session {
        let said = relay::unseal(session, ABOUT).ok_or_else(|| {
            Failure::invalid_request("there is no such session (any more); send `initialize`").with_status(404)
        })?;
        let said: Value = serde_json::from_str(&said).unwrap_or_default();
        abilities = write::abilities(said.get("capabilities").unwrap_or(&Value::Null));
    }
    let log = write::weight("info");
    Ok(Client { era: Era::Legacy { session }, abilities, log, progress: progress(params) })
}

/// The id of a new session, and the version that is spoken in it.
pub(crate) fn begin(call: &Call) -> Result<(String, &'static str), Failure> {
    let asked = call.params.get("protocolVersion").and_then(Value::as_str);
    let asked = asked.ok_or_else(|| Failure::invalid_params("`initialize` says a `protocolVersion`"))?;
    let version = LEGACY.iter().find(|known| **known == asked).unwrap_or(&LEGACY[0]);
    let capabilities = call.params.get("capabilities").cloned().unwrap_or_else(|| json!({}));
    // What cannot be asked need not be kept.
    let abilities = write::capabilities(write::abilities(&capabilities));
    let said = json!({ "capabilities": abilities, "nonce": nonce() });
    Ok((relay::seal(&said.to_string(), ABOUT), version))
}

/// Tells two sessions of one client apart.
fn nonce() -> String {
    format!("{:x}", wasip2::random::random::get_random_u64())
}

/// What the name in a header has to be.
fn named(call: &Call) -> Option<&str> {
    let key = match call.method.as_str() {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return None,
    };
    call.params.get(key).and_then(Value::as_str)
}

/// The headers in which a client repeats what the body says.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Headers<'a> {
    /// Those of a request.
    Of(&'a Request),
    /// The messages did not come over HTTP, and have none.
    None,
}

impl Headers<'_> {
    /// A header says what the body says.
    pub(crate) fn check(self, name: &str, expected: &str) -> Result<(), Failure> {
        let Self::Of(request) = self else { return Ok(()) };
        let Some(value) = request.header(name) else {
            return Err(Failure::headers(format!("the header `{name}` is missing; the body says {expected:?}")));
        };
        match decoded(value).as_deref() == Some(expected) {
            true => Ok(()),
            false => Err(Failure::headers(format!("the header `{name}` says {value:?}, and the body {expected:?}"))),
        }
    }

    /// The same for a number, which can be written in several ways.
    pub(crate) fn check_number(self, name: &str, expected: &Number) -> Result<(), Failure> {
        let Self::Of(request) = self else { return Ok(()) };
        let value = request.header(name).and_then(decoded).and_then(|text| text.parse::<Number>().ok());
        let is_whole = |number: &Number| number.is_i64() || number.is_u64();
        let is_same = value.as_ref().is_some_and(|value| match is_whole(value) && is_whole(expected) {
            true => value == expected,
            false => value.as_f64() == expected.as_f64(),
        });
        if is_same { Ok(()) } else { self.check(name, &expected.to_string()) }
    }

    /// Whether there is one.
    pub(crate) fn has(self, name: &str) -> bool {
        matches!(self, Self::Of(request) if request.header(name).is_some())
    }
}

/// The value of a header, which is written in base64 where it is not plain ASCII.
fn decoded(value: &str) -> Option<String> {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    let value = value.trim_matches([' ', '\t']);
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

fn progress(params: &Map<String, Value>) -> Option<Value> {
    let token = params.get("_meta")?.get("progressToken")?;
    matches!(token, Value::String(_) | Value::Number(_)).then(|| token.clone())
}

#[cfg(test)]
mod tests {
    use nala_sdk::http::Method;

    use super::*;

    fn call(method: &str, params: Value) -> Call {
        let Value::Object(params) = params else { panic!("{params}") };
        Call { id: json!(1), method: method.to_owned(), params }
    }

    fn meta(version: &str) -> Value {
        json!({ META_VERSION: version, META_CAPABILITIES: { "sampling": {} } })
    }

    fn request(headers: &[(&str, &str)]) -> Request {
        headers
            .iter()
            .fold(Request::new(Method::Post, "/mcp"), |request, (name, value)| request.with_header(name, value))
    }

    #[test]
    fn a_request_says_all_of_its_client() {
        let headers = [(VERSION, MODERN), (METHOD, "tools/call"), (NAME, "=?base64?ZMOk?=")];
        let mut asked = json!({ "name": "dä", "_meta": meta(MODERN) });
        asked["_meta"][META_LOG_LEVEL] = json!("warning");
        asked["_meta"]["progressToken"] = json!(7);
        let client = modern(Headers::Of(&request(&headers)), &call("tools/call", asked.clone())).unwrap();
        assert_eq!((client.era, client.log, client.progress), (Era::Modern, Some(3), Some(json!(7))));
        assert!(client.abilities == Abilities::SAMPLE);
        asked["name"] = json!("other");
        assert!(modern(Headers::None, &call("tools/call", asked.clone())).is_ok(), "it did not come over HTTP");
        let refused = modern(Headers::Of(&request(&headers)), &call("tools/call", asked)).unwrap_err();
        assert_eq!((refused.status, refused.code), (400, -32020));
    }

    #[test]
    fn what_is_missing_or_does_not_fit_is_told() {
        let whole = [(VERSION, MODERN), (METHOD, "tools/list")];
        for (headers, params, code, said) in [
            (&whole[..], json!({}), -32602, "lacks `_meta`"),
            (&whole[..], json!({ "_meta": { META_CAPABILITIES: {} } }), -32602, "protocolVersion"),
            (&whole[..], json!({ "_meta": { META_VERSION: MODERN } }), -32602, "clientCapabilities"),
            (&whole[..1], json!({ "_meta": meta(MODERN) }), -32020, "`mcp-method` is missing"),
            (&[], json!({ "_meta": meta(MODERN) }), -32020, "`mcp-protocol-version` is missing"),
            (&whole[..], json!({ "_meta": meta("v999") }), -32020, "v999"),
            (&[(VERSION, "v999")], json!({ "_meta": meta("v999") }), -32022, "v999"),
        ] {
            let refused = modern(Headers::Of(&request(headers)), &call("tools/list", params)).unwrap_err();
            assert!(refused.code == code && refused.status == 400, "{refused:?}");
            assert!(refused.message.contains(said), "{refused:?}");
        }
    }

    #[test]
    fn eras_are_told_apart() {
        let is = |headers: &[(&str, &str)], params: Value| is_modern(&request(headers), &call("m", params).params);
        assert!(!is(&[], json!({})));
        assert!(!is(&[(VERSION, "2025-11-25")], json!({ "_meta": { "progressToken": 1 } })));
        assert!(!is(&[(VERSION, "2025-01-01")], json!({})), "legacy says that it is not spoken");
        assert!(is(&[(VERSION, MODERN)], json!({})));
        assert!(is(&[], json!({ "_meta": meta(MODERN) })));
    }
}
