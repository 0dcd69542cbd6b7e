//! Heads and bodies that a guest makes to mislead whoever reads them.

use nala_e2e::hostile::Site;

use super::wire::{Exchange, exchange, get};

/// How what is asked second ends.
const HELLO: &str = "\r\n\r\n5\r\nhello\r\n0\r\n\r\n";

fn asked(site: &Site, path: &str) -> Exchange {
    // On one connection with what comes after it, which has to be itself, and the last.
    let hello =
        format!("GET /hello HTTP/1.1\r\nhost: localhost\r\nx-api-key: {}\r\nconnection: close\r\n\r\n", site.bad);
    exchange(&site.host.address, &[get(path, &site.bad), hello.into_bytes()].concat())
}

#[test]
fn a_guest_cannot_forge_what_comes_around_its_response() {
    let site = super::site();

    // The key is not shown to it, nor is anything else that would say whose it is.
    let seen = asked(&site, "/headers/seen").text;
    assert!(!seen.contains("x-api-key") && !seen.contains(&site.bad), "{seen}");

    let refused = site.ask(&site.bad, "/headers/refused");
    assert_eq!(refused.text, "forbidden 7, invalid 5", "{refused:?}");

    // What it may say is its own; what the host says, the host says.
    let forged = asked(&site, "/headers/forged").text;
    assert!(forged.contains("forged") && !forged.contains("x-request-id: forged"), "{forged}");

    // More than is declared is cut, and is no second response.
    let longer = asked(&site, "/headers/longer");
    assert!(!longer.text.contains("harm"), "{}", longer.text);
    // Less than is declared does not look complete: nothing follows on the connection.
    let both = [get("/headers/shorter", &site.bad), get("/hello", &site.bad)].concat();
    let shorter = exchange(&site.host.address, &both);
    assert!(shorter.is_closed && !shorter.text.ends_with(HELLO), "{}", shorter.text);
    for way in ["two-lengths", "no-length"] {
        let exchange = asked(&site, &format!("/headers/{way}"));
        let heads = exchange.text.matches("HTTP/1.1 ").count();
        assert!(heads <= 2 && exchange.text.matches("content-length: ").count() <= 2, "{way}: {}", exchange.text);
    }
    let error = asked(&site, "/headers/error");
    assert!(error.text.starts_with("HTTP/1.1 500") && error.text.ends_with(HELLO), "{}", error.text);
    assert!(!error.text.contains("\r\n\r\nharm"), "{}", error.text);

    // Interim and unheard-of statuses: never a response that another one is read from.
    for status in [0, 100, 101, 103, 199, 204, 304, 600, 999, 1000] {
        let exchange = asked(&site, &format!("/headers/status?{status}"));
        let first = exchange.text.lines().next().unwrap_or_default().to_owned();
        let is_interim =
            ["HTTP/1.1 100", "HTTP/1.1 101", "HTTP/1.1 103", "HTTP/1.1 199"].iter().any(|head| first.starts_with(head));
        assert!(!is_interim, "{status}: {}", exchange.text);
        let heads = exchange.text.matches("HTTP/1.1 ").count();
        assert!(heads <= 2, "{status}: {}", exchange.text);
        if heads == 2 {
            assert!(exchange.text.ends_with(HELLO), "{status}: {}", exchange.text);
        }
    }

    // As many headers as fit, which is told to the guest; the client gets a head of them.
    let large = asked(&site, "/headers/large");
    assert!(large.text.len() < 1 << 20, "{} bytes", large.text.len());
    let hello = site.ask(&site.good, "/hello");
    assert_eq!((hello.status, hello.text.as_str()), (200, "hello"));
    assert_eq!(site.host.metrics().sum("nala_http_handler_panics_total"), 0.0);
    site.until_empty(&[]);
}
