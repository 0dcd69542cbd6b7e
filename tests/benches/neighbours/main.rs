//! What a tenant notices of hostile neighbours: how long it waits for each token of a
//! stream, and for the answer of a handler.
//!
//! The tenant `good` streams chat completions one after another, and beside that asks a
//! handler that says hello. It does so alone, then while the tenant `bad` has one hostile
//! guest, or one kind of hostile client, run on all connections that it may have and more.
//! Quiet phases stand between all others, and each ratio is to the quiet phases around it;
//! how two quiet phases differ is what the machine's noise alone makes of a figure.
//!
//! `cargo xtask bench neighbours -- [--rounds N] [--seconds N] [--connections N] [--only NAME,…]`

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark: it prints, and a failure ends it"
)]

mod good;
mod noise;
mod report;

use std::time::Duration;

use nala_e2e::hostile::{Site, Terms};

use noise::{ALL, Noise};
use report::Table;

/// `bad` has what it may have at a time, and no end of minutes: else most of a run would
/// measure how it is refused.
const LIMITS: &str = "requests_per_minute = \"unlimited\"\ncpu_per_minute = \"unlimited\"\n\
                      tokens_in_per_minute = \"unlimited\"\ntokens_out_per_minute = \"unlimited\"";

struct Settings {
    rounds: usize,
    seconds: u64,
    connections: usize,
    only: Vec<String>,
}

impl Settings {
    fn from_args() -> Self {
        let args: Vec<String> = std::env::args().collect();
        let value = |name: &str| args.iter().position(|a| a == name).and_then(|at| args.get(at + 1));
        let number = |name: &str, default| value(name).map_or(default, |v| v.parse().expect("a number"));
        let only = value("--only").map(|names| names.split(',').map(str::to_owned).collect());
        Self {
            rounds: number("--rounds", 3),
            seconds: number("--seconds", 5) as u64,
            connections: number("--connections", 48),
            only: only.unwrap_or_default(),
        }
    }

    fn wants(&self, noise: &Noise) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == noise.name)
    }
}

fn main() {
    let settings = Settings::from_args();
    let site = Site::start(&Terms { cpu: "1s", wall: "10s", limits: LIMITS, args: &["--log-level", "error"] });
    let length = Duration::from_secs(settings.seconds);
    let wanted: Vec<&Noise> = ALL.iter().filter(|noise| settings.wants(noise)).collect();
    println!(
        "{} rounds, {} s a phase, {} connections of the neighbour; times in ms, ratios to the quiet phases around",
        settings.rounds, settings.seconds, settings.connections
    );
    let mut table = Table::default();
    // Warms code, caches and the model.
    good::measure(&site, Duration::from_secs(2));
    for _ in 0..settings.rounds {
        let mut before = good::measure(&site, length);
        for noise in &wanted {
            let running = noise.start(&site, settings.connections);
            // What was idle is busy now, and what was at rest has begun.
            std::thread::sleep(Duration::from_millis(500));
            let beside = good::measure(&site, length);
            let outcomes = running.stop();
            site.until_empty(&["saved_sessions", "snapshot_bytes"]);
            let after = good::measure(&site, length);
            table.add(noise.name, &before, &beside, &after, outcomes);
            before = after;
        }
    }
    table.print();
}
