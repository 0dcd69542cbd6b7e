//! Several models in one process.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use nala_e2e::chat::{self, FRANCE};
use nala_e2e::host::Host;
use nala_e2e::metrics::eventually;
use nala_e2e::{guests, paths};
use serde_json::{Value, json};
use tempfile::TempDir;

/// What the model's own template has it think to be, and what another model's
/// does. They have the same length.
const SMOLLM: &str = "a helpful AI assistant named SmolLM, trained by Hugging Face";
const PARROT: &str = "a cheerful old pirate named Blackbeard, who always says Arrr";

/// The model, and one that is another by its chat template.
struct Files {
    folder: TempDir,
}

impl Files {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut bytes = std::fs::read(paths::model()).unwrap();
        let end = bytes.len().min(8 << 20);
        let places: Vec<usize> =
            (0..end - SMOLLM.len()).filter(|at| bytes[*at..].starts_with(SMOLLM.as_bytes())).collect();
        assert!(!places.is_empty(), "the template names the assistant");
        for at in places {
            bytes[at..at + PARROT.len()].copy_from_slice(PARROT.as_bytes());
        }
        std::fs::write(folder.path().join("pirate.gguf"), bytes).unwrap();
        std::os::unix::fs::symlink(paths::model(), folder.path().join("plain.gguf")).unwrap();
        Self { folder }
    }

    fn named(&self, name: &str) -> String {
        format!("{name}={}", self.path(name).display())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.gguf"))
    }

    /// A command that serves both, with little context.
    fn serve(&self) -> Command {
        let mut command = Command::new(paths::host_binary());
        command.args(["up", "--kv-cells", "4096", "--cache-dir"]).arg(paths::cache());
        for name in ["plain", "pirate"] {
            command.args(["--model", &self.named(name)]);
        }
        command
    }
}

fn ask(model: &str, question: &str) -> Value {
    let mut request = chat::request(question, 24);
    request["model"] = model.into();
    request
}

fn series(host: &Host, name: &str, model: &str) -> f64 {
    host.metrics().with(&format!("nala_models_{name}"), &format!("model=\"{model}\""))
}

#[test]
fn two_models_take_turns_in_the_memory_of_one_and_every_request_is_answered() {
    let files = Files::new();
    let host = Arc::new(Host::launch(files.serve().args(["--model-memory", "700MiB"])).unwrap());
    let (status, listed) = chat::get(&host.url("/v1/models"));
    let ids: Vec<&str> = listed["data"].as_array().unwrap().iter().map(|m| m["id"].as_str().unwrap()).collect();
    assert_eq!((status, ids), (200, vec!["plain", "pirate"]), "{listed}");
    let loaded = |model| series(&host, "loaded", model);
    assert_eq!((loaded("plain"), loaded("pirate")), (1.0, 0.0), "the second waits for its first use");

    let question = "Who are you? Answer in one sentence.";
    let (status, unknown) = chat::post(&host.url("/v1/chat/completions"), &ask("third", question).to_string());
    assert_eq!((status, &unknown["error"]["code"]), (404, &json!("model_not_found")), "{unknown}");
    assert!(unknown["error"]["message"].as_str().unwrap().contains("plain, pirate"), "{unknown}");

    let alone = ["plain", "pirate"].map(|model| chat::complete(&host.url(""), &ask(model, question)));
    assert!(!alone[0].contains("Blackbeard") && alone[1].contains("Blackbeard"), "{alone:?}");
    assert_eq!((loaded("plain"), loaded("pirate")), (0.0, 1.0), "there is room for one");
    assert_eq!(chat::complete(&host.url(""), &ask("plain", question)), alone[0], "loaded again");
    let before = series(&host, "loads_total", "plain") + series(&host, "loads_total", "pirate");
    assert_eq!(before, 3.0);

    let threads: Vec<_> = (0..6)
        .map(|n| {
            let host = Arc::clone(&host);
            std::thread::spawn(move || {
                let models = ["plain", "pirate"];
                (0..3).map(|turn| (n + turn) % 2).for_each(|which| {
                    let mut request = ask(models[which], FRANCE);
                    request["max_tokens"] = 12.into();
                    let text = match n % 4 {
                        0 | 1 => chat::streamed_text(&chat::stream(&host.url(""), &request)),
                        _ => chat::complete(&host.url(""), &request),
                    };
                    assert!(!text.is_empty());
                    // What the plain one says of France is known.
                    assert!(which == 1 || text.contains("Paris"), "{}: {text}", models[which]);
                });
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let metrics = host.metrics();
    let count = |name: &str| metrics.sum(&format!("nala_models_{name}"));
    assert!(count("loads_total") > before, "they took turns");
    assert_eq!(count("loads_total") - count("unloads_total"), 1.0, "one is loaded");
    assert_eq!((count("load_failures_total"), count("busy_total"), count("waiting")), (0.0, 0.0, 0.0));
    assert_eq!(metrics.sum("nala_models_load_seconds_count"), count("loads_total"));
    assert!(count("bytes") <= count("budget_bytes") && count("bytes") > 0.0);
    assert_eq!(count("budget_bytes"), f64::from(700 << 20));
    assert_eq!(count("leases"), 0.0);
    // The counters of an engine go on when its model comes back.
    for model in ["plain", "pirate"] {
        let tokens = metrics.with("nala_engine_generated_tokens_total", &format!("model=\"{model}\""));
        assert!(tokens > 9.0 * 3.0, "{model}: {tokens}");
    }
    for (model, text) in ["plain", "pirate"].iter().zip(&alone) {
        assert_eq!(chat::complete(&host.url(""), &ask(model, question)), *text, "as at first");
    }
}

#[test]
fn a_model_in_use_stays_while_another_waits_for_its_room() {
    let files = Files::new();
    let host = Host::launch(files.serve().args(["--model-memory", "700MiB"])).unwrap();
    let mut long = ask("plain", "Write a long story about a fox.");
    long["max_tokens"] = 60.into();
    long["stream"] = true.into();
    let mut story = nala_e2e::raw::Raw::post(&host.address, "/v1/chat/completions", &long.to_string());
    story.read_until("content\":\"");
    let url = host.url("");
    let other = std::thread::spawn(move || chat::complete(&url, &ask("pirate", FRANCE)));
    let rest = story.read_until("data: [DONE]");
    assert!(rest.contains("finish_reason\":\"length\"") || rest.contains("finish_reason\":\"stop\""), "{rest}");
    assert!(!other.join().unwrap().is_empty());
    assert_eq!(host.metrics().sum("nala_engine_cancelled_total"), 0.0);
}

#[test]
fn what_is_idle_is_unloaded_unless_it_is_resident() {
    let files = Files::new();
    let host = Host::launch(files.serve().args(["--model-idle", "1", "--resident", "pirate"])).unwrap();
    assert!(host.log().contains("Loaded plain") && host.log().contains("Loaded pirate"), "{}", host.log());
    eventually("the first is unloaded", Duration::from_secs(20), || series(&host, "loaded", "plain") == 0.0);
    assert_eq!(series(&host, "loaded", "pirate"), 1.0);
    assert!(chat::complete(&host.url(""), &ask("plain", FRANCE)).contains("Paris"));
    assert_eq!(series(&host, "loads_total", "plain"), 2.0);
    host.terminate();
    assert!(host.wait().success());
}

/// Two applications of the OpenAI component, which are granted other models.
fn manifest(files: &Files) -> PathBuf {
    let path = files.folder.path().join("spin.toml");
    let mut text = "spin_manifest_version = 2\n[application]\nname = \"two\"\n".to_owned();
    for (id, route, models) in [("both", "/...", "\"pirate\", \"plain\""), ("one", "/v1/models/plain", "\"pirate\"")] {
        let wasm = guests::guest("components", "openai");
        text += &format!(
            "[[trigger.http]]\nroute = {route:?}\ncomponent = {id:?}\n[component.{id}]\nsource = {wasm:?}\n\
             ai_models = [{models}]\n[component.{id}.tool.nala]\nrenderer = \"chat\"\n"
        );
    }
    let wasm = guests::guest("components", "chat-template");
    text += &format!("[component.chat]\nsource = {wasm:?}\n");
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_component_sees_the_models_of_its_grant_its_own_default_first() {
    let files = Files::new();
    let path = manifest(&files);
    let mut command = Command::new(paths::host_binary());
    command.arg("up").arg(path).arg("--cache-dir").arg(paths::cache()).args(["--kv-cells", "4096"]);
    let host = Host::launch(command.env("NALA_MODELS_DIR", files.folder.path())).unwrap();
    let (_, listed) = chat::get(&host.url("/v1/models"));
    let ids: Vec<&str> = listed["data"].as_array().unwrap().iter().map(|m| m["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["pirate", "plain"]);
    assert!(chat::complete(&host.url(""), &ask("plain", FRANCE)).contains("Paris"));
    let (status, told) = chat::get(&host.url("/v1/models/plain"));
    assert_eq!(status, 404, "this one is answered by the component that is granted the other: {told}");
}
