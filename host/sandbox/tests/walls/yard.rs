//! What a prisoner is put into, and what is found there afterwards.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

/// Names the scene that this program plays as a prisoner.
pub(crate) const SCENE: &str = "NALA_SANDBOX_SCENE";

/// The folder of a prisoner: `models` to read, `cache` to write, `outside`.
pub(crate) struct Yard {
    dir: TempDir,
    first: TcpListener,
    second: TcpListener,
}

impl Yard {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["models", "cache", "outside"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        fs::write(dir.path().join("models/model.gguf"), "weights").unwrap();
        fs::write(dir.path().join("outside/secret"), "secret").unwrap();
        std::os::unix::fs::symlink("../outside/secret", dir.path().join("models/link")).unwrap();
        let listen = || TcpListener::bind("127.0.0.1:0").unwrap();
        Self { dir, first: listen(), second: listen() }
    }

    /// Plays a scene in a process of its own.
    pub(crate) fn prisoner(&self, scene: &str) -> Findings {
        let port = |listener: &TcpListener| listener.local_addr().unwrap().port().to_string();
        let output = Command::new(std::env::current_exe().unwrap())
            .env(SCENE, scene)
            .env("FIRST_PORT", port(&self.first))
            .env("SECOND_PORT", port(&self.second))
            .current_dir(self.dir.path())
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{scene} ended with {}: {errors}", output.status);
        let found = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{scene}: {error}: {errors}"));
        self.is_untouched();
        Findings { found }
    }

    /// Whatever was said: nothing outside has changed.
    fn is_untouched(&self) {
        let secret: &Path = &self.dir.path().join("outside/secret");
        assert_eq!(fs::read_to_string(secret).unwrap(), "secret");
        assert_eq!(fs::read_to_string(self.dir.path().join("models/model.gguf")).unwrap(), "weights");
    }
}

/// What a prisoner printed: by attempt, `ok`, an error's name, or a text.
pub(crate) struct Findings {
    found: BTreeMap<String, Value>,
}

impl Findings {
    pub(crate) fn get(&self, name: &str) -> String {
        let found = self.found.get(name).unwrap_or_else(|| panic!("nobody tried: {name}"));
        found.as_str().unwrap_or_else(|| panic!("{name} is no text: {found}")).to_owned()
    }

    pub(crate) fn report(&self) -> &Value {
        self.found.get("report").expect("the plan was enforced")
    }

    /// Why a feature is missing.
    pub(crate) fn missing(&self, feature: &str) -> String {
        let all = self.report()["missing"].as_array().unwrap();
        let one = all.iter().find(|missing| missing["feature"] == feature).expect("it is reported as missing");
        one["why"].as_str().unwrap().to_owned()
    }

    pub(crate) fn worked(&self, names: &[&str]) {
        self.refused(names, "ok");
    }

    pub(crate) fn refused_by_landlock(&self, names: &[&str]) {
        self.refused(names, "EACCES");
    }

    pub(crate) fn refused(&self, names: &[&str], how: &str) {
        let others: Vec<_> =
            names.iter().map(|name| (*name, self.get(name))).filter(|(_, found)| found != how).collect();
        assert!(others.is_empty(), "these should all be {how}: {others:?}");
    }
}
