//! What serving costs over a bare decode loop, and what instances cost.
//!
//! One run prints, beside each other: a bare `llama_decode` loop, the engine,
//! and the whole way through HTTP and components, for 1 and 8 streams; how long
//! an instance takes; what a call into the host costs. The sides alternate
//! within each round, and the bare loop runs twice in it, so that the noise of
//! the machine is seen beside the differences.
//!
//! `cargo xtask bench -- [--rounds N] [--tokens N] [--only decode|instances|idle]`

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark: it prints, and a failure ends it"
)]

mod decode;
mod idle;
mod instances;
mod report;
mod whole;

use report::Table;

/// The prompt of every stream, as the chat template renders it.
const QUESTION: &str = "Write a long story about a fox.";

struct Settings {
    rounds: usize,
    tokens: u32,
    /// The one part to run.
    only: Option<String>,
}

impl Settings {
    fn from_args() -> Self {
        let args: Vec<String> = std::env::args().collect();
        let value = |name: &str| args.iter().position(|a| a == name).and_then(|at| args.get(at + 1));
        let number = |name: &str, default| value(name).map_or(default, |v| v.parse().expect("a number"));
        Self { rounds: number("--rounds", 5), tokens: number("--tokens", 128) as u32, only: value("--only").cloned() }
    }

    fn wants(&self, part: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only == part)
    }
}

fn main() {
    let settings = Settings::from_args();
    if settings.wants("decode") {
        print_decode(&settings);
    }
    if settings.wants("instances") {
        instances::print();
    }
    if settings.wants("idle") {
        idle::print();
    }
}

/// Measures after a while of nothing: the threads of the side before spin for some
/// tenths of a second before they sleep, and would take the cores from this one.
fn quiet(measure: impl FnOnce() -> f64) -> f64 {
    std::thread::sleep(std::time::Duration::from_secs(1));
    measure()
}

/// A new prompt against one whose beginning was computed before, in turns.
fn print_first_token(host: &nala_e2e::host::Host, rounds: usize) {
    let (mut cold, mut cached) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let head = format!("List number {round} of {}.", std::process::id());
        cold.push(whole::first_token(host, &head, "What does item 3 cost?"));
        cached.push(whole::first_token(host, &head, "Which item costs most?"));
    }
    cold.sort_by(f64::total_cmp);
    cached.sort_by(f64::total_cmp);
    let (cold, cached) = (report::quantile(&cold, 0.5), report::quantile(&cached, 0.5));
    println!(
        "\nTime to first token over HTTP, a prompt of about 1,000 tokens, ms (medians):\n\
         new {:.0}, with a known beginning {:.0}: {:.1} times as fast",
        cold * 1e3,
        cached * 1e3,
        cold / cached
    );
}

fn print_decode(settings: &Settings) {
    let bench = decode::Bench::new(settings.tokens);
    let host = whole::start();
    println!(
        "{} rounds of {} tokens a stream after a prompt of {}",
        settings.rounds,
        settings.tokens,
        bench.prompt_len()
    );
    for streams in [1, 8] {
        let mut table = Table::new(streams);
        for round in 0..=settings.rounds {
            let bare = quiet(|| bench.bare(streams));
            let engine = quiet(|| bench.engine(streams));
            let whole = quiet(|| whole::rate(&host, streams, settings.tokens));
            let again = quiet(|| bench.bare(streams));
            // The first round warms caches and code.
            if round > 0 {
                table.add(bare, engine, whole, again);
            }
        }
        table.print();
    }
    print_first_token(&host, settings.rounds);
    drop(host);
    bench.end();
}
