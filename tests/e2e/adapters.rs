//! What is loaded beside a model: LoRA adapters, and a model that drafts.

use std::path::Path;
use std::process::Command;

use nala_e2e::chat::{self, FRANCE};
use nala_e2e::host::{Host, Refused};
use nala_e2e::{guests, paths};
use serde_json::Value;

use crate::made::gguf::f32_value;
use crate::made::made::Made;

/// A handler that tells what it can do with a model.
fn behaviours(more: &[&str]) -> Result<Host, Refused> {
    let mut command = Command::new(paths::host_binary());
    command.arg("run").arg(guests::guest("host/wasm/guests", "behaviours")).arg("--cache-dir").arg(paths::cache());
    Host::launch(command.args(more))
}

fn text(host: &Host, path: &str) -> String {
    let (status, body) = chat::get(&host.url(path));
    assert_eq!(status, 200, "{body}");
    body.as_str().unwrap().to_owned()
}

fn named(name: &str, path: &Path) -> String {
    format!("{name}={}", path.display())
}

fn model() -> String {
    paths::model().display().to_string()
}

#[test]
fn sessions_are_computed_with_the_adapter_they_name() {
    // Strong enough that other words come out.
    let files = [1, 2].map(|seed| Made::lora(seed).set("adapter.lora.alpha", f32_value(32.0)).written());
    let (one, two) = (named("one", files[0].path()), named("two", files[1].path()));
    let said = |arguments: &[&str]| {
        let host = behaviours(&[&["--model", &model()], arguments].concat()).unwrap();
        let told = text(&host, "/adapters?24,Once+upon+a+time");
        let (said, wrong) = told.split_once('\n').unwrap();
        let said: Vec<String> = serde_json::from_str(said).unwrap();
        (said, wrong.to_owned())
    };
    let (plain, wrong) = said(&[]);
    assert!(plain.len() == 1 && wrong.contains("it was loaded with: none"), "{plain:?} {wrong}");
    let (both, wrong) = said(&["--adapter", &one, "--adapter", &two]);
    assert!(wrong.contains("InvalidArgument") && wrong.contains("one, two"), "{wrong}");
    assert_eq!(both.len(), 3);
    assert_eq!(both[0], plain[0], "without an adapter the model says what it always says");
    assert!(both[1] != both[0] && both[2] != both[0] && both[1] != both[2], "{both:?}");
    // The names are the operator's, in the order given.
    let (other, _) = said(&["--adapter", &format!("{two},{one}")]);
    assert_eq!([&other[1], &other[2]], [&both[2], &both[1]]);
}

#[test]
fn a_file_that_is_no_adapter_of_the_model_is_refused_before_it_is_served() {
    let adapter = named("one", &paths::model());
    let refused = behaviours(&["--model", &model(), "--adapter", &adapter]).err().unwrap();
    assert!(!refused.status.success());
    assert!(refused.stderr.contains("adapter"), "{}", refused.stderr);
}

#[test]
fn a_draft_model_changes_no_greedy_answer() {
    let questions = [FRANCE, "Write three sentences about a fox.", "Count from one to twenty in words."];
    let answers = |more: &[&str]| -> (Vec<String>, f64) {
        let mut command = Command::new(paths::host_binary());
        command.args(["up", "--model", &model(), "--kv-cells", "4096", "--cache-dir"]).arg(paths::cache());
        let host = Host::launch(command.args(more)).unwrap();
        let ask = |question: &&str| chat::complete(&host.url(""), &chat::request(question, 60));
        let answers = questions.iter().map(ask).collect();
        (answers, host.metrics().sum("nala_engine_drafted_tokens_total"))
    };
    let (plain, drafted) = answers(&["--max-draft", "0"]);
    assert_eq!(drafted, 0.0);
    let (with_draft, drafted) = answers(&["--draft-model", &model()]);
    assert!(drafted > 0.0, "nothing was guessed");
    assert_eq!(with_draft, plain);
}

#[test]
fn a_draft_model_of_another_family_is_refused() {
    let other = paths::root().join("models/tests/gemma-3-270m-q4_k_m.gguf");
    assert!(other.is_file(), "{} is missing; run `cargo xtask setup --tests`", other.display());
    let refused = behaviours(&["--model", &model(), "--draft-model", &other.display().to_string()]).err().unwrap();
    assert!(refused.stderr.contains("give one of the same family"), "{}", refused.stderr);
}

#[test]
fn guests_are_given_vectors_of_texts() {
    let host = behaviours(&["--model", &model()]).unwrap();
    let told = text(&host, "/embeddings-texts");
    let (vectors, ranked) = told.split_once('\n').unwrap();
    assert_eq!(vectors, "(true, true) (true, true) 576", "mean and last: near where the subject is, the same alone");
    assert!(ranked.starts_with("Err(Error::Unsupported("), "{ranked}");
    assert!(host.metrics().sum("nala_engine_embedded_tokens_total") > 50.0);
}

#[test]
fn guests_are_given_the_scores_of_a_model_that_ranks() {
    let file = Made::reranker().written();
    let host = behaviours(&["--model", &named("ranker", file.path())]).unwrap();
    let told: Value = text(&host, "/embeddings-texts").into();
    assert!(told.as_str().unwrap().ends_with(" 64\nOk([2, 2, 2, 2])"), "{told}");
}
