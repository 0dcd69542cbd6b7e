//! The binary from outside: help, wrong usage, and refusals before anything is
//! served. Serving itself, with a model, is tested in `tests/`.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests fail by panicking")]

#[path = "support/ran.rs"]
mod ran;
mod support;

use std::path::Path;
use std::process::Command;

use ran::{Ran, nala, ran};

fn run(args: &[&str]) -> Ran {
    nala(tempfile::tempdir().unwrap().path(), args)
}

#[test]
fn wrong_usage_is_status_2_and_says_what_is_wrong() {
    for (args, said) in [
        (&["fly"][..], "fly"),
        (&["run"], "APP.WASM"),
        (&["up", "--listen", "here"], "IP:PORT"),
        (&["up", "--listen", "127.0.0.1:99999"], "IP:PORT"),
        (&["up", "--threads", "0"], "--threads"),
        (&["up", "--kv-cells", "-1"], "-1"),
        (&["up", "--kv-cells", "0"], "from 1 to 16777216"),
        (&["up", "--kv-cells", "99999999999"], "from 1 to 16777216"),
        (&["up", "--threads", "0"], "at least 1"),
        (&["up", "--threads", "-1"], "'--threads <N>': must be a whole number of at least 1"),
        (&["up", "--threads", "x"], "'--threads <N>': must be a whole number of at least 1"),
        (&["up", "--max-connections", "18446744073709551615"], "'--max-connections <N>': must be a whole number from"),
        (&["up", "--max-connections", "0"], "from 1 to 1000000"),
        (&["up", "--max-body-bytes", "0"], "from 1 to"),
        (&["up", "--max-sequences", "257"], "from 1 to 256"),
        (&["up", "--batch-tokens", "0"], "from 1 to 1048576"),
        (&["up", "--drain-deadline", "18446744073709551615"], "from 0 to 86400"),
        (&["up", "--lame-duck", "-1"], "from 0 to 86400"),
        (&["up", "--model", ""], "the name is empty"),
        (&["up", "--model", "a.gguf,"], "the name is empty"),
        (&["up", "--model", "=a.gguf"], "write NAME=PATH"),
        (&["up", "--model", "a="], "write a=PATH"),
        (&["up", "--model-memory", "8"], "such as 512MiB or 8GiB"),
        (&["up", "--model-memory", "0GiB"], "such as 512MiB or 8GiB"),
        (&["up", "--model-idle", "-1"], "from 0 to 86400"),
        (&["--log-level", "garbage", "doctor"], "debug and trace"),
        (&["up", "--no-cache", "--cache-dir", "x"], "--cache-dir"),
        (&["model", "pull"], "NAME"),
        (&["completions", "cmd"], "bash"),
        (&["--log-format", "xml", "doctor"], "json"),
    ] {
        let ran = run(args);
        assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(said), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn help_names_every_verb_and_has_examples() {
    let help = run(&["--help"]).stdout;
    for word in [
        "run",
        "up",
        "new",
        "build",
        "check",
        "key",
        "model",
        "doctor",
        "completions",
        "Examples:",
        "nala-host up",
        "--log-format",
    ] {
        assert!(help.contains(word), "{word} is missing:\n{help}");
    }
    let help = run(&["up", "--help"]).stdout;
    for word in [
        "--model",
        "--listen",
        "--admin-listen",
        "127.0.0.1:3000",
        "16384",
        "NALA_MODEL",
        "--drain-deadline",
        "--model-memory",
        "NAME=PATH",
        "600",
    ] {
        assert!(help.contains(word), "{word} is missing:\n{help}");
    }
    let help = run(&["run", "--help"]).stdout;
    assert!(help.contains("wasi:http") && help.contains("--no-cache"), "{help}");
}

#[test]
fn the_version_names_what_computes() {
    let said = run(&["--version"]).stdout;
    assert!(said.contains(env!("CARGO_PKG_VERSION")), "{said}");
    assert!(said.contains("llama.cpp") && said.contains("ggml"), "{said}");
}

#[test]
fn a_flag_overrides_the_environment() {
    let home = tempfile::tempdir().unwrap();
    let ran = ran(support::command(home.path())
        .args(["run", "no-such.wasm", "--no-cache", "--listen", "127.0.0.1:0"])
        .env("NALA_CACHE_DIR", home.path()));
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("no-such.wasm"), "{}", ran.stderr);
}

#[test]
fn what_is_no_regular_file_is_refused_unread() {
    let home = tempfile::tempdir().unwrap();
    assert!(Command::new("mkfifo").arg(home.path().join("pipe")).status().unwrap().success());
    let manifest = |source: &str| {
        format!(
            "spin_manifest_version = 2\n[application]\nname = \"x\"\n[[trigger.http]]\nroute = \"/...\"\n\
             component = \"x\"\n[component.x]\nsource = {source:?}\n"
        )
    };
    std::fs::write(home.path().join("zero.toml"), manifest("/dev/zero")).unwrap();
    std::fs::write(home.path().join("pipe.toml"), manifest("pipe")).unwrap();
    for (verb, path) in [
        ("up", "/dev/zero"),
        ("up", "pipe"),
        ("run", "/dev/zero"),
        ("run", "pipe"),
        ("up", "zero.toml"),
        ("up", "pipe.toml"),
    ] {
        let ran = nala(home.path(), &[verb, path, "--listen", "127.0.0.1:0"]);
        assert_eq!(ran.code, Some(1), "{verb} {path}: {}", ran.stderr);
        assert!(ran.stderr.contains("no regular file"), "{verb} {path}: {}", ran.stderr);
        if path.ends_with(".toml") {
            assert!(ran.stderr.contains(&format!("{path}:7: component `x`")), "{verb} {path}: {}", ran.stderr);
        }
    }
}

#[test]
fn the_doctor_fails_for_a_model_that_was_named_and_is_not_there() {
    let ran = run(&["doctor", "--model", "/nope"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("/nope") && ran.stderr.contains("check the path"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("model pull"), "{}", ran.stderr);
    assert_eq!(run(&["doctor"]).code, Some(0));
}

#[test]
fn a_missing_component_is_named() {
    let ran = run(&["run", "no-such.wasm", "--listen", "127.0.0.1:0"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("no-such.wasm") && ran.stderr.contains("help:"), "{}", ran.stderr);
}

#[test]
fn text_is_no_component() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("app.wasm"), "#!/bin/sh\n").unwrap();
    let ran = nala(home.path(), &["run", "app.wasm", "--listen", "127.0.0.1:0"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.starts_with("error: app.wasm is not WebAssembly"), "{}", ran.stderr);
    assert!(!ran.stderr.contains('\x1b'), "no colours in a pipe: {}", ran.stderr);
}

#[test]
fn a_missing_model_names_the_command_that_fetches_it() {
    let ran = run(&["up", "--listen", "127.0.0.1:0"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("nala-host model pull smollm2-135m-instruct-q4_1"), "{}", ran.stderr);
}

#[test]
fn an_error_can_be_read_by_programs() {
    let ran = run(&["--log-format", "json", "up", "no-such-spin.toml"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let error: serde_json::Value = serde_json::from_str(ran.stderr.trim()).unwrap();
    assert!(error["error"].as_str().unwrap().contains("no-such-spin.toml"), "{error}");
}

#[test]
fn a_taken_port_is_named_before_a_model_is_loaded() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for args in [["up", "--listen", &address], ["up", "--admin-listen", &address]] {
        let args = [&args[..], if args[1] == "--listen" { &[] } else { &["--listen", "127.0.0.1:0"] }].concat();
        let ran = run(&args);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains(&address) && ran.stderr.contains("in use"), "{}", ran.stderr);
    }
}

#[test]
fn the_default_manifest_is_what_it_should_be() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let application = nala_manifest::Application::read(&root.join("spin.toml"), None).unwrap();
    assert!(application.warnings.is_empty(), "{:?}", application.warnings);
    let openai = application.component("openai").unwrap();
    assert_eq!(openai.ai_models, [nala_models::DEFAULT_MODEL]);
    assert_eq!(openai.renderer.as_ref().and_then(|renderer| renderer.component()), Some("chat-template"));
    assert_eq!(application.routes().find("/v1/models").unwrap().0.component(), Some("openai"));
}

#[test]
fn models_are_listed_for_people_and_for_programs() {
    let said = run(&["model", "list"]).stdout;
    assert!(said.contains("smollm2-135m-instruct-q4_1") && said.contains("not downloaded"), "{said}");
    let json: serde_json::Value = serde_json::from_str(&run(&["model", "list", "--format", "json"]).stdout).unwrap();
    assert_eq!(json["models"][0]["state"], "absent");
    let ran = run(&["model", "inspect", "no-such.gguf"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("no-such.gguf"), "{}", ran.stderr);
}

#[test]
fn the_doctor_prints_every_default_and_the_missing_model() {
    let said = run(&["doctor"]).stdout;
    for word in [
        "64 MiB",
        "kv_cells",
        "16384",
        "drain_deadline",
        "Kernels",
        "nala-host model pull",
        "1/8",
        "--model-memory",
        "600 s",
    ] {
        assert!(said.contains(word), "{word} is missing:\n{said}");
    }
    let json: serde_json::Value = serde_json::from_str(&run(&["doctor", "--format", "json"]).stdout).unwrap();
    assert!(json["machine"]["grant"]["threads"].as_u64().unwrap() >= 1, "{json}");
    assert!(json["kernels"].as_object().unwrap().len() > 3, "{json}");
    assert_eq!(json["problems"].as_array().unwrap().len(), 1, "{json}");
}

#[test]
fn completions_are_printed() {
    let said = run(&["completions", "bash"]).stdout;
    assert!(said.contains("nala-host") && said.contains("--admin-listen"), "{said}");
    for shell in ["bash", "zsh", "fish"] {
        let said = run(&["completions", shell]).stdout;
        for word in ["watch", "template", "component", "expires", "rust-hello"] {
            assert!(said.contains(word), "{shell}: {word}");
        }
    }
}
