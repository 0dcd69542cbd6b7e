//! The operator's API, and whatever else answers in JSON.

use serde_json::Value;
use ureq::http::HeaderMap;

/// Asks, with a key or without; gives the status and the body.
pub fn ask(method: &str, url: &str, key: &str, kind: &str, body: &[u8]) -> (u16, Value) {
    let bearer = format!("Bearer {key}");
    let headers: &[(&str, &str)] = if key.is_empty() { &[] } else { &[("authorization", &bearer)] };
    let (status, _, body) = ask_with(method, url, headers, kind, body);
    (status, body)
}

/// Asks with headers; gives those of the answer, too.
pub fn ask_with(method: &str, url: &str, headers: &[(&str, &str)], kind: &str, body: &[u8]) -> (u16, HeaderMap, Value) {
    let mut request = ureq::http::Request::builder().method(method).uri(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    if !kind.is_empty() {
        request = request.header("content-type", kind);
    }
    let agent = ureq::Agent::new_with_config(
        ureq::config::Config::builder().http_status_as_error(false).allow_non_standard_methods(true).build(),
    );
    let response = agent.run(request.body(body.to_vec()).unwrap()).expect("the host answers");
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let text = response.into_body().read_to_string().unwrap();
    (status, headers, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}
