//! Many at once share batches, and nobody's text changes by it.

use std::sync::Arc;

use nala_e2e::chat;
use nala_e2e::host::Host;

const CITIES: [&str; 16] = [
    "France", "Italy", "Spain", "Japan", "Egypt", "Peru", "Kenya", "Norway", "Greece", "Cuba", "China", "India",
    "Chile", "Poland", "Turkey", "Iran",
];

fn request(country: &str) -> serde_json::Value {
    chat::request(&format!("What is the capital of {country}? Answer with one word."), 24)
}

#[test]
fn sixteen_at_once_are_batched_and_say_what_each_says_alone() {
    let host = Arc::new(Host::up());
    let alone: Vec<String> = CITIES.iter().map(|c| chat::complete(&host.url(""), &request(c))).collect();
    assert!(alone[0].contains("Paris"), "{}", alone[0]);
    assert_eq!(host.metrics().sum("nala_engine_batch_sequences_max"), 1.0);

    let threads: Vec<_> = CITIES
        .iter()
        .map(|country| {
            let host = Arc::clone(&host);
            std::thread::spawn(move || chat::streamed_text(&chat::stream(&host.url(""), &request(country))))
        })
        .collect();
    let together: Vec<String> = threads.into_iter().map(|t| t.join().unwrap()).collect();
    for ((country, alone), together) in CITIES.iter().zip(&alone).zip(&together) {
        assert_eq!(alone, together, "{country}");
    }
    let largest = host.metrics().sum("nala_engine_batch_sequences_max");
    assert!(largest >= 12.0, "the largest batch had {largest} sequences of 16");
}

#[test]
fn the_same_question_sixteen_times_at_once() {
    let host = Arc::new(Host::up());
    let alone = chat::complete(&host.url(""), &request("France"));
    let threads: Vec<_> = (0..16)
        .map(|_| {
            let host = Arc::clone(&host);
            std::thread::spawn(move || chat::complete(&host.url(""), &request("France")))
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), alone);
    }
    assert!(alone.contains("Paris"), "{alone}");
}
