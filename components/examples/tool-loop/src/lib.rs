//! An agent's loop: generate, hear a tool, go on, in one session.
//!
//! The conversation stays where the model is. What a tool says is appended to the
//! session; nothing is rendered, tokenised or computed a second time.
//!
//! The tools' outputs come with the request, so that the same loop can be run by a
//! client that sends the growing conversation again with each step, and be
//! compared (`cargo xtask bench peer -- --only agent`):
//!
//! ```sh
//! cargo build --release --target wasm32-wasip2 -p tool-loop
//! nala-host run target/wasm32-wasip2/release/tool_loop.wasm
//! curl 127.0.0.1:3000 -d '{"system": "You keep a shop.", "task": "What is cheapest?",
//!     "outputs": ["Apples cost 3 coins.", "Pears cost 2 coins."], "tokens": 16}'
//! ```

use nala_sdk::chat::{self, Message};
use nala_sdk::http::{Request, Response};
use nala_sdk::llm::{Bias, GenerateOptions, Grammar, Model, Session};
use nala_sdk::{Error, handler};
use serde::{Deserialize, Serialize};

/// What is asked for.
#[derive(Deserialize)]
struct Job {
    /// What the agent is told about itself.
    system: String,
    /// What it is to do.
    task: String,
    /// What the tools say, one after each turn but the last.
    outputs: Vec<String>,
    /// How many tokens each turn has, to the token: the model cannot end it. With a schema,
    /// how many it has at most.
    tokens: u32,
    /// A JSON Schema that each turn follows, such as that of a tool's calls. What it leaves
    /// no choice in is not generated a token at a time.
    schema: Option<serde_json::Value>,
}

/// What came of it.
#[derive(Serialize)]
struct Report {
    turns: Vec<Turn>,
    /// Tokens of the whole conversation.
    held: u32,
}

#[derive(Serialize)]
struct Turn {
    text: String,
    tokens: usize,
}

fn run(request: Request) -> Result<Response, Error> {
    let job: Job = serde_json::from_slice(&request.bytes()?).map_err(|error| {
        Error::Status(400, format!("send {{\"system\", \"task\", \"outputs\": [], \"tokens\"}} as JSON: {error}"))
    })?;
    let model = Model::open_default()?;
    let options = turn_options(&model, job.tokens);

    let grammar = job.schema.map(|schema| Grammar::json_schema(&model, &schema.to_string())).transpose()?;

    let session = Session::open(&model)?;
    session.prefill(&chat::prompt(&model, &[Message::system(job.system), Message::user(job.task)])?)?;
    let mut turns = vec![take_turn(&session, &options, grammar.as_ref())?];
    for output in job.outputs {
        session.prefill(&chat::behind_turn(&model, &[], vec![Message::user(output)])?)?;
        turns.push(take_turn(&session, &options, grammar.as_ref())?);
    }

    let report = Report { turns, held: session.len() };
    let body = serde_json::to_vec(&report).map_err(|error| Error::Status(500, error.to_string()))?;
    Ok(Response::new(200, "application/json", body))
}

/// So many tokens, the most likely ones, and none that ends the turn.
fn turn_options(model: &Model, tokens: u32) -> GenerateOptions {
    let never = |id| Bias { id, add: f32::NEG_INFINITY };
    GenerateOptions {
        bias: model.end_tokens().into_iter().map(never).collect(),
        // Nobody reads along, so all of a turn may come at once.
        flush_tokens: tokens,
        flush_ms: 60_000,
        ..GenerateOptions::greedy(tokens)
    }
}

fn take_turn(session: &Session, options: &GenerateOptions, grammar: Option<&Grammar>) -> Result<Turn, Error> {
    if let Some(grammar) = grammar {
        session.constrain(grammar)?;
    }
    let mut turn = Turn { text: String::new(), tokens: 0 };
    for chunk in session.generate(options)? {
        let chunk = chunk?;
        turn.text.push_str(&chunk.text);
        turn.tokens += chunk.tokens.len();
    }
    // What a tool says follows no schema of the model's.
    session.unconstrain()?;
    Ok(turn)
}

handler!(run);
