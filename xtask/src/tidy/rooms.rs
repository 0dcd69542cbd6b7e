//! What each crate may know, from Cargo's own view of who depends on whom.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde_json::Value;

use super::Problem;
use crate::cargo::cargo;
use crate::process::capture;
use crate::repo::Repo;

/// A crate of ours, the others of ours that it may build on, and what it must
/// never bring in, by whatever way.
struct Room {
    name: &'static str,
    may_use: &'static [&'static str],
    must_not_know: &'static [&'static str],
}

/// Names that begin with one of these stand for a whole family.
const WASM: &str = "wasmtime";
const HTTP: &str = "hyper";
const LLAMA: &str = "llama-cpp";
const RUNTIME: &str = "tokio";

/// The table of ARCHITECTURE.md, as far as Cargo can see it.
const ROOMS: &[Room] = &[
    // The scheduler must be testable on a fake, without a C++ compiler.
    Room { name: "nala-engine", may_use: &["nala-machine"], must_not_know: &[WASM, HTTP, LLAMA] },
    Room { name: "nala-llama", may_use: &["nala-engine", "nala-machine"], must_not_know: &[WASM, HTTP] },
    Room { name: "nala-http", may_use: &[], must_not_know: &[WASM, LLAMA] },
    // Words that two hosts have in common.
    Room { name: "nala-nn", may_use: &["nala-engine", "nala-machine"], must_not_know: &[WASM, HTTP, LLAMA] },
    Room {
        name: "nala-nn-backend",
        may_use: &["nala-engine", "nala-machine", "nala-nn"],
        must_not_know: &[HTTP, LLAMA],
    },
    // wasmtime-wasi-http brings hyper for a guest's outbound requests, so the
    // family cannot be kept out here; our own server can.
    Room {
        name: "nala-wasm",
        may_use: &["nala-engine", "nala-machine", "nala-tenant", "nala-keyvalue", "nala-egress", "nala-nn"],
        must_not_know: &[LLAMA],
    },
    // Holds data; who may use which of it is known where guests are bound.
    Room { name: "nala-keyvalue", may_use: &[], must_not_know: &[WASM, HTTP, LLAMA] },
    // How guests run is for nala-wasm, which binds the two.
    Room { name: "nala-egress", may_use: &[], must_not_know: &[WASM, LLAMA] },
    // What a call is made for, and whose it is, is known where components are loaded.
    Room { name: "nala-mcp", may_use: &["nala-egress"], must_not_know: &[WASM, LLAMA] },
    // Whose a token is; who is served is known where requests are answered.
    Room { name: "nala-token", may_use: &["nala-egress"], must_not_know: &[WASM, LLAMA] },
    Room { name: "nala-machine", may_use: &[], must_not_know: &[WASM, HTTP, LLAMA, RUNTIME] },
    // What stands between a stranger in the process and the machine is read by
    // itself, and brings nothing along that it would have to confine.
    Room { name: "nala-sandbox", may_use: &[], must_not_know: &[WASM, HTTP, LLAMA, RUNTIME] },
    // What can be bounded, and what a key looks like, is for the tenants' room
    // to say; the operator's file only gives values.
    Room { name: "nala-manifest", may_use: &["nala-tenant"], must_not_know: &[WASM, HTTP, LLAMA, RUNTIME] },
    Room { name: "nala-tenant", may_use: &[], must_not_know: &[WASM, HTTP, LLAMA, RUNTIME] },
    // Also part of xtask, which a newcomer waits for.
    Room { name: "nala-models", may_use: &[], must_not_know: &[WASM, HTTP, LLAMA, RUNTIME] },
    // Joins bytes; where they come from and what becomes of them is for the caller.
    Room {
        name: "nala-compose",
        may_use: &["nala-manifest", "nala-tenant"],
        must_not_know: &[WASM, HTTP, LLAMA, RUNTIME],
    },
    // Reads no component: what it asks for is told by the caller.
    Room { name: "nala-deploy", may_use: &[], must_not_know: &[WASM, HTTP, LLAMA, RUNTIME] },
    // Moves bytes between processes; whose they are is not its to say.
    Room { name: "nala-class", may_use: &[], must_not_know: &[WASM, LLAMA] },
    // The client of registries brings hyper; a server of its own it must not have.
    Room { name: "nala-oci", may_use: &[], must_not_know: &[WASM, LLAMA] },
    // What is wanted is said in the words of manifests.
    Room { name: "nala-fetch", may_use: &["nala-manifest", "nala-oci", "nala-tenant"], must_not_know: &[WASM, LLAMA] },
    Room {
        name: "nala-host",
        may_use: &[
            "nala-engine",
            "nala-llama",
            "nala-http",
            "nala-egress",
            "nala-wasm",
            "nala-manifest",
            "nala-mcp",
            "nala-machine",
            "nala-models",
            "nala-keyvalue",
            "nala-sandbox",
            "nala-tenant",
            "nala-token",
            "nala-compose",
            "nala-class",
            "nala-deploy",
            "nala-oci",
            "nala-fetch",
            "nala-nn",
        ],
        must_not_know: &[],
    },
    // Nothing in the product depends on these two.
    Room {
        name: "nala-e2e",
        may_use: &[
            "nala-engine",
            "nala-llama",
            "nala-http",
            "nala-egress",
            "nala-wasm",
            "nala-manifest",
            "nala-mcp",
            "nala-machine",
            "nala-models",
            "nala-tenant",
            "nala-token",
            "nala-class",
            "nala-deploy",
            "nala-oci",
            "nala-fetch",
            "nala-nn",
        ],
        must_not_know: &[],
    },
    Room { name: "xtask", may_use: &["nala-models"], must_not_know: &[WASM, HTTP, LLAMA, RUNTIME] },
];

/// Who depends on whom, in code that is shipped (not in tests or build scripts).
pub(super) struct Graph {
    /// Our crates and where their manifests are.
    ours: BTreeMap<String, String>,
    /// All crates that a crate brings in by itself.
    direct: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    /// Asks Cargo.
    pub(super) fn of(repo: &Repo) -> Result<Self> {
        let mut command = cargo(repo.root());
        command.args(["metadata", "--format-version", "1", "--all-features"]);
        let text = capture(&mut command).context("cargo cannot read the workspace")?;
        let metadata = serde_json::from_str(&text).context("cargo metadata is not JSON")?;
        Self::read(&metadata, &repo.root().to_string_lossy())
            .context("cargo metadata lacks a field that it had: adapt xtask/src/tidy/rooms.rs")
    }

    fn read(metadata: &Value, root: &str) -> Option<Self> {
        let mut names = BTreeMap::new();
        let mut ours = BTreeMap::new();
        for package in metadata.get("packages")?.as_array()? {
            let name = package.get("name")?.as_str()?;
            names.insert(package.get("id")?.as_str()?, name);
            if package.get("source")?.is_null() {
                let manifest = package.get("manifest_path")?.as_str()?;
                let path = manifest.strip_prefix(root).unwrap_or(manifest).trim_start_matches('/');
                ours.insert(name.to_owned(), path.to_owned());
            }
        }
        let mut direct: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for node in metadata.get("resolve")?.get("nodes")?.as_array()? {
            let name = *names.get(node.get("id")?.as_str()?)?;
            // Several versions of a crate are taken as one.
            let entry = direct.entry(name.to_owned()).or_default();
            for dependency in node.get("deps")?.as_array()? {
                let kinds = dependency.get("dep_kinds")?.as_array()?;
                if kinds.iter().any(|kind| kind.get("kind").is_some_and(Value::is_null)) {
                    let name = names.get(dependency.get("pkg")?.as_str()?)?;
                    entry.insert((*name).to_owned());
                }
            }
        }
        Some(Self { ours, direct })
    }

    /// Everything that a crate brings in, each with who asked for it.
    fn all(&self, name: &str) -> BTreeMap<&str, &str> {
        let mut found = BTreeMap::new();
        let mut next: Vec<&str> = self.direct.get_key_value(name).map(|(key, _)| key.as_str()).into_iter().collect();
        while let Some(user) = next.pop() {
            for dependency in self.direct.get(user).into_iter().flatten() {
                if dependency != name && !found.contains_key(dependency.as_str()) {
                    found.insert(dependency.as_str(), user);
                    next.push(dependency);
                }
            }
        }
        found
    }
}

/// Checks each crate of ours against the table.
pub(super) fn check(graph: &Graph) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (name, path) in &graph.ours {
        let mut tell = |what: String| problems.push(Problem { path: path.clone(), line: None, what });
        let Some(room) = ROOMS.iter().find(|room| room.name == name) else {
            tell(format!("{name} is in no room: add it to xtask/src/tidy/rooms.rs and ARCHITECTURE.md"));
            continue;
        };
        for (dependency, user) in graph.all(name) {
            let ours = graph.ours.contains_key(dependency);
            if ours && !room.may_use.contains(&dependency) {
                tell(format!(
                    "{name} may not depend on {dependency} (through {user}): see the rooms in ARCHITECTURE.md"
                ));
            }
            if room.must_not_know.iter().any(|family| dependency.starts_with(family)) {
                tell(format!("{name} must not know {dependency} (through {user}): see the rooms in ARCHITECTURE.md"));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(ours: &[&str], edges: &[(&str, &[&str])]) -> Graph {
        Graph {
            ours: ours.iter().map(|name| ((*name).to_owned(), format!("{name}/Cargo.toml"))).collect(),
            direct: edges
                .iter()
                .map(|(name, to)| ((*name).to_owned(), to.iter().map(|name| (*name).to_owned()).collect()))
                .collect(),
        }
    }

    #[test]
    fn a_forbidden_crate_is_found_behind_others() {
        let graph = graph(&["nala-engine"], &[("nala-engine", &["a"]), ("a", &["hyper-util"])]);
        let problems = check(&graph);
        assert_eq!(problems.len(), 1);
        let what = &problems.first().unwrap().what;
        assert!(what.contains("hyper-util (through a)"), "{what}");
    }

    #[test]
    fn rooms_use_only_what_the_table_says() {
        let ours = ["nala-engine", "nala-wasm", "nala-http"];
        let good = graph(&ours, &[("nala-wasm", &["nala-engine", "hyper", "wasmtime"])]);
        assert_eq!(check(&good), []);
        let bad = graph(&ours, &[("nala-wasm", &["nala-http"])]);
        assert_eq!(check(&bad).len(), 1);
    }

    #[test]
    fn a_new_crate_needs_a_room() {
        assert_eq!(check(&graph(&["nala-new"], &[])).len(), 1);
    }

    #[test]
    fn only_shipped_dependencies_of_cargo_metadata_count() {
        let kinds = |kind: Value| serde_json::json!([{ "kind": kind, "target": null }]);
        let metadata = serde_json::json!({
            "packages": [
                { "name": "nala-engine", "id": "e", "source": null, "manifest_path": "/r/host/engine/Cargo.toml" },
                { "name": "wasmtime", "id": "w", "source": "registry", "manifest_path": "/c/Cargo.toml" },
                { "name": "hyper", "id": "h", "source": "registry", "manifest_path": "/c/Cargo.toml" },
            ],
            "resolve": { "nodes": [
                { "id": "e", "deps": [
                    { "pkg": "w", "dep_kinds": kinds("dev".into()) },
                    { "pkg": "h", "dep_kinds": kinds(Value::Null) },
                ] },
                { "id": "w", "deps": [] },
                { "id": "h", "deps": [] },
            ] },
        });
        let problems = check(&Graph::read(&metadata, "/r").unwrap());
        assert_eq!(problems.len(), 1);
        let problem = problems.first().unwrap();
        assert_eq!(problem.path, "host/engine/Cargo.toml");
        assert!(problem.what.contains("hyper"));
    }
}
