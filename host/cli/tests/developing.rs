//! `new`, `build`, `check` and `key`: the verbs of whoever writes an application.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests fail by panicking")]

#[path = "support/answers.rs"]
mod answers;
#[path = "support/ran.rs"]
mod ran;
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ran::{Ran, nala, ran};
use serde_json::Value;
use tempfile::TempDir;

impl Ran {
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap()
    }
}

fn home() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn components() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join("components")
}

/// A manifest with a component that is built by `command`.
fn manifest(components: &str) -> String {
    let head = "spin_manifest_version = 2\n[application]\nname = \"x\"\n\
        [[trigger.http]]\nroute = \"/a\"\ncomponent = \"a\"\n[[trigger.http]]\nroute = \"/b\"\ncomponent = \"b\"\n";
    format!("{head}{components}")
}

#[test]
fn what_cannot_be_a_manifest_is_refused_by_each_verb() {
    let home = home();
    let at = |file: &str| home.path().join(file);
    fs::create_dir(at("folder")).unwrap();
    fs::write(at("nonsense.toml"), "nonsense").unwrap();
    fs::write(at("bytes.toml"), b"\xff\xfe").unwrap();
    assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    for verb in ["check", "build"] {
        for (file, said) in [
            ("missing.toml", "No such file"),
            ("folder", "this is a folder"),
            ("pipe", "no regular file"),
            ("/dev/zero", "no regular file"),
            ("nonsense.toml", "nonsense.toml:1:9"),
            ("bytes.toml", "UTF-8"),
        ] {
            let ran = nala(home.path(), &[verb, file]);
            assert_eq!(ran.code, Some(1), "{verb} {file}: {}{}", ran.stdout, ran.stderr);
            let all = ran.stdout + &ran.stderr;
            assert!(all.contains(said) && all.contains(file), "{verb} {file}: {all}");
        }
        // Without a name, spin.toml is meant.
        let ran = nala(home.path(), &[verb]);
        assert!(ran.code == Some(1) && ran.stderr.contains("spin.toml"), "{verb}: {}", ran.stderr);
    }
}

#[test]
fn builds_run_in_order_and_end_at_the_first_failure() {
    let home = home();
    let text = manifest(
        "[component.a]\nsource = \"a.wasm\"\nbuild.command = [\"echo one >> ../log\", \"echo two >> ../log; echo said\"]\n\
         build.workdir = \"folder\"\n\
         [component.b]\nsource = \"b.wasm\"\nbuild.command = [\"echo three >> log; echo wrong >&2; exit 7\", \"echo never >> log\"]\n",
    );
    fs::write(home.path().join("spin.toml"), text).unwrap();
    let ran = nala(home.path(), &["build"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("no folder") && ran.stderr.contains("build.workdir"), "{}", ran.stderr);

    fs::create_dir(home.path().join("folder")).unwrap();
    let ran = nala(home.path(), &["build"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert_eq!(fs::read_to_string(home.path().join("log")).unwrap(), "one\ntwo\nthree\n");
    assert_eq!(ran.stdout, "[a] said\n");
    for said in ["[a] $ echo one", "Built a in", "[b] wrong", "echo three", "exit status: 7"] {
        assert!(ran.stderr.contains(said), "{said}: {}", ran.stderr);
    }
    assert_eq!(nala(home.path(), &["build", "--component", "a"]).code, Some(0));
    let ran = nala(home.path(), &["build", "--component", "c"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("no component `c`"), "{}", ran.stderr);
    assert!(ran.stderr.contains("a, b"), "{}", ran.stderr);
    // For programs, each line is an object.
    let ran = nala(home.path(), &["--log-format", "json", "build"]);
    for line in ran.stderr.lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
    assert!(ran.stdout.is_empty() && ran.stderr.contains("[a] said"), "{}", ran.stderr);
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let home = home();
    let at = |file: &str| home.path().join(file);
    let text = manifest(
        "[variables]\ntoken = { required = true }\n\
         [component.a]\nsource = \"a.wasm\"\nallowed_outbound_hosts = [\"https://ok.example\",\n  \"example.com\"]\n\
         variables = { t = \"{{ token }}\" }\n\
         [component.b]\nsource = \"b.wasm\"\n[component.b.build]\ncommand = \"make b\"\nworkdir = \"w\"\n\
         [component.c]\nsource = \"c.wasm\"\n",
    );
    fs::write(at("spin.toml"), text).unwrap();
    // Asks a model, and is no handler.
    let asks =
        "(component (import \"nala:llm/model@0.1.0\" (instance)) (import \"nala:llm/session@0.1.0\" (instance)))";
    fs::write(at("a.wasm"), wat::parse_str(asks).unwrap()).unwrap();
    fs::write(at("c.wasm"), "nonsense").unwrap();
    fs::write(at("nala.toml"), "[tenant.acme]\nweigth = 2\n").unwrap();
    let ran = nala(home.path(), &["check", "--config", "nala.toml"]);
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    for said in [
        "spin.toml:11:1: the variable `token` has no value",
        "SPIN_VARIABLE_TOKEN",
        "spin.toml:15:3: `example.com` cannot be allowed",
        "component `a` imports `nala:llm/model@0.1.0`, which it is not granted",
        "write `ai_models = [\"smollm2-135m-instruct-q4_1\"]` under [component.a]",
        "a does not export",
        "there is no file",
        "help: build it: (cd w && make b)",
        "warning: component `c` is never used",
        "c.wasm is not WebAssembly",
        "nala.toml:2:1: `weigth` is not known here",
        "did you mean `weight`?",
    ] {
        assert!(ran.stdout.contains(said), "{said}:\n{}", ran.stdout);
    }
    assert_eq!(ran.stdout.matches("which it is not granted").count(), 1, "{}", ran.stdout);
    assert!(ran.stderr.contains("spin.toml and nala.toml: 7 errors, 1 warning"), "{}", ran.stderr);

    let json = nala(home.path(), &["check", "--config", "nala.toml", "--format", "json"]);
    assert_eq!(json.code, Some(1));
    let json = json.json();
    assert_eq!((&json["sound"], &json["errors"], &json["warnings"]), (&false.into(), &7.into(), &1.into()), "{json}");
    let places: Vec<_> = json["diagnostics"].as_array().unwrap().iter().map(|one| one["line"].as_u64()).collect();
    assert!(places.iter().all(Option::is_some), "{json}");
    let json = nala(home.path(), &["check", "--format", "json", "--config", "none.toml", "none"]).json();
    assert_eq!((json["errors"].as_u64(), json["diagnostics"][1]["file"].as_str()), (Some(2), Some("none.toml")));
}

#[test]
fn what_is_sound_is_told_with_its_warnings() {
    let home = home();
    let at = |file: &str| home.path().join(file);
    fs::write(at("a.wasm"), answers::component(200)).unwrap();
    let component = "[component.a]\nsource = \"a.wasm\"\nvariables = { t = \"{{ token }}\" }\n\
         allowed_outbound_hosts = [\"https://{{ host }}\"]\n\
         [component.b]\nsource = \"a.wasm\"\nai_models = [\"unheard-of\"]\n[component.b.profile.debug]\nsource = \"b.wasm\"\n\
         [variables]\ntoken = { required = true, secret = true }\nhost = { default = \"\" }\n";
    fs::write(at("spin.toml"), manifest(component)).unwrap();
    let token = ["--variable", "token=hunter2"];
    let check = |more: &[&str]| nala(home.path(), &[&["check"][..], &token, more].concat());
    let ran = check(&[]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("warning: ") && ran.stdout.contains("unheard-of"), "{}", ran.stdout);
    assert!(ran.stdout.contains("spin.toml: no errors, 1 warning"), "{}", ran.stdout);
    assert_eq!(check(&["--format", "json"]).json()["sound"], true);
    let ran = check(&["--profile", "debug"]);
    assert!(ran.code == Some(1) && ran.stdout.contains("there is no file b.wasm"), "{}", ran.stdout);
    let ran = check(&["--profile", "none"]);
    assert!(ran.code == Some(1) && ran.stdout.contains("has the profile `none`"), "{}", ran.stdout);
    // The repository's own.
    let root = components().parent().unwrap().join("spin.toml");
    let ran = nala(home.path(), &["check", root.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_key_is_printed_with_the_line_for_the_file() {
    let home = home();
    let ran = nala(home.path(), &["key", "new", "--expires", "2999-01-31", "--note", "the build server"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("\n  nala_"), "{}", ran.stdout);
    assert!(ran.stdout.contains("expires = 2999-01-31T00:00:00Z, note = \"the build server\" },"), "{}", ran.stdout);
    let json = nala(home.path(), &["key", "new", "--format", "json"]).json();
    let (key, line) = (json["key"].as_str().unwrap(), json["line"].as_str().unwrap());
    assert!(key.starts_with("nala_") && line.starts_with("\"nala-sha256:"), "{json}");
    // The operator's file takes it.
    fs::write(home.path().join("nala.toml"), format!("[tenant.acme]\nkeys = [{line}]\n")).unwrap();
    fs::write(
        home.path().join("spin.toml"),
        "spin_manifest_version = 2\n[application]\nname = \"x\"\n[[trigger.http]]\nroute = \"/\"\nstatic_response = {}\n",
    )
    .unwrap();
    let ran = nala(home.path(), &["check", "--config", "nala.toml"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    for (args, said) in [
        (&["key", "new", "--expires", "tomorrow"][..], "2027-01-31"),
        (&["key", "new", "--expires", "2001-01-31"], "is over"),
        (&["key", "new", "--note", " "], "whom the key is for"),
        (&["key"], "new"),
    ] {
        let ran = nala(home.path(), args);
        assert!(ran.code == Some(2) && ran.stderr.contains(said), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn a_project_is_made_only_where_nothing_is() {
    let home = home();
    let at = |file: &str| home.path().join(file);
    let new = |args: &[&str]| nala(home.path(), &[&["new", "--template", "rust-hello"][..], args].concat());
    fs::create_dir_all(at("full/folder")).unwrap();
    fs::create_dir(at("empty")).unwrap();
    fs::write(at("file"), "mine").unwrap();
    assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    std::os::unix::fs::symlink("nowhere", at("link")).unwrap();
    for (folder, said) in [
        ("full", "is not empty"),
        ("file", "is no folder"),
        ("pipe", "is no folder"),
        ("link", "is no folder"),
        ("/dev/null", "is no folder"),
        ("/proc/nobody/may", "cannot be made"),
    ] {
        let ran = new(&["my-app", "--path", folder]);
        assert_eq!(ran.code, Some(1), "{folder}: {}", ran.stderr);
        assert!(ran.stderr.contains(said) && ran.stderr.contains(folder), "{folder}: {}", ran.stderr);
    }
    assert_eq!(fs::read_to_string(at("file")).unwrap(), "mine");
    for name in ["", "My-App", "a_b", "../x", "fn", "1a"] {
        let ran = new(&[name]);
        assert_eq!(ran.code, Some(2), "{name}: {}", ran.stderr);
    }
    assert_eq!(new(&["my-app", "--path", "empty"]).code, Some(0));
    let ran = new(&["my-app"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("nala-host build") && at("my-app/.gitignore").is_file(), "{}", ran.stderr);
    let ran = new(&["my-app"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("--path"), "{}", ran.stderr);
    // The SDK is where it is said to be, or nothing is made.
    for (sdk, said) in [("full", "does not hold the crate nala-sdk"), ("none", "does not hold"), ("git@x:y", "ssh://")]
    {
        let ran = nala(home.path(), &["new", "asks", "--sdk", sdk]);
        assert!(ran.code != Some(0) && ran.stderr.contains(said), "{sdk}: {}", ran.stderr);
        assert!(!at("asks").exists(), "{sdk}");
    }
}

/// Lets a build within a project use what the checkout's own build has made.
fn share(project: &Path) {
    fs::create_dir_all(components().join("target")).unwrap();
    std::os::unix::fs::symlink(components().join("target"), project.join("target")).unwrap();
    fs::copy(components().join("Cargo.lock"), project.join("Cargo.lock")).unwrap();
}

/// The binary where a cargo can be run that is not this test's.
fn with_cargo(project: &Path, args: &[&str]) -> Ran {
    let mut command = support::command(project);
    for (name, _) in std::env::vars() {
        if name.starts_with("CARGO") || name.starts_with("RUSTC") || name == "RUSTFLAGS" {
            command.env_remove(name);
        }
    }
    for (name, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
        let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(folder).into_os_string());
        if let Some(value) = std::env::var_os(name).or_else(home) {
            command.env(name, value);
        }
    }
    ran(command.args(args))
}

#[test]
fn what_is_made_builds_and_is_sound() {
    let sdk = components().join("sdk");
    for (template, more) in [("rust-hello", &[][..]), ("rust-handler", &["--sdk", sdk.to_str().unwrap()])] {
        let home = home();
        // Not the name of the other one: both are built into the same folder.
        let name = format!("made-by-{template}");
        let ran = nala(home.path(), &[&["new", &name, "--template", template][..], more].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let project = home.path().join(&name);
        share(&project);
        let ran = with_cargo(&project, &["build"]);
        assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains(&format!("[{name}] ")), "{}", ran.stderr);
        let ran = nala(&project, &["check", "--format", "json"]);
        assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
        // That the model is not downloaded here.
        let warnings = if template == "rust-hello" { 0 } else { 1 };
        assert_eq!(ran.json()["warnings"], warnings, "{}", ran.stdout);
    }
}
