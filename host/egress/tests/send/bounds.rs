//! Times and numbers.

use bytes::Bytes;
use futures::stream;
use http::Request;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use nala_egress::{BoxError, ConnectionLimit, GateConfig, Timeouts};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::bench::{Bench, Names, code, config, get, get_within, got, short, text};
use crate::servers::{Server, read_head};

/// Answers with a head and the first bytes of a body, and then nothing.
async fn half() -> Server {
    Server::run(|mut stream, _| async move {
        read_head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc").await.unwrap();
        let _ = stream.read(&mut [0; 64]).await;
    })
    .await
}

async fn silent() -> Server {
    Server::run(|mut stream, _| async move {
        let _ = stream.read_to_end(&mut Vec::new()).await;
    })
    .await
}

#[tokio::test]
async fn each_part_of_an_exchange_has_its_time() {
    let bench = Bench::with(config(), Names::answer(&[&[]]), ConnectionLimit::new(9, 9));
    let egress = bench.egress(&["*://127.0.0.1:*", "http://slow.example"]);
    let timeouts = Timeouts { connect: short(200), first_byte: short(200), between_bytes: short(200) };
    assert_eq!(code(get_within(&egress, "http://slow.example", timeouts).await), "DNS-timeout");
    let silent = silent().await;
    assert_eq!(code(get_within(&egress, &silent.url("/"), timeouts).await), "connection-read-timeout");
    // It accepts, and never begins TLS.
    let tls = format!("https://{}/", silent.address);
    assert_eq!(code(get_within(&egress, &tls, timeouts).await), "connection-timeout");
    let half = half().await;
    let response = get_within(&egress, &half.url("/"), timeouts).await.unwrap();
    assert_eq!(code(text(response).await), "connection-read-timeout");
    bench.until("egress_connections", 0).await;
}

#[tokio::test]
async fn a_guest_cannot_ask_for_more_time_than_there_is() {
    let timeouts = Timeouts { first_byte: short(100), ..Timeouts::default() };
    let bench = Bench::with(GateConfig { timeouts, ..config() }, Names::answer(&[]), ConnectionLimit::new(9, 9));
    let egress = bench.egress(&["http://127.0.0.1:*"]);
    let server = silent().await;
    assert_eq!(code(get_within(&egress, &server.url("/"), Timeouts::UNSET).await), "connection-read-timeout");
}

#[tokio::test]
async fn a_guest_that_does_not_read_is_not_the_servers_fault() {
    let server = Server::echo().await;
    let bench = Bench::new();
    let egress = bench.egress(&["http://127.0.0.1:*"]);
    let timeouts = Timeouts { between_bytes: short(50), ..Timeouts::UNSET };
    let response = get_within(&egress, &server.url("/"), timeouts).await.unwrap();
    tokio::time::sleep(short(150)).await;
    assert!(text(response).await.unwrap().starts_with("HTTP/1.1 GET"));
}

#[tokio::test]
async fn an_upload_that_nobody_reads_ends() {
    let server = Server::run(|stream, _| async move {
        std::future::pending::<()>().await;
        drop(stream);
    })
    .await;
    let bench = Bench::new();
    let egress = bench.egress(&["http://127.0.0.1:*"]);
    let endless = stream::repeat_with(|| Ok::<_, BoxError>(Frame::data(Bytes::from(vec![0; 1 << 16]))));
    let request = Request::post(server.url("/")).body(StreamBody::new(endless)).unwrap();
    let timeouts = Timeouts { first_byte: short(300), ..Timeouts::UNSET };
    assert_eq!(code(egress.send(request, timeouts).await), "connection-read-timeout");
    bench.until("egress_connections", 0).await;
}

#[tokio::test]
async fn nobody_at_a_port_is_a_refused_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let bench = Bench::new();
    let egress = bench.egress(&["http://127.0.0.1:*", "http://unknown.example"]);
    assert_eq!(code(get(&egress, &uri).await), "connection-refused");
    assert_eq!(code(get(&egress, "http://unknown.example").await), "DNS-error");
}

#[tokio::test]
async fn there_are_as_many_connections_as_there_may_be() {
    let bench = Bench::with(config(), Names::answer(&[]), ConnectionLimit::new(2, 1));
    let (one, two) = (bench.of("one", &["http://127.0.0.1:*"]), bench.of("two", &["http://127.0.0.1:*"]));
    let (half, echo) = (half().await, Server::echo().await);
    let timeouts = Timeouts { connect: short(200), ..Timeouts::UNSET };
    let mut held = get(&one, &half.url("/")).await.unwrap();
    held.body_mut().frame().await.unwrap().unwrap();
    assert_eq!(code(get_within(&one, &echo.url("/"), timeouts).await), "connection-limit-reached");
    assert_eq!(bench.metric("egress_denied_total{reason=\"limit\"}"), 1);
    got(&two, &echo.url("/")).await;
    // Who gives up a body gives up its connection.
    let waiting = tokio::spawn({
        let (one, uri) = (one.clone(), echo.url("/"));
        async move { get(&one, &uri).await.map(|response| response.status()) }
    });
    tokio::time::sleep(short(50)).await;
    assert!(!waiting.is_finished());
    drop(held);
    assert_eq!(waiting.await.unwrap().unwrap(), 200);
}

#[tokio::test]
async fn an_idle_connection_makes_room() {
    let bench = Bench::with(config(), Names::answer(&[]), ConnectionLimit::new(1, 1));
    let (a, b) = (Server::echo().await, Server::echo().await);
    for tenant in ["one", "two"] {
        let egress = bench.of(tenant, &["http://127.0.0.1:*"]);
        for server in [&a, &b, &a] {
            got(&egress, &server.url("/")).await;
        }
    }
    assert_eq!(a.connections() + b.connections(), 6);
}

#[tokio::test]
async fn dropping_a_request_ends_it() {
    let server = silent().await;
    let bench = Bench::new();
    let egress = bench.egress(&["http://127.0.0.1:*"]);
    let uri = server.url("/");
    let asked = tokio::time::timeout(short(200), get(&egress, &uri)).await;
    assert!(asked.is_err());
    bench.until("egress_connections", 0).await;
    assert_eq!(server.connections(), 1);
}
