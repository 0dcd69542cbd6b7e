//! docs/limits.md has all limits there are, with their defaults, and tests that exist.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use nala_e2e::paths;
use nala_tenant::{Limit, Scope};
use nala_wasm::Limits;
use serde_json::Value;

/// A row: its name and default, and where it is shown.
struct Row {
    of: String,
    name: String,
    default: String,
    shown: String,
}

fn rows() -> Vec<Row> {
    let text = std::fs::read_to_string(paths::root().join("docs/limits.md")).unwrap();
    let lines = text.lines().filter(|line| line.starts_with('|')).skip(2);
    lines
        .map(|line| {
            let cells: Vec<_> = line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect();
            let [of, name, default, _set, _reached, shown] = &cells[..] else { panic!("six columns: {line}") };
            let name = name.trim_matches('`').to_owned();
            Row { of: of.clone(), name, default: default.clone(), shown: shown.clone() }
        })
        .collect()
}

/// Name and default of each limit of some kind, as the document has them.
fn documented(of: &str) -> BTreeMap<String, String> {
    rows().into_iter().filter(|row| row.of == of).map(|row| (row.name, row.default)).collect()
}

/// What `nala-host doctor` says of a section, by name.
fn settings(section: &str) -> BTreeMap<String, String> {
    let output =
        Command::new(paths::host_binary()).args(["doctor", "--format", "json"]).output().expect("nala-host runs");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let all = report["defaults"].as_array().unwrap_or_else(|| panic!("{report}"));
    let of_section = all.iter().filter(|setting| setting["section"] == section);
    let text = |setting: &Value, key: &str| setting[key].as_str().unwrap().to_owned();
    of_section.map(|setting| (text(setting, "name"), text(setting, "value"))).collect()
}

#[test]
fn it_has_the_limits_of_a_request() {
    let all: BTreeMap<_, _> = Limits::default().entries().map(|entry| (entry.name.to_owned(), entry.value)).collect();
    assert_eq!(documented("request"), all);
}

#[test]
fn it_has_the_limits_of_a_tenant() {
    let of = |scope| -> BTreeMap<_, _> {
        let rows = Limit::all().map(Limit::row).filter(|row| row.scope == scope);
        rows.map(|row| (row.name.to_owned(), row.unit.show(row.default))).collect()
    };
    assert_eq!(documented("tenant"), of(Scope::Tenant));
    let mut of_component = documented("component");
    assert_eq!(of_component.remove("max_memory"), settings("components").remove("max_memory"));
    assert_eq!(of_component, of(Scope::Component));
}

#[test]
fn it_has_the_limits_of_the_listener_and_the_host() {
    let mut listener = settings("HTTP");
    listener.retain(|name, _| !["listen", "admin_listen"].contains(&name.as_str()));
    assert!(listener.len() > 5, "{listener:?}");
    assert_eq!(documented("listener"), listener);
    let mut host = settings("components");
    host.retain(|name, _| !["cache", "max_memory"].contains(&name.as_str()));
    let mut said = documented("host");
    // As many as there are cores.
    for name in ["tokenisers", "guest_threads"] {
        assert_eq!(said.remove(name).is_some(), host.remove(name).is_some(), "{name}");
    }
    assert_eq!(said, host);
}

#[test]
fn each_is_shown_by_a_test_that_exists() {
    let mut files = BTreeMap::<String, String>::new();
    for Row { name, shown, .. } in rows() {
        let parts =
            shown.strip_prefix("[`").and_then(|rest| rest.strip_suffix(')')).and_then(|rest| rest.split_once("`](../"));
        let (test, path) = parts.unwrap_or_else(|| panic!("{name}: [`test`](../file), and not {shown}"));
        let text = files.entry(path.to_owned()).or_insert_with(|| {
            std::fs::read_to_string(paths::root().join(path)).unwrap_or_else(|error| panic!("{name}: {path}: {error}"))
        });
        assert!(text.contains(&format!("fn {test}(")), "{name}: there is no {test} in {path}");
    }
    let names: Vec<_> = rows().into_iter().map(|row| (row.of, row.name)).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "none stands twice");
}
