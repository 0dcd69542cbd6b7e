use serde_json::{Value, json};

use super::*;
use crate::web::fake::Fake;

const AT: &str = "https://example.org/";

fn serving(content_type: &str, body: &[u8]) -> Fake {
    Fake::default().with(AT, 200, &[("content-type", content_type)], body)
}

fn got(web: &Fake, format: Format, most: usize) -> (Answer, Value) {
    let answer = fetch(web, AT, format, most).unwrap();
    let json = serde_json::from_str(answer.structured.as_deref().unwrap()).unwrap();
    (answer, json)
}

fn fails(web: &Fake) -> String {
    fetch(web, AT, Format::Text, TEXT_DEFAULT).map(|answer| format!("{answer:?}")).unwrap_err()
}

#[test]
fn a_page_is_told_in_each_format() {
    let html = "<title>T</title><p>a <a href=/b>b</a>";
    let web = serving("text/html; charset=utf-8", html.as_bytes());
    for (format, text) in [(Format::Text, "a b"), (Format::Markdown, "a [b](https://example.org/b)")] {
        let (answer, json) = got(&web, format, TEXT_DEFAULT);
        let whole = json!({
            "url": AT, "redirects": [], "status": 200, "content_type": "text/html; charset=utf-8",
            "title": "T", "text": text, "cut": false,
        });
        assert_eq!(json, whole);
        let head = format!("{AT} (status 200, text/html; charset=utf-8)\nTitle: T\n\n{text}");
        assert!(matches!(answer.content.as_slice(), [Content::Text(text)] if *text == head), "{answer:?}");
    }
    let (_, json) = got(&web, Format::Raw, TEXT_DEFAULT);
    assert_eq!((&json["text"], json.get("title")), (&json!(html), None));
}

#[test]
fn other_text_passes_as_it_is() {
    for (content_type, body) in [
        ("application/json", r#"{"a": [1, 2],  "b": "<p>"}"#),
        ("text/plain", "a  *b*\n\n\n<p>"),
        ("text/csv", ""),
        ("image/svg+xml", "<svg/>"),
    ] {
        let (_, json) = got(&serving(content_type, body.as_bytes()), Format::Markdown, TEXT_DEFAULT);
        assert_eq!(json["text"], body, "{content_type}");
        assert_eq!(json["cut"], false);
    }
    let untyped = Fake::default().with(AT, 200, &[], b"<!DOCTYPE html><p>a<p>b");
    assert_eq!(got(&untyped, Format::Text, TEXT_DEFAULT).1["text"], "a\n\nb");
}

#[test]
fn redirects_are_shown() {
    let web = serving("text/plain", b"a").redirecting("http://example.org/", AT);
    let answer = fetch(&web, "http://example.org", Format::Text, TEXT_DEFAULT).unwrap();
    let json: Value = serde_json::from_str(answer.structured.as_deref().unwrap()).unwrap();
    assert_eq!((&json["url"], &json["redirects"]), (&json!(AT), &json!(["http://example.org/"])));
    let begins = format!("http://example.org/ redirects to\n{AT} (status 200");
    assert!(matches!(answer.content.as_slice(), [Content::Text(text)] if text.starts_with(&begins)), "{answer:?}");
}

#[test]
fn long_text_is_cut_between_characters_and_said_so() {
    for (most, text) in [(1, ""), (2, "ü"), (3, "ü"), (5, "üü")] {
        let (answer, json) = got(&serving("text/html", "ü".repeat(9).as_bytes()), Format::Text, most);
        assert_eq!((&json["text"], &json["cut"]), (&json!(text), &json!(true)), "{most}");
        assert!(json["note"].as_str().unwrap().contains("of 18 bytes"), "{json}");
        assert!(matches!(answer.content.as_slice(), [Content::Text(text)] if text.contains("\nCut: ")), "{answer:?}");

        let (_, json) = got(&serving("text/plain", "ü".repeat(9).as_bytes()), Format::Text, most);
        assert_eq!((&json["text"], &json["cut"]), (&json!(text), &json!(true)), "{most}");
    }
    let (_, json) = got(&serving("text/plain", b"abc"), Format::Text, 3);
    assert_eq!((&json["text"], &json["cut"]), (&json!("abc"), &json!(false)));
}

#[test]
fn no_more_is_read_than_is_allowed() {
    // Servers without an end, of text, of a page and of a picture.
    let endless = |content_type: &str, part: &[u8]| {
        Fake::default().with_parts(AT, 200, &[("content-type", content_type)], vec![Ok(part.repeat(1 << 16)); 512])
    };
    let text = endless("text/event-stream", b"abcd");
    assert_eq!(got(&text, Format::Text, 100_000).1["text"].as_str().unwrap().len(), 100_000);
    assert!(text.reports.borrow().len() == 1, "{:?}", text.reports);

    let page = endless("text/html", b"<p>a");
    let (_, json) = got(&page, Format::Text, TEXT_MOST);
    assert_eq!(json["cut"], true);
    let reports = page.reports.borrow();
    assert_eq!(reports.last(), Some(&(PAGE_MOST, None)));
    assert!(reports.iter().map(|(done, _)| *done).is_sorted());

    let error = fails(&endless("image/png", b"\x89PNG\r\n\x1A\n"));
    assert!(error.contains("the first 1048576 bytes were read"), "{error}");
}

#[test]
fn a_body_that_breaks_off_is_told_as_far_as_it_came() {
    let broken = Err(Fault::Failed("the server broke off".to_owned()));
    let headers = [("content-type", "text/plain"), ("content-length", "9")];
    let web = Fake::default().with_parts(AT, 200, &headers, vec![Ok("aü".as_bytes()[..2].to_vec()), broken.clone()]);
    let (_, json) = got(&web, Format::Text, TEXT_DEFAULT);
    assert_eq!((&json["text"], &json["cut"]), (&json!("a"), &json!(true)));
    assert_eq!(json["note"], "the server broke off");
    assert_eq!(*web.reports.borrow(), [(2, Some(9))]);

    let nothing = Fake::default().with_parts(AT, 200, &headers, vec![broken]);
    assert_eq!(fails(&nothing), format!("{AT} could not be read, because the server broke off"));
}

#[test]
fn pictures_are_shown() {
    let png = b"\x89PNG\r\n\x1A\n....";
    for content_type in ["image/png", "image/webp", "application/octet-stream"] {
        let (answer, json) = got(&serving(content_type, png), Format::Text, 1);
        assert_eq!(json["text"], "a picture (image/png) of 12 bytes");
        let [Content::Text(_), Content::Image(picture)] = answer.content.as_slice() else { panic!("{answer:?}") };
        assert_eq!((picture.data.as_slice(), picture.mime_type.as_str()), (png.as_slice(), "image/png"));
    }
    assert!(fails(&serving("image/png", b"<html>")).contains("holds no such picture"));
    let long = [("content-type", "image/png"), ("content-length", "1048577")];
    let long = Fake::default().with(AT, 200, &long, png);
    assert!(fails(&long).contains("length 1048577 bytes; pictures are read up to 1048576 bytes"));
    assert!(long.reports.borrow().is_empty());
}

#[test]
fn what_is_no_text_is_refused_with_its_type_and_length() {
    let headers = [("content-type", "application/pdf; x=y"), ("content-length", "1234")];
    let pdf = Fake::default().with(AT, 200, &headers, b"%PDF");
    let error = fails(&pdf);
    assert!(error.contains("application/pdf, length 1234 bytes"), "{error}");
    assert!(pdf.reports.borrow().is_empty());

    for (headers, body, why) in [
        (vec![("content-type", "video/mp4")], "", "video/mp4, length unknown"),
        (vec![], "PK\u{3}\u{4}", "of an unknown type"),
        (vec![("content-type", "text/plain")], "a\0b", "zeros"),
        (vec![("content-type", "text/html"), ("content-encoding", "gzip")], "\u{1f}", "compressed by \"gzip\""),
    ] {
        let error = fails(&Fake::default().with(AT, 200, &headers, body.as_bytes()));
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn an_error_of_the_server_is_one_of_the_tool() {
    let body = format!("<title>Oh</title><p>not <b>here</b>{}", "x".repeat(9000));
    let web = Fake::default().with(AT, 404, &[("content-type", "text/html")], body.as_bytes());
    let error = fails(&web);
    assert!(error.starts_with("https://example.org/ was answered with status 404:\n\nnot here"), "{error}");
    assert!(error.len() < ERROR_MOST + 100, "{}", error.len());
    let bare = Fake::default().with(AT, 500, &[], b"");
    assert_eq!(fails(&bare), "https://example.org/ was answered with status 500");
    let picture = Fake::default().with(AT, 403, &[("content-type", "image/png")], b"\x89PNG\r\n\x1A\n");
    assert!(fails(&picture).contains("status 403"));
}
