//! Malformed requests, panics, identifiers, health.

use http::StatusCode;
use nala_http::{HEALTH_PATH, HostError, HttpConfig, Phase, RequestId, handler_fn};

use crate::harness::{Client, start, text};

#[tokio::test]
async fn nonsense_gets_400_and_the_next_client_is_served() {
    let server = start(HttpConfig::default(), handler_fn(|_| async { Ok(text("fine")) })).await;
    for nonsense in [
        "\x16\x03\x01\x02\x00 tls hello\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/1.1\r\nbad header\r\n\r\n",
        "GET / HTTP/9.9\r\nhost: x\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1, 2\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: x\r\nhost: y\r\n\r\n",
    ] {
        let mut client = Client::connect(server.addr).await;
        client.send(nonsense).await;
        let answer = client.rest().await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{nonsense:?} got {answer:?}");
    }
    let mut client = Client::connect(server.addr).await;
    client.get("/").await;
    client.until("fine").await;
}

#[tokio::test]
async fn a_host_that_is_none_is_refused_at_once() {
    let server = start(HttpConfig::default(), handler_fn(|_| async { Ok(text("fine")) })).await;
    let head = |host: &[u8]| [b"GET /v1/models HTTP/1.1\r\nhost: ", host, b"\r\n\r\n"].concat();
    for host in [&b"\xff"[..], "ä.de".as_bytes(), b"user@x", b"a b", b"x:99999", b""] {
        let mut client = Client::connect(server.addr).await;
        let began = std::time::Instant::now();
        client.send(head(host)).await;
        let answer = client.rest().await;
        assert!(answer.starts_with("HTTP/1.1 400") && answer.contains(r#""code":"bad_host""#), "{host:?}: {answer}");
        assert!(began.elapsed() < std::time::Duration::from_millis(500), "{host:?} took {:?}", began.elapsed());
    }
    let mut client = Client::connect(server.addr).await;
    client.send(head(b"[::1]:3000")).await;
    client.until("fine").await;
}

#[tokio::test]
async fn what_the_server_does_not_do_is_named() {
    let server = start(HttpConfig::default(), handler_fn(|_| async { Ok(text("fine")) })).await;
    for (header, status, code) in [
        ("transfer-encoding: gzip, chunked", 501, "unsupported_transfer_encoding"),
        ("expect: 200-ok\r\ncontent-length: 1", 417, "unsupported_expectation"),
    ] {
        let mut client = Client::connect(server.addr).await;
        client.send(format!("POST / HTTP/1.1\r\nhost: x\r\n{header}\r\n\r\n")).await;
        let answer = client.until("}}").await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")) && answer.contains(code), "{header}: {answer}");
    }
    let mut client = Client::connect(server.addr).await;
    client.send("POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: Chunked\r\n\r\n0\r\n\r\n").await;
    client.until("fine").await;
}

#[tokio::test]
async fn a_limit_past_all_counting_is_no_panic() {
    let config = HttpConfig { max_connections: usize::MAX, ..HttpConfig::default() };
    let server = start(config, handler_fn(|_| async { Ok(text("fine")) })).await;
    let mut client = Client::connect(server.addr).await;
    client.get("/").await;
    client.until("fine").await;
}

#[tokio::test]
async fn a_handler_cannot_switch_protocols() {
    let handler = handler_fn(|request: http::Request<_>| async move {
        let status: u16 = request.uri().path().trim_start_matches('/').parse().unwrap();
        let mut response = text("fine");
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        Ok(response)
    });
    let server = start(HttpConfig::default(), handler).await;
    for status in [100, 101, 103, 199] {
        let mut client = Client::connect(server.addr).await;
        client.get(&format!("/{status}")).await;
        let answer = client.until("interim_status").await;
        assert!(answer.starts_with("HTTP/1.1 500"), "{answer}");
        // The connection is as it was.
        client.get("/200").await;
        client.until("fine").await;
    }
}

#[tokio::test]
async fn connect_is_refused() {
    let server = start(HttpConfig::default(), handler_fn(|_| async { Ok(text("fine")) })).await;
    let mut client = Client::connect(server.addr).await;
    client.send("CONNECT other:443 HTTP/1.1\r\nhost: other:443\r\n\r\n").await;
    let answer = client.until("}}").await;
    assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
}

#[tokio::test]
async fn an_old_client_without_a_host_is_given_one() {
    let server = start(
        HttpConfig::default(),
        handler_fn(|request: http::Request<_>| async move {
            assert!(request.headers().contains_key("host"));
            Ok(text("fine"))
        }),
    )
    .await;
    let mut client = Client::connect(server.addr).await;
    client.send("GET / HTTP/1.0\r\n\r\n").await;
    assert!(client.rest().await.ends_with("fine"));
}

#[tokio::test]
async fn a_panic_is_500_in_the_envelope_and_the_connection_lives() {
    let server = start(
        HttpConfig::default(),
        handler_fn(|request: http::Request<_>| async move {
            assert!(request.uri().path() != "/panic", "asked to");
            Ok(text("fine"))
        }),
    )
    .await;
    let mut client = Client::connect(server.addr).await;
    client.get("/panic").await;
    let answer = client.until("}}").await;
    assert!(answer.starts_with("HTTP/1.1 500"), "{answer}");
    assert!(answer.contains(r#""code":"internal_error""#), "{answer}");
    assert!(answer.contains(r#""type":"server_error""#), "{answer}");
    assert!(!answer.contains("asked to"), "the panic's text is for the log: {answer}");
    client.get("/").await;
    client.until("fine").await;
}

#[tokio::test]
async fn a_panic_in_a_body_breaks_off_that_response_only() {
    let server = start(
        HttpConfig::default(),
        handler_fn(|request: http::Request<_>| async move {
            if request.uri().path() == "/" {
                return Ok(text("fine"));
            }
            let stream = futures::stream::poll_fn(
                |_| -> std::task::Poll<Option<Result<http_body::Frame<bytes::Bytes>, std::io::Error>>> {
                    panic!("asked to")
                },
            );
            Ok(http::Response::new(nala_http::ResponseBody::new(http_body_util::StreamBody::new(stream))))
        }),
    )
    .await;
    let mut client = Client::connect(server.addr).await;
    client.get("/panic").await;
    assert!(!client.rest().await.contains("0\r\n\r\n"), "the end must not look regular");
    let mut client = Client::connect(server.addr).await;
    client.get("/").await;
    client.until("fine").await;
}

#[tokio::test]
async fn a_handlers_error_is_answered_in_openais_shape() {
    let server = start(
        HttpConfig::default(),
        handler_fn(|_| async {
            Err(HostError::new(StatusCode::TOO_MANY_REQUESTS, "at_capacity", "Try later.")
                .retry_after(std::time::Duration::from_millis(1500)))
        }),
    )
    .await;
    let mut client = Client::connect(server.addr).await;
    client.get("/").await;
    let answer = client.until("}}").await;
    assert!(answer.contains("retry-after: 2\r\n"), "{answer}");
    assert!(answer.contains("content-type: application/json\r\n"), "{answer}");
    let json: serde_json::Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(
        json,
        serde_json::json!({"error": {
            "message": "Try later.", "type": "rate_limit_error", "code": "at_capacity", "param": null
        }})
    );
}

#[tokio::test]
async fn the_request_id_reaches_the_handler_and_comes_back() {
    let server = start(
        HttpConfig::default(),
        handler_fn(|request: http::Request<_>| async move {
            let id = request.extensions().get::<RequestId>().unwrap().as_str().to_owned();
            assert_eq!(request.headers()["x-request-id"], id.as_str());
            Ok(http::Response::new(nala_http::ResponseBody::full(id)))
        }),
    )
    .await;
    let mut client = Client::connect(server.addr).await;
    client.send("GET / HTTP/1.1\r\nhost: x\r\nx-request-id: mine-1\r\n\r\n").await;
    let answer = client.until("\r\n\r\nmine-1").await;
    assert!(answer.contains("x-request-id: mine-1\r\n"), "{answer}");
}

#[tokio::test]
async fn the_health_endpoint_follows_the_readiness() {
    let server = start(HttpConfig::default(), handler_fn(|_| async { Ok(text("fine")) })).await;
    let mut client = Client::connect(server.addr).await;
    for (phase, status) in [(Phase::Ready, 200), (Phase::Starting, 503), (Phase::Draining, 503)] {
        server.readiness.set(phase);
        client.get(HEALTH_PATH).await;
        let answer = client.until("}").await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        assert!(answer.contains(phase.as_str()), "{answer}");
    }
    client.send(format!("POST {HEALTH_PATH} HTTP/1.1\r\nhost: x\r\n\r\n")).await;
    assert!(client.until("}}").await.starts_with("HTTP/1.1 405"));
}
