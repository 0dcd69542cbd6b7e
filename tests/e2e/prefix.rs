//! What was computed for one request is not computed again for the next.

use nala_e2e::chat;
use nala_e2e::host::Host;
use serde_json::{Value, json};

fn about(question: &str) -> serde_json::Value {
    let notes: String = (1..=120).map(|n| format!("Item {n} costs {} coins. ", n * 7 % 50)).collect();
    json!({
        "model": chat::request("", 1)["model"],
        "messages": [{"role": "system", "content": notes}, {"role": "user", "content": question}],
        "temperature": 0,
        "max_tokens": 8,
        "logprobs": true,
        "top_logprobs": 2,
    })
}

/// The tokens of an answer, each with how far the model preferred it, in nats.
fn said(answer: &Value) -> Vec<(String, f64)> {
    let tokens = answer["choices"][0]["logprobs"]["content"].as_array().unwrap();
    let lead = |token: &Value| {
        let top = |n: usize| token["top_logprobs"][n]["logprob"].as_f64().unwrap();
        top(0) - top(1)
    };
    tokens.iter().map(|token| (token["token"].as_str().unwrap().to_owned(), lead(token))).collect()
}

/// State that was moved lies in other cells, which kernels sum up in another order:
/// two answers are the same up to where the model hardly preferred one word.
fn assert_same(first: &[(String, f64)], again: &[(String, f64)]) {
    let differs = first.iter().zip(again).find(|((a, _), (b, _))| a != b);
    assert!(differs.is_none_or(|((_, lead), _)| *lead < 0.5), "{first:?} {again:?}");
}

#[test]
fn a_second_question_about_a_long_text_pays_for_the_question_only() {
    let host = Host::up();
    let url = host.url("/v1/chat/completions");
    let computed = || host.metrics().sum("nala_engine_prompt_tokens_total");
    let ask = |question: &str| {
        let before = computed();
        let (status, answer) = chat::post(&url, &about(question).to_string());
        assert_eq!(status, 200, "{answer}");
        let number = |pointer: &str| answer.pointer(pointer).and_then(serde_json::Value::as_f64).unwrap();
        let (prompt, cached) = (number("/usage/prompt_tokens"), number("/usage/prompt_tokens_details/cached_tokens"));
        assert_eq!(computed() - before, prompt - cached, "what is reported is what was computed");
        (prompt, cached, said(&answer))
    };
    let (prompt, cached, first) = ask("What does item 3 cost?");
    assert!(prompt > 1000.0 && cached == 0.0, "{cached} of {prompt} tokens");
    let (prompt, cached, _) = ask("And what is the price of item 90?");
    assert!(prompt - cached < 50.0, "{cached} of {prompt} tokens");
    let (prompt, cached, again) = ask("What does item 3 cost?");
    assert!(prompt - cached <= 16.0, "{cached} of {prompt} tokens");
    assert_same(&first, &again);
    // Sessions hold nothing any more, the cache does, and gives way.
    nala_e2e::metrics::eventually("the sessions are closed", std::time::Duration::from_secs(5), || {
        host.metrics().sum("nala_engine_kv_cells_used") == 0.0
    });
    assert!(host.metrics().sum("nala_engine_kv_cells_cached") > 1000.0);
}
