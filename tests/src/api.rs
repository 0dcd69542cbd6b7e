//! The operator's API, and whatever else answers in JSON.

use serde_json::Value;

/// Asks, with a key or without; gives the status and the body.
pub fn ask(method: &str, url: &str, key: &str, kind: &str, body: &[u8]) -> (u16, Value) {
    let mut request = ureq::http::Request::builder().method(method).uri(url);
    if !key.is_empty() {
        request = request.header("authorization", format!("Bearer {key}"));
    }
    if !kind.is_empty() {
        request = request.header("content-type", kind);
    }
    let request = request.body(body.to_vec()).unwrap();
    let agent = ureq::Agent::new_with_config(
        ureq::config::Config::builder().http_status_as_error(false).allow_non_standard_methods(true).build(),
    );
    let response = agent.run(request).expect("the host answers");
    let status = response.status().as_u16();
    let text = response.into_body().read_to_string().unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}
