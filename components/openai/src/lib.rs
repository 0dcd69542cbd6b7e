//! Serves models in the shape of OpenAI's API.
//!
//! | route | |
//! |---|---|
//! | `POST /v1/chat/completions` | an answer to a conversation, whole or streamed |
//! | `POST /v1/responses` | the same in the shape of the Responses API |
//! | `POST /v1/messages` | the same in the shape of Anthropic's API |
//! | `POST /v1/completions` | texts that go on from others |
//! | `POST /v1/chat/completions/input_tokens`, `POST /v1/messages/count_tokens` | how long a conversation is in tokens |
//! | `POST /v1/embeddings` | vectors of texts |
//! | `POST /v1/rerank`, `/rerank`, `/v1/reranking`, `/reranking` | documents in the order in which they answer a question |
//! | `GET /v1/models`, `GET /models` | the models that this component may open |
//! | `GET /v1/models/{id}` | one of them |
//! | `POST /tokenize`, `POST /detokenize` | from text to tokens and back |
//! | `POST /apply-template` | the prompt that a conversation becomes |
//! | `GET /props` | what is known of a model |
//! | `GET /health`, `GET /v1/health` | that the component runs |
//! | `GET /openapi.json` | all of this for programs |
//!
//! The table is [`routes::ROUTES`]. `HEAD` is answered as `GET`; the host leaves the
//! body out. `OPTIONS` is answered everywhere, and pages of other origins may use all of
//! it (`cors.rs`).
//!
//! Everything else, and everything that goes wrong, is answered with OpenAI's
//! error envelope ([`error`]). Which parameters mean what is in [`parameters`].
//! A head with status 200 goes out only when the first token is there: whatever
//! fails before that gets its status.

pub mod anthropic;
pub mod ask;
mod begin;
mod brief;
pub mod chat;
pub mod completions;
mod cors;
pub mod embeddings;
pub mod error;
pub mod ids;
pub mod json;
pub mod messages;
mod models;
pub mod openapi;
pub mod parameters;
mod part;
mod props;
pub mod rerank;
pub mod responses;
pub mod routes;
#[cfg(test)]
mod snapshots;
pub mod tokens;
pub mod turn;

use nala_sdk::http::{IntoResponse, Request, Response};

use error::ApiError;

/// Answers a request.
pub fn handle(request: Request) -> Response {
    // Each API has errors of a shape of its own.
    let anthropics = request.path().starts_with("/v1/messages") || anthropic::is_spoken_by(&request);
    cors::open(match answer(request) {
        Ok(response) => response,
        Err(error) if anthropics => anthropic::error::response(&error, None),
        Err(error) => error.into_response(),
    })
}

fn answer(request: Request) -> Result<Response, ApiError> {
    // What is sent compressed would look like broken JSON.
    if let Some(encoding) = request.header("content-encoding")
        && !encoding.split(',').all(|coding| coding.trim().eq_ignore_ascii_case("identity"))
    {
        return Err(ApiError::content_encoding(encoding));
    }
    routes::answer(request)
}

nala_sdk::handler!(handle);

#[cfg(test)]
mod tests {
    use nala_sdk::http::Method;

    use super::*;

    fn body(response: Response) -> serde_json::Value {
        serde_json::from_slice(&response.into_bytes().unwrap()).unwrap()
    }

    #[test]
    fn unknown_routes_are_named() {
        let response = handle(Request::new(Method::Get, "/v1/nothing?x=1"));
        assert_eq!(response.status(), 404);
        assert_eq!(response.header("content-type"), Some("application/json"));
        let error = &body(response)["error"];
        assert!(error["message"].as_str().unwrap().contains("GET /v1/nothing"), "{error}");
        assert_eq!(error["type"], "invalid_request_error");
        assert_eq!(error["code"], "unknown_url");
    }

    #[test]
    fn wrong_methods_are_told_the_right_one() {
        for (method, uri, allowed) in [
            (Method::Get, "/v1/chat/completions", "POST"),
            (Method::Post, "/v1/models", "GET, HEAD"),
            (Method::Delete, "/v1/models/x", "GET, HEAD"),
        ] {
            let response = handle(Request::new(method, uri));
            assert_eq!((response.status(), response.header("allow")), (405, Some(allowed)));
            assert!(body(response)["error"]["message"].as_str().unwrap().contains(allowed));
        }
    }

    #[test]
    fn head_is_allowed_wherever_get_is() {
        for path in ["/v1/models", "/v1/models/", "/health"] {
            let route = routes::ROUTES.iter().find(|route| route.path.starts_with(path)).unwrap();
            assert!(route.methods().contains(&Method::Head), "{path}");
        }
        assert_eq!(handle(Request::new(Method::Head, "/v1/chat/completions")).status(), 405);
    }

    #[test]
    fn pages_of_other_origins_can_read_every_answer() {
        for (method, path) in [
            (Method::Get, "/health"),
            (Method::Options, "/v1/chat/completions"),
            (Method::Get, "/v1/nothing"),
            (Method::Put, "/health"),
            (Method::Post, "/v1/chat/completions"),
        ] {
            let response = handle(Request::new(method, path).with_header("Origin", "https://chat.example"));
            assert_eq!(response.header("access-control-allow-origin"), Some("*"), "{path}");
            let exposed = response.header("access-control-expose-headers").unwrap();
            assert!(exposed.contains("Retry-After"), "{exposed}");
        }
    }

    #[test]
    fn a_long_path_is_not_echoed_whole() {
        let response = handle(Request::new(Method::Get, &format!("/{}", "x".repeat(10_000))));
        let error = &body(response)["error"];
        assert!(error["message"].as_str().unwrap().len() < 1500, "{error}");
    }

    #[test]
    fn encoded_bodies_are_refused_by_the_headers_name() {
        let ask = |encoding: &str| {
            handle(
                Request::new(Method::Post, "/v1/chat/completions")
                    .with_header("Content-Encoding", encoding)
                    .with_body("{}"),
            )
        };
        for encoding in ["gzip", "identity, br"] {
            let response = ask(encoding);
            assert_eq!(response.status(), 415, "{encoding}");
            let error = &body(response)["error"];
            assert!(error["message"].as_str().unwrap().contains("Content-Encoding"), "{error}");
        }
        assert_eq!(ask("Identity").status(), 400, "{{}} is no request, but it was read");
    }

    #[test]
    fn bodies_that_do_not_parse_are_told_where() {
        let request = Request::new(Method::Post, "/v1/chat/completions").with_body("{\"model\": \n oops}");
        let response = handle(request);
        assert_eq!(response.status(), 400);
        let error = &body(response)["error"];
        assert!(error["message"].as_str().unwrap().contains("line 2 column 2"), "{error}");
    }
}
