//! A WASI 0.2 handler that computes with `wasi:nn`, rightly and wrongly, as its
//! path says.

use wasip2::http::types::{Fields, IncomingRequest, OutgoingBody, OutgoingResponse, ResponseOutparam};

use bindings::wasi::nn::errors::Error;
use bindings::wasi::nn::graph::{ExecutionTarget, Graph, GraphEncoding, load, load_by_name};
use bindings::wasi::nn::inference::GraphExecutionContext;
use bindings::wasi::nn::tensor::{Tensor, TensorType};

mod bindings {
    #![allow(missing_docs, reason = "generated")]
    wit_bindgen::generate!({ path: "../../../../wit/wasi-nn", world: "wasi:nn/ml", generate_all });
}

const GREEDY: &str = r#"{"temp": 0, "n-predict": 5, "ignore-eos": true}"#;

struct Handler;

wasip2::http::proxy::export!(Handler);

impl wasip2::exports::http::incoming_handler::Guest for Handler {
    fn handle(request: IncomingRequest, out: ResponseOutparam) {
        let path = request.path_with_query().unwrap_or_default();
        let (path, query) = path.split_once('?').unwrap_or((&path, ""));
        let number = query.parse().unwrap_or(0);
        let answer = match path {
            "/ask" => answer(&[("prompt", query), ("options", GREEDY)]),
            "/numbers" => answer(&[("0", query), ("1", GREEDY)]),
            "/pieces" => answer(&[("template", "<user>"), ("prompt", "<user>"), ("options", GREEDY)]),
            "/embed" => answer(&[("prompt", query), ("options", r#"{"embedding": true}"#)]),
            "/grammar" => answer(&[("prompt", "a"), ("options", r#"{"temp": 0, "grammar": "root ::= \"yes\""}"#)]),
            "/as-many-as-fit" => answer(&[("prompt", "a"), ("options", r#"{"temp": 0, "ignore-eos": true}"#)]),
            "/open" => load_by_name(query).map_or_else(|error| told(&error), |_| "opened".into()),
            "/load" => told(&load(&[vec![0; 9]], GraphEncoding::Ggml, ExecutionTarget::Cpu).unwrap_err()),
            "/refused" => refused().join("\n"),
            "/prompt" => answer(&[("prompt", &"a".repeat(number))]),
            "/tensors" => tensors(number),
            "/bomb" => format!("{}", bytes(&vec![0; number]).data().len()),
            "/contexts" => contexts(number),
            "/dropped" => {
                let (context, graph) = context();
                drop(graph);
                written(compute(&context, vec![named("prompt", "a"), named("options", GREEDY)]))
            }
            "/forever" => {
                let body = begin(out);
                let stream = body.write().unwrap();
                stream.blocking_write_and_flush(b"begun").unwrap();
                answer(&[("prompt", "a"), ("options", r#"{"temp": 0, "ignore-eos": true}"#)]);
                return;
            }
            _ => "no such path".into(),
        };
        let body = begin(out);
        let stream = body.write().unwrap();
        for part in answer.as_bytes().chunks(4096) {
            stream.blocking_write_and_flush(part).unwrap();
        }
        drop(stream);
        OutgoingBody::finish(body, None).unwrap();
    }
}

fn begin(out: ResponseOutparam) -> OutgoingBody {
    let response = OutgoingResponse::new(Fields::new());
    let body = response.body().unwrap();
    ResponseOutparam::set(out, Ok(response));
    body
}

type Outputs = Result<Vec<(String, Tensor)>, Error>;

fn told(error: &Error) -> String {
    format!("{:?}: {}", error.code(), error.data())
}

fn context() -> (GraphExecutionContext, Graph) {
    let graph = load_by_name("default").unwrap();
    (graph.init_execution_context().unwrap(), graph)
}

fn bytes(data: &[u8]) -> Tensor {
    Tensor::new(&[data.len() as u32], TensorType::U8, data)
}

fn named(name: &str, text: &str) -> (String, Tensor) {
    (name.to_owned(), bytes(text.as_bytes()))
}

fn compute(context: &GraphExecutionContext, inputs: Vec<(String, Tensor)>) -> Outputs {
    context.compute(inputs)
}

fn written(outputs: Outputs) -> String {
    let outputs = match outputs {
        Ok(outputs) => outputs,
        Err(error) => return told(&error),
    };
    let one = |(name, tensor): &(String, Tensor)| {
        assert_eq!(tensor.dimensions(), [tensor.data().len() as u32]);
        format!("{name}: {}", String::from_utf8(tensor.data()).unwrap())
    };
    outputs.iter().map(one).collect::<Vec<_>>().join("\n")
}

fn answer(inputs: &[(&str, &str)]) -> String {
    let (context, _graph) = context();
    written(compute(&context, inputs.iter().map(|(name, text)| named(name, text)).collect()))
}

/// What becomes of inputs that are wrong, and that the context can be used after.
fn refused() -> Vec<String> {
    let (context, _graph) = context();
    let prompt = |dimensions: &[u32], ty, data: &[u8]| vec![("prompt".to_owned(), Tensor::new(dimensions, ty, data))];
    let options = |json: &str| vec![named("prompt", "a"), named("options", json)];
    let wrong = vec![
        vec![],
        vec![named("image", "a")],
        prompt(&[1], TensorType::Fp32, &[0; 4]),
        prompt(&[1], TensorType::U8, b"abc"),
        prompt(&[u32::MAX; 4], TensorType::I64, b""),
        prompt(&[1; 1000], TensorType::U8, b"a"),
        prompt(&[1], TensorType::U8, &[0xff]),
        options("nonsense"),
        options(&"[".repeat(100_000)),
        options(&format!("{{\"json-schema\":{}", "[".repeat(100_000))),
        options(&" ".repeat(1 << 20)),
        options(r#"{"n-gpu-layers": 99}"#),
        options(r#"{"top-p": 7}"#),
        options(r#"{"ctx-size": 0}"#),
        options(r#"{"grammar": "root ::= ("}"#),
        vec![named("prompt", ""), named("options", "{}")],
    ];
    let mut told: Vec<String> = wrong.into_iter().map(|inputs| written(compute(&context, inputs))).collect();
    told.push(written(compute(&context, vec![named("prompt", "a"), named("options", GREEDY)])));
    told
}

/// So many tensors of 1 MiB, the last of which is computed with; then one alone.
fn tensors(count: usize) -> String {
    let (context, _graph) = context();
    let data = vec![b' '; 1 << 20];
    let mut held: Vec<Tensor> = (0..count).map(|_| bytes(&data)).collect();
    let first = written(compute(&context, vec![("options".into(), held.pop().unwrap())]));
    let sizes: Vec<usize> = held.iter().map(|tensor| tensor.dimensions().len()).collect();
    drop(held);
    let second = written(compute(&context, vec![named("prompt", "a"), named("options", GREEDY)]));
    format!("{} held, {first}\n{second}", sizes.iter().sum::<usize>())
}

/// So many contexts at a time, and one when they are gone.
fn contexts(count: usize) -> String {
    let graph = load_by_name("default").unwrap();
    let mut held = Vec::new();
    let mut error = String::new();
    for _ in 0..count {
        match graph.init_execution_context() {
            Ok(context) => held.push(context),
            Err(refused) => error = told(&refused),
        }
    }
    let opened = held.len();
    drop(held);
    format!("{opened} contexts, {error}, then {}", graph.init_execution_context().is_ok())
}
