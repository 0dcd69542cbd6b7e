//! Tools of MCP servers elsewhere: one that is reached by HTTP and one that is a program,
//! as tools of an application. That the client follows the protocol is for its own suite, in
//! `conformance.rs`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use nala_e2e::guests;
use nala_e2e::host::Host;
use nala_e2e::paths;
use serde_json::{Value, json};

/// An application whose tools others use.
fn there(folder: &Path) {
    fs::copy(guests::guest("components", "mcp_fixture"), folder.join("mcp_fixture.wasm")).unwrap();
    let manifest = r#"
        spin_manifest_version = 2
        [application]
        name = "there"
        [[trigger.http]]
        route = "/mcp"
        component = "mcp"
        [component.mcp]
        source = "nala:mcp"
        [component.mcp.tool.nala]
        tools = ["fixture"]
        [component.fixture]
        source = "mcp_fixture.wasm"
    "#;
    fs::write(folder.join("spin.toml"), manifest).unwrap();
}

/// One that offers what those servers have as its own.
fn here(folder: &Path, url: &str, theirs: &Path) {
    let manifest = format!(
        r#"
        spin_manifest_version = 2
        [application]
        name = "here"
        [[trigger.http]]
        route = "/mcp"
        component = "mcp"
        [component.mcp]
        source = "nala:mcp"
        [component.mcp.tool.nala]
        tools = ["remote", "local", "missing"]

        [application.tool.nala.mcp.remote]
        url = "{url}"
        headers = {{ X-Team = "blue" }}

        [application.tool.nala.mcp.local]
        command = "{program}"
        args = ["mcp", "--stdio", "--from", "{manifest}"]
        tools = ["test_simple_text", "test_elicitation"]
        environment = {{ NALA_CACHE_DIR = "{cache}" }}

        [application.tool.nala.mcp.missing]
        command = "/no/such/program"
        "#,
        program = paths::host_binary().display(),
        manifest = theirs.join("spin.toml").display(),
        cache = theirs.join("cache").display(),
    );
    fs::write(folder.join("spin.toml"), manifest).unwrap();
}

/// What a host answers to a request of the newest version, without a session.
fn ask(host: &Host, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
    });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let request = ureq::post(host.url("/mcp"))
        .config()
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_secs(60)))
        .build()
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method);
    let request = match params.get("name").and_then(Value::as_str) {
        Some(name) => request.header("mcp-name", name),
        None => request,
    };
    let text = request.send(body).unwrap().into_body().read_to_string().unwrap();
    let last = text.lines().filter_map(|line| line.strip_prefix("data: ")).next_back().map(str::to_owned);
    serde_json::from_str(&last.unwrap_or_else(|| text.clone())).unwrap_or_else(|_| panic!("{text}"))
}

fn call(host: &Host, tool: &str) -> Value {
    ask(host, "tools/call", json!({ "name": tool, "arguments": {} }))
}

#[test]
fn tools_of_servers_elsewhere_are_tools() {
    let (theirs, ours) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    there(theirs.path());
    let server = Host::application(theirs.path(), &[]);
    here(ours.path(), &server.url("/mcp"), theirs.path());
    let host = server.beside(ours.path());
    let listed = ask(&host, "tools/list", json!({}));
    let names: Vec<&str> = listed["result"]["tools"]
        .as_array()
        .unwrap_or_else(|| panic!("{listed}"))
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    for name in ["remote_test_simple_text", "remote_test_image_content", "local_test_simple_text"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert!(!names.contains(&"local_test_image_content"), "it is not among those that may be used: {names:?}");
    for server in ["remote", "local"] {
        let answer = call(&host, &format!("{server}_test_simple_text"));
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        assert!(text.contains("simple text"), "{answer}");
    }
    let image = call(&host, "remote_test_image_content");
    assert_eq!(image["result"]["content"][0]["type"], "image", "{image}");
    let failed = call(&host, "remote_test_error_handling");
    assert_eq!(failed["result"]["isError"], true, "{failed}");
    let none = call(&host, "missing_anything");
    assert!(none.to_string().contains("missing_anything"), "{none}");

    // What they ask, whoever called is asked.
    let asked =
        ask(&host, "tools/call", json!({ "name": "remote_test_elicitation", "arguments": { "message": "Who?" } }));
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");

    // By hand.
    let listed = by_hand(ours.path(), &["list"]);
    assert!(listed.contains("remote_test_simple_text") && listed.contains("local_test_simple_text"), "{listed}");
    let answer = by_hand(ours.path(), &["call", "local_test_simple_text"]);
    assert!(answer.contains("simple text"), "{answer}");

    // A server that is gone is an error of its tools, and nothing else.
    server.terminate();
    assert!(server.wait().success());
    let gone = call(&host, "remote_test_simple_text");
    assert_eq!(gone["result"]["isError"], true, "{gone}");
    assert!(gone.to_string().contains("remote"), "{gone}");
    let still = call(&host, "local_test_simple_text");
    assert!(still.to_string().contains("simple text"), "{still}");

    // Its programs end with the host.
    let pid = host.pid();
    let programs = || {
        let all = Command::new("pgrep").args(["-f", &theirs.path().display().to_string()]).output().unwrap();
        String::from_utf8_lossy(&all.stdout).lines().count()
    };
    assert!(programs() > 0, "the program of {pid}");
    host.terminate();
    assert!(host.wait().success());
    for _ in 0..200 {
        if programs() == 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("a program is left");
}

fn by_hand(folder: &Path, args: &[&str]) -> String {
    let mut command = Command::new(paths::host_binary());
    let output = command.arg("tool").args(args).arg("--from").arg(folder.join("spin.toml")).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
