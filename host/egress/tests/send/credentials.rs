//! What the host adds to requests, by servers that tell what they were shown.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName};
use http::{Method, Request};
use http_body::Frame;
use http_body_util::{Full, StreamBody};
use nala_egress::{ConnectionLimit, Credential, Egress, Form, Held, Plain, Timeouts};
use tempfile::TempDir;

use crate::bench::{Bench, Log, Names, code, config, get, got, text};
use crate::servers::{Authority, Server};

/// A file with a token that a server must be shown.
struct Token {
    folder: TempDir,
}

impl Token {
    fn new(token: &str) -> Self {
        let this = Self { folder: tempfile::tempdir().unwrap() };
        this.write("token", token);
        this
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).unwrap();
    }

    fn held(&self) -> Held {
        Held::File(self.folder.path().join("token"))
    }

    /// A bearer token for an origin.
    fn bearer(&self, origin: &str, authorities: Option<&Path>) -> Arc<Credential> {
        Arc::new(Credential::open(origin, Form::Bearer, self.held(), authorities, Plain::Refused).unwrap())
    }
}

fn bench(names: &[&[&str]]) -> Bench {
    Bench::with(config(), Names::answer(names), ConnectionLimit::new(9, 9))
}

async fn send(egress: &Egress, request: Request<Full<Bytes>>) -> String {
    text(egress.send(request, Timeouts::UNSET).await.unwrap()).await.unwrap()
}

fn asking(method: Method, uri: &str, fields: &[(HeaderName, &str)]) -> Request<Full<Bytes>> {
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in fields {
        request = request.header(name, *value);
    }
    request.body(Full::default()).unwrap()
}

#[tokio::test]
async fn it_goes_to_its_origin_and_to_no_other() {
    let (server, other) = (Server::echo().await, Server::echo().await);
    let token = Token::new("t0ken\n");
    let origin = server.url("");
    let bench = bench(&[]);
    let allow = ["http://127.0.0.1:*", "http://localhost:*"];
    let with = bench.egress(&allow).with_credentials([token.bearer(&origin, None)]);
    assert_eq!(got(&with, &server.url("/shown")).await, "authorization=Bearer t0ken x-api-key=");
    let nothing = "authorization= x-api-key=";
    // Another port, another name of the same server, another component.
    assert_eq!(got(&with, &other.url("/shown")).await, nothing);
    assert_eq!(got(&with, &format!("http://localhost:{}/shown", server.port())).await, nothing);
    assert_eq!(got(&bench.egress(&allow), &server.url("/shown")).await, nothing);
    // A list that does not name the origin is no wider for it.
    let unlisted = bench.egress(&["http://127.0.0.1:1"]).with_credentials([token.bearer(&origin, None)]);
    assert_eq!(code(get(&unlisted, &server.url("/shown")).await), "HTTP-request-denied");
}

#[tokio::test]
async fn what_a_guest_sets_there_is_replaced_and_no_trailer_sets_it_again() {
    let server = Server::echo().await;
    let token = Token::new("t0ken");
    let (origin, name) = (server.url(""), HeaderName::from_static("x-api-key"));
    let key = Credential::open(&origin, Form::Header(name.clone()), Held::text("k3y").unwrap(), None, Plain::Refused);
    let bench = bench(&[]);
    let guest = || bench.egress(&["http://127.0.0.1:*"]);
    let fields = [(AUTHORIZATION, "Bearer mine"), (AUTHORIZATION, "Basic bWU6"), (name.clone(), "mine")];
    let request = || asking(Method::GET, &server.url("/shown"), &fields);
    let bearer = guest().with_credentials([token.bearer(&origin, None)]);
    assert_eq!(send(&bearer, request()).await, "authorization=Bearer t0ken x-api-key=mine");
    let keyed = guest().with_credentials([Arc::new(key.unwrap())]);
    assert_eq!(send(&keyed, request()).await, "authorization=Bearer mine,Basic bWU6 x-api-key=k3y");

    let trailing = |name: &HeaderName| {
        let fields: HeaderMap = [(name.clone(), "mine".parse().unwrap())].into_iter().collect();
        let frames = [Ok(Frame::data(Bytes::from_static(b"x"))), Ok(Frame::trailers(fields))];
        let frames: Vec<io::Result<Frame<Bytes>>> = frames.into();
        Request::post(server.url("/")).body(StreamBody::new(futures::stream::iter(frames))).unwrap()
    };
    assert_eq!(code(keyed.send(trailing(&name), Timeouts::UNSET).await), "HTTP-request-denied");
    assert!(bearer.send(trailing(&name), Timeouts::UNSET).await.is_ok());
}

#[tokio::test]
async fn a_server_is_not_asked_to_send_it_back() {
    let server = Server::echo().await;
    let token = Token::new("t0ken");
    let bench = bench(&[]);
    let with = bench.egress(&["http://127.0.0.1:*"]).with_credentials([token.bearer(&server.url(""), None)]);
    for method in [Method::TRACE, Method::CONNECT] {
        let request = asking(method, &server.url("/"), &[]);
        assert_eq!(code(with.send(request, Timeouts::UNSET).await), "HTTP-request-method-invalid");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_token_that_is_renewed_is_shown_at_once_and_one_that_is_gone_is_an_error() {
    let server = Server::echo().await;
    let token = Token::new("first");
    let bench = bench(&[]);
    let with = bench.egress(&["http://127.0.0.1:*"]).with_credentials([token.bearer(&server.url(""), None)]);
    assert!(got(&with, &server.url("/shown")).await.contains("Bearer first"));
    // As volumes of Kubernetes and careful writers do it.
    token.write("next", "second\n");
    fs::rename(token.folder.path().join("next"), token.folder.path().join("token")).unwrap();
    assert!(got(&with, &server.url("/shown")).await.contains("Bearer second"));

    let log = Log::default();
    let _listening = log.listen();
    for broken in ["", "second\nX-Forged: 1"] {
        token.write("token", broken);
        let error = get(&with, &server.url("/shown")).await.unwrap_err();
        assert_eq!(error.code(), "configuration-error");
        assert!(!error.to_string().contains("second"), "{error}");
    }
    fs::remove_file(token.folder.path().join("token")).unwrap();
    assert_eq!(code(get(&with, &server.url("/shown")).await), "configuration-error");
    let told = log.text();
    assert_eq!(told.matches("outgoing request not sent").count(), 1, "once in a while: {told}");
    assert!(told.contains("the credential for http://127.0.0.1") && !told.contains("second"), "{told}");
    assert_eq!(bench.metric("egress_requests_total{outcome=\"configuration-error\"}"), 3);
    token.write("token", "third");
    assert!(got(&with, &server.url("/shown")).await.contains("Bearer third"));
}

#[tokio::test]
async fn authorities_of_an_origin_are_trusted_for_it_and_its_components_alone() {
    let (authority, other) = (Authority::new(), Authority::new());
    let token = Token::new("t0ken");
    token.write("ca.crt", &authority.pem());
    let ca = token.folder.path().join("ca.crt");
    for alpn in ["h2", "http/1.1"] {
        let server = Server::tls(&authority, &["api.example"], &[alpn]).await;
        let origin = format!("https://api.example:{}", server.port());
        // The name leads to a network of one's own, and no address is granted.
        let bench = bench(&[&["127.0.0.1"]]);
        let allow = ["https://api.example:*"];
        let with = bench.egress(&allow).with_credentials([token.bearer(&origin, Some(&ca))]);
        let uri = format!("{origin}/shown");
        assert_eq!(got(&with, &uri).await, "authorization=Bearer t0ken x-api-key=");
        // Not even over the connection that is there now.
        assert_eq!(code(get(&bench.egress(&allow), &uri).await), "destination-IP-prohibited");
        let granted = bench.egress(&["https://api.example:*", "https://127.0.0.1:*"]);
        assert_eq!(code(get(&granted, &uri).await), "TLS-certificate-error", "{alpn}");
        assert_eq!(got(&with, &uri).await, "authorization=Bearer t0ken x-api-key=");
        // Whoever else is at the address has nothing of it.
        let wrong = Server::tls(&other, &["api.example"], &[alpn]).await;
        let origin = format!("https://api.example:{}", wrong.port());
        let with = bench.egress(&allow).with_credentials([token.bearer(&origin, Some(&ca))]);
        assert_eq!(code(get(&with, &format!("{origin}/shown")).await), "TLS-certificate-error");
    }
}

#[tokio::test]
async fn authorities_that_are_exchanged_are_asked_at_once() {
    let (first, second) = (Authority::new(), Authority::new());
    let server = Server::tls(&first, &["api.example"], &["h2"]).await;
    let token = Token::new("t0ken");
    token.write("ca.crt", &first.pem());
    let ca = token.folder.path().join("ca.crt");
    let origin = format!("https://api.example:{}", server.port());
    let bench = bench(&[&["127.0.0.1"]]);
    let with = bench.egress(&["https://api.example:*"]).with_credentials([token.bearer(&origin, Some(&ca))]);
    got(&with, &origin).await;
    got(&with, &origin).await;
    assert_eq!(server.connections(), 1);
    token.write("ca.crt", &second.pem());
    assert_eq!(code(get(&with, &origin).await), "TLS-certificate-error");
    token.write("ca.crt", &format!("{}{}", second.pem(), first.pem()));
    got(&with, &origin).await;
    token.write("ca.crt", "none");
    assert_eq!(code(get(&with, &origin).await), "configuration-error");
}
