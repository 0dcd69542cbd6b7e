//! Responses leave frame by frame.

use std::sync::Mutex;

use nala_http::{HttpConfig, handler_fn};

use crate::harness::{Client, channel, metrics_text, start, text};

#[tokio::test]
async fn a_chunk_arrives_while_the_body_is_still_open() {
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
    client.until("\r\n\r\n").await;
    for word in ["one", "two", "three"] {
        sender.send(word).unwrap();
        client.until(word).await;
    }
    drop(sender);
    client.until("0\r\n\r\n").await;
}

#[tokio::test]
async fn the_connection_is_kept_after_a_streamed_answer() {
    let server = start(
        HttpConfig::default(),
        handler_fn(|request: http::Request<_>| async move {
            if request.uri().path() == "/plain" {
                return Ok(text("plain"));
            }
            let (sender, body) = channel();
            tokio::spawn(async move {
                sender.send("streamed").unwrap();
                tokio::task::yield_now().await;
            });
            Ok(http::Response::new(body))
        }),
    )
    .await;
    let mut client = Client::connect(server.addr).await;
    for _ in 0..3 {
        client.get("/").await;
        let answer = client.until("0\r\n\r\n").await;
        assert!(answer.contains("streamed"), "{answer}");
        assert!(!answer.contains("connection: close"), "{answer}");
        client.get("/plain").await;
        client.until("plain").await;
    }
    let metrics = metrics_text(&server.metrics);
    assert!(metrics.contains("nala_http_requests_total{class=\"2xx\"} 6"), "{metrics}");
    assert!(metrics.contains("nala_http_disconnects_total 0"), "{metrics}");
    assert!(metrics.contains("nala_http_requests_in_flight 0"), "{metrics}");
    assert!(metrics.contains("nala_http_connections 1"), "{metrics}");
}

#[tokio::test]
async fn http2_with_prior_knowledge_is_served() {
    use hyper_util::rt::{TokioExecutor, TokioIo};
    let server = start(HttpConfig::default(), handler_fn(|_| async { Ok(text("over http/2")) })).await;
    let stream = tokio::net::TcpStream::connect(server.addr).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = http::Request::get("http://test/").body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
    let response = sender.send_request(request).await.unwrap();
    assert_eq!(response.version(), http::Version::HTTP_2);
    let body = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
    assert_eq!(&body[..], b"over http/2");
}
