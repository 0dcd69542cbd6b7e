//! An agent that calls tools: its loop beside the KV cache, and a client that
//! sends the growing conversation again with each step.

use std::time::Instant;

use nala_e2e::guests;
use serde_json::{Value, json};

use crate::client::{self, Client, Usage};
use crate::prompts::{self, Seed};
use crate::report::{Side, Turn, Unit, compare};
use crate::server::{Ours, Peer, Serve};
use crate::settings::Settings;

/// Calls of tools; the agent has a turn before each and one after the last.
const CALLS: u32 = 8;
const TASK: &str = "Find the cheapest item. Call the tool look-up until you know it.";

/// Turns of free text, as long on both sides.
pub(crate) fn run(settings: &Settings) {
    let tokens = (settings.tokens / 4).max(1);
    let title =
        format!("An agent with {CALLS} tool calls, {tokens} tokens a turn; the peer is sent all of it each time");
    measure(settings, &title, &Turns { tokens, schema: None, kept: Kept::Slot });
}

/// The same beside a server that keeps nothing between requests.
pub(crate) fn run_afresh(settings: &Settings) {
    let tokens = (settings.tokens / 4).max(1);
    let title = format!(
        "An agent with {CALLS} tool calls, {tokens} tokens a turn; the peer keeps nothing between requests \
         (cache_prompt: false)"
    );
    measure(settings, &title, &Turns { tokens, schema: None, kept: Kept::Nothing });
}

/// Turns that are calls of a tool, held to its schema on both sides. What the schema leaves
/// no choice in costs each side what it does; white space between is a side's own affair.
pub(crate) fn run_by_schema(settings: &Settings) {
    let title =
        format!("An agent with {CALLS} tool calls, each by the tool's schema; the peer is sent all of it each time");
    measure(settings, &title, &Turns { tokens: MOST, schema: Some(call_schema()), kept: Kept::Slot });
}

/// What the turns are on both sides, and what the peer keeps between them.
struct Turns {
    tokens: u32,
    schema: Option<Value>,
    kept: Kept,
}

/// What the peer has of what came before.
#[derive(Clone, Copy)]
enum Kept {
    /// Its own cache: each request goes to the slot that holds the conversation, and
    /// nobody else uses it.
    Slot,
    /// Nothing, as with a server without such a cache, or with one that others have
    /// filled meanwhile.
    Nothing,
}

/// More than a call by the schema has.
const MOST: u32 = 200;

/// Calls of one tool, as `tool_choice` has them: a name, and its arguments.
fn call_schema() -> Value {
    let arguments = json!({
        "type": "object",
        "properties": {
            "item_number": {"type": "integer", "minimum": 1, "maximum": 72},
            "shop": {"enum": ["north", "south", "market"]},
            "include_delivery": {"type": "boolean"},
        },
        "required": ["item_number", "shop", "include_delivery"],
        "additionalProperties": false,
    });
    json!({
        "type": "object",
        "properties": {"name": {"const": "look_up_price"}, "arguments": arguments},
        "required": ["name", "arguments"],
        "additionalProperties": false,
    })
}

fn measure(settings: &Settings, title: &str, turns: &Turns) {
    let guest = guests::guest("components", "tool-loop");
    let ours = Ours::start(settings, Serve::Handler(&guest));
    let peer = Peer::start(settings, &[]);
    let mut alike = Alike::default();
    compare(settings, title, &[("the whole loop", Unit::Time)], |side, seed| {
        let job = Job::new(seed, turns);
        let begin = Instant::now();
        let (texts, usage) = match side {
            Side::Ours => beside(&ours.client, &job),
            Side::Peer => resending(&peer.client, &job),
        };
        let took = begin.elapsed().as_secs_f64();
        alike.note(side, seed, texts);
        Turn { figures: vec![took * 1e3], usage }
    });
    println!("turns with the same text on both sides: {} of {}", alike.same, alike.all);
}

struct Job {
    system: String,
    outputs: Vec<String>,
    tokens: u32,
    /// What each turn follows.
    schema: Option<Value>,
    kept: Kept,
}

impl Job {
    fn new(seed: Seed, turns: &Turns) -> Self {
        let output = |call: u32| {
            let lines: String =
                (1..=8).map(|n| format!("Item {} costs {} coins. ", call * 8 + n, n * 7 % 50)).collect();
            format!("look-up says: {lines}")
        };
        Self {
            system: prompts::price_list(seed, 4),
            outputs: (0..CALLS).map(output).collect(),
            tokens: turns.tokens,
            schema: turns.schema.clone(),
            kept: turns.kept,
        }
    }
}

/// One request to the component that runs the loop.
fn beside(client: &Client, job: &Job) -> (Vec<String>, Usage) {
    let body = json!({
        "system": job.system, "task": TASK, "outputs": job.outputs, "tokens": job.tokens, "schema": job.schema,
    });
    let report = client.ask("/", &body);
    let turns = report["turns"].as_array().expect("turns");
    let text = |turn: &Value| turn["text"].as_str().expect("a text").to_owned();
    let completion = turns.iter().map(|turn| turn["tokens"].as_u64().expect("a number")).sum();
    // What was read and not generated; all of it was read once.
    let prompt = report["held"].as_u64().expect("a number") - completion;
    let turns: Vec<String> = turns.iter().map(text).collect();
    check(job, &turns);
    (turns, Usage { prompt, cached: 0, completion })
}

/// A request a turn, always to the slot that holds what came before.
fn resending(client: &Client, job: &Job) -> (Vec<String>, Usage) {
    let mut messages = vec![json!({"role": "system", "content": job.system}), json!({"role": "user", "content": TASK})];
    let (mut turns, mut usage) = (Vec::new(), Usage::default());
    for output in job.outputs.iter().map(Some).chain([None]) {
        let messages_now = Value::Array(messages.clone());
        let mut request = match &job.schema {
            None => client::request(&messages_now, job.tokens),
            Some(schema) => {
                let mut request = client::open_request(&messages_now, job.tokens);
                let schema = json!({"name": "call", "strict": true, "schema": schema});
                request["response_format"] = json!({"type": "json_schema", "json_schema": schema});
                request
            }
        };
        request["cache_prompt"] = matches!(job.kept, Kept::Slot).into();
        request["id_slot"] = 0.into();
        let (text, of_turn) = client.complete(&request);
        usage = usage.plus(of_turn);
        messages.push(json!({"role": "assistant", "content": text}));
        messages.extend(output.map(|output| json!({"role": "user", "content": output})));
        turns.push(text);
    }
    check(job, &turns);
    (turns, usage)
}

/// Turns by a schema are whole calls.
fn check(job: &Job, turns: &[String]) {
    for turn in turns.iter().filter(|_| job.schema.is_some()) {
        let call: Value = serde_json::from_str(turn).unwrap_or_else(|error| panic!("no call, {error}: {turn}"));
        assert!(call["arguments"]["include_delivery"].is_boolean(), "not by the schema: {turn}");
    }
}

/// How many turns have the same text on both sides. Both are as long, but other
/// kernels round otherwise and so decide ties otherwise, and text that is sent
/// again can become other tokens.
#[derive(Default)]
struct Alike {
    ours: Option<(u32, Vec<String>)>,
    same: usize,
    all: usize,
}

impl Alike {
    fn note(&mut self, side: Side, seed: Seed, turns: Vec<String>) {
        match (side, self.ours.take()) {
            (Side::Ours, _) => self.ours = Some((seed.0, turns)),
            (Side::Peer, Some((of, ours))) if of == seed.0 => {
                self.all += turns.len();
                self.same += turns.iter().zip(&ours).filter(|(theirs, ours)| theirs == ours).count();
            }
            (Side::Peer, _) => {}
        }
    }
}
