//! Tools by the Model Context Protocol: those that misbehave, clients that do, and clients
//! that start the server themselves. That it follows the protocol is for its own suite,
//! in `conformance.rs`.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use nala_e2e::guests;
use nala_e2e::host::Host;
use nala_e2e::paths;
use serde_json::{Value, json};

const MANIFEST: &str = r#"
spin_manifest_version = 2
[application]
name = "desk"
[[trigger.http]]
route = "/mcp"
component = "mcp"

[component.mcp]
source = "nala:mcp"
environment = { MCP_NAME = "desk", MCP_INSTRUCTIONS = "Be kind." }
[component.mcp.tool.nala]
tools = ["bad", "fixture"]

[component.fixture]
source = "mcp_fixture.wasm"

[component.bad]
source = "tools.wasm"
[component.bad.tool.nala.limits]
cpu = "200ms"
wall = "20s"
memory = "32MiB"
"#;

fn write(folder: &Path) {
    fs::copy(guests::guest("components", "mcp_fixture"), folder.join("mcp_fixture.wasm")).unwrap();
    fs::copy(guests::guest("host/wasm/guests", "tools"), folder.join("tools.wasm")).unwrap();
    fs::write(folder.join("spin.toml"), MANIFEST).unwrap();
}

/// What a server says to a message.
struct Said {
    status: u16,
    session: Option<String>,
    text: String,
}

impl Said {
    /// The messages in it: one, or those of a stream.
    fn messages(&self) -> Vec<Value> {
        match serde_json::from_str(&self.text) {
            Ok(message) => vec![message],
            Err(_) => {
                self.text.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok()).collect()
            }
        }
    }

    fn last(&self) -> Value {
        self.messages().pop().unwrap_or_else(|| panic!("{} {}", self.status, self.text))
    }
}

fn send(host: &Host, headers: &[(&str, &str)], body: &str) -> Said {
    let request = ureq::post(host.url("/mcp")).config().http_status_as_error(false).build();
    let request = request.header("accept", "application/json, text/event-stream");
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let json = if headers.iter().any(|(name, _)| *name == "content-type") {
        request
    } else {
        request.header("content-type", "application/json")
    };
    let response = json.send(body).unwrap();
    let status = response.status().as_u16();
    let session = response.headers().get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned());
    Said { status, session, text: response.into_body().read_to_string().unwrap() }
}

fn message(id: u32, method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

fn call(tool: &str) -> String {
    message(1, "tools/call", json!({ "name": tool, "arguments": {} }))
}

/// A session of a client that can be asked by a form.
fn session(host: &Host) -> String {
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} }, "clientInfo": { "name": "t", "version": "1" } });
    let said = send(host, &[], &message(0, "initialize", params));
    let result = &said.last()["result"];
    assert_eq!(result["protocolVersion"], "2025-11-25");
    assert_eq!((&result["serverInfo"]["name"], &result["instructions"]), (&json!("desk"), &json!("Be kind.")));
    said.session.unwrap()
}

#[test]
fn what_tools_do_wrong_is_told_and_the_server_lives_on() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let host = Host::application(folder.path(), &[]);
    for (tool, said) in [
        ("forever", "CPU time"),
        ("memory", "memory"),
        ("large", "call_bytes"),
        ("no-json", "is none"),
        ("promises", "promises a structured answer"),
        ("traps", "trapped"),
        ("refuses", "not these"),
    ] {
        let answer = send(&host, &[], &call(tool)).last();
        let result = &answer["result"];
        assert_eq!(result["isError"], true, "{tool}: {answer}");
        assert!(result["content"][0]["text"].as_str().unwrap().contains(said), "{tool}: {answer}");
    }
    let unknown = send(&host, &[], &call("none")).last();
    assert_eq!(unknown["error"]["code"], -32602);
    // What is no message, or comes from where it may not.
    for (headers, body, status, code) in [
        (&[][..], "{", 400, -32700),
        (&[][..], "[]", 400, -32600),
        (&[("mcp-session-id", "made.up")][..], &call("echo"), 404, -32600),
        (&[("mcp-protocol-version", "1999-01-01")][..], &call("echo"), 400, -32022),
        (&[("origin", "https://evil.example")][..], &call("echo"), 403, -32600),
        (&[("host", "evil.example")][..], &call("echo"), 403, -32600),
    ] {
        let said = send(&host, headers, body);
        assert_eq!((said.status, said.last()["error"]["code"].as_i64()), (status, Some(code)), "{body}: {}", said.text);
    }
    assert_eq!(send(&host, &[("content-type", "text/plain")], &call("echo")).status, 415);
    assert_eq!(send(&host, &[], &" ".repeat(5 << 20)).status, 413);
    let session = session(&host);
    asked(&host, &session);
    cancelled(&host, &session);
    assert_eq!(send(&host, &[], &call("echo")).last()["result"]["content"][0]["text"], "{}");
}

/// A question reaches the client, and the reply the tool, though each request has an
/// instance of its own.
fn asked(host: &Host, session: &str) {
    let headers = [("mcp-session-id", session), ("mcp-protocol-version", "2025-11-25")];
    let other = self::session(host);
    assert_ne!(session, other, "two sessions of a client are two");
    std::thread::scope(|scope| {
        let said = scope
            .spawn(|| send(host, &headers, &message(7, "tools/call", json!({ "name": "test_streaming_elicitation" }))));
        let reply = |id: &str, name: &str| json!({ "jsonrpc": "2.0", "id": id, "result": { "action": "accept", "content": { "name": name } } });
        let wrong = [("mcp-session-id", other.as_str())];
        // Until the question was asked there is nobody to take a reply.
        while !said.is_finished() {
            assert_eq!(send(host, &wrong, &reply("0 7", "Mallory").to_string()).status, 202);
            assert_eq!(send(host, &headers, &reply("0 8", "Mallory").to_string()).status, 202);
            assert_eq!(send(host, &headers, &reply("0 7", "Ada").to_string()).status, 202);
        }
        let messages = said.join().unwrap().messages();
        assert_eq!((messages[0]["method"].as_str(), &messages[0]["id"]), (Some("elicitation/create"), &json!("0 7")));
        assert_eq!(messages[1]["result"]["content"][0]["text"], "Hello, Ada!");
    });
}

fn cancelled(host: &Host, session: &str) {
    let headers = [("mcp-session-id", session)];
    std::thread::scope(|scope| {
        let sleeps = scope.spawn(|| send(host, &headers, &message(9, "tools/call", json!({ "name": "sleeps" }))));
        let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 9 } });
        while !sleeps.is_finished() {
            assert_eq!(send(host, &headers, &cancel.to_string()).status, 202);
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(sleeps.join().unwrap().messages(), Vec::<Value>::new(), "nothing is said of it any more");
    });
}

/// A server that a client has started.
struct Started {
    child: std::process::Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Started {
    fn new(folder: &Path) -> Self {
        let mut child = Command::new(paths::host_binary())
            .args(["mcp", "--stdio"])
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { input: child.stdin.take(), child, lines }
    }

    fn send(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// The next message.
    fn next(&self) -> Value {
        let line = self.lines.recv_timeout(Duration::from_secs(60)).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("standard output is the protocol's: {line}"))
    }
}

#[test]
fn a_client_starts_the_server_and_speaks_either_version() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let mut server = Started::new(folder.path());
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": { "elicitation": {} }, "clientInfo": { "name": "t", "version": "1" } });
    server.send(&message(1, "initialize", params));
    assert_eq!(server.next()["result"]["protocolVersion"], "2025-06-18");
    server.send(r#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#);
    server.send("");
    server.send("no JSON");
    assert_eq!(server.next()["error"]["code"], -32700);
    server.send(&message(
        2,
        "tools/call",
        json!({ "name": "test_tool_with_progress", "_meta": { "progressToken": "p" } }),
    ));
    let all: Vec<Value> = std::iter::repeat_with(|| server.next()).take(4).collect();
    assert_eq!((&all[1]["params"]["progress"], &all[3]["id"]), (&json!(50), &json!(2)), "{all:?}");
    // It is asked, and replies.
    server.send(&message(3, "tools/call", json!({ "name": "test_streaming_elicitation" })));
    let question = server.next();
    assert_eq!(question["method"], "elicitation/create");
    server.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "accept", "content": { "name": "Ada" } } }).to_string());
    assert_eq!(server.next()["result"]["content"][0]["text"], "Hello, Ada!");
    // What is not wanted any more ends, and nothing is said of it.
    server.send(&message(4, "tools/call", json!({ "name": "sleeps" })));
    server.send(r#"{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 4}}"#);
    // The same server, without a session.
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
    server.send(&message(
        5,
        "tools/call",
        json!({ "name": "test_x_mcp_header", "arguments": { "region": "x" }, "_meta": meta }),
    ));
    let answer = server.next();
    assert_eq!((&answer["id"], &answer["result"]["resultType"]), (&json!(5), &json!("complete")), "{answer}");
    server.send(&message(6, "tools/call", json!({ "name": "traps", "_meta": meta })));
    assert_eq!(server.next()["result"]["isError"], true);
    // It ends with its input.
    drop(server.input.take());
    assert!(server.child.wait().unwrap().success());
    assert!(server.lines.recv().is_err(), "nothing more is said");
}
