//! Requests of guests to servers and to each other.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use crate::common::{Bench, guest, request, tight};
use http::Request;
use nala_egress::{AllowList, ConnectionLimit, Egress, EgressMetrics, Gate, GateConfig, Owner, SystemResolver};
use nala_wasm::{
    App, Callee, Capabilities, Chain, ChainError, Chained, Grant, GuestBody, Limits, Outbound, Runtime, RuntimeConfig,
    Source,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// What a server does with a connection, once it has read a request.
#[derive(Clone, Copy)]
enum Answer {
    Hello,
    /// The head of a response, and nothing of its body.
    Never,
}

/// A server, and a word for each of its connections that was closed.
async fn serve(answer: Answer) -> (SocketAddr, mpsc::UnboundedReceiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (closed, closings) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let closed = closed.clone();
            tokio::spawn(async move {
                answer_all(stream, answer).await;
                let _ = closed.send(());
            });
        }
    });
    (address, closings)
}

async fn answer_all(mut stream: TcpStream, answer: Answer) {
    let mut text = Vec::new();
    let mut part = [0; 4096];
    while let Ok(n @ 1..) = stream.read(&mut part).await {
        text.extend_from_slice(&part[..n]);
        if !text.ends_with(b"\r\n\r\n") {
            continue;
        }
        text.clear();
        let said: &[u8] = match answer {
            Answer::Hello => b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
            Answer::Never => b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n",
        };
        stream.write_all(said).await.unwrap();
    }
}

fn egress(allow: &[&str]) -> Egress {
    let admit = Arc::new(ConnectionLimit::new(100, 100));
    let resolver = Arc::new(SystemResolver::default());
    let gate = Gate::new(GateConfig::default(), resolver, admit, EgressMetrics::default()).unwrap();
    gate.egress(Owner::new("tenant", "component"), AllowList::parse(allow).unwrap())
}

fn outbound(allow: &[&str]) -> Capabilities {
    let outbound = Outbound { egress: egress(allow), chain: None };
    Capabilities { outbound: Some(outbound), ..Capabilities::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_granted_is_fetched_and_nothing_else() {
    let (address, _closings) = serve(Answer::Hello).await;
    let granted = format!("http://{address}");
    let capabilities = outbound(&[&granted]);
    let bench = Bench::granted(capabilities.clone());
    assert_eq!(bench.text(&format!("/fetch?{granted}/path?query")).await, "200 hello");
    let denied = "ErrorCode::HttpRequestDenied";
    assert_eq!(bench.text("/fetch?http://127.0.0.1:9/").await, denied);
    assert_eq!(bench.text("/fetch?https://example.com/").await, denied);
    assert_eq!(bench.text(&format!("/header?{granted}/")).await, denied);
    let others = Bench::granted_within(Limits::default(), capabilities, "capabilities_async");
    assert_eq!(others.text(&format!("/fetch?{granted}/")).await, "200 hello Ok(())");
    assert_eq!(others.text("/fetch?http://127.0.0.1:9/").await, denied);
}

#[tokio::test(flavor = "multi_thread")]
async fn private_addresses_are_told_as_prohibited_and_nobody_there_as_refused() {
    let (address, _closings) = serve(Answer::Hello).await;
    let bench = Bench::granted(outbound(&["http://*:*"]));
    assert_eq!(bench.text(&format!("/fetch?http://{address}/")).await, "ErrorCode::DestinationIpProhibited");
    let bench = Bench::granted(outbound(&["http://127.0.0.1:*"]));
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    assert_eq!(bench.text(&format!("/fetch?http://{nobody}/")).await, "ErrorCode::ConnectionRefused");
}

#[tokio::test(flavor = "multi_thread")]
async fn so_many_requests_are_in_progress_at_a_time() {
    let (address, _closings) = serve(Answer::Hello).await;
    let limits = Limits { outbound_connections: 2, ..Limits::default() };
    let bench = Bench::granted_within(limits, outbound(&["http://127.0.0.1:*"]), "capabilities");
    let told = bench.text(&format!("/fetch-many?4&http://{address}/")).await;
    assert_eq!(told, "2 good, Some(\"ErrorCode::ConnectionLimitReached\"), then 200 hello");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_nobody_waits_for_closes_its_connection() {
    let (address, mut closings) = serve(Answer::Never).await;
    for name in ["capabilities", "capabilities_async"] {
        let bench = Bench::granted_within(Limits::default(), outbound(&["http://127.0.0.1:*"]), name);
        let path = format!("/fetch?http://{address}/");
        let waiting = tokio::time::timeout(Duration::from_millis(500), bench.get(&path)).await;
        assert!(waiting.is_err(), "{name}: the body has no end");
        bench.until_empty().await;
        let closed = tokio::time::timeout(Duration::from_secs(5), closings.recv()).await;
        assert_eq!(closed.expect(name), Some(()));
    }
}

/// The components of an application.
#[derive(Default)]
struct Components {
    apps: OnceLock<HashMap<&'static str, App>>,
    /// The threads on which the callers were.
    threads: Mutex<Vec<String>>,
}

impl Chain for Components {
    fn call(&self, callee: Callee, request: Request<GuestBody>) -> Chained {
        let thread = std::thread::current().name().unwrap_or_default().to_owned();
        self.threads.lock().unwrap().push(thread);
        let name = match &callee {
            Callee::Component(name) => name,
            Callee::Application => "first",
        };
        let app = self.apps.get().unwrap().get(name).cloned();
        Box::pin(async move { Ok(app.ok_or(ChainError::NotFound)?.handle(request).await?) })
    }
}

/// Components `first` and `second`, and what both may call.
fn application(runtime: &Runtime, allow: &[&str]) -> App {
    components(runtime, allow).0
}

/// The same, with what they see of each other.
fn components(runtime: &Runtime, allow: &[&str]) -> (App, Arc<Components>) {
    let components = Arc::new(Components::default());
    let compiled = runtime.compile("caps", Source::File(&guest("capabilities"))).unwrap();
    let load = || {
        let outbound = Outbound { egress: egress(allow), chain: Some(Arc::clone(&components) as Arc<dyn Chain>) };
        let capabilities = Capabilities { outbound: Some(outbound), ..Capabilities::default() };
        runtime.load(&compiled, Grant { capabilities, limits: tight(), ..Grant::default() }).unwrap()
    };
    let (first, second) = (load(), load());
    let all = HashMap::from([("first", first.clone()), ("second", second)]);
    assert!(components.apps.set(all).is_ok());
    (first, components)
}

async fn text(app: &App, path: &str) -> String {
    use http_body_util::BodyExt;
    let response = app.handle(request(path)).await.unwrap();
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn components_call_those_that_they_are_granted() {
    let runtime = Runtime::new(RuntimeConfig::default()).unwrap();
    let app = application(&runtime, &["http://second.spin.internal", "http://gone.spin.internal"]);
    assert_eq!(text(&app, "/fetch?http://second.spin.internal/told").await, "200 told Method::Get");
    assert_eq!(text(&app, "/fetch?http://gone.spin.internal/told").await, "ErrorCode::DestinationNotFound");
    for denied in [
        "/fetch?http://first.spin.internal/told",
        "/fetch?http://self.alt/told",
        "/header?http://second.spin.internal/told",
    ] {
        assert_eq!(text(&app, denied).await, "ErrorCode::HttpRequestDenied", "{denied}");
    }
    let told = text(&app, "/fetch?http://second.spin.internal/trap").await;
    assert!(told.starts_with("ErrorCode::InternalError(Some(\"the handler trapped"), "{told}");
    let app = application(&runtime, &["http://self"]);
    assert_eq!(text(&app, "/fetch?http://self.alt/told").await, "200 told Method::Get");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_called_by_a_guest_that_computes_for_long_does_not_begin_where_that_is() {
    let runtime = Runtime::new(RuntimeConfig::default()).unwrap();
    let (app, components) = components(&runtime, &["http://*.spin.internal"]);
    let calls = "/compute-and-fetch?http://second.spin.internal/fetch?http://first.spin.internal/told";
    assert_eq!(text(&app, calls).await, "200 200 told Method::Get");
    let threads = components.threads.lock().unwrap();
    assert_eq!((threads.len(), threads[0].as_str()), (2, "nala guest"), "the first computed for long: {threads:?}");
    assert_ne!(threads[1], "nala guest", "the second did not");
}

#[tokio::test(flavor = "multi_thread")]
async fn components_that_call_each_other_without_end_are_told_so() {
    let runtime = Runtime::new(RuntimeConfig::default()).unwrap();
    let app = application(&runtime, &["http://*.spin.internal"]);
    let told = text(&app, "/recurse?first").await;
    assert_eq!(told, format!("{}ErrorCode::LoopDetected", "200 ".repeat(8)));
    // What a client says of itself changes nothing.
    assert_eq!(text(&app, "/fetch?http://second.spin.internal/told").await, "200 told Method::Get");
    for _ in 0..500 {
        if runtime.metrics().instances.get() == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("instances are left");
}
