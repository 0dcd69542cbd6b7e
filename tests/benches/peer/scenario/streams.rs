//! Decode rates of one stream and of many.

use std::sync::{Arc, Barrier};
use std::time::Instant;

use crate::client::{self, Answer, Client, Usage};
use crate::prompts::{self, Seed};
use crate::report::{Side, Turn, Unit, compare};
use crate::server::{Ours, Peer, Serve};
use crate::settings::Settings;

/// One stream: nothing but decoding counts.
pub(crate) fn one(settings: &Settings) {
    let (ours, peer) = start(settings);
    compare(settings, "One stream", &[("decode", Unit::Rate)], |side, seed| {
        let client = pick(side, &ours, &peer);
        let answer = client.stream(&client::request(&prompts::story(seed, 0), settings.tokens));
        Turn { figures: vec![answer.decode_rate()], usage: answer.usage }
    });
}

/// Several at once, each with a prompt of its own, from the first request to the
/// last token of all.
pub(crate) fn many(settings: &Settings) {
    for &streams in &settings.streams {
        // New servers for each number: what the others left in the caches would
        // be in the way of these.
        let (ours, peer) = start(settings);
        let title = format!("{streams} stream{} at once", if streams == 1 { "" } else { "s" });
        compare(settings, &title, &[("all tokens, prompts included", Unit::Rate)], |side, seed| {
            let (answers, took) = at_once(pick(side, &ours, &peer), seed, streams, settings.tokens);
            let usage = answers.iter().fold(Usage::default(), |sum, answer| sum.plus(answer.usage));
            Turn { figures: vec![usage.completion as f64 / took], usage }
        });
    }
}

fn start(settings: &Settings) -> (Ours, Peer) {
    (Ours::start(settings, Serve::Api), Peer::start(settings, &[]))
}

fn pick<'a>(side: Side, ours: &'a Ours, peer: &'a Peer) -> &'a Client {
    match side {
        Side::Ours => &ours.client,
        Side::Peer => &peer.client,
    }
}

/// The answers, and the seconds that all of them took.
fn at_once(client: &Client, seed: Seed, streams: u32, tokens: u32) -> (Vec<Answer>, f64) {
    let barrier = Arc::new(Barrier::new(streams as usize + 1));
    let threads: Vec<_> = (0..streams)
        .map(|n| {
            let (client, barrier) = (client.clone(), Arc::clone(&barrier));
            let request = client::request(&prompts::story(seed, n), tokens);
            std::thread::spawn(move || {
                barrier.wait();
                client.stream(&request)
            })
        })
        .collect();
    barrier.wait();
    let begin = Instant::now();
    let answers = threads.into_iter().map(|thread| thread.join().expect("a client")).collect();
    (answers, begin.elapsed().as_secs_f64())
}
