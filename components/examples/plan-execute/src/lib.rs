//! Plan and execute: a plan, all of its steps at once, and what comes of them together.
//!
//! The plan is written once; each step is a fork behind it, so the task and the plan are
//! read once however many steps there are, and all steps are written as one batch. What
//! they say is appended to the session of the plan for the summary.
//!
//! ```sh
//! curl 127.0.0.1:3000/plan -d '{"task": "Prepare a birthday party for a child.", "tokens": 24}'
//! ```

use nala_sdk::chat::{self, Message};
use nala_sdk::http::{Request, Response};
use nala_sdk::llm::{GenerateOptions, Grammar, Model, Session, Together};
use nala_sdk::{Error, handler};
use serde::{Deserialize, Serialize};

const SYSTEM: &str = "You plan and do what you are asked, in few words.";
/// Two to four steps, each a short line.
const PLAN: &str = r"(- [A-Za-z][^\n]{2,60}\n){2,4}";

/// What is asked for.
#[derive(Deserialize)]
struct Job {
    task: String,
    /// Tokens that each step may have, and the summary.
    tokens: u32,
}

/// What came of it.
#[derive(Serialize)]
struct Report {
    plan: Vec<String>,
    results: Vec<String>,
    summary: String,
    /// Tokens that were read for the task and the plan.
    shared: u32,
    /// Those that were read for the steps beside.
    own: u32,
}

fn run(request: Request) -> Result<Response, Error> {
    let job: Job = serde_json::from_slice(&request.bytes()?)
        .map_err(|error| Error::Status(400, format!("send {{\"task\", \"tokens\"}} as JSON: {error}")))?;
    let model = Model::open_default()?;
    let root = Session::open(&model)?;
    let ask = Message::user(format!("Task: {}\nWrite the steps, each on a line that begins with a dash.", job.task));
    root.prefill(&chat::prompt(&model, &[Message::system(SYSTEM), ask])?)?;
    root.constrain(&Grammar::regex(&model, PLAN)?)?;
    let plan = written(&root, 200)?;
    root.unconstrain()?;
    let plan: Vec<String> = plan.lines().filter_map(|line| line.strip_prefix("- ")).map(str::to_owned).collect();
    let shared = root.len();

    let (mut runs, mut own) = (Vec::new(), 0);
    // The forks live as long as their runs.
    for step in &plan {
        let fork = root.fork()?;
        let ask = Message::user(format!("Do this step, in one sentence: {step}"));
        own += fork.prefill(&chat::behind_turn(&model, &[], vec![ask])?)?.computed;
        runs.push(fork.generate(&options(job.tokens))?);
    }
    let mut results = vec![String::new(); plan.len()];
    for (step, chunk) in Together::new(runs) {
        if let Some(result) = results.get_mut(step) {
            result.push_str(&chunk?.text);
        }
    }
    let done: String = plan.iter().zip(&results).map(|(step, result)| format!("{step}: {result}\n")).collect();
    let ask = Message::user(format!("All steps are done:\n{done}Sum up in one sentence."));
    root.prefill(&chat::behind_turn(&model, &[], vec![ask])?)?;
    let summary = written(&root, job.tokens)?;

    let report = Report { plan, results, summary, shared, own };
    let body = serde_json::to_vec(&report).map_err(|error| Error::Status(500, error.to_string()))?;
    Ok(Response::new(200, "application/json", body))
}

/// The most likely tokens. Nobody reads along, so all of them may come at once.
fn options(most: u32) -> GenerateOptions {
    GenerateOptions { flush_tokens: most, flush_ms: 60_000, ..GenerateOptions::greedy(most) }
}

fn written(session: &Session, most: u32) -> Result<String, Error> {
    let mut text = String::new();
    for chunk in session.generate(&options(most))? {
        text.push_str(&chunk?.text);
    }
    Ok(text)
}

handler!(run);
