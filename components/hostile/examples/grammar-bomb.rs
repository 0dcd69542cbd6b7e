//! Has grammars compiled that are too much work: one of each kind (`/each`), the same one
//! again and again, each kept (`/keep`), or ever new ones without end (`/forever`).

use hostile::wasi::http::types::ResponseOutparam;
use hostile::{Asked, answer};
use nala_sdk::llm::{Error, Grammar, Model};

fn handle(asked: Asked, out: ResponseOutparam) {
    let model = match Model::open_default() {
        Ok(model) => model,
        Err(error) => return answer(out, &format!("{error:?}")),
    };
    let text = match asked.way.as_str() {
        "each" => each(&model),
        "keep" => keep(&model),
        _ => loop {
            std::hint::black_box(
                &large(&model, hostile::wasi::random::random::get_random_u64() as usize % 1000).is_ok(),
            );
        },
    };
    answer(out, &text);
}

/// Only what kind of error it is: the words are for people.
fn kind<T>(result: Result<T, Error>) -> String {
    match result {
        Ok(_) => "compiled".to_owned(),
        Err(error) => format!("{error:?}").split(['(', ' ']).next().unwrap_or_default().to_owned(),
    }
}

fn each(model: &Model) -> String {
    let deep = format!("{}{}", "{\"anyOf\":[".repeat(20_000), "]}".repeat(20_000));
    let itself = r##"{"$ref":"#"}"##;
    let both =
        r##"{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}]}}}"##;
    let kinds = [
        kind(Grammar::json_schema(model, &deep)),
        kind(Grammar::json_schema(model, itself)),
        kind(Grammar::json_schema(model, both)),
        kind(Grammar::regex(model, &format!("(a{{1,1000}}){{1,1000}}{}", "(b|c)*".repeat(1000)))),
        kind(Grammar::regex(model, &"(".repeat(100_000))),
        kind(Grammar::lark(model, "start: start start | start")),
        kind(Grammar::gbnf(model, &format!("root ::= {}", "(".repeat(50_000)))),
    ];
    kinds.join(" ")
}

fn large(model: &Model, n: usize) -> Result<Grammar, Error> {
    Grammar::regex(model, &format!("({}{n})", "(a|b|c|d)*x{1,20}|".repeat(100)))
}

fn keep(model: &Model) -> String {
    let mut kept = Vec::new();
    loop {
        match Grammar::any_json(model) {
            Ok(grammar) => kept.push(grammar),
            Err(error) => return format!("{} kept, then {}", kept.len(), kind::<()>(Err(error))),
        }
    }
}

hostile::guest!(handle);
