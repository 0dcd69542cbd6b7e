//! What lets pages of other origins use this server (Fetch Standard, "CORS
//! protocol").
//!
//! Any origin is allowed, by `*`: chat pages are served from wherever somebody put
//! them, and this server keeps nothing about its clients that a page could read or
//! use in their name. `Access-Control-Allow-Credentials` is never sent, and browsers
//! refuse credentials where it is missing: cookies, client certificates and passwords
//! that the browser knows are not the page's. A page can only send what it knows
//! itself, a key that the user gave it in `Authorization` for example. The origin is
//! not echoed, because `*` does the same and cannot become dangerous by a later
//! `Allow-Credentials`.
//!
//! What stays is that any page which a user visits may ask a server that is reached
//! from the user's machine and asks for no key. Who minds puts keys or a proxy before
//! it.
//!
//! What the host answers by itself, before the component is asked, has none of these
//! headers.

use nala_sdk::http::{Method, Request, Response};

/// Headers that pages may send whatever their preflight names. `*` would not cover
/// `Authorization`, which has to be named.
const SENT: &[&str] = &[
    "Authorization",
    "Content-Type",
    "Accept",
    "X-Api-Key",
    "Anthropic-Version",
    "Anthropic-Beta",
    "Last-Event-ID",
    "X-Request-Id",
];

/// Headers of answers that pages may read beside the ones that they always may.
const READ: &str = "X-Request-Id, Retry-After, Allow";

/// How long a browser may remember a preflight, in seconds. Browsers cut it to two
/// hours or a day.
const MAX_AGE: &str = "86400";

/// The most headers of a preflight that are repeated. The official clients send about
/// ten.
const MOST_HEADERS: usize = 64;

/// The longest name of one.
const LONGEST_NAME: usize = 64;

/// The same answer, for pages of any origin. Errors and streams need it as well: a
/// browser hides from the page what lacks it.
pub(crate) fn open(response: Response) -> Response {
    response.with_header("access-control-allow-origin", "*").with_header("access-control-expose-headers", READ)
}

/// The answer to `OPTIONS`, a browser's preflight among them, where these methods
/// are allowed.
pub(crate) fn preflight(request: &Request, methods: &[Method]) -> Response {
    let methods = methods.iter().map(Method::to_string).chain(["OPTIONS".to_owned()]).collect::<Vec<_>>().join(", ");
    Response::empty(204)
        .with_header("allow", methods.as_str())
        .with_header("access-control-allow-methods", methods)
        .with_header("access-control-allow-headers", headers(request.header("access-control-request-headers")))
        .with_header("access-control-max-age", MAX_AGE)
        // What is allowed depends on what is asked for.
        .with_header("vary", "Access-Control-Request-Headers")
}

/// The headers that may be sent: ours, and what else is asked for, where it is the
/// plain name of a header. None of them does anything here that was not sent by the
/// page on purpose.
fn headers(asked: Option<&str>) -> String {
    let plain = |name: &&str| {
        (1..=LONGEST_NAME).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let new = |name: &&str| !SENT.iter().any(|known| known.eq_ignore_ascii_case(name));
    let asked = asked.unwrap_or_default().split(',').map(str::trim).filter(plain).filter(new).take(MOST_HEADERS);
    SENT.iter().copied().chain(asked).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preflight_for(headers: &str) -> Response {
        let request = Request::new(Method::Options, "/v1/chat/completions")
            .with_header("Origin", "https://chat.example")
            .with_header("Access-Control-Request-Method", "POST")
            .with_header("Access-Control-Request-Headers", headers);
        open(preflight(&request, &[Method::Post]))
    }

    #[test]
    fn a_preflight_allows_the_method_and_the_headers() {
        let response = preflight_for("authorization,content-type,x-stainless-os");
        assert_eq!(response.status(), 204);
        assert_eq!(response.header("access-control-allow-origin"), Some("*"));
        assert_eq!(response.header("access-control-allow-methods"), Some("POST, OPTIONS"));
        assert_eq!(response.header("access-control-max-age"), Some("86400"));
        let allowed = response.header("access-control-allow-headers").unwrap();
        let allowed: Vec<&str> = allowed.split(", ").collect();
        assert!(allowed.contains(&"Authorization") && allowed.contains(&"x-stainless-os"), "{allowed:?}");
        assert_eq!(allowed.iter().filter(|name| name.eq_ignore_ascii_case("authorization")).count(), 1);
    }

    #[test]
    fn credentials_are_never_allowed() {
        assert_eq!(preflight_for("authorization").header("access-control-allow-credentials"), None);
    }

    #[test]
    fn what_is_no_header_name_is_not_repeated() {
        let long = "x".repeat(65);
        let asked = format!("a b, c\u{e9}, , {long}, e\"f, <script>, x-good, *");
        let response = preflight_for(&asked);
        let allowed = response.header("access-control-allow-headers").unwrap();
        assert!(allowed.ends_with("X-Request-Id, x-good"), "{allowed}");
        let many = (0..1000).map(|n| format!("x-{n}")).collect::<Vec<_>>().join(",");
        let response = preflight_for(&many);
        let allowed = response.header("access-control-allow-headers").unwrap();
        assert_eq!(allowed.split(", ").count(), SENT.len() + MOST_HEADERS);
    }
}
