//! Branches that go on from one beginning.
//!
//! llama-server has no fork. Three ways to do without are measured: to ask for
//! the beginning, then for all branches in parallel, of which one finds the
//! beginning in its slot; to ask for one branch after the other in that slot; and
//! to save the slot's state to a file and restore it into as many slots as there
//! are branches, which is the best of them. (Its option `n` copies the state, but
//! the copies' slots are empty afterwards.)

use std::path::Path;
use std::time::Instant;

use nala_e2e::guests;
use serde_json::{Value, json};

use crate::client::{self, Client, Usage};
use crate::prompts::{self, Seed};
use crate::report::{Side, Turn, Unit, compare};
use crate::server::{Ours, Peer, Serve};
use crate::settings::Settings;

/// How many there are.
pub(crate) const BRANCHES: u32 = 8;
/// A list of so many items is a beginning of about 500 tokens.
const ITEMS: u32 = 49;

/// How the peer is asked.
type Way = fn(&Client, &Job) -> Usage;

pub(crate) fn run(settings: &Settings) {
    let guest = guests::guest("components", "branches");
    let files = tempfile::tempdir().expect("a folder for the peer's slots");
    // By default the peer empties slots that wait when another one is used, and with
    // them the beginning.
    let kept: &[&str] = &["--no-cache-idle-slots"];
    measure(settings, &guest, "all at once after a request for the beginning", &[kept], parallel);
    measure(settings, &guest, "one after the other in the slot of the beginning", &[kept], in_turn);
    let folder = format!("{}/", files.path().display());
    let options: [&[&str]; 2] = [kept, &["--slot-save-path", &folder]];
    measure(settings, &guest, "all at once, the beginning restored into each slot", &options, restored);
}

fn measure(settings: &Settings, guest: &Path, how: &str, options: &[&[&str]], way: Way) {
    let ours = Ours::start(settings, Serve::Handler(guest));
    let peer = Peer::start(settings, options);
    let tokens = (settings.tokens / 2).max(1);
    let title = format!("A tree of {BRANCHES} branches of {tokens} tokens; the peer is asked for {how}");
    compare(settings, &title, &[("the whole tree", Unit::Time)], |side, seed| {
        let job = Job::new(seed, tokens);
        let begin = Instant::now();
        let usage = match side {
            Side::Ours => forking(&ours.client, &job),
            Side::Peer => way(&peer.client, &job),
        };
        Turn { figures: vec![begin.elapsed().as_secs_f64() * 1e3], usage }
    });
}

struct Job {
    list: String,
    questions: Vec<String>,
    tokens: u32,
}

impl Job {
    fn new(seed: Seed, tokens: u32) -> Self {
        let questions = (1..=BRANCHES).map(|n| format!("Tell me all about item {n}.")).collect();
        Self { list: prompts::price_list(seed, ITEMS), questions, tokens }
    }

    fn request(&self, question: &str, tokens: u32, slot: usize) -> Value {
        let mut request = client::request(&prompts::about(&self.list, question), tokens);
        request["cache_prompt"] = true.into();
        request["id_slot"] = slot.into();
        request
    }

    /// Has the peer compute the beginning in the first slot, all but the words
    /// of the branches.
    fn begin(&self, client: &Client) {
        client.complete(&self.request("", 1, 0));
    }

    /// All branches in parallel, each in a slot of its own.
    fn all(&self, client: &Client) -> Usage {
        let answers: Vec<Usage> = std::thread::scope(|scope| {
            let ask = |(slot, question): (usize, &String)| {
                let (client, request) = (client.clone(), self.request(question, self.tokens, slot));
                scope.spawn(move || client.complete(&request).1)
            };
            let threads: Vec<_> = self.questions.iter().enumerate().map(ask).collect();
            threads.into_iter().map(|thread| thread.join().expect("a client")).collect()
        });
        answers.into_iter().fold(Usage::default(), Usage::plus)
    }
}

/// One request to the component that forks.
fn forking(client: &Client, job: &Job) -> Usage {
    let report = client.ask("/", &json!({"system": job.list, "branches": job.questions, "tokens": job.tokens}));
    let answers = report["answers"].as_array().expect("answers");
    let sum = |field: &str| answers.iter().map(|answer| answer[field].as_u64().expect("a number")).sum();
    let shared = report["shared"].as_u64().expect("a number");
    // One branch had to compute it.
    Usage { prompt: sum("prompt"), cached: shared * u64::from(BRANCHES - 1), completion: sum("tokens") }
}

fn parallel(client: &Client, job: &Job) -> Usage {
    job.begin(client);
    job.all(client)
}

fn in_turn(client: &Client, job: &Job) -> Usage {
    // The first branch computes the beginning.
    let ask = |question: &String| client.complete(&job.request(question, job.tokens, 0)).1;
    job.questions.iter().map(ask).fold(Usage::default(), Usage::plus)
}

fn restored(client: &Client, job: &Job) -> Usage {
    job.begin(client);
    let file = json!({"filename": "beginning"});
    client.ask("/slots/0?action=save", &file);
    for slot in 1..BRANCHES {
        client.ask(&format!("/slots/{slot}?action=restore"), &file);
    }
    job.all(client)
}
