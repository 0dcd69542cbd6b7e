//! Clients of HTTP/2 that take nothing, or little, of what they are sent.

use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use http_body_util::{BodyExt, Empty, StreamBody};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use nala_http::{BoxError, HttpConfig, ResponseBody, handler_fn};
use tokio::task::JoinHandle;

use crate::harness::{PATIENCE, Running, channel, metrics_text, start};

type Sender = http2::SendRequest<Empty<Bytes>>;

/// A client that lets the server send `window` bytes of a response before it
/// reads. The task ends with the connection.
async fn connect(server: &Running, window: u32) -> (Sender, JoinHandle<()>) {
    let stream = tokio::net::TcpStream::connect(server.addr).await.unwrap();
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(window);
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
    let task = tokio::spawn(async move {
        let _broken = connection.await;
    });
    (sender, task)
}

fn request() -> http::Request<Empty<Bytes>> {
    http::Request::get("http://test/").body(Empty::new()).unwrap()
}

#[tokio::test]
async fn a_response_that_nobody_takes_is_dropped_and_reset() {
    let config = HttpConfig { write_timeout: Duration::from_millis(200), ..HttpConfig::default() };
    let (dropped, gone) = tokio::sync::oneshot::channel::<()>();
    let dropped = Mutex::new(Some(dropped));
    let server = start(
        config,
        handler_fn(move |_| {
            let held = dropped.lock().unwrap().take();
            async move {
                let stream = futures::stream::repeat_with(move || {
                    let _held = &held;
                    Ok::<_, BoxError>(Frame::data(Bytes::from_static(b"token")))
                });
                Ok(http::Response::new(ResponseBody::new(StreamBody::new(stream))))
            }
        }),
    )
    .await;
    // It goes on answering pings, as any client does.
    let (mut sender, _connection) = connect(&server, 0).await;
    let mut response = sender.send_request(request()).await.unwrap();
    assert!(tokio::time::timeout(PATIENCE, gone).await.is_ok(), "the body outlived its client's patience");
    let end = tokio::time::timeout(PATIENCE, response.frame()).await.unwrap();
    assert!(end.unwrap().is_err(), "the end must not look regular");
    assert!(metrics_text(&server.metrics).contains("nala_http_disconnects_total 1"));
}

#[tokio::test]
async fn a_slow_model_is_no_slow_client() {
    let config = HttpConfig { write_timeout: Duration::from_millis(100), ..HttpConfig::default() };
    let server = start(
        config,
        handler_fn(|_| async {
            // Longer than a client may wait, before the answer and within it.
            tokio::time::sleep(Duration::from_millis(400)).await;
            let (sender, body) = channel();
            tokio::spawn(async move {
                for word in ["one ", "two ", "three"] {
                    tokio::time::sleep(Duration::from_millis(400)).await;
                    sender.send(word).unwrap();
                }
            });
            Ok(http::Response::new(body))
        }),
    )
    .await;
    let (mut sender, _connection) = connect(&server, 65_535).await;
    let response = sender.send_request(request()).await.unwrap();
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "one two three");
}

#[tokio::test]
async fn a_client_that_takes_a_large_frame_slowly_gets_all_of_it() {
    const SIZE: usize = 128 * 1024;
    let config = HttpConfig { write_timeout: Duration::from_secs(1), ..HttpConfig::default() };
    let server = start(
        config,
        handler_fn(|_| async {
            // One frame, and an end that is not known beforehand.
            let frame = Ok::<_, BoxError>(Frame::data(Bytes::from(vec![b'x'; SIZE])));
            let end = Ok(Frame::data(Bytes::from_static(b"end")));
            Ok(http::Response::new(ResponseBody::new(StreamBody::new(futures::stream::iter([frame, end])))))
        }),
    )
    .await;
    let (mut sender, _connection) = connect(&server, 8 * 1024).await;
    let mut body = sender.send_request(request()).await.unwrap().into_body();
    let mut read = 0;
    while let Some(frame) = body.frame().await {
        read += frame.unwrap().into_data().unwrap().len();
        // Over two seconds for all of it, a fraction of one for any piece.
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    assert_eq!(read, SIZE + 3);
}

#[tokio::test]
async fn a_client_that_never_takes_the_last_piece_is_cut() {
    let config = HttpConfig {
        idle_timeout: Duration::from_millis(200),
        header_timeout: Duration::from_millis(200),
        ..HttpConfig::default()
    };
    // Two bytes of window for four: hyper is done with the body, the client not.
    let server = start(config, handler_fn(|_| async { Ok(crate::harness::text("four")) })).await;
    let (mut sender, connection) = connect(&server, 2).await;
    let _response = sender.send_request(request()).await.unwrap();
    assert!(tokio::time::timeout(PATIENCE, connection).await.is_ok(), "the connection is kept for ever");
}
