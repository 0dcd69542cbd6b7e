//! A component for Spin, by Spin's own SDK: `GET /?q=TEXT` goes on from a text.
//!
//! Nothing here knows of Nala. `spin.toml` beside it is served by both:
//!
//! ```sh
//! cargo build --release --target wasm32-wasip2 -p spin-llm
//! nala-host up examples/spin-llm/spin.toml
//! curl '127.0.0.1:3000/?q=The%20capital%20of%20France%20is'
//! ```

use spin_sdk::http::{IntoResponse, Request, Response};
use spin_sdk::http_service;
use spin_sdk::llm::{InferencingModel, InferencingParams, infer_with_options};

/// One of the component's `ai_models`.
const MODEL: InferencingModel<'_> = InferencingModel::Other("smollm2-135m-instruct-q4_1");

#[http_service]
async fn complete(request: Request) -> impl IntoResponse {
    let query = request.uri().query().unwrap_or_default();
    let text = query.strip_prefix("q=").unwrap_or_default().replace('+', " ").replace("%20", " ");
    let params = InferencingParams { max_tokens: 16, temperature: 0.0, repeat_penalty: 1.0, ..Default::default() };
    let (status, body) = match infer_with_options(MODEL, &text, params) {
        Ok(result) => {
            let usage = result.usage;
            let usage = format!("{} + {} tokens", usage.prompt_token_count, usage.generated_token_count);
            (200, format!("{}\n{usage}\n", result.text))
        }
        Err(error) => (500, format!("{error}\n")),
    };
    Response::builder().status(status).body(body)
}
