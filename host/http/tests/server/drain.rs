//! The graceful end.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use nala_http::{BindError, DrainReport, Handler, HttpConfig, Phase, Server, handler_fn};
use tokio::net::TcpStream;
use tokio::sync::mpsc::UnboundedSender;

use crate::harness::{Client, PATIENCE, channel, start, text};

fn one_stream() -> (UnboundedSender<&'static str>, impl Handler) {
    let (sender, body) = channel();
    let body = Mutex::new(Some(body));
    let handler = handler_fn(move |_| {
        let body = body.lock().unwrap().take().unwrap();
        async move { Ok(http::Response::new(body)) }
    });
    (sender, handler)
}

async fn wait_refused(addr: std::net::SocketAddr) {
    let started = Instant::now();
    while TcpStream::connect(addr).await.is_ok() {
        assert!(started.elapsed() < PATIENCE, "still accepting");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_running_stream_is_finished_and_new_connections_are_refused() {
    let (sender, handler) = one_stream();
    let server = start(HttpConfig::default(), handler).await;
    let mut client = Client::connect(server.addr).await;
    client.get("/").await;
    sender.send("before").unwrap();
    client.until("before").await;
    server.shutdown.drain();
    wait_refused(server.addr).await;
    assert_eq!(server.readiness.get(), Phase::Draining);
    sender.send("after").unwrap();
    client.until("after").await;
    assert!(!server.task.is_finished());
    drop(sender);
    assert_eq!(client.rest().await, "0\r\n\r\n");
    assert_eq!(server.task.await.unwrap(), DrainReport { cut: 0 });
}

#[tokio::test]
async fn an_answer_begun_during_the_drain_closes_its_connection() {
    let (release, gate) = tokio::sync::oneshot::channel::<()>();
    let gate = Mutex::new(Some(gate));
    let server = start(
        HttpConfig::default(),
        handler_fn(move |_| {
            let gate = gate.lock().unwrap().take().unwrap();
            async move {
                gate.await.unwrap();
                Ok(text("fine"))
            }
        }),
    )
    .await;
    let mut client = Client::connect(server.addr).await;
    client.get("/").await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    server.shutdown.drain();
    wait_refused(server.addr).await;
    release.send(()).unwrap();
    let answer = client.rest().await;
    assert!(answer.contains("connection: close\r\n"), "{answer}");
    assert!(answer.ends_with("fine"), "{answer}");
}

#[tokio::test]
async fn idle_connections_do_not_hold_up_the_end() {
    let server = start(HttpConfig::default(), handler_fn(|_| async { Ok(text("fine")) })).await;
    let mut used = Client::connect(server.addr).await;
    used.get("/").await;
    used.until("fine").await;
    let mut fresh = Client::connect(server.addr).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    server.shutdown.drain();
    let report = tokio::time::timeout(PATIENCE, server.task).await.unwrap().unwrap();
    assert_eq!(report.cut, 0);
    assert_eq!(used.rest().await, "");
    assert_eq!(fresh.rest().await, "");
}

#[tokio::test]
async fn the_deadline_cuts_what_still_runs() {
    let (sender, handler) = one_stream();
    let config = HttpConfig { drain_deadline: Duration::from_millis(200), ..HttpConfig::default() };
    let server = start(config, handler).await;
    let mut client = Client::connect(server.addr).await;
    client.get("/").await;
    client.until("\r\n\r\n").await;
    server.shutdown.drain();
    assert_eq!(server.task.await.unwrap(), DrainReport { cut: 1 });
    assert!(sender.is_closed(), "the body must have been dropped");
    assert!(!client.rest().await.contains("0\r\n\r\n"), "the end must not look regular");
}

#[tokio::test]
async fn a_cut_does_not_wait() {
    let (_sender, handler) = one_stream();
    let server = start(HttpConfig::default(), handler).await;
    let mut client = Client::connect(server.addr).await;
    client.get("/").await;
    client.until("\r\n\r\n").await;
    server.shutdown.drain();
    server.shutdown.cut();
    let report = tokio::time::timeout(PATIENCE, server.task).await.unwrap().unwrap();
    assert_eq!(report.cut, 1);
}

#[tokio::test]
async fn a_lame_duck_still_answers_and_says_so() {
    let config = HttpConfig { lame_duck: Duration::from_secs(5), ..HttpConfig::default() };
    let server = start(config, handler_fn(|_| async { Ok(text("fine")) })).await;
    server.shutdown.drain();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let mut client = Client::connect(server.addr).await;
    client.get(nala_http::HEALTH_PATH).await;
    assert!(client.until("draining").await.starts_with("HTTP/1.1 503"));
    client.get("/").await;
    client.until("fine").await;
    server.shutdown.cut();
    tokio::time::timeout(PATIENCE, server.task).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_taken_port_is_named_with_the_way_out() {
    let config = HttpConfig::default();
    let first = Server::bind("127.0.0.1:0".parse().unwrap(), config.clone()).await.unwrap();
    let error = Server::bind(first.local_addr().unwrap(), config.clone()).await.unwrap_err();
    assert!(matches!(error, BindError::InUse { .. }), "{error}");
    assert!(error.to_string().contains(&first.local_addr().unwrap().to_string()), "{error}");
    let error = Server::bind("203.0.113.7:80".parse().unwrap(), config).await.unwrap_err();
    assert!(error.to_string().contains("no such address"), "{error}");
}
