//! A client that leaves is noticed at once, whatever the server is doing.

use std::sync::Mutex;

use http_body_util::BodyExt;
use nala_http::{Handler, HttpConfig, RequestBody, handler_fn};
use tokio::io::AsyncWriteExt;
use tokio::sync::oneshot;

use crate::harness::{Client, PATIENCE, Running, channel, metrics_text, start};

/// What the handler does with the request's body before it answers.
#[derive(Clone, Copy)]
enum Reads {
    All,
    Nothing,
}

/// A server whose first answer streams for ever without a byte; the receiver
/// resolves when that body is dropped.
async fn silent_stream(reads: Reads) -> (Running, oneshot::Receiver<()>) {
    let (held, dropped) = oneshot::channel::<()>();
    let server = start(HttpConfig::default(), silent_handler(reads, held)).await;
    (server, dropped)
}

fn silent_handler(reads: Reads, held: oneshot::Sender<()>) -> impl Handler {
    let held = Mutex::new(Some(held));
    handler_fn(move |request: http::Request<RequestBody>| {
        let held = held.lock().unwrap().take();
        async move {
            match reads {
                Reads::All => drop(request.into_body().collect().await),
                Reads::Nothing => drop(request),
            }
            let stream = futures::stream::once(async move {
                let _held = held;
                std::future::pending::<Result<http_body::Frame<bytes::Bytes>, std::io::Error>>().await
            });
            let body = http_body_util::StreamBody::new(stream);
            Ok(http::Response::new(nala_http::ResponseBody::new(body)))
        }
    })
}

async fn assert_dropped(dropped: oneshot::Receiver<()>, server: &Running) {
    let seen = tokio::time::timeout(PATIENCE, dropped).await;
    assert!(seen.is_ok(), "the body outlived its client");
    // The record ends with the body.
    for _ in 0..100 {
        if metrics_text(&server.metrics).contains("nala_http_disconnects_total 1") {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("not counted: {}", metrics_text(&server.metrics));
}

#[tokio::test]
async fn a_closed_connection_drops_a_silent_body() {
    let (server, dropped) = silent_stream(Reads::All).await;
    let mut client = Client::connect(server.addr).await;
    client.get("/").await;
    client.until("\r\n\r\n").await;
    drop(client);
    assert_dropped(dropped, &server).await;
}

#[tokio::test]
async fn so_does_a_half_closed_one() {
    let (server, dropped) = silent_stream(Reads::All).await;
    let mut client = Client::connect(server.addr).await;
    client.get("/").await;
    client.until("\r\n\r\n").await;
    client.0.shutdown().await.unwrap();
    assert_dropped(dropped, &server).await;
}

#[tokio::test]
async fn so_does_one_whose_request_body_was_never_read() {
    let (server, dropped) = silent_stream(Reads::Nothing).await;
    let mut client = Client::connect(server.addr).await;
    let body = "a".repeat(2_000_000);
    client.send(format!("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len())).await;
    client.send(&body[..1_000_000]).await;
    client.until("\r\n\r\n").await;
    client.send(&body[1_000_000..]).await;
    drop(client);
    assert_dropped(dropped, &server).await;
}

#[tokio::test]
async fn a_client_that_leaves_before_the_answer_drops_the_handler() {
    let (held, dropped) = oneshot::channel::<()>();
    let (entered, inside) = oneshot::channel::<()>();
    let parts = Mutex::new(Some((held, entered)));
    let server = start(
        HttpConfig::default(),
        handler_fn(move |_| {
            let (held, entered) = parts.lock().unwrap().take().unwrap();
            async move {
                let _held = held;
                entered.send(()).unwrap();
                std::future::pending().await
            }
        }),
    )
    .await;
    let mut client = Client::connect(server.addr).await;
    client.get("/").await;
    inside.await.unwrap();
    drop(client);
    assert_dropped(dropped, &server).await;
}

#[tokio::test]
async fn a_reset_http2_stream_drops_its_body_and_no_other() {
    use hyper_util::rt::{TokioExecutor, TokioIo};
    let (server, dropped) = silent_stream(Reads::All).await;
    let stream = tokio::net::TcpStream::connect(server.addr).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = || http::Request::get("http://test/").body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
    let first = sender.send_request(request()).await.unwrap();
    let second = sender.send_request(request()).await.unwrap();
    drop(first);
    assert_dropped(dropped, &server).await;
    assert!(metrics_text(&server.metrics).contains("nala_http_requests_in_flight 1"));
    drop(second);
}

#[tokio::test]
async fn a_complete_answer_is_no_disconnect() {
    let (sender, body) = channel();
    let body = Mutex::new(Some(body));
    let server = start(
        HttpConfig::default(),
        handler_fn(move |_| {
            let body = body.lock().unwrap().take().unwrap();
            async move { Ok(http::Response::new(body)) }
        }),
    )
    .await;
    let mut client = Client::connect(server.addr).await;
    client.get("/").await;
    sender.send("all").unwrap();
    drop(sender);
    client.until("0\r\n\r\n").await;
    drop(client);
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    assert!(metrics_text(&server.metrics).contains("nala_http_disconnects_total 0"));
}
