//! Nala and a llama-server in one run, over HTTP, with the same model, threads
//! and KV settings, and the same prompts.
//!
//! The sides take turns within each round, and ours has two turns in it, before
//! and after the peer's: how the two differ is what the machine's noise alone
//! makes of a figure. All answers are greedy and of the same number of tokens,
//! which is checked and printed.
//!
//! `cargo xtask bench peer -- [OPTIONS]`; `--help` lists them.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark: it prints, and a failure ends it"
)]

mod client;
mod prompts;
mod report;
mod scenario;
mod server;
mod settings;

use settings::Settings;

fn main() {
    let settings = match Settings::from_args(std::env::args().skip(1)) {
        Ok(settings) => settings,
        Err(text) => {
            println!("{text}");
            std::process::exit(2);
        }
    };
    println!("{}", settings.describe());
    for (name, run) in scenario::ALL {
        if settings.wants(name) {
            run(&settings);
        }
    }
}
