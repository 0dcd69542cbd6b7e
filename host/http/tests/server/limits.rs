//! Sizes, times and numbers.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use http::StatusCode;
use http_body_util::BodyExt;
use nala_http::{BodyError, HostError, HttpConfig, RequestBody, handler_fn};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::harness::{Client, channel, metrics_text, start, text};

fn small() -> HttpConfig {
    HttpConfig { max_body_bytes: 1000, ..HttpConfig::default() }
}

async fn echo_length(
    request: http::Request<RequestBody>,
) -> Result<http::Response<nala_http::ResponseBody>, HostError> {
    match request.into_body().collect().await {
        Ok(body) => Ok(http::Response::new(nala_http::ResponseBody::full(body.to_bytes().len().to_string()))),
        // What a handler makes of it must not matter.
        Err(_) => Err(HostError::new(StatusCode::IM_A_TEAPOT, "teapot", "Confused.")),
    }
}

#[tokio::test]
async fn a_body_of_the_limit_passes_and_one_byte_more_is_413_before_it_is_sent() {
    let server = start(small(), handler_fn(echo_length)).await;
    let mut client = Client::connect(server.addr).await;
    client.send("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n").await;
    client.send(vec![b'a'; 1000]).await;
    client.until("\r\n\r\n1000").await;
    client.send("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1001\r\n\r\n").await;
    let answer = client.until("}}").await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(answer.contains("1001 bytes; the limit is 1000"), "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
}

#[tokio::test]
async fn a_chunked_body_over_the_limit_is_413_whatever_the_handler_says() {
    let server = start(small(), handler_fn(echo_length)).await;
    let mut client = Client::connect(server.addr).await;
    client.send("POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n").await;
    let chunk = format!("200\r\n{}\r\n", "a".repeat(512));
    client.send(&chunk).await;
    client.send(&chunk).await;
    let answer = client.until("}}").await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(answer.contains("body_too_large"), "{answer}");
}

#[tokio::test]
async fn a_client_that_sends_first_and_reads_later_still_sees_the_413() {
    let server = start(HttpConfig::default(), handler_fn(echo_length)).await;
    let len = 20 * 1024 * 1024;
    let mut client = Client::connect(server.addr).await;
    client.send(format!("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {len}\r\n\r\n")).await;
    client.send(vec![b'a'; len]).await;
    assert!(client.rest().await.starts_with("HTTP/1.1 413"));
}

/// The rest is read at a pace, of which the time that it is read for must leave enough.
#[tokio::test]
async fn a_client_that_sends_far_too_much_still_sees_the_413() {
    let server = start(HttpConfig::default(), handler_fn(echo_length)).await;
    let len = HttpConfig::default().max_body_bytes + 50 * 1024 * 1024;
    let mut client = Client::connect(server.addr).await;
    client.send(format!("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {len}\r\n\r\n")).await;
    client.send(vec![b'a'; usize::try_from(len).unwrap()]).await;
    assert!(client.rest().await.starts_with("HTTP/1.1 413"));
}

#[tokio::test]
async fn a_client_that_asks_first_is_refused_without_a_body() {
    let server = start(small(), handler_fn(echo_length)).await;
    let mut client = Client::connect(server.addr).await;
    client.send("POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 5000\r\n\r\n").await;
    let answer = client.rest().await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
}

#[tokio::test]
async fn a_body_that_stops_is_408() {
    let config = HttpConfig { body_timeout: Duration::from_millis(100), body_rate: 0, ..HttpConfig::default() };
    let server = start(
        config,
        handler_fn(|request: http::Request<RequestBody>| async move {
            let error = request.into_body().collect().await.unwrap_err();
            assert!(matches!(error, BodyError::TimedOut { .. }), "{error}");
            // A handler that hangs on regardless is dropped.
            std::future::pending().await
        }),
    )
    .await;
    let mut client = Client::connect(server.addr).await;
    client.send("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nabc").await;
    let answer = client.until("}}").await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
}

#[tokio::test]
async fn a_body_that_comes_drop_by_drop_is_408() {
    let config = HttpConfig { body_timeout: Duration::from_millis(200), body_rate: 1000, ..HttpConfig::default() };
    let server = start(config, handler_fn(echo_length)).await;
    // Never silent for long, and yet of no use.
    let mut client = Client::connect(server.addr).await;
    client.send("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n").await;
    let begin = std::time::Instant::now();
    while begin.elapsed() < Duration::from_secs(5) && client.0.write_all(b"x").await.is_ok() {
        tokio::time::sleep(Duration::from_millis(20)).await;
        if begin.elapsed() > Duration::from_millis(400) {
            break;
        }
    }
    let answer = client.until("}}").await;
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("body_too_slow"), "{answer}");
    // Slow, for longer than the silence that is allowed, but at a pace.
    let mut client = Client::connect(server.addr).await;
    client.send("POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 5000\r\n\r\n").await;
    for _ in 0..50 {
        client.send("x".repeat(100)).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let answer = client.rest().await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("5000"), "{answer}");
}

#[tokio::test]
async fn big_headers_are_431_in_the_envelope() {
    let server = start(HttpConfig::default(), handler_fn(|_| async { Ok(text("fine")) })).await;
    let mut client = Client::connect(server.addr).await;
    let big = "x".repeat(40_000);
    client.send(format!("GET / HTTP/1.1\r\nhost: x\r\nbig: {big}\r\n\r\n")).await;
    let answer = client.until("}}").await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    assert!(answer.contains("headers_too_large"), "{answer}");
    // Far too big: cut short by hyper, still a 431.
    let mut client = Client::connect(server.addr).await;
    let _reset = client.0.write_all("GET / HTTP/1.1\r\n".as_bytes()).await;
    let line = format!("h: {}\r\n", "x".repeat(1000));
    for _ in 0..600 {
        if client.0.write_all(line.as_bytes()).await.is_err() {
            break;
        }
    }
    let mut answer = Vec::new();
    let _reset = client.0.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
}

#[tokio::test]
async fn a_slow_head_is_cut_and_silence_too() {
    let config = HttpConfig { header_timeout: Duration::from_millis(200), ..HttpConfig::default() };
    let server = start(config, handler_fn(|_| async { Ok(text("fine")) })).await;
    let started = Instant::now();
    let mut silent = Client::connect(server.addr).await;
    let mut slow = Client::connect(server.addr).await;
    slow.send("GET / HTTP/1.1\r\nhost").await;
    assert_eq!(silent.rest().await, "");
    assert_eq!(slow.rest().await, "");
    // Also after a served request, on a kept connection.
    let mut kept = Client::connect(server.addr).await;
    kept.get("/").await;
    kept.until("fine").await;
    kept.send("GET / HTT").await;
    assert_eq!(kept.rest().await, "");
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn an_idle_connection_is_closed_and_a_long_answer_is_not_idle() {
    let config = HttpConfig {
        idle_timeout: Duration::from_millis(150),
        header_timeout: Duration::from_millis(150),
        ..HttpConfig::default()
    };
    let server = start(
        config,
        handler_fn(|_| async {
            let (sender, body) = channel();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(600)).await;
                let _gone = sender.send("late");
            });
            Ok(http::Response::new(body))
        }),
    )
    .await;
    let mut client = Client::connect(server.addr).await;
    client.get("/").await;
    let answer = client.rest().await;
    assert!(answer.ends_with("late\r\n0\r\n\r\n"), "{answer}");
}

/// Connections that have been served, and stay.
async fn kept(server: SocketAddr, connections: usize) -> Vec<Client> {
    let mut kept = Vec::new();
    for _ in 0..connections {
        let mut client = Client::connect(server).await;
        client.get("/").await;
        client.until("fine").await;
        kept.push(client);
    }
    kept
}

/// All that one more connection is told.
async fn one_more(server: SocketAddr) -> String {
    let mut client = Client::connect(server).await;
    client.get("/").await;
    client.rest().await
}

#[tokio::test]
async fn one_connection_too_many_is_told_so() {
    let config = HttpConfig { max_connections: 2, ..HttpConfig::default() };
    let server = start(config, handler_fn(|_| async { Ok(text("fine")) })).await;
    let kept = kept(server.addr, 2).await;
    let answer = one_more(server.addr).await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("too_many_connections"), "{answer}");
    assert!(metrics_text(&server.metrics).contains("nala_http_connections_refused_total 1"));
    drop(kept);
    let mut attempts = 0;
    loop {
        let mut client = Client::connect(server.addr).await;
        client.get("/").await;
        if client.until("\r\n\r\n").await.starts_with("HTTP/1.1 200") {
            break;
        }
        attempts += 1;
        assert!(attempts < 100, "no place became free");
    }
}

#[tokio::test]
async fn one_client_cannot_have_all_connections() {
    let config = HttpConfig { max_connections: 4, ..HttpConfig::default() };
    let server = start(config, handler_fn(|_| async { Ok(text("fine")) })).await;
    let _kept = kept(server.addr, 3).await;
    assert!(one_more(server.addr).await.contains("too_many_connections"));
    let mut other = Client::connect_from("127.0.0.2".parse().unwrap(), server.addr).await;
    other.get("/").await;
    other.until("fine").await;
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_cut() {
    let config = HttpConfig { write_timeout: Duration::from_millis(200), ..HttpConfig::default() };
    let (dropped, gone) = tokio::sync::oneshot::channel::<()>();
    let dropped = std::sync::Mutex::new(Some(dropped));
    let server = start(
        config,
        handler_fn(move |_| {
            let held = dropped.lock().unwrap().take();
            async move {
                let block = bytes::Bytes::from(vec![b'x'; 64 * 1024]);
                let stream = futures::stream::repeat_with(move || {
                    let _held = &held;
                    Ok::<_, nala_http::BoxError>(http_body::Frame::data(block.clone()))
                });
                let body = http_body_util::StreamBody::new(stream);
                Ok(http::Response::new(nala_http::ResponseBody::new(body)))
            }
        }),
    )
    .await;
    let mut client = Client::connect(server.addr).await;
    client.get("/").await;
    let cut = tokio::time::timeout(crate::harness::PATIENCE, gone).await;
    assert!(cut.is_ok(), "the endless body still runs");
    drop(client);
}
