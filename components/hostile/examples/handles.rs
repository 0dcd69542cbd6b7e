//! Opens and never closes: fields, pollables, sessions, and bodies of responses.

use hostile::wasi::clocks::monotonic_clock::{self, Pollable};
use hostile::wasi::http::types::{Fields, OutgoingBody, OutgoingResponse, ResponseOutparam};
use hostile::{Asked, answer};
use nala_sdk::llm::{Model, Session};

/// More than any host has handles for.
const MANY: usize = 1_000_000;

fn handle(asked: Asked, out: ResponseOutparam) {
    let text = match asked.way.as_str() {
        "fields" => {
            let all: Vec<Fields> = (0..MANY).map(|_| Fields::new()).collect();
            format!("{} fields", all.len())
        }
        "pollables" => {
            let all: Vec<Pollable> = (0..MANY).map(|_| monotonic_clock::subscribe_duration(u64::MAX)).collect();
            format!("{} pollables", all.len())
        }
        "bodies" => {
            let responses: Vec<OutgoingResponse> = (0..MANY).map(|_| OutgoingResponse::new(Fields::new())).collect();
            let bodies: Vec<OutgoingBody> = responses.iter().filter_map(|response| response.body().ok()).collect();
            format!("{} bodies", bodies.len())
        }
        _ => sessions(),
    };
    answer(out, &text);
}

fn sessions() -> String {
    let model = match Model::open_default() {
        Ok(model) => model,
        Err(error) => return format!("{error:?}"),
    };
    let mut all = Vec::new();
    loop {
        match Session::open(&model) {
            Ok(session) => all.push(session),
            Err(error) => return format!("{} sessions, then {error:?}", all.len()),
        }
    }
}

hostile::guest!(handle);
