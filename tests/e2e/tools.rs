//! Tools: called by hand, and by components for tenants.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use nala_e2e::guests;
use nala_e2e::host::Host;
use nala_e2e::keys::key;
use nala_e2e::paths;
use serde_json::{Value, json};

/// A component that calls tools, and tools with what they are granted.
const MANIFEST: &str = r#"
spin_manifest_version = 2
[application]
name = "desk"
[[trigger.http]]
route = "/..."
component = "caller"

[component.caller]
source = "caller.wasm"
[component.caller.tool.nala]
tools = ["clock", "calculator", "memory", "query", "files"]

[component.clock]
source = "tool_clock.wasm"
[component.calculator]
source = "tool_calculator.wasm"
[component.query]
source = "tool_query.wasm"

[component.memory]
source = "tool_memory.wasm"
key_value_stores = ["default"]

[component.files]
source = "tool_files.wasm"
files = [{ source = "notes", destination = "/notes" }]
"#;

fn write(folder: &Path) {
    for tool in ["tool_clock", "tool_calculator", "tool_memory", "tool_query", "tool_files"] {
        fs::copy(guests::guest("components", tool), folder.join(format!("{tool}.wasm"))).unwrap();
    }
    fs::copy(guests::guest("host/wasm/guests", "caller"), folder.join("caller.wasm")).unwrap();
    fs::create_dir(folder.join("notes")).unwrap();
    fs::write(folder.join("notes/today.txt"), "Feed the fox.").unwrap();
    fs::write(folder.join("spin.toml"), MANIFEST).unwrap();
}

fn tool(folder: &Path, args: &[&str]) -> Output {
    Command::new(paths::host_binary()).arg("tool").args(args).current_dir(folder).output().unwrap()
}

/// What is printed where all is well.
fn said(folder: &Path, args: &[&str]) -> String {
    let output = tool(folder, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn answered(folder: &Path, name: &str, arguments: &Value) -> Value {
    let arguments = arguments.to_string();
    serde_json::from_str(&said(folder, &["call", name, &arguments, "--format", "json"])).unwrap()
}

#[test]
fn the_tools_of_an_application_are_listed_shown_and_called_by_hand() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder);
    let list = said(folder, &["list"]);
    for name in ["current_time", "calculate", "remember", "query_json", "read_file"] {
        assert!(list.contains(name), "{list}");
    }
    let shown: Value = serde_json::from_str(&said(folder, &["inspect", "remember", "--format", "json"])).unwrap();
    assert_eq!(shown["grant"]["granted"]["key_value_stores"], json!(["default"]), "{shown}");
    assert_eq!(shown["inputSchema"]["type"], "object", "{shown}");
    assert!(said(folder, &["inspect", "calculate"]).contains("Takes: {"));

    let product = answered(folder, "calculate", &json!({ "expression": "37 * 43" }));
    assert_eq!(product["structuredContent"]["result"], "1591", "{product}");
    let time = answered(folder, "current_time", &json!({ "timezone": "Europe/Berlin" }));
    assert_eq!(time["structuredContent"]["timezone"], "Europe/Berlin", "{time}");
    let note = answered(folder, "read_file", &json!({ "path": "notes/today.txt" }));
    assert!(note.to_string().contains("Feed the fox."), "{note}");
    let of_one = said(folder, &["call", "current_time", "--from", "tool_clock.wasm"]);
    assert!(of_one.contains("\"UTC\""), "{of_one}");

    for (args, told) in [
        (&["call", "nothing"][..], "there is no tool \"nothing\""),
        (&["call", "calculate", "[]"], "no JSON object"),
        (&["call", "calculate", "{"], "no JSON"),
        (&["call", "calculate", r#"{"expression": "1 / 0"}"#], "says that it failed"),
        (&["call", "write_file", r#"{"path": "notes/today.txt", "text": "x"}"#], "says that it failed"),
        (&["list", "--from", "nowhere.wasm"], "nowhere.wasm"),
        (&["list", "--from", "caller.wasm"], "nala:tools/provider"),
    ] {
        let output = tool(folder, args);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && stderr.contains(told), "{args:?}: {stderr}");
    }
    assert_eq!(fs::read_to_string(folder.join("notes/today.txt")).unwrap(), "Feed the fox.");
}

#[test]
fn a_tool_works_for_the_tenant_whose_request_calls_it() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let keys = [key(), key()];
    let of = |n: usize| format!("[tenant.{}]\nkeys = [\"{}\"]\n", ["acme", "other"][n], keys[n].1);
    fs::write(folder.path().join("nala.toml"), of(0) + &of(1)).unwrap();
    let host = Host::start([
        "up".as_ref(),
        folder.path().join("spin.toml").as_os_str(),
        "--config".as_ref(),
        folder.path().join("nala.toml").as_os_str(),
    ]);
    let ask = |n: usize, path: &str| {
        let request = ureq::get(host.url(path)).header("x-api-key", &keys[n].0);
        request.call().unwrap().into_body().read_to_string().unwrap()
    };
    let kept = ask(0, "/call?remember&{%22key%22:%22fox%22,%22value%22:%22vulpes%22}");
    assert!(kept.starts_with("Ok(") && kept.contains("is-error: false"), "{kept}");
    assert!(ask(0, "/call?recall&{%22key%22:%22fox%22}").contains("vulpes"));
    let none = ask(1, "/call?recall&{%22key%22:%22fox%22}");
    assert!(none.starts_with("Ok(") && !none.contains("vulpes"), "what one tenant keeps is its own: {none}");
    assert!(ask(1, "/call?calculate&{%22expression%22:%2237*43%22}").contains("1591"));
    // Each call is on the account of who made it, and of the tool.
    let metrics = host.metrics();
    let used = |tenant: &str, tool: &str| {
        let labels = format!("tenant=\"{tenant}\",component=\"{tool}\",what=\"requests\"");
        metrics.with("nala_tenant_used_total", &labels)
    };
    assert_eq!((used("acme", "memory"), used("other", "memory")), (2.0, 1.0));
    assert_eq!((used("acme", "calculator"), used("other", "calculator")), (0.0, 1.0));
}
