//! Servers that do not mean well.

use std::time::Instant;

use nala_egress::{ConnectionLimit, GateConfig, Sizes, Timeouts, Whole};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::bench::{Bench, Names, code, config, get, get_within, short, text};
use crate::servers::{Server, read_head};

/// Answers with bytes, and keeps the connection.
async fn script(bytes: &'static str) -> Server {
    Server::run(move |mut stream, _| async move {
        read_head(&mut stream).await;
        let _ = stream.write_all(bytes.as_bytes()).await;
        let _ = stream.read(&mut [0; 64]).await;
    })
    .await
}

/// Answers with a beginning, then with the same again and again.
async fn drip(begin: &'static str, again: &'static str, every: u64) -> Server {
    Server::run(move |mut stream, _| async move {
        read_head(&mut stream).await;
        let mut sent = stream.write_all(begin.as_bytes()).await;
        while sent.is_ok() {
            tokio::time::sleep(short(every)).await;
            sent = stream.write_all(again.as_bytes()).await;
        }
    })
    .await
}

#[tokio::test]
async fn a_head_that_does_not_end_is_given_up() {
    let bench = Bench::new();
    let egress = bench.egress(&["http://127.0.0.1:*"]);
    let one =
        drip("HTTP/1.1 200 OK\r\nx: ", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 0).await;
    assert_eq!(code(get(&egress, &one.url("/")).await), "HTTP-response-header-section-size");
    let many = drip("HTTP/1.1 200 OK\r\n", "x: y\r\n", 0).await;
    assert_eq!(code(get(&egress, &many.url("/")).await), "HTTP-response-header-section-size");
    // Too slow to become too long.
    let slow = drip("HTTP/1.1 200 OK\r\n", "x: y\r\n", 50).await;
    let timeouts = Timeouts { first_byte: short(300), ..Timeouts::UNSET };
    assert_eq!(code(get_within(&egress, &slow.url("/"), timeouts).await), "connection-read-timeout");
    // Heads before the head.
    let early = drip("", "HTTP/1.1 103 Early Hints\r\n\r\n", 1).await;
    assert_eq!(code(get_within(&egress, &early.url("/"), timeouts).await), "connection-read-timeout");
    bench.until("egress_connections", 0).await;
}

#[tokio::test]
async fn how_long_a_head_may_be_is_the_operators() {
    let server = drip("HTTP/1.1 200 OK\r\nx: ", "xxxxxxxxxxxxxxxx", 0).await;
    let sizes = Sizes { response_headers: 1000, ..Sizes::default() };
    let bench = Bench::with(GateConfig { sizes, ..config() }, Names::answer(&[]), ConnectionLimit::new(9, 9));
    let error = get(&bench.egress(&["http://127.0.0.1:*"]), &server.url("/")).await.unwrap_err();
    assert_eq!(error.to_string(), "the response's headers are longer than 1000 bytes, or too many");
}

#[tokio::test]
async fn a_body_that_drips_ends_when_the_exchange_has_to() {
    let whole = Whole(short(700));
    let bench = Bench::with(GateConfig { whole, ..config() }, Names::answer(&[]), ConnectionLimit::new(9, 9));
    let egress = bench.egress(&["http://127.0.0.1:*"]);
    let timeouts = Timeouts { between_bytes: short(400), ..Timeouts::UNSET };
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let begun = Instant::now();
    let dripping = drip(head, "1\r\nx\r\n", 50).await;
    let response = get_within(&egress, &dripping.url("/"), timeouts).await.unwrap();
    assert_eq!(code(text(response).await), "HTTP-response-timeout");
    assert!(begun.elapsed() > short(600) && begun.elapsed() < short(3000), "{:?}", begun.elapsed());
    // Bytes that are no part of the body do not count as some.
    let empty = drip(head, "", 50).await;
    let response = get_within(&egress, &empty.url("/"), timeouts).await.unwrap();
    assert_eq!(code(text(response).await), "connection-read-timeout");
    let extension = drip("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", "x", 50).await;
    let response = get_within(&egress, &extension.url("/"), timeouts).await.unwrap();
    assert_eq!(code(text(response).await), "connection-read-timeout");
    bench.until("egress_connections", 0).await;
}

#[tokio::test]
async fn what_is_not_http_is_told_as_what_it_is() {
    let bench = Bench::new();
    let egress = bench.egress(&["http://127.0.0.1:*"]);
    for (answer, expected) in [
        ("SSH-2.0-OpenSSH_9.9\r\n", "HTTP-protocol-error"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "HTTP-protocol-error"),
        ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "HTTP-protocol-error"),
        ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "HTTP-upgrade-failed"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "HTTP-response-transfer-coding"),
    ] {
        let server = script(answer).await;
        assert_eq!(code(get(&egress, &server.url("/")).await), expected, "{answer:?}");
    }
    bench.until("egress_connections", 0).await;
}

#[tokio::test]
async fn a_response_that_breaks_off_is_not_complete() {
    let bench = Bench::new();
    let egress = bench.egress(&["http://127.0.0.1:*"]);
    for (answer, head) in [
        ("", false),
        ("HTTP/1.1 200 OK\r\nContent-", false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", true),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc", true),
    ] {
        let server = Server::run(move |mut stream, _| async move {
            read_head(&mut stream).await;
            stream.write_all(answer.as_bytes()).await.unwrap();
        })
        .await;
        let response = get(&egress, &server.url("/")).await;
        assert_eq!(response.is_ok(), head, "{answer:?}");
        let code = match response {
            Ok(response) => code(text(response).await),
            Err(error) => error.code(),
        };
        assert_eq!(code, "HTTP-response-incomplete", "{answer:?}");
    }
}

#[tokio::test]
async fn what_comes_behind_a_response_is_not_the_next_one() {
    let server =
        script("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil").await;
    let bench = Bench::new();
    let egress = bench.egress(&["http://127.0.0.1:*"]);
    for _ in 0..3 {
        assert_eq!(text(get(&egress, &server.url("/")).await.unwrap()).await.unwrap(), "ok");
        tokio::time::sleep(short(20)).await;
    }
    assert_eq!(server.connections(), 3);
}
