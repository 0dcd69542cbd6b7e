//! A WASI 0.2 handler that has prompts rendered, by the template in its query.

use wasip2::http::types::{Fields, IncomingRequest, OutgoingBody, OutgoingResponse, ResponseOutparam};

use bindings::nala::chat::render::render;
use bindings::nala::chat::types::{Request, Template};
use bindings::nala::llm::meter;

mod bindings {
    #![allow(missing_docs, reason = "generated")]
    wit_bindgen::generate!({
        inline: "
            package test:prompts;

            world prompts {
                import nala:chat/render@0.1.0;
                import nala:llm/meter@0.1.0;
            }
        ",
        path: ["../../../../wit/wasi-io", "../../../../wit/nala-llm", "../../../../wit/nala-chat"],
        world: "test:prompts/prompts",
        generate_all,
    });
}

struct Handler;

wasip2::http::proxy::export!(Handler);

impl wasip2::exports::http::incoming_handler::Guest for Handler {
    fn handle(request: IncomingRequest, out: ResponseOutparam) {
        let path = request.path_with_query().unwrap_or_default();
        let (path, query) = path.split_once('?').unwrap_or((&path, ""));
        let answer = match path {
            "/render" => format!("{:?}", render(&template(query))),
            "/compare" => compare(query.parse().unwrap_or(0)),
            _ => "no such path".into(),
        };
        let response = OutgoingResponse::new(Fields::new());
        let body = response.body().unwrap();
        ResponseOutparam::set(out, Ok(response));
        let stream = body.write().unwrap();
        stream.blocking_write_and_flush(answer.as_bytes()).unwrap();
        drop(stream);
        OutgoingBody::finish(body, None).unwrap();
    }
}

fn template(source: &str) -> Request {
    let template = Template { source: source.into(), bos_token: None, eos_token: None };
    Request { template, messages: vec![], tools: vec![], add_generation_prompt: false, extra: None }
}

/// CPU time that the same work costs here and in the renderer, in microseconds.
fn compare(n: u64) -> String {
    let begin = meter::used().cpu_us;
    work(n);
    let here = meter::used().cpu_us;
    render(&template(&format!("work+{n}"))).unwrap();
    let there = meter::used().cpu_us;
    format!("{} {}", here - begin, there - here)
}

/// The same as in `renderer`, so that both can be compared.
fn work(n: u64) {
    let mut x = 1_u64;
    for i in 0..n {
        x = std::hint::black_box(x.wrapping_mul(31).wrapping_add(i));
    }
}
