//! Several answers that go on from one beginning: a tree, one level deep.
//!
//! The beginning is computed once. Each branch is a fork that shares its state,
//! and all branches are generated at once, as one batch.
//!
//! ```sh
//! cargo build --release --target wasm32-wasip2 -p branches
//! nala-host run target/wasm32-wasip2/release/branches.wasm
//! curl 127.0.0.1:3000 -d '{"system": "You keep a shop. Apples cost 3 coins.",
//!     "branches": ["What do apples cost?", "Praise the apples."], "tokens": 16}'
//! ```

use nala_sdk::chat::{self, Message};
use nala_sdk::http::{Request, Response};
use nala_sdk::llm::{Bias, GenerateOptions, Generation, Model, Session, Token};
use nala_sdk::{Error, handler};
use serde::{Deserialize, Serialize};

/// What is asked for.
#[derive(Deserialize)]
struct Job {
    /// What all branches begin with.
    system: String,
    /// What each of them goes on with.
    branches: Vec<String>,
    /// How many tokens each answer has, to the token: the model cannot end it.
    tokens: u32,
}

/// What came of it.
#[derive(Serialize)]
struct Report {
    answers: Vec<Answer>,
    /// Tokens of the beginning, which was computed once.
    shared: usize,
}

#[derive(Serialize)]
struct Answer {
    text: String,
    tokens: usize,
    /// Tokens of the whole prompt.
    prompt: usize,
}

fn run(request: Request) -> Result<Response, Error> {
    let job: Job = serde_json::from_slice(&request.bytes()?).map_err(|error| {
        Error::Status(400, format!("send {{\"system\", \"branches\": [], \"tokens\"}} as JSON: {error}"))
    })?;
    let model = Model::open_default()?;
    let prompts = prompts(&model, &job)?;
    let shared = common_beginning(&prompts);

    let root = Session::open(&model)?;
    root.prefill(prompts.first().and_then(|prompt| prompt.get(..shared)).unwrap_or_default())?;
    let mut running = Vec::new();
    for prompt in &prompts {
        let branch = root.fork()?;
        branch.prefill(prompt.get(shared..).unwrap_or_default())?;
        running.push((branch.generate(&options(&model, job.tokens))?, prompt.len()));
    }
    // They are generated together, whichever is read first.
    let answers = running.into_iter().map(|(run, prompt)| read(run, prompt)).collect::<Result<_, _>>()?;

    let report = Report { answers, shared };
    let body = serde_json::to_vec(&report).map_err(|error| Error::Status(500, error.to_string()))?;
    Ok(Response::new(200, "application/json", body))
}

/// The whole prompt of each branch.
fn prompts(model: &Model, job: &Job) -> Result<Vec<Vec<Token>>, Error> {
    let prompt =
        |branch: &String| chat::prompt(model, &[Message::system(job.system.clone()), Message::user(branch.clone())]);
    job.branches.iter().map(prompt).collect()
}

/// How many tokens all prompts begin with. Each keeps one of its own, from which
/// its first token follows.
fn common_beginning(prompts: &[Vec<Token>]) -> usize {
    let Some((first, others)) = prompts.split_first() else { return 0 };
    let same = |other: &Vec<Token>| first.iter().zip(other).take_while(|(a, b)| a == b).count();
    let shortest = prompts.iter().map(Vec::len).min().unwrap_or(0).saturating_sub(1);
    others.iter().map(same).min().unwrap_or(shortest).min(shortest)
}

/// So many tokens, the most likely ones, and none that ends the turn.
fn options(model: &Model, tokens: u32) -> GenerateOptions {
    let never = |id| Bias { id, add: f32::NEG_INFINITY };
    GenerateOptions {
        bias: model.end_tokens().into_iter().map(never).collect(),
        // Nobody reads along, so all of an answer may come at once.
        flush_tokens: tokens,
        flush_ms: 60_000,
        ..GenerateOptions::greedy(tokens)
    }
}

fn read(run: Generation, prompt: usize) -> Result<Answer, Error> {
    let mut answer = Answer { text: String::new(), tokens: 0, prompt };
    for chunk in run {
        let chunk = chunk?;
        answer.text.push_str(&chunk.text);
        answer.tokens += chunk.tokens.len();
    }
    Ok(answer)
}

handler!(run);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_prompt_keeps_a_token_of_its_own() {
        assert_eq!(common_beginning(&[vec![1, 2, 3, 4], vec![1, 2, 5, 4]]), 2);
        assert_eq!(common_beginning(&[vec![1, 2, 3], vec![1, 2]]), 1);
        assert_eq!(common_beginning(&[vec![1, 2, 3], vec![1, 2, 3]]), 2);
        assert_eq!(common_beginning(&[vec![1, 2, 3]]), 2);
        assert_eq!(common_beginning(&[vec![7], vec![8]]), 0);
        assert_eq!(common_beginning(&[]), 0);
    }
}
