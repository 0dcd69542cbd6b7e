//! Servers that are slow, greedy, stuck or lie, at an address. None of them keeps anybody
//! waiting for longer than was said, has more held than was said, or ends anything else.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use nala_egress::{AllowList, ConnectionLimit, EgressMetrics, Gate, GateConfig, Owner, SystemResolver};
use nala_mcp::{
    Abilities, Access, Asked, Endpoint, Hear, Inquiry, Remote, Server, ServerError, Settings, Severity, Who,
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// What a server does with a message: it gets the method, the message, and how many of that
/// method there were before.
type Script = dyn Fn(&str, &Value, usize) -> Doing + Send + Sync;

/// What it does.
enum Doing {
    /// It answers with a result.
    Result(Value),
    /// The same, after a while.
    Late(Duration, Value),
    /// It answers never.
    Nothing,
    /// It sends this as it is.
    Raw(String),
    /// A stream that begins with this, and goes on with it for ever.
    Stream(String),
}

/// A server that is up to something.
struct Hostile {
    url: String,
    seen: Arc<Mutex<BTreeMap<String, usize>>>,
    authorized: Arc<AtomicUsize>,
}

impl Hostile {
    async fn start(script: impl Fn(&str, &Value, usize) -> Doing + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let (seen, authorized): (Arc<Mutex<BTreeMap<String, usize>>>, Arc<AtomicUsize>) = Default::default();
        let (script, counts, tokens) = (Arc::new(script), Arc::clone(&seen), Arc::clone(&authorized));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (script, counts, tokens) = (Arc::clone(&script), Arc::clone(&counts), Arc::clone(&tokens));
                tokio::spawn(async move { serve(stream, &*script, &counts, &tokens).await });
            }
        });
        Self { url, seen, authorized }
    }

    /// How many messages of a method came.
    fn count(&self, method: &str) -> usize {
        self.seen.lock().unwrap().get(method).copied().unwrap_or_default()
    }

    /// The same server, for a client that sends a token.
    fn known(&self, timeout: Duration) -> (Arc<Server>, Who) {
        self.known_for(timeout, None)
    }

    /// For one that uses these tools only.
    fn known_for(&self, timeout: Duration, tools: Option<BTreeSet<String>>) -> (Arc<Server>, Who) {
        let url: url::Url = self.url.parse().unwrap();
        let (resolver, admit) = (Arc::new(SystemResolver::default()), Arc::new(ConnectionLimit::new(64, 64)));
        let gate = Gate::new(GateConfig::default(), resolver, admit, EgressMetrics::default()).unwrap();
        let origin = url.origin().ascii_serialization();
        let egress = gate.egress(Owner::new("acme", "hostile"), AllowList::parse(&[origin]).unwrap());
        let remote = Remote { url, headers: Vec::new(), access: Access::Token("secret".to_owned()) };
        let server = Server::new(Settings {
            name: "hostile".to_owned(),
            endpoint: Endpoint::Remote(remote),
            tools,
            timeout,
            message_bytes: 1 << 20,
        });
        (server, Who { tenant: "acme".into(), egress: Some(egress) })
    }
}

async fn serve(stream: TcpStream, script: &Script, counts: &Mutex<BTreeMap<String, usize>>, tokens: &AtomicUsize) {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut line, mut length, mut verb) = (String::new(), 0, String::new());
        loop {
            line.clear();
            if !matches!(stream.read_line(&mut line).await, Ok(1..)) {
                return;
            }
            let lower = line.trim().to_ascii_lowercase();
            if verb.is_empty() {
                verb = lower.split(' ').next().unwrap_or_default().to_owned();
            }
            if let Some(text) = lower.strip_prefix("content-length:") {
                length = text.trim().parse().unwrap();
            }
            if lower == "authorization: bearer secret" {
                tokens.fetch_add(1, Ordering::Relaxed);
            }
            if lower.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.unwrap();
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();
        // A stream of the server's own is asked for without a message.
        let method = message["method"].as_str().unwrap_or(&verb).to_owned();
        let before = {
            let mut counts = counts.lock().unwrap();
            let count = counts.entry(method.clone()).or_default();
            *count += 1;
            *count - 1
        };
        let result = |result: Value| json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
        let written = match script(&method, &message, before) {
            // Clients without a session have no stream.
            Doing::Result(value) if method == "initialize" => http("200 OK\r\nmcp-session-id: s", &result(value)),
            Doing::Result(value) => http("200 OK", &result(value)),
            Doing::Late(after, value) => {
                tokio::time::sleep(after).await;
                http("200 OK", &result(value))
            }
            Doing::Raw(text) => text,
            Doing::Nothing => std::future::pending().await,
            Doing::Stream(text) => {
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
                if stream.write_all(head.as_bytes()).await.is_err() {
                    return;
                }
                while stream.write_all(text.as_bytes()).await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                return;
            }
        };
        if stream.write_all(written.as_bytes()).await.is_err() {
            return;
        }
    }
}

fn http(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// How a server of 2025-11-25 begins; None for what comes later.
fn beginning(method: &str) -> Option<Doing> {
    Some(match method {
        "server/discover" => Doing::Raw(http("400 Bad Request", "{}")),
        "initialize" => Doing::Result(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "hostile", "version": "1"},
        })),
        "get" | "delete" => Doing::Raw(http("405 Method Not Allowed", "")),
        _ if method.starts_with("notifications/") => Doing::Raw(http("202 Accepted", "")),
        _ => return None,
    })
}

fn tool(name: &str) -> Value {
    json!({"name": name, "description": "does nothing", "inputSchema": {"type": "object"}})
}

/// Nobody hears anything, and nobody is asked.
struct Deaf;

impl Hear for Deaf {
    fn progress(&self, _: f64, _: Option<f64>, _: Option<String>) {}

    fn log(&self, _: Severity, _: Option<String>, _: Value) {}

    fn ask(&self, _: String, _: Inquiry, _: Value) -> BoxFuture<'_, Result<Value, String>> {
        Box::pin(std::future::ready(Err("nobody is there".to_owned())))
    }
}

async fn called(server: &Server, who: &Who, within: Duration) -> Result<(), ServerError> {
    let asked = Asked { tool: "one".to_owned(), arguments: serde_json::Map::new(), within };
    server.call(who, asked, Abilities::default(), Arc::new(Deaf)).await.map(drop)
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn whoever_has_no_patience_at_the_start_has_the_tools_later() {
    let hostile = Hostile::start(|method, _, _| {
        beginning(method).unwrap_or(Doing::Late(Duration::from_secs(1), json!({"tools": [tool("one")]})))
    })
    .await;
    let (server, who) = hostile.known(MINUTE);
    let start = tokio::time::timeout(Duration::from_millis(200), server.start(who)).await;
    assert!(start.is_err() && server.tools().is_empty());
    until("the tools are there", || server.tools().contains_key("one")).await;
}

#[tokio::test]
async fn a_list_without_an_end_has_one() {
    let hostile = Hostile::start(|method, _, before| {
        beginning(method).unwrap_or_else(|| {
            let names = (0..50).map(|at| tool(&format!("{}{at}", if before % 2 == 0 { "good" } else { "bad name " })));
            let fat = json!({"name": "fat", "description": "x".repeat(100_000), "inputSchema": {"type": "object"}});
            let tools: Vec<Value> = names.chain([fat]).collect();
            Doing::Result(json!({"tools": tools, "nextCursor": format!("page {before}")}))
        })
    })
    .await;
    let (server, who) = hostile.known(MINUTE);
    server.start(who).await.unwrap();
    let tools = server.tools();
    assert!(!tools.is_empty() && tools.len() <= 128, "{}", tools.len());
    assert!(tools.keys().all(|name| name.starts_with("good")), "{:?}", tools.keys());
    assert!(hostile.count("tools/list") <= 64, "{}", hostile.count("tools/list"));
}

#[tokio::test]
async fn a_tool_that_is_named_is_found_behind_more_than_are_used() {
    let hostile = Hostile::start(|method, _, _| {
        let tools = || (0..300).map(|at| tool(&format!("t{at}"))).collect::<Vec<_>>();
        beginning(method).unwrap_or_else(|| Doing::Result(json!({"tools": tools()})))
    })
    .await;
    let (server, who) = hostile.known_for(MINUTE, Some(BTreeSet::from(["t299".to_owned()])));
    server.start(who).await.unwrap();
    assert!(server.tools().keys().eq(["t299"]), "{:?}", server.tools().keys());
}

#[tokio::test]
async fn what_is_too_long_or_no_message_is_an_error_and_no_more() {
    for (text, words) in [
        (format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{:?}}}", "x".repeat(2 << 20)), "1048576"),
        ("<html>".to_owned(), "<html>"),
        ("[".repeat(200_000), "no message"),
    ] {
        let body = text.clone();
        let hostile = Hostile::start(move |method, _, before| match (method, before) {
            ("tools/list", 0) => Doing::Raw(http("200 OK", &body)),
            ("tools/list", _) => Doing::Result(json!({"tools": [tool("one")]})),
            _ => beginning(method).unwrap(),
        })
        .await;
        let (server, who) = hostile.known(MINUTE);
        let error = server.start(who).await.unwrap_err().to_string();
        assert!(error.contains(words) && error.len() < 4096, "{error}");
        until("it is tried again", || server.tools().contains_key("one")).await;
    }
}

#[tokio::test]
async fn a_server_that_has_other_tools_all_the_time_is_asked_less_and_less() {
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    let hostile = Hostile::start(move |method, _, before| match method {
        "get" => Doing::Stream(format!("data: {changed}\n\n")),
        "tools/list" => Doing::Result(json!({"tools": [tool(&format!("t{before}"))]})),
        _ => beginning(method).unwrap(),
    })
    .await;
    let (server, who) = hostile.known(MINUTE);
    server.start(who).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    // After 1 s, 3 s, 7 s.
    let count = hostile.count("tools/list");
    assert!((2..=4).contains(&count), "{count}");
}

#[tokio::test]
async fn a_stream_that_ends_at_once_is_not_asked_for_all_the_time() {
    let hostile = Hostile::start(|method, _, _| match method {
        "get" => Doing::Raw(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\ncontent-length: 10\r\n\r\n\
             retry: 0\n\n"
                .to_owned(),
        ),
        "tools/list" => Doing::Result(json!({"tools": [tool("one")]})),
        _ => beginning(method).unwrap(),
    })
    .await;
    let (server, who) = hostile.known(MINUTE);
    server.start(who).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let count = hostile.count("get");
    assert!((2..=11).contains(&count), "{count}");
}

#[tokio::test]
async fn a_connection_on_which_nothing_comes_is_given_up() {
    // The first session is stuck.
    let sessions = Arc::new(AtomicUsize::new(0));
    let begun = Arc::clone(&sessions);
    let hostile = Hostile::start(move |method, _, _| match method {
        "initialize" => {
            begun.fetch_add(1, Ordering::Relaxed);
            beginning(method).unwrap()
        }
        "tools/list" => Doing::Result(json!({"tools": [tool("one")]})),
        "tools/call" if begun.load(Ordering::Relaxed) > 1 => Doing::Result(json!({"content": []})),
        "tools/call" => Doing::Nothing,
        _ => beginning(method).unwrap(),
    })
    .await;
    let (server, who) = hostile.known(MINUTE);
    server.start(who.clone()).await.unwrap();
    let within = Duration::from_millis(300);
    for _ in 0..3 {
        let begun = Instant::now();
        assert!(matches!(called(&server, &who, within).await, Err(ServerError::Late(_))));
        assert!(begun.elapsed() < Duration::from_secs(3));
    }
    called(&server, &who, Duration::from_secs(5)).await.unwrap();
    // Whoever follows the tools has one of its own by now, perhaps.
    assert!((2..=3).contains(&sessions.load(Ordering::Relaxed)));
}

#[tokio::test]
async fn a_token_goes_where_the_manifest_says_and_nowhere_else() {
    let other = Hostile::start(|method, _, _| beginning(method).unwrap_or(Doing::Nothing)).await;
    let to = other.url.clone();
    let hostile = Hostile::start(move |_, _, _| {
        Doing::Raw(format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n"))
    })
    .await;
    let (server, who) = hostile.known(MINUTE);
    let error = server.start(who).await.unwrap_err().to_string();
    assert!(error.contains("307"), "{error}");
    assert!(hostile.authorized.load(Ordering::Relaxed) > 0);
    assert_eq!((other.authorized.load(Ordering::Relaxed), other.count("initialize")), (0, 0));
}
