//! Requests that are framed to mean different things to different readers.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// What came back on a connection.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) text: String,
    /// Whether the host ended the connection, or was still waiting.
    pub(super) is_closed: bool,
}

impl Exchange {
    /// The statuses of all responses, in their order.
    fn statuses(&self) -> Vec<u16> {
        let heads = self.text.split("HTTP/1.1 ").skip(1);
        heads.filter_map(|head| head.get(..3)?.parse().ok()).collect()
    }
}

/// Sends bytes and reads until the host has nothing more to say.
pub(super) fn exchange(address: &str, bytes: &[u8]) -> Exchange {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(1500))).unwrap();
    // The host may end the connection before all of it is sent.
    let _refused = stream.write_all(bytes);
    let (mut all, mut part) = (Vec::new(), [0; 16 << 10]);
    let is_closed = loop {
        match stream.read(&mut part) {
            Ok(0) => break true,
            Ok(n) => all.extend_from_slice(&part[..n]),
            Err(error) => break error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    };
    Exchange { text: String::from_utf8_lossy(&all).into_owned(), is_closed }
}

pub(super) fn get(path: &str, key: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nx-api-key: {key}\r\n\r\n").into_bytes()
}

/// A request that would be answered beside what is sent before it.
fn smuggled(key: &str) -> String {
    String::from_utf8(get("/env/smuggled", key)).unwrap()
}

/// What is answered to a POST with these lines, if anything is.
struct Case {
    what: &'static str,
    /// The head's lines behind those that every request has, and the body.
    rest: String,
    /// The statuses of all responses; none where the host only ends the connection.
    statuses: &'static [u16],
    is_closed: bool,
}

fn cases(key: &str) -> Vec<Case> {
    let after = smuggled(key);
    let case = |what, rest: String, statuses, is_closed| Case { what, rest, statuses, is_closed };
    let closed = |what, rest: String| case(what, rest, &[400], true);
    vec![
        case("a length", "content-length: 4\r\n\r\nbody".into(), &[200], false),
        case("chunks", "transfer-encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n".into(), &[200], false),
        case("the same length twice", "content-length: 4\r\ncontent-length: 4\r\n\r\nbody".into(), &[200], false),
        // RFC 9112, section 6.1: the connection is closed behind it.
        case(
            "length, then chunks",
            format!("content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{after}"),
            &[200],
            true,
        ),
        case(
            "chunks, then length",
            format!("transfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n0\r\n\r\n{after}"),
            &[200],
            true,
        ),
        closed("two lengths", format!("content-length: 4\r\ncontent-length: 5\r\n\r\nbody{after}")),
        closed("a list of lengths", format!("content-length: 4, 4\r\n\r\nbody{after}")),
        closed("a signed length", format!("content-length: +4\r\n\r\nbody{after}")),
        closed("a negative length", format!("content-length: -4\r\n\r\nbody{after}")),
        closed("a length in hexadecimal", format!("content-length: 0x4\r\n\r\nbody{after}")),
        closed("an empty length", format!("content-length:\r\n\r\nbody{after}")),
        closed("a length past counting", format!("content-length: 99999999999999999999\r\n\r\n{after}")),
        closed("chunked is not the last", format!("transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n{after}")),
        closed("nearly chunked", format!("transfer-encoding: xchunked\r\n\r\n0\r\n\r\n{after}")),
        closed("a blank before the colon", format!("transfer-encoding : chunked\r\n\r\n0\r\n\r\n{after}")),
        closed("a line that goes on", format!("x-a: b\r\n transfer-encoding: chunked\r\n\r\n0\r\n\r\n{after}")),
        closed("a bare CR", format!("x-a: b\rtransfer-encoding: chunked\r\n\r\n{after}")),
        closed("a zero byte", format!("x-a: b\0c\r\n\r\n{after}")),
        closed("no colon", format!("nonsense\r\n\r\n{after}")),
        closed("a second host", format!("host: other\r\n\r\n{after}")),
        closed("more headers than are read", format!("{}\r\n{after}", "x-a: b\r\n".repeat(2000))).large(),
        closed("a large header", format!("x-a: {}\r\n\r\n{after}", "v".repeat(60 << 10))).large(),
        // The rest of it is read for a while, so that the answer is not lost.
        case("a body too large", format!("content-length: 999999999\r\n\r\n{after}"), &[413], false),
    ]
}

impl Case {
    /// It is answered with 431 (RFC 6585, section 5).
    fn large(self) -> Self {
        Self { statuses: &[431], ..self }
    }
}

#[test]
fn each_request_is_read_in_one_way_or_not_at_all() {
    let site = super::site();
    let mut differing = Vec::new();
    for Case { what, rest, statuses, is_closed } in cases(&site.bad) {
        let head = format!("POST /hello HTTP/1.1\r\nhost: localhost\r\nx-api-key: {}\r\n", site.bad);
        let exchange = exchange(&site.host.address, format!("{head}{rest}").as_bytes());
        if exchange.statuses() != statuses || exchange.is_closed != is_closed || exchange.text.contains("variables") {
            differing.push(format!("{what}: not {statuses:?} {is_closed} but {exchange:?}"));
        }
    }
    assert!(differing.is_empty(), "{differing:#?}");
    let hello = site.ask(&site.good, "/hello");
    assert_eq!((hello.status, hello.text.as_str()), (200, "hello"));
    site.until_empty(&[]);
}

#[test]
fn broken_chunks_end_the_connection_and_are_no_request() {
    let site = super::site();
    let after = smuggled(&site.bad);
    for (what, body) in [
        ("a size past counting", format!("fffffffffffffffff\r\n{after}")),
        ("no size", format!("\r\n{after}")),
        ("a size in another spelling", format!("0x4\r\nbody\r\n0\r\n\r\n{after}")),
        ("a line feed in an extension", format!("4;a\nb\r\nbody\r\n0\r\n\r\n{after}")),
        ("an extension without end", format!("4;{}", "a".repeat(100 << 10))),
        ("no line end behind the data", format!("4\r\nbodyX\r\n0\r\n\r\n{after}")),
        ("a trailer that is none", format!("0\r\nnonsense\r\n\r\n{after}")),
        ("trailers without end", format!("0\r\n{}", "x-a: b\r\n".repeat(100_000))),
    ] {
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nx-api-key: {}\r\ncontent-type: application/json\r\n\
             transfer-encoding: chunked\r\n\r\n",
            site.bad
        );
        let exchange = exchange(&site.host.address, format!("{head}{body}").as_bytes());
        assert!(exchange.is_closed, "{what}: {exchange:?}");
        assert!(exchange.statuses().iter().all(|status| *status == 400), "{what}: {exchange:?}");
        assert!(!exchange.text.contains("variables"), "{what}: {exchange:?}");
    }
    site.good_completes();
    site.until_empty(&[]);
}

#[test]
fn lines_that_are_no_request_line_are_refused() {
    let site = super::site();
    let key = &site.bad;
    for (what, bytes, statuses) in [
        ("nothing but noise", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc".to_vec(), &[400][..]),
        ("HTTP/0.9", b"GET /hello\r\n\r\n".to_vec(), &[400]),
        ("HTTP/3", b"GET /hello HTTP/3.0\r\nhost: x\r\n\r\n".to_vec(), &[400]),
        ("no host", format!("GET /hello HTTP/1.1\r\nx-api-key: {key}\r\n\r\n").into_bytes(), &[400]),
        (
            "a user in the host",
            format!("GET /hello HTTP/1.1\r\nhost: a@b\r\nx-api-key: {key}\r\n\r\n").into_bytes(),
            &[400],
        ),
        ("CONNECT", format!("CONNECT x:1 HTTP/1.1\r\nhost: x:1\r\nx-api-key: {key}\r\n\r\n").into_bytes(), &[405]),
        (
            "a line too long",
            format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "p".repeat(600 << 10)).into_bytes(),
            &[414, 431],
        ),
    ] {
        let exchange = exchange(&site.host.address, &bytes);
        let got = exchange.statuses();
        assert!(got.len() == 1 && statuses.contains(&got[0]), "{what}: {got:?} {:.200}", exchange.text);
    }
    // A whole target names the host, and says nothing about whose the request is.
    let whole = format!("GET http://good.example/hello HTTP/1.1\r\nhost: other.example\r\nx-api-key: {key}\r\n\r\n");
    assert_eq!(exchange(&site.host.address, whole.as_bytes()).statuses(), [200]);
    let hello = site.ask(&site.good, "/hello");
    assert_eq!((hello.status, hello.text.as_str()), (200, "hello"));
}

#[test]
fn no_header_but_the_key_says_whose_a_request_is() {
    let site = super::site();
    for forged in [
        "x-nala-tenant: good",
        "x-forwarded-user: good",
        "forwarded: for=good",
        "x-forwarded-host: good",
        "tenant: good",
    ] {
        let request = |path: &str, key: &str| {
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{forged}\r\n{key}connection: close\r\n\r\n").into_bytes()
        };
        let key = format!("x-api-key: {}\r\n", site.bad);
        let told = exchange(&site.host.address, &request("/.well-known/nala/usage", &key)).text;
        assert!(told.contains("\"tenant\":\"bad\""), "{forged}: {told}");
        let told = exchange(&site.host.address, &request("/hello", "")).text;
        assert!(told.starts_with("HTTP/1.1 401"), "{forged}: {told}");
    }
    // Two keys are no key, in either order.
    for (first, second) in [(&site.bad, &site.good), (&site.good, &site.bad)] {
        let both = format!(
            "GET /hello HTTP/1.1\r\nhost: localhost\r\nx-api-key: {first}\r\n\
             authorization: Bearer {second}\r\nconnection: close\r\n\r\n"
        );
        let told = exchange(&site.host.address, both.as_bytes()).text;
        assert!(told.starts_with("HTTP/1.1 401"), "{told}");
    }
}
