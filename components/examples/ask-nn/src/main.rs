//! A WASI command that asks a model through `wasi:nn`: `ask-nn MODEL QUESTION`.
//!
//! It runs in any host that has the interface with a model of that name behind it,
//! `host/nn-backend/examples/embedder.rs` say.

#![allow(clippy::print_stdout, reason = "a program for the terminal")]

use std::process::ExitCode;

use bindings::wasi::nn::graph::load_by_name;
use bindings::wasi::nn::tensor::{Tensor, TensorType};

mod bindings {
    #![allow(missing_docs, unsafe_code, unreachable_pub, clippy::allow_attributes_without_reason, reason = "generated")]
    wit_bindgen::generate!({ path: "../../../wit/wasi-nn", world: "wasi:nn/ml", generate_all });
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [model, question] = args.as_slice() else {
        eprintln!("usage: ask-nn MODEL QUESTION");
        return ExitCode::FAILURE;
    };
    match ask(model, question) {
        Ok(answer) => println!("{answer}"),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn ask(model: &str, question: &str) -> Result<String, String> {
    let told = |error: bindings::wasi::nn::errors::Error| format!("{:?}: {}", error.code(), error.data());
    let context = load_by_name(model).and_then(|graph| graph.init_execution_context()).map_err(told)?;
    // ChatML. Only what the program wrote may name control tokens.
    let inputs = [
        ("template", "<|im_start|>user\n"),
        ("prompt", question),
        ("template", "<|im_end|>\n<|im_start|>assistant\n"),
        ("options", r#"{"temp": 0, "n-predict": 64}"#),
    ];
    let outputs = context.compute(inputs.map(|(name, text)| (name.to_owned(), tensor(text))).into()).map_err(told)?;
    let text = outputs.into_iter().find(|(name, _)| name == "text").map(|(_, tensor)| tensor.data());
    String::from_utf8(text.unwrap_or_default()).map_err(|error| error.to_string())
}

fn tensor(text: &str) -> Tensor {
    // A text is shorter than 4 GiB here.
    Tensor::new(&[u32::try_from(text.len()).unwrap_or(u32::MAX)], TensorType::U8, text.as_bytes())
}
