//! Serves models in the shape of OpenAI's API.
//!
//! | route | |
//! |---|---|
//! | `POST /v1/chat/completions` | an answer to a conversation, whole or streamed |
//! | `GET /v1/models` | the models that this component may open |
//! | `GET /v1/models/{id}` | one of them |
//!
//! Everything else, and everything that goes wrong, is answered with OpenAI's
//! error envelope ([`error`]). Which parameters mean what is in [`parameters`].
//! A head with status 200 goes out only when the first token is there: whatever
//! fails before that gets its status.

pub mod answer;
pub mod chat;
pub mod error;
pub mod json;
pub mod messages;
mod models;
pub mod parameters;
mod prompt;

use nala_sdk::http::{IntoResponse, Method, Request, Response, percent_decode};

use error::ApiError;

/// Answers a request.
pub fn handle(request: Request) -> Response {
    route(request).into_response()
}

fn route(request: Request) -> Result<Response, ApiError> {
    let path = request.path().to_owned();
    match path.as_str() {
        "/v1/chat/completions" => {
            allow(&request, &Method::Post)?;
            chat::complete(request)
        }
        "/v1/models" => {
            allow(&request, &Method::Get)?;
            Ok(models::list())
        }
        _ => match path.strip_prefix("/v1/models/") {
            Some(id) if !id.is_empty() => {
                allow(&request, &Method::Get)?;
                models::one(&percent_decode(id))
            }
            _ => Err(ApiError::unknown_route(request.method(), &path)),
        },
    }
}

fn allow(request: &Request, method: &Method) -> Result<(), ApiError> {
    if request.method() == method {
        return Ok(());
    }
    Err(ApiError::method_not_allowed(request.method(), request.path(), method))
}

nala_sdk::handler!(handle);

#[cfg(test)]
mod tests {
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
            (Method::Post, "/v1/models", "GET"),
            (Method::Delete, "/v1/models/x", "GET"),
        ] {
            let response = handle(Request::new(method, uri));
            assert_eq!((response.status(), response.header("allow")), (405, Some(allowed)));
            assert!(body(response)["error"]["message"].as_str().unwrap().contains(allowed));
        }
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
