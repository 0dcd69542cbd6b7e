use bytes::Bytes;
use http_body_util::Full;

use super::*;

fn target() -> Target {
    match Route::of(&"https://api.example:8443/".parse().unwrap()) {
        Ok(Route::Outside(target)) => target,
        other => panic!("{other:?}"),
    }
}

fn check_with(method: &str, fields: &[(&str, &str)]) -> Result<(Request<Full<Bytes>>, Checked), EgressError> {
    let mut request = Request::builder().method(method).uri("https://API.example.:8443/a?b=c");
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let mut request = request.body(Full::new(Bytes::from_static(b"four"))).unwrap();
    let checked = check(&mut request, &target(), &Sizes::default())?;
    Ok((request, checked))
}

#[test]
fn what_is_judged_is_what_is_sent() {
    let fields = [("host", "api.EXAMPLE:8443"), ("content-length", "4"), ("te", "trailers"), ("accept", "a/b")];
    let (request, checked) = check_with("POST", &fields).unwrap();
    assert_eq!(checked.address.path, "/a?b=c");
    assert_eq!(checked.address.whole, "https://api.example:8443/a?b=c");
    assert_eq!(checked.address.host, "api.example:8443");
    assert_eq!(checked.length, Some(4));
    let mut left: Vec<_> = request.headers().keys().map(HeaderName::as_str).collect();
    left.sort_unstable();
    assert_eq!(left, ["accept", "te"]);
}

#[test]
fn what_frames_a_message_is_not_the_guests() {
    let no = "HTTP-request-denied";
    for (fields, code) in [
        (vec![("host", "other.example")], no),
        (vec![("host", "api.example")], no),
        (vec![("host", "")], no),
        (vec![("host", "api.example:8443"), ("host", "api.example:8443")], no),
        (vec![("host", "user@api.example:8443")], no),
        (vec![("connection", "close")], no),
        (vec![("keep-alive", "timeout=5")], no),
        (vec![("transfer-encoding", "chunked")], no),
        (vec![("upgrade", "h2c")], no),
        (vec![("http2-settings", "AAMAAABkAARAAAAAAAIAAAAA")], no),
        (vec![("proxy-authorization", "Basic YTpi")], no),
        (vec![("proxy-authenticate", "Basic")], no),
        (vec![("proxy-connection", "close")], no),
        (vec![("te", "gzip")], no),
        (vec![("nala-tenant", "other")], no),
        (vec![("x-nala-run", "1")], no),
        (vec![("content-length", "5")], "HTTP-request-body-size"),
        (vec![("content-length", "4"), ("content-length", "4")], "HTTP-request-body-size"),
        (vec![("content-length", "4, 4")], "HTTP-request-body-size"),
        (vec![("content-length", "+4")], "HTTP-request-body-size"),
        (vec![("content-length", "")], "HTTP-request-body-size"),
        (vec![("content-length", "99999999999999999999")], "HTTP-request-body-size"),
    ] {
        let error = check_with("POST", &fields).map(|_| ()).unwrap_err();
        assert_eq!(error.code(), code, "{fields:?}: {error}");
    }
    assert_eq!(check_with("CONNECT", &[]).map(|_| ()).unwrap_err().code(), "HTTP-request-method-invalid");
}

#[test]
fn heads_are_bounded() {
    let long = "x".repeat(Sizes::default().request_headers);
    let error = check_with("GET", &[("x", &long)]).map(|_| ()).unwrap_err();
    assert_eq!(error.code(), "HTTP-request-header-section-size");
    let uri = format!("https://api.example:8443/{}", "x".repeat(Sizes::default().url));
    let mut request = Request::builder().uri(uri).body(Full::new(Bytes::new())).unwrap();
    let error = check(&mut request, &target(), &Sizes::default()).map(|_| ()).unwrap_err();
    assert_eq!(error.code(), "HTTP-request-URI-too-long");
}

#[test]
fn trailers_cannot_say_what_came_before_them() {
    let mut trailers = HeaderMap::new();
    trailers.insert("x-checksum", HeaderValue::from_static("1"));
    assert_eq!(check_trailers(&trailers, None), Ok(()));
    for name in ["content-length", "transfer-encoding", "host", "te", "trailer", "connection"] {
        let mut trailers = trailers.clone();
        trailers.insert(name, HeaderValue::from_static("1"));
        assert!(check_trailers(&trailers, None).is_err(), "{name}");
    }
}

#[test]
fn a_response_loses_what_was_about_the_connection() {
    let mut response = Response::builder()
        .header("connection", "close, X-Hop")
        .header("x-hop", "1")
        .header("transfer-encoding", "chunked")
        .header("keep-alive", "timeout=5")
        .header("x-end", "2")
        .body(())
        .unwrap();
    clean(&mut response).unwrap();
    let left: Vec<_> = response.headers().keys().map(HeaderName::as_str).collect();
    assert_eq!(left, ["x-end"]);
    let mut coded = Response::builder().header("transfer-encoding", "gzip, chunked").body(()).unwrap();
    assert_eq!(clean(&mut coded).unwrap_err().code(), "HTTP-response-transfer-coding");
    let mut switched = Response::builder().status(101).body(()).unwrap();
    assert_eq!(clean(&mut switched), Err(EgressError::UpgradeFailed));
}
