//! Which routes there are.
//!
//! One table, of which the choice of the handler is made, the texts of 404 and 405,
//! what preflights are answered, and which a test compares with the OpenAPI document.

use nala_sdk::http::{Method, Request, Response, percent_decode};

use crate::error::ApiError;
use crate::{anthropic, chat, completions, cors, embeddings, models, openapi, props, rerank, responses, tokens};

/// A path and what is done there.
pub struct Route {
    /// The path, as OpenAPI writes it: a last segment in braces is any text, slashes
    /// included.
    pub path: &'static str,
    /// What is done.
    pub act: Act,
}

/// What is done at a path, by which method.
pub enum Act {
    /// `GET`, and `HEAD`, of which the host leaves the body out.
    Get(fn(Request) -> Result<Response, ApiError>),
    /// The same, of what the path's last segment names.
    GetNamed(fn(&str) -> Result<Response, ApiError>),
    /// `POST`.
    Post(fn(Request) -> Result<Response, ApiError>),
}

/// All of them. A path stands here once for each method.
pub const ROUTES: &[Route] = &[
    post("/v1/chat/completions", chat::complete),
    post("/v1/responses", responses::respond),
    post("/v1/messages", anthropic::respond),
    post("/v1/messages/count_tokens", anthropic::respond_count),
    post("/v1/completions", completions::complete),
    post("/v1/embeddings", embeddings::respond),
    post("/v1/rerank", rerank::respond),
    post("/rerank", rerank::respond),
    post("/v1/reranking", rerank::respond),
    post("/reranking", rerank::respond),
    post("/v1/chat/completions/input_tokens", tokens::input_tokens),
    get("/v1/models", |_| Ok(models::list())),
    get("/models", |_| Ok(models::list())),
    Route { path: "/v1/models/{id}", act: Act::GetNamed(models::one) },
    post("/tokenize", tokens::tokenize),
    post("/detokenize", tokens::detokenize),
    post("/apply-template", tokens::apply_template),
    get("/props", props::get),
    get("/health", |_| Ok(health())),
    get("/v1/health", |_| Ok(health())),
    get("/openapi.json", |_| Ok(openapi::document())),
];

const fn get(path: &'static str, act: fn(Request) -> Result<Response, ApiError>) -> Route {
    Route { path, act: Act::Get(act) }
}

const fn post(path: &'static str, act: fn(Request) -> Result<Response, ApiError>) -> Route {
    Route { path, act: Act::Post(act) }
}

/// That the component runs, as llama.cpp's server says it. The host's own probe says
/// more, whether models are loaded for example.
fn health() -> Response {
    Response::new(200, "application/json", "{\"status\":\"ok\"}")
}

impl Route {
    /// The methods that it answers.
    #[must_use]
    pub fn methods(&self) -> &'static [Method] {
        match self.act {
            Act::Get(_) | Act::GetNamed(_) => &[Method::Get, Method::Head],
            Act::Post(_) => &[Method::Post],
        }
    }

    /// The part of a path that is in braces, empty where there is none. None: this
    /// route is for other paths.
    fn names<'a>(&self, path: &'a str) -> Option<&'a str> {
        match self.path.split_once('{') {
            None => (path == self.path).then_some(""),
            Some((before, _)) => path.strip_prefix(before).filter(|name| !name.is_empty()),
        }
    }
}

/// Answers a request.
///
/// # Errors
/// 404 and 405, and whatever the route fails with.
pub fn answer(request: Request) -> Result<Response, ApiError> {
    let path = request.path().to_owned();
    let here: Vec<(&Route, &str)> =
        ROUTES.iter().filter_map(|route| route.names(&path).map(|name| (route, name))).collect();
    if here.is_empty() {
        return Err(ApiError::unknown_route(request.method(), &path, &known()));
    }
    let methods: Vec<Method> = here.iter().flat_map(|(route, _)| route.methods()).cloned().collect();
    if *request.method() == Method::Options {
        return Ok(cors::preflight(&request, &methods));
    }
    match here.into_iter().find(|(route, _)| route.methods().contains(request.method())) {
        Some((route, name)) => match route.act {
            Act::Get(act) | Act::Post(act) => act(request),
            Act::GetNamed(act) => act(&percent_decode(name)),
        },
        None => {
            let allowed: Vec<String> = methods.iter().map(Method::to_string).collect();
            Err(ApiError::method_not_allowed(request.method(), &path, &allowed.join(", ")))
        }
    }
}

/// The routes in words, for people.
fn known() -> String {
    let one = |route: &Route| match route.act {
        Act::Get(_) | Act::GetNamed(_) => format!("GET {}", route.path),
        Act::Post(_) => format!("POST {}", route.path),
    };
    ROUTES.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_take_the_rest_of_a_path_but_not_nothing() {
        let route = Route { path: "/v1/models/{id}", act: Act::GetNamed(models::one) };
        assert_eq!(route.names("/v1/models/a/b%20c"), Some("a/b%20c"));
        assert_eq!(route.names("/v1/models/"), None);
        assert_eq!(route.names("/v1/models"), None);
    }

    #[test]
    fn each_method_of_a_path_has_one_route() {
        for (index, route) in ROUTES.iter().enumerate() {
            for other in ROUTES.iter().skip(index + 1).filter(|other| other.path == route.path) {
                assert!(!other.methods().iter().any(|method| route.methods().contains(method)), "{}", route.path);
            }
        }
    }

    #[test]
    fn every_path_answers_preflights() {
        for route in ROUTES {
            let request = Request::new(Method::Options, route.path);
            let response = answer(request).unwrap();
            assert_eq!(response.status(), 204);
            let allowed = response.header("access-control-allow-methods").unwrap();
            for method in route.methods() {
                assert!(allowed.split(", ").any(|name| name == method.to_string()), "{}: {allowed}", route.path);
            }
        }
        assert_eq!(answer(Request::new(Method::Options, "/v1/nothing")).unwrap_err().status, 404);
    }

    #[test]
    fn it_is_well() {
        for path in ["/health", "/v1/health"] {
            let response = answer(Request::new(Method::Get, path)).unwrap();
            assert_eq!(response.into_bytes().unwrap(), b"{\"status\":\"ok\"}");
        }
    }
}
