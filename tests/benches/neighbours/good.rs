//! The honest tenant, and how long it waits.

use std::io::{BufRead, BufReader};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nala_e2e::chat;
use nala_e2e::hostile::{Site, ask};

/// Tokens of an answer.
const TOKENS: u32 = 48;

/// What it saw, in seconds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    /// Between two tokens of a stream.
    pub(crate) gaps: Vec<f64>,
    /// From a request to the first token of its stream.
    pub(crate) firsts: Vec<f64>,
    /// From a request to the end of the handler's answer.
    pub(crate) hellos: Vec<f64>,
    pub(crate) errors: usize,
}

impl Seen {
    pub(crate) fn append(&mut self, other: &Self) {
        self.gaps.extend(&other.gaps);
        self.firsts.extend(&other.firsts);
        self.hellos.extend(&other.hellos);
        self.errors += other.errors;
    }
}

/// Asks for so long.
pub(crate) fn measure(site: &Site, length: Duration) -> Seen {
    let end = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let hellos = scope.spawn(|| hellos(site, &end));
        let streams = scope.spawn(|| streams(site, &end));
        std::thread::sleep(length);
        end.store(true, Ordering::Relaxed);
        let (mut seen, streams) = (hellos.join().expect("a client"), streams.join().expect("a client"));
        seen.append(&streams);
        seen
    })
}

fn hellos(site: &Site, end: &AtomicBool) -> Seen {
    let mut seen = Seen::default();
    let url = site.host.url("/hello");
    while !end.load(Ordering::Relaxed) {
        let begin = Instant::now();
        let answer = ask(&url, &site.good);
        match (answer.status, answer.text.as_str()) {
            (200, "hello") => seen.hellos.push(begin.elapsed().as_secs_f64()),
            _ => seen.errors += 1,
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    seen
}

fn streams(site: &Site, end: &AtomicBool) -> Seen {
    let mut seen = Seen::default();
    while !end.load(Ordering::Relaxed) {
        if stream(site, &mut seen).is_none() {
            seen.errors += 1;
        }
    }
    seen
}

/// None: it failed, or did not end as it should.
fn stream(site: &Site, seen: &mut Seen) -> Option<()> {
    let mut request = chat::request("Write a long story about a fox.", TOKENS);
    request["stream"] = true.into();
    // Keeps the model from ending its turn.
    request["logit_bias"] = serde_json::json!({"0": -100, "2": -100});
    let begin = Instant::now();
    let response = ureq::post(site.host.url("/v1/chat/completions"))
        .header("content-type", "application/json")
        .header("x-api-key", &site.good)
        .send(request.to_string())
        .ok()?;
    let mut last = None;
    for line in BufReader::new(response.into_body().into_reader()).lines() {
        let line = line.ok()?;
        if line == "data: [DONE]" {
            return Some(());
        }
        if line.contains("\"content\":\"") && !line.contains("\"role\"") {
            let now = Instant::now();
            match last.replace(now) {
                None => seen.firsts.push((now - begin).as_secs_f64()),
                Some(last) => seen.gaps.push((now - last).as_secs_f64()),
            }
        }
    }
    None
}
