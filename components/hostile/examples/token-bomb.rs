//! Hands more to the host in one call than it should take: a list of tokens that is far
//! longer than a context (`/tokens?N`), a text (`/text?N` bytes), tokens to be made into
//! text (`/decode?N`), and thousands of inputs for one embedding (`/inputs?N`).

use hostile::wasi::http::types::ResponseOutparam;
use hostile::{Asked, answer};
use nala_sdk::llm::{Model, Session, embed};

fn handle(asked: Asked, out: ResponseOutparam) {
    let text = match Model::open_default() {
        Ok(model) => bomb(&model, &asked),
        Err(error) => format!("{error:?}"),
    };
    answer(out, &text);
}

fn bomb(model: &Model, asked: &Asked) -> String {
    let n = asked.number(1 << 20);
    match asked.way.as_str() {
        "tokens" => {
            let said = Session::open(model).and_then(|session| session.prefill(&vec![1; n]));
            format!("{:?}", said.map(|info| info.computed))
        }
        "text" => format!("{:?}", model.encode(&"x".repeat(n)).map(|tokens| tokens.len())),
        "decode" => format!("{:?}", model.decode(&vec![1; n]).map(|bytes| bytes.len())),
        _ => format!("{:?}", embed(model, &vec![vec![1]; n]).map(|vectors| vectors.len())),
    }
}

hostile::guest!(handle);
