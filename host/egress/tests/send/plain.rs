//! HTTP/1.1 as it should be.

use bytes::Bytes;
use futures::stream;
use http::{Request, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use nala_egress::{BoxError, Timeouts};
use tokio::io::AsyncWriteExt;

use crate::bench::{Bench, Names, code, config, get, got, text};
use crate::servers::{Server, read_head};

fn pieces(pieces: &'static [&'static str]) -> impl http_body::Body<Data = Bytes, Error = BoxError> {
    StreamBody::new(stream::iter(pieces.iter().map(|piece| Ok(Frame::data(Bytes::from_static(piece.as_bytes()))))))
}

#[tokio::test]
async fn a_request_gets_there_and_the_response_back() {
    let server = Server::echo().await;
    let bench = Bench::new();
    let egress = bench.egress(&["http://127.0.0.1:*"]);
    let host = server.address;
    let answer = got(&egress, &server.url("/a?b=c")).await;
    assert_eq!(answer, format!("HTTP/1.1 GET /a?b=c host={host} sni=plain body=0"));
    let request = Request::post(server.url("/")).body(Full::new(Bytes::from_static(b"12345"))).unwrap();
    let answer = text(egress.send(request, Timeouts::UNSET).await.unwrap()).await.unwrap();
    assert_eq!(answer, format!("HTTP/1.1 POST / host={host} sni=plain body=5"));
    assert_eq!(bench.metric("egress_requests_total{outcome=\"response\"}"), 2);
    assert_eq!(bench.metric("egress_request_body_bytes_total"), 5);
    assert!(bench.metric("egress_response_body_bytes_total") > 90);
}

#[tokio::test]
async fn a_name_keeps_its_name_in_host() {
    let server = Server::echo().await;
    let bench = Bench::with(config(), Names::answer(&[&["127.0.0.1"]]), nala_egress::ConnectionLimit::new(9, 9));
    let port = server.port();
    let egress = bench.egress(&[&format!("http://api.example:{port}"), &format!("http://127.0.0.1:{port}")]);
    let answer = got(&egress, &format!("http://API.example.:{port}/x")).await;
    assert!(answer.contains(&format!(" /x host=api.example:{port} ")), "{answer}");
}

#[tokio::test]
async fn localhost_listed_by_name_is_reached_without_asking_dns() {
    let server = Server::echo().await;
    let names = Names::answer(&[&["10.0.0.1"]]);
    let bench = Bench::with(config(), names.clone(), nala_egress::ConnectionLimit::new(9, 9));
    let port = server.port();
    let egress = bench.egress(&[&format!("http://localhost:{port}")]);
    let answer = got(&egress, &format!("http://localhost:{port}/")).await;
    assert!(answer.contains(&format!("host=localhost:{port}")), "{answer}");
    assert_eq!(names.asked(), 0);
}

#[tokio::test]
async fn a_redirect_is_a_response() {
    let server = Server::echo().await;
    let bench = Bench::new();
    let response = get(&bench.egress(&["http://127.0.0.1:*"]), &server.url("/redirect")).await.unwrap();
    assert_eq!(response.status(), StatusCode::FOUND);
    assert_eq!(response.headers()["location"], "http://127.0.0.1:1/");
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_body_of_unknown_length_is_chunked_and_one_of_a_said_length_is_not() {
    let server = Server::run(|mut stream, _| async move {
        let head = read_head(&mut stream).await;
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{head}", head.len());
        stream.write_all(answer.as_bytes()).await.unwrap();
    })
    .await;
    let bench = Bench::new();
    let egress = bench.egress(&["http://127.0.0.1:*"]);
    let request = Request::post(server.url("/x")).body(pieces(&["12", "345"])).unwrap();
    let answer = text(egress.send(request, Timeouts::UNSET).await.unwrap()).await.unwrap();
    assert_eq!(
        answer.to_lowercase(),
        format!("post /x http/1.1\r\nhost: {}\r\ntransfer-encoding: chunked\r\n\r\n", server.address)
    );
    let request = Request::post(server.url("/x")).header("content-length", "5").body(pieces(&["12", "345"])).unwrap();
    let answer = text(egress.send(request, Timeouts::UNSET).await.unwrap()).await.unwrap();
    assert_eq!(
        answer.to_lowercase(),
        format!("post /x http/1.1\r\nhost: {}\r\ncontent-length: 5\r\n\r\n", server.address)
    );
}

#[tokio::test]
async fn a_body_is_held_to_the_length_that_was_said() {
    let server = Server::echo().await;
    let bench = Bench::new();
    let egress = bench.egress(&["http://127.0.0.1:*"]);
    // Behind a body that is too long, another request would begin.
    for said in ["3", "7"] {
        let body = pieces(&["12", "345"]);
        let request = Request::post(server.url("/")).header("content-length", said).body(body).unwrap();
        assert_eq!(code(egress.send(request, Timeouts::UNSET).await), "HTTP-request-body-size", "{said}");
    }
    bench.until("egress_connections", 0).await;
    let broken = StreamBody::new(stream::iter([Err::<Frame<Bytes>, BoxError>("the guest trapped".into())]));
    let error = egress.send(Request::post(server.url("/")).body(broken).unwrap(), Timeouts::UNSET).await.unwrap_err();
    assert!(error.to_string().contains("the guest trapped"), "{error}");
}

#[tokio::test]
async fn trailers_come_through_without_what_is_not_theirs() {
    let server = Server::run(|mut stream, _| async move {
        read_head(&mut stream).await;
        let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n\
                      2\r\nab\r\n0\r\nx-sum: 1\r\nproxy-connection: x\r\n\r\n";
        stream.write_all(answer.as_bytes()).await.unwrap();
        read_head(&mut stream).await;
    })
    .await;
    let bench = Bench::new();
    let response = get(&bench.egress(&["http://127.0.0.1:*"]), &server.url("/")).await.unwrap();
    assert!(!response.headers().contains_key("transfer-encoding"));
    let body = response.into_body().collect().await.unwrap();
    let trailers = body.trailers().unwrap();
    assert_eq!(trailers["x-sum"], "1");
    assert!(!trailers.contains_key("proxy-connection"));
}
