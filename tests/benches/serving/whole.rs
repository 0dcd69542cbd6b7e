//! The whole way: the real binary, over HTTP, through the components.

use std::io::{BufRead, BufReader};
use std::sync::{Arc, Barrier};
use std::time::Instant;

use nala_e2e::chat;
use nala_e2e::host::Host;

use crate::report::common_rate;

pub(crate) fn start() -> Host {
    Host::up()
}

/// Seconds from a request to the first token of its answer. The prompt has about
/// a thousand tokens, which begin with `head`.
pub(crate) fn first_token(host: &Host, head: &str, question: &str) -> f64 {
    let notes: String = (1..=110).map(|n| format!("Item {n} costs {} coins. ", n * 7 % 50)).collect();
    let mut request = chat::request(question, 1);
    request["messages"] = serde_json::json!([
        {"role": "system", "content": format!("{head} {notes}")},
        {"role": "user", "content": question},
    ]);
    request["stream"] = true.into();
    let begin = Instant::now();
    let response = ureq::post(host.url("/v1/chat/completions"))
        .header("content-type", "application/json")
        .send(request.to_string())
        .expect("the host answers");
    let mut lines = BufReader::new(response.into_body().into_reader()).lines().map_while(Result::ok);
    lines.find(|line| line.contains("\"content\":\"") && !line.contains("\"role\"")).expect("a token");
    let took = begin.elapsed().as_secs_f64();
    lines.for_each(drop);
    took
}

/// Tokens a second as streaming clients see them arrive.
pub(crate) fn rate(host: &Host, streams: u32, tokens: u32) -> f64 {
    let started = Instant::now();
    let barrier = Arc::new(Barrier::new(streams as usize));
    let threads: Vec<_> = (0..streams)
        .map(|_| {
            let (url, barrier) = (host.url("/v1/chat/completions"), Arc::clone(&barrier));
            std::thread::spawn(move || {
                let mut request = chat::request(crate::QUESTION, tokens);
                request["stream"] = true.into();
                // Keeps the model from ending its turn, as the other sides do.
                request["logit_bias"] = serde_json::json!({"0": -100, "2": -100});
                barrier.wait();
                let body = ureq::post(url).header("content-type", "application/json").send(request.to_string());
                let reader = BufReader::new(body.expect("the host answers").into_body().into_reader());
                let mut times = Vec::new();
                for line in reader.lines().map_while(Result::ok) {
                    if line.contains("\"content\":\"") && !line.contains("\"role\"") {
                        times.push(started.elapsed().as_secs_f64());
                    }
                }
                assert!(times.len() as u32 + 8 >= tokens, "{} chunks for {tokens} tokens", times.len());
                times
            })
        })
        .collect();
    let times: Vec<Vec<f64>> = threads.into_iter().map(|t| t.join().expect("a client")).collect();
    // A chunk can carry more than one token, or none of its own: scale to the
    // tokens that were asked for.
    let chunks: usize = times.iter().map(Vec::len).sum();
    common_rate(&times) * f64::from(streams * tokens) / chunks as f64
}
