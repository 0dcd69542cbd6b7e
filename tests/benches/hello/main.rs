//! What a handler that says hello costs beside `wasmtime serve`: requests a second and
//! how long each takes, for the same component, with the same client, in turns.
//!
//! `cargo xtask bench hello -- [--rounds N] [--seconds N] [--connections N]`

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark: it prints, and a failure ends it"
)]

mod client;
mod peer;

use std::path::Path;
use std::time::Duration;

use nala_e2e::guests;
use nala_e2e::host::Host;

use client::Seen;
use peer::Peer;

struct Settings {
    /// The program `wasmtime`.
    peer: String,
    rounds: usize,
    seconds: u64,
    connections: usize,
}

impl Settings {
    fn from_args() -> Self {
        let args: Vec<String> = std::env::args().collect();
        let value = |name: &str| args.iter().position(|a| a == name).and_then(|at| args.get(at + 1));
        let number = |name: &str, default| value(name).map_or(default, |v| v.parse().expect("a number"));
        Self {
            peer: value("--peer-command").expect("--peer-command says where wasmtime is").clone(),
            rounds: number("--rounds", 5),
            seconds: number("--seconds", 4) as u64,
            connections: number("--connections", 32),
        }
    }
}

fn main() {
    let settings = Settings::from_args();
    println!(
        "{} rounds of {} s on each side in turns, {} connections; medians over rounds, times in ms",
        settings.rounds, settings.seconds, settings.connections
    );
    // Each of our requests has an instance of its own. The peer does the same for WASI 0.2;
    // for 0.3 it gives an instance to many requests, unless it is told not to.
    for (interfaces, guest, flags) in [
        ("WASI 0.2", "hello", &[][..]),
        ("WASI 0.3", "hello-async", &["-Wcomponent-model-async=y", "-Sp3=y", "--max-instance-reuse-count=1"][..]),
        ("0.3, reused", "hello-async", &["-Wcomponent-model-async=y", "-Sp3=y"][..]),
    ] {
        beside(&settings, interfaces, &guests::guest("host/wasm/guests", guest), flags);
    }
}

/// Measures both sides in turns, and prints what each came to.
fn beside(settings: &Settings, interfaces: &str, wasm: &Path, flags: &[&str]) {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    // The first round warms code and caches.
    for round in 0..=settings.rounds {
        let host = Host::start(["run".as_ref(), wasm.as_os_str(), "--log-level".as_ref(), "error".as_ref()]);
        let our = measure(settings, &host.address);
        drop(host);
        let peer = Peer::start(&settings.peer, wasm, flags);
        let their = measure(settings, &peer.address);
        drop(peer);
        if round > 0 {
            ours.push(our);
            theirs.push(their);
        }
    }
    println!("\n{interfaces:<16} {:>12} {:>10} {:>10} {:>8}", "requests/s", "p50", "p99", "errors");
    let (our, their) = (Figures::of(&ours), Figures::of(&theirs));
    our.print("nala-host");
    their.print("wasmtime serve");
    println!(
        "{:<16} {:>12.2} {:>10.2} {:>10.2}",
        "ratio",
        our.rate / their.rate,
        our.p50 / their.p50,
        our.p99 / their.p99
    );
}

fn measure(settings: &Settings, address: &str) -> Seen {
    client::ask(address, Duration::from_millis(500), settings.connections);
    client::ask(address, Duration::from_secs(settings.seconds), settings.connections)
}

/// Medians over rounds.
struct Figures {
    rate: f64,
    p50: f64,
    p99: f64,
    errors: usize,
}

impl Figures {
    fn of(rounds: &[Seen]) -> Self {
        let median = |of: &dyn Fn(&Seen) -> f64| {
            let mut all: Vec<f64> = rounds.iter().map(of).collect();
            all.sort_by(f64::total_cmp);
            all[all.len() / 2]
        };
        Self {
            rate: median(&|seen| seen.rate),
            p50: median(&|seen| seen.quantile(0.5)),
            p99: median(&|seen| seen.quantile(0.99)),
            errors: rounds.iter().map(|seen| seen.errors).sum(),
        }
    }

    fn print(&self, side: &str) {
        println!("{side:<16} {:>12.0} {:>10.3} {:>10.3} {:>8}", self.rate, self.p50 * 1e3, self.p99 * 1e3, self.errors);
    }
}
