use std::fs;

use super::*;

fn open(origin: &str, plain: Plain) -> Result<Credential, CredentialError> {
    Credential::open(origin, Form::Bearer, Held::text("t0ken").unwrap(), None, plain)
}

#[test]
fn an_origin_is_one_and_safe() {
    for origin in ["https://API.example.", "https://10.96.0.1:443/", "https://[fd00::1]:6443"] {
        assert!(open(origin, Plain::Refused).is_ok(), "{origin}");
    }
    assert_eq!(open("https://API.example.:443", Plain::Refused).unwrap().origin().to_string(), "https://api.example");
    for (origin, why) in [
        ("", "is no origin"),
        ("api.example", "is no origin"),
        ("/a", "is no origin"),
        ("ftp://api.example", "neither http nor https"),
        ("https://api.example/v1", "has a path"),
        ("https://api.example?x", "has a path"),
        ("https://me@api.example", "user name"),
        ("https://*.example", "is no origin"),
        ("http://a.spin.internal", "within the application"),
        ("http://self.alt", "within the application"),
        ("http://api.example", "without TLS"),
        ("http://10.0.0.1:8080", "without TLS"),
        ("http://localhost.example", "without TLS"),
    ] {
        let error = open(origin, Plain::Refused).unwrap_err().to_string();
        assert!(error.contains(why), "{origin}: {error}");
    }
    for origin in ["http://localhost:8001", "http://x.localhost", "http://127.0.0.1:8001", "http://[::1]:1"] {
        assert!(open(origin, Plain::Refused).is_ok(), "{origin}");
    }
    assert!(open("http://api.example", Plain::Allowed).is_ok());
}

#[test]
fn what_a_credential_is_not_is_told_without_it() {
    for (text, why) in [
        ("", Unusable::Empty),
        (" \r\n\t", Unusable::Empty),
        ("s3cret\nX-Forged: 1", Unusable::Character),
        ("s3cret s3cret", Unusable::Character),
        ("s3crét", Unusable::Character),
        ("s3cret\0", Unusable::Character),
        (&"x".repeat(file::MOST + 1), Unusable::TooLong),
    ] {
        assert_eq!(Held::text(text), Err(why), "{text:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    let read = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let held = Held::File(path.clone());
        Credential::open("https://a.example", Form::Bearer, held, None, Plain::Refused)
    };
    assert!(read(b"s3cret\n").is_ok());
    for bytes in [b"".as_slice(), b"\n", b"s3cret\ns3cret", b"s3cret\xFF"] {
        let error = read(bytes).unwrap_err().to_string();
        assert!(error.contains("token") && !error.contains("s3cret"), "{error}");
    }
    let of = |path: &Path| {
        Credential::open("https://a.example", Form::Bearer, Held::File(path.to_owned()), None, Plain::Refused)
    };
    assert!(of(folder.path()).unwrap_err().to_string().contains("it is no file"));
    assert!(of(&folder.path().join("none")).unwrap_err().to_string().contains("cannot be read"));
    fs::write(&path, "no certificate").unwrap();
    let held = Held::text("s3cret").unwrap();
    let error = Credential::open("https://a.example", Form::Bearer, held, Some(&path), Plain::Refused).unwrap_err();
    assert!(error.to_string().contains("no certificates"), "{error}");
}

#[test]
fn what_is_shown_of_one_has_no_value() {
    let held = Held::text("s3cret").unwrap();
    for form in [Form::Bearer, Form::Header(HeaderName::from_static("x-api-key"))] {
        let credential = Credential::open("https://a.example", form, held.clone(), None, Plain::Refused).unwrap();
        let shown = format!("{credential:?} {:?}", credential.read().unwrap().value);
        assert!(!shown.contains("s3cret"), "{shown}");
        assert!(credential.read().unwrap().value.is_sensitive());
    }
}

#[test]
fn headers_that_frame_a_message_carry_none() {
    for name in ["host", "content-length", "te", "transfer-encoding", "connection", "x-nala-key", "proxy-authorization"]
    {
        let (form, held) = (Form::Header(HeaderName::from_static(name)), Held::text("x").unwrap());
        let error = Credential::open("https://a.example", form, held, None, Plain::Refused).unwrap_err();
        assert!(matches!(error, CredentialError::Header(_)), "{name}: {error}");
    }
}
