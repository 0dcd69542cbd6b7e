//! Answers a question through `wasi:nn`: `GET /ask?q=...`.
//!
//! ```sh
//! cargo build --release --target wasm32-wasip2 -p wasi-nn
//! nala-host run target/wasm32-wasip2/release/wasi_nn.wasm
//! curl '127.0.0.1:3000/ask?q=What+is+the+capital+of+France%3F+Answer+with+one+word.'
//! ```
//!
//! A handler for Nala alone is shorter, and answers in a stream, with `nala:llm`:
//! see the example `ask`. This one is for what was written for `wasi:nn` already.

use bindings::wasi::nn::errors::{self, ErrorCode};
use bindings::wasi::nn::graph::load_by_name;
use bindings::wasi::nn::tensor::{Tensor, TensorType};
use nala_sdk::http::{Request, Response};
use nala_sdk::{Error, handler};

mod bindings {
    #![allow(missing_docs, unsafe_code, unreachable_pub, clippy::allow_attributes_without_reason, reason = "generated")]
    wit_bindgen::generate!({ path: "../../../wit/wasi-nn", world: "wasi:nn/ml", generate_all });
}

/// ChatML, with the system message of the default model's own template.
const BEFORE: &str = "<|im_start|>system\n\
    You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n\
    <|im_start|>user\n";
const BEHIND: &str = "<|im_end|>\n<|im_start|>assistant\n";

/// The keys are those of LlamaEdge's metadata.
const OPTIONS: &str = r#"{"temp": 0, "n-predict": 512}"#;

fn ask(request: Request) -> Result<Response, Error> {
    let question = request.query("q").unwrap_or_default();
    if question.trim().is_empty() {
        return Err(Error::Status(400, "ask something: /ask?q=...".to_owned()));
    }

    // The first of the models that this component is granted.
    let graph = load_by_name("default").map_err(told)?;
    let context = graph.init_execution_context().map_err(told)?;

    // What the program wrote is a template and may name control tokens; what came
    // from outside is a prompt and names none.
    let inputs = [("template", BEFORE), ("prompt", &question), ("template", BEHIND), ("options", OPTIONS)];
    let inputs = inputs.map(|(name, text)| (name.to_owned(), tensor(text)));
    let outputs = context.compute(inputs.into()).map_err(told)?;

    // The text, and behind it what it took.
    let mut body = Vec::new();
    for (_name, output) in outputs {
        body.extend(output.data());
        body.push(b'\n');
    }
    Ok(Response::new(200, "text/plain; charset=utf-8", body))
}

fn tensor(text: &str) -> Tensor {
    // A text is shorter than 4 GiB here.
    Tensor::new(&[u32::try_from(text.len()).unwrap_or(u32::MAX)], TensorType::U8, text.as_bytes())
}

fn told(error: errors::Error) -> Error {
    let status = match error.code() {
        ErrorCode::InvalidArgument | ErrorCode::InvalidEncoding | ErrorCode::TooLarge => 400,
        ErrorCode::Timeout => 503,
        _ => 500,
    };
    Error::Status(status, error.data())
}

handler!(ask);
