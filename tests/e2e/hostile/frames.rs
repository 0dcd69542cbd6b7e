//! HTTP/2 by hand: heads that no client library would send.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: u8 = 4;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const GOAWAY: u8 = 7;
/// END_STREAM and END_HEADERS.
const WHOLE: u8 = 0x5;

/// A frame (RFC 9113, section 4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A field that no table keeps (RFC 7541, section 6.2.2), of up to 126 bytes each.
fn field(name: &str, value: &[u8]) -> Vec<u8> {
    let length = |bytes: &[u8]| u8::try_from(bytes.len()).unwrap();
    assert!(name.len() < 127 && value.len() < 127);
    [&[0, length(name.as_bytes())][..], name.as_bytes(), &[length(value)], value].concat()
}

/// The kinds of frames that come back for a head, and whether one of them is the head of a
/// 200, which is one byte of the static table (RFC 7541, appendix A).
fn answered(address: &str, fields: &[(&str, &[u8])]) -> (Vec<u8>, bool) {
    let head: Vec<u8> = fields.iter().flat_map(|(name, value)| field(name, value)).collect();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(1500))).unwrap();
    let request = [PREFACE, &frame(SETTINGS, 0, 0, &[]), &frame(HEADERS, WHOLE, 1, &head)].concat();
    stream.write_all(&request).unwrap();
    let (mut kinds, mut is_200) = (Vec::new(), false);
    let mut start = [0; 9];
    while stream.read_exact(&mut start).is_ok() {
        let length = u32::from_be_bytes([0, start[0], start[1], start[2]]) as usize;
        let mut payload = vec![0; length];
        if stream.read_exact(&mut payload).is_err() {
            break;
        }
        kinds.push(start[3]);
        is_200 |= start[3] == HEADERS && payload.iter().take(2).any(|byte| *byte == 0x88);
        let is_end = start[4] & 1 == 1 && start[3] <= HEADERS;
        if is_end || start[3] == RST_STREAM || start[3] == GOAWAY {
            break;
        }
    }
    (kinds, is_200)
}

#[test]
fn heads_that_would_be_others_in_http_1_are_refused() {
    let site = super::site();
    let key = site.bad.as_bytes();
    let plain: Vec<(&str, &[u8])> = vec![
        (":method", b"GET"),
        (":scheme", b"http"),
        (":authority", b"localhost"),
        (":path", b"/hello"),
        ("x-api-key", key),
    ];
    let (kinds, is_200) = answered(&site.host.address, &plain);
    assert!(is_200, "the plain one is answered: {kinds:?}");
    let with = |more: (&'static str, &'static [u8])| [plain.clone(), vec![more]].concat();
    let path = |path: &'static [u8]| {
        let mut fields = plain.clone();
        fields[3].1 = path;
        fields
    };
    for (what, fields) in [
        ("a second path", with((":path", b"/env/"))),
        ("a second method", with((":method", b"POST"))),
        ("an unknown pseudo-header", with((":tenant", b"good"))),
        ("one for responses", with((":status", b"200"))),
        ("a name in capitals", with(("X-A", b"b"))),
        ("a line end in a value", with(("x-a", b"b\r\nx-api-key: other"))),
        ("a line end in a name", with(("x-a\r\nx-b", b"c"))),
        ("a zero byte", with(("x-a", b"b\0c"))),
        ("chunks", with(("transfer-encoding", b"chunked"))),
        ("a connection's own", with(("connection", b"keep-alive"))),
        ("a path with a line end", path(b"/hello HTTP/1.1\r\nx-a: b")),
        ("a path with a blank", path(b"/hello HTTP/1.1")),
        ("no path", path(b"")),
        ("a length that is not so", with(("content-length", b"4"))),
    ] {
        let (kinds, is_200) = answered(&site.host.address, &fields);
        assert!(!is_200, "{what}: {kinds:?}");
    }
    let hello = site.ask(&site.good, "/hello");
    assert_eq!((hello.status, hello.text.as_str()), (200, "hello"));
    site.until_empty(&[]);
}
