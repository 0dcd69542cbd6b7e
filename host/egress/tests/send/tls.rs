//! TLS, and HTTP/2 over it.

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use nala_egress::{ConnectionLimit, GateConfig, Timeouts, TrustRoots};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::bench::{Bench, Names, code, config, get, got, text};
use crate::servers::{Authority, Server};

fn bench(authority: &Authority) -> Bench {
    let roots = TrustRoots::Only(vec![authority.root()]);
    Bench::with(GateConfig { roots, ..config() }, Names::answer(&[&["127.0.0.1"]]), ConnectionLimit::new(9, 9))
}

const LOCAL: [&str; 2] = ["https://secure.example:*", "https://127.0.0.1:*"];

#[tokio::test]
async fn the_version_is_what_the_server_prefers_and_the_name_stays() {
    let authority = Authority::new();
    let bench = bench(&authority);
    let egress = bench.egress(&LOCAL);
    for (alpn, version) in [(vec!["h2", "http/1.1"], "HTTP/2.0"), (vec!["http/1.1"], "HTTP/1.1"), (vec![], "HTTP/1.1")]
    {
        let server = Server::tls(&authority, &["secure.example"], &alpn).await;
        let port = server.port();
        let uri = format!("https://SECURE.example:{port}/x");
        let request = Request::post(&uri).body(Full::new(Bytes::from_static(b"123"))).unwrap();
        let answer = text(egress.send(request, Timeouts::UNSET).await.unwrap()).await.unwrap();
        let origin = format!("secure.example:{port}");
        let told = match version {
            "HTTP/2.0" => format!("HTTP/2.0 POST https://{origin}/x host=- sni=secure.example body=3"),
            _ => format!("HTTP/1.1 POST /x host={origin} sni=secure.example body=3"),
        };
        assert_eq!(answer, told);
    }
}

#[tokio::test]
async fn an_address_has_a_certificate_of_its_own() {
    let authority = Authority::new();
    let server = Server::tls(&authority, &["127.0.0.1"], &["h2"]).await;
    let answer = got(&bench(&authority).egress(&LOCAL), &format!("https://{}/", server.address)).await;
    assert!(answer.contains("sni=no name"), "{answer}");
}

#[tokio::test]
async fn requests_of_a_tenant_share_a_connection_of_http2_and_others_do_not() {
    let authority = Authority::new();
    let server = Server::tls(&authority, &["secure.example"], &["h2"]).await;
    let bench = bench(&authority);
    let uri = format!("https://secure.example:{}/", server.port());
    let (one, two) = (bench.of("one", &LOCAL), bench.of("two", &LOCAL));
    got(&one, &uri).await;
    let many = futures::future::join_all((0..50).map(|_| got(&one, &uri))).await;
    assert_eq!(many.len(), 50);
    assert_eq!(server.connections(), 1);
    got(&two, &uri).await;
    assert_eq!(server.connections(), 2);
    assert_eq!(bench.metric("egress_connections_reused_total"), 50);
}

#[tokio::test]
async fn a_certificate_that_is_not_good_is_told() {
    let (authority, other) = (Authority::new(), Authority::new());
    let bench = bench(&authority);
    let egress = bench.egress(&LOCAL);
    for (issuer, name) in [(&authority, "other.example"), (&other, "secure.example"), (&authority, "127.0.0.1")] {
        let server = Server::tls(issuer, &[name], &["h2"]).await;
        let uri = format!("https://secure.example:{}/", server.port());
        assert_eq!(code(get(&egress, &uri).await), "TLS-certificate-error", "{name}");
    }
    bench.until("egress_connections", 0).await;
}

#[tokio::test]
async fn what_is_no_tls_is_told() {
    let authority = Authority::new();
    let bench = bench(&authority);
    let egress = bench.egress(&LOCAL);
    let plain = Server::run(|mut stream, _| async move {
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        let _ = stream.read(&mut [0; 1024]).await;
    })
    .await;
    assert_eq!(code(get(&egress, &format!("https://{}/", plain.address)).await), "TLS-protocol-error");
    // None of the protocols that are offered: the server says so.
    let strange = Server::tls(&authority, &["secure.example"], &["spdy/3"]).await;
    let uri = format!("https://secure.example:{}/", strange.port());
    assert_eq!(code(get(&egress, &uri).await), "TLS-alert-received");
}

#[tokio::test]
async fn a_head_of_http2_is_bounded_too() {
    let authority = Authority::new();
    let server = Server::tls(&authority, &["secure.example"], &["h2"]).await;
    let bench = bench(&authority);
    let egress = bench.egress(&LOCAL);
    let error = get(&egress, &format!("https://secure.example:{}/headers", server.port())).await.unwrap_err();
    assert!(["HTTP-protocol-error", "HTTP-response-header-section-size"].contains(&error.code()), "{error}");
    // Others on the connection are not concerned.
    got(&egress, &format!("https://secure.example:{}/", server.port())).await;
}
