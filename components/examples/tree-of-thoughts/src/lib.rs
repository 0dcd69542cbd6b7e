//! A tree of thoughts: from each thought several more, of which the best go on.
//!
//! A thought is a fork of the one before it, so what leads to it is there already, and all
//! thoughts of a level are written as one batch. How good one is the model says in a single
//! step over all of them: how likely it finds "yes" behind a question that is asked in a
//! fork, which is dropped again.
//!
//! ```sh
//! curl 127.0.0.1:3000/tree -d '{"problem": "Make 24 of 4, 6, 8 and 2.", "depth": 2, "breadth": 3, "keep": 2}'
//! ```

use nala_sdk::chat::{self, Message};
use nala_sdk::http::{Request, Response};
use nala_sdk::llm::{GenerateOptions, Model, Reading, Readout, Sampler, Session, Step, Together, submit};
use nala_sdk::{Error, handler};
use serde::{Deserialize, Serialize};

const SYSTEM: &str = "You solve problems by one short thought at a time.";
const ASK: &str = "Is this a good way to go on? Answer yes or no.";
/// The most tokens of a thought.
const THOUGHT: u32 = 24;

/// What is asked for.
#[derive(Deserialize)]
struct Job {
    problem: String,
    /// Thoughts behind each other.
    depth: u32,
    /// Thoughts that go on from each one that is kept.
    breadth: u64,
    /// How many are kept of each level.
    keep: usize,
}

/// What came of it.
#[derive(Serialize)]
struct Report {
    /// The best thoughts, one behind the other.
    best: Vec<String>,
    /// All thoughts of each level with what they were worth, the best first.
    levels: Vec<Vec<Thought>>,
    /// Tokens of the problem, which were read once.
    shared: u32,
}

#[derive(Clone, Serialize)]
struct Thought {
    text: String,
    /// The natural logarithm of how likely "yes" is.
    worth: f32,
}

/// A thought that may go on.
struct Node {
    session: Session,
    path: Vec<String>,
    worth: f32,
}

fn run(request: Request) -> Result<Response, Error> {
    let job: Job = serde_json::from_slice(&request.bytes()?).map_err(|error| {
        Error::Status(400, format!("send {{\"problem\", \"depth\", \"breadth\", \"keep\"}} as JSON: {error}"))
    })?;
    if job.depth == 0 || job.breadth == 0 || job.keep == 0 || u64::from(job.depth) * job.breadth > 64 {
        return Err(Error::Status(400, "`depth`, `breadth` and `keep` are at least 1, and there is an end".to_owned()));
    }
    let model = Model::open_default()?;
    let session = Session::open(&model)?;
    let problem = Message::user(job.problem.as_str());
    session.prefill(&chat::prompt(&model, &[Message::system(SYSTEM), problem])?)?;
    let shared = session.len();
    let mut nodes = vec![Node { session, path: Vec::new(), worth: 0.0 }];
    let mut levels = Vec::new();
    for level in 0..job.depth {
        let mut thoughts = grow(&model, &nodes, job.breadth, level)?;
        judge(&model, &mut thoughts)?;
        thoughts.sort_by(|a, b| b.worth.total_cmp(&a.worth));
        let told = |node: &Node| Thought { text: node.path.last().cloned().unwrap_or_default(), worth: node.worth };
        levels.push(thoughts.iter().map(told).collect());
        // Those that are not kept give up what they hold with the end of this.
        thoughts.truncate(job.keep);
        nodes = thoughts;
    }
    let best = nodes.into_iter().next().map(|node| node.path).unwrap_or_default();
    let body = serde_json::to_vec(&Report { best, levels, shared });
    Ok(Response::new(200, "application/json", body.map_err(|error| Error::Status(500, error.to_string()))?))
}

/// Several thoughts behind each node, written at the same time.
fn grow(model: &Model, nodes: &[Node], breadth: u64, level: u32) -> Result<Vec<Node>, Error> {
    let (mut grown, mut runs) = (Vec::new(), Vec::new());
    let next = match level {
        0 => Vec::new(),
        _ => chat::behind_turn(model, &[], vec![Message::user("The next thought.")])?,
    };
    for (at, node) in nodes.iter().enumerate() {
        for branch in 0..breadth {
            let session = node.session.fork()?;
            if !next.is_empty() {
                session.prefill(&next)?;
            }
            // Each draws otherwise.
            let seed = Some(u32::try_from(at as u64 * breadth + branch).unwrap_or(0));
            let sampler = Sampler { seed: seed.map(Into::into), top_p: 0.95, ..Sampler::default() };
            let options =
                GenerateOptions { stop_text: vec!["\n".to_owned()], ..GenerateOptions::new(THOUGHT, sampler) };
            runs.push(session.generate(&options)?);
            grown.push(Node { session, path: node.path.clone(), worth: 0.0 });
        }
    }
    let mut texts = vec![String::new(); grown.len()];
    for (at, chunk) in Together::new(runs) {
        if let Some(text) = texts.get_mut(at) {
            text.push_str(&chunk?.text);
        }
    }
    grown.iter_mut().zip(texts).for_each(|(node, text)| node.path.push(text.trim().to_owned()));
    Ok(grown)
}

/// Asks of all of them at once how good they are.
fn judge(model: &Model, nodes: &mut [Node]) -> Result<(), Error> {
    let question = chat::behind_turn(model, &[], vec![Message::user(ASK)])?;
    let yes = model.encode("Yes")?.into_iter().next().unwrap_or_default();
    let forks: Vec<Session> = nodes.iter().map(|node| node.session.fork()).collect::<Result<_, _>>()?;
    let readouts = || vec![Readout::LogprobsOf(vec![yes])];
    let steps = forks.iter().map(|session| Step { session, input: question.clone(), readouts: readouts() });
    for (node, readings) in nodes.iter_mut().zip(submit(steps)?.take()?) {
        if let [Reading::Logprobs(logprobs)] = &readings?[..] {
            node.worth = logprobs.first().copied().unwrap_or(f32::NEG_INFINITY);
        }
    }
    Ok(())
}

handler!(run);
