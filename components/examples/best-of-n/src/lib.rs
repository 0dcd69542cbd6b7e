//! Best of n: several answers to one question, and a judge who reads each where it is.
//!
//! The question is read once and the answers are written as one batch. The judge is the
//! same model: behind each answer, in the session that wrote it, it is asked for a mark,
//! which a grammar holds to a digit. A client would send question and answer again for
//! each mark.
//!
//! ```sh
//! curl 127.0.0.1:3000/best -d '{"question": "Name a fruit and praise it.", "n": 4, "tokens": 32}'
//! ```

use nala_sdk::chat::{self, Message};
use nala_sdk::http::{Request, Response};
use nala_sdk::llm::{Error as LlmError, GenerateOptions, Generation, Grammar, Model, Sampler, Session, Together};
use nala_sdk::{Error, handler};
use serde::{Deserialize, Serialize};

const MARK: &str = "Give your answer a mark from 1, bad, to 9, perfect. Answer with the digit alone.";

/// What is asked for.
#[derive(Deserialize)]
struct Job {
    question: String,
    /// Answers.
    n: u32,
    /// Tokens that each may have.
    tokens: u32,
}

/// What came of it.
#[derive(Serialize)]
struct Report {
    /// The best answer's place.
    best: usize,
    answers: Vec<Answer>,
    /// Tokens of the question, which were read once.
    shared: u32,
    /// Tokens that the judge read for each answer.
    judged: u32,
}

#[derive(Serialize)]
struct Answer {
    text: String,
    mark: u8,
}

fn run(request: Request) -> Result<Response, Error> {
    let job: Job = serde_json::from_slice(&request.bytes()?)
        .map_err(|error| Error::Status(400, format!("send {{\"question\", \"n\", \"tokens\"}} as JSON: {error}")))?;
    if !(1..=16).contains(&job.n) {
        return Err(Error::Status(400, "`n` is from 1 to 16".to_owned()));
    }
    let model = Model::open_default()?;
    let root = Session::open(&model)?;
    root.prefill(&chat::prompt(&model, &[Message::user(job.question)])?)?;
    let sessions: Vec<Session> = (0..job.n).map(|_| root.fork()).collect::<Result<_, _>>()?;
    let write = |(seed, session): (u32, &Session)| {
        let sampler = Sampler { seed: Some(seed.into()), ..Sampler::default() };
        session.generate(&GenerateOptions::new(job.tokens, sampler))
    };
    let texts = read((0..).zip(&sessions).map(write).collect::<Result<_, _>>()?)?;

    let question = chat::behind_turn(&model, &[], vec![Message::user(MARK)])?;
    let digit = Grammar::regex(&model, "[1-9]")?;
    let mark = |session: &Session| -> Result<Generation, LlmError> {
        session.prefill(&question)?;
        session.constrain(&digit)?;
        session.generate(&GenerateOptions::greedy(2))
    };
    let marks = read(sessions.iter().map(mark).collect::<Result<_, _>>()?)?;
    let answers: Vec<Answer> = texts
        .into_iter()
        .zip(marks)
        .map(|(text, mark)| Answer { text, mark: mark.trim().parse().unwrap_or_default() })
        .collect();
    // Of the same mark the first.
    let best = (0..).zip(&answers).max_by_key(|(at, answer)| (answer.mark, std::cmp::Reverse(*at)));
    let best = best.map_or(0, |(at, _): (usize, _)| at);

    let judged = u32::try_from(question.len()).unwrap_or(u32::MAX);
    let report = Report { best, answers, shared: root.len(), judged };
    let body = serde_json::to_vec(&report).map_err(|error| Error::Status(500, error.to_string()))?;
    Ok(Response::new(200, "application/json", body))
}

/// What all of them write, at the same time.
fn read(runs: Vec<Generation>) -> Result<Vec<String>, Error> {
    let mut texts = vec![String::new(); runs.len()];
    for (at, chunk) in Together::new(runs) {
        if let Some(text) = texts.get_mut(at) {
            text.push_str(&chunk?.text);
        }
    }
    Ok(texts)
}

handler!(run);
