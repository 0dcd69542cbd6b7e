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

/// Asks for all of them at once.
fn together(host: &Arc<Host>, countries: &[&'static str]) -> Vec<String> {
    let threads: Vec<_> = countries
        .iter()
        .map(|country| {
            let (host, country) = (Arc::clone(host), *country);
            std::thread::spawn(move || chat::streamed_text(&chat::stream(&host.url(""), &request(country))))
        })
        .collect();
    threads.into_iter().map(|t| t.join().unwrap()).collect()
}

#[test]
fn the_same_question_sixteen_times_at_once_gets_the_answer_it_gets_alone() {
    let host = Arc::new(Host::up());
    let alone = chat::complete(&host.url(""), &request("France"));
    assert!(alone.contains("Paris"), "{alone}");
    assert_eq!(host.metrics().sum("nala_engine_batch_sequences_max"), 1.0);
    for text in together(&host, &["France"; 16]) {
        assert_eq!(text, alone);
    }
    let largest = host.metrics().sum("nala_engine_batch_sequences_max");
    assert!(largest >= 12.0, "the largest batch had {largest} sequences of 16");
}

/// Prompts that are prefilled beside others go through another attention kernel
/// than alone (see `nala_llama`, "What a batch changes"), so a choice between
/// two words that the model likes about as much may fall otherwise. Words out
/// of another's context never appear.
#[test]
fn sixteen_questions_at_once_are_batched_and_kept_apart() {
    let host = Arc::new(Host::up());
    let alone: Vec<String> = CITIES.iter().map(|c| chat::complete(&host.url(""), &request(c))).collect();
    let together = together(&host, &CITIES);
    let mut same = 0;
    for ((country, alone), together) in CITIES.iter().zip(&alone).zip(&together) {
        let words = alone.split(' ').zip(together.split(' ')).take_while(|(a, b)| a == b).count();
        assert!(alone == together || words >= 4, "{country}: alone {alone:?}, together {together:?}");
        same += usize::from(alone == together);
    }
    assert!(same >= 12, "{same} of 16 texts are the same: {alone:#?} {together:#?}");
    let largest = host.metrics().sum("nala_engine_batch_sequences_max");
    assert!(largest >= 12.0, "the largest batch had {largest} sequences of 16");
}
