use proptest::prelude::*;

use super::*;
use crate::target::Route;

fn allows(entries: &[&str], uri: &str) -> bool {
    let list = AllowList::parse(entries).unwrap_or_else(|error| panic!("{error}"));
    match Route::of(&uri.parse().unwrap()) {
        Ok(Route::Outside(target)) => list.allows(&target),
        Ok(Route::Component(name)) => list.allows_component(&name),
        Ok(Route::Application) => list.allows_application(),
        Err(error) => panic!("{uri}: {error}"),
    }
}

#[test]
fn an_entry_names_scheme_host_and_port() {
    // The entry, what it allows, what it does not.
    let table: &[(&str, &[&str], &[&str])] = &[
        (
            "https://api.example.com",
            &["https://api.example.com/v1", "https://api.example.com:443", "https://API.example.com."],
            &[
                "http://api.example.com",
                "https://api.example.com:444",
                "https://example.com",
                "https://x.api.example.com",
            ],
        ),
        ("https://api.example.com/", &["https://api.example.com"], &["https://api.example.com:80"]),
        ("https://api.example.com:", &["https://api.example.com"], &["https://api.example.com:80"]),
        ("  http://a.example:8080/ ", &["http://a.example:8080"], &["http://a.example"]),
        ("https://API.Example.com", &["https://api.example.com"], &[]),
        ("https://bücher.example", &["https://xn--bcher-kva.example"], &[]),
        ("https://a.example.", &["https://a.example"], &[]),
        (
            "https://*.example.com",
            &["https://a.example.com", "https://a.b.example.com"],
            &["https://example.com", "https://notexample.com", "https://example.com.evil"],
        ),
        ("http://*.Example.COM", &["http://foo.example.com"], &["http://example.com"]),
        ("http://*", &["http://a.example", "http://8.8.8.8", "/path"], &["https://a.example", "http://a.example:81"]),
        ("*://a.example:*", &["http://a.example:1", "https://a.example"], &["http://b.example"]),
        ("*://*:*", &["http://a.example:1", "https://[2001:db8::1]", "http://x.spin.internal", "/path"], &[]),
        (
            "http://a.example:8000..9000",
            &["http://a.example:8000", "http://a.example:8999"],
            &["http://a.example:9000", "http://a.example:7999"],
        ),
        ("http://127.0.0.1:3000", &["http://127.0.0.1:3000", "http://0x7f.1:3000"], &["http://localhost:3000"]),
        ("http://[::1]", &["http://[0::1]/x"], &["http://[::2]", "http://[::1]:81"]),
        ("http://[::1]:8080/", &["http://[::1]:8080"], &["http://[::1]"]),
        ("http://[::1]:8000..9000", &["http://[::1]:8000"], &["http://[::1]:9000"]),
        (
            "http://10.0.0.0/8",
            &["http://10.1.2.3", "http://[::ffff:10.1.2.3]"],
            &["http://11.0.0.1", "http://a.example"],
        ),
        ("http://10.1.2.3/8:81", &["http://10.9.9.9:81"], &["http://10.9.9.9"]),
        ("http://2001:db8::/32", &["http://[2001:db8:abcd::1]/x"], &["http://[2001:db9::1]"]),
        ("https://2001:db8::/32:81", &["https://[2001:db8::1]:81"], &["https://[2001:db8::1]"]),
        ("http://self", &["/path", "http://self.alt/path"], &["http://a.example", "http://a.spin.internal"]),
        ("http://self.alt", &["/path"], &[]),
        ("http://b.spin.internal", &["http://b.spin.internal"], &["http://c.spin.internal", "/path"]),
        ("http://*.spin.internal", &["http://b.spin.internal", "http://c.spin.internal"], &["/path"]),
        ("postgres://a.example", &[], &["http://a.example", "http://a.example:5432"]),
        ("redis://self", &[], &["/path"]),
    ];
    for (entry, yes, no) in table {
        for uri in *yes {
            assert!(allows(&[entry], uri), "{entry:?} does not allow {uri}");
        }
        for uri in *no {
            assert!(!allows(&[entry], uri), "{entry:?} allows {uri}");
        }
    }
    assert!(!allows(&[], "http://a.example"));
    assert!(!allows(&[], "/path"));
    assert!(AllowList::default().is_empty());
}

#[test]
fn a_bad_entry_says_what_to_write_instead() {
    let table = [
        ("", "\"*://*:*\""),
        ("*", "\"*://*:*\""),
        ("insecure:allow-all", "\"*://*:*\""),
        ("example.com", "\"https://example.com\""),
        ("example.com:8080", "\"https://example.com:8080\""),
        ("[::1]:8080", "\"https://[::1]:8080\""),
        ("HTTP://example.com", "lower-case"),
        ("h2://example.com", "lower-case"),
        ("://example.com", "lower-case"),
        ("*://example.com", "\"*://example.com:443\""),
        ("gopher://example.com", "\"gopher://example.com:443\""),
        ("https://", "scheme://host:port"),
        ("https://:80", "scheme://host:port"),
        ("https://example.com/v1", "remove \"/v1\""),
        ("https://example.com//", "remove"),
        ("https://example.com:80/v1", "remove \"/v1\""),
        ("https://*.example.com/v1", "remove \"/v1\""),
        ("http://[::1]/foo", "remove \"/foo\""),
        ("http://ff00::/8/extra", "path"),
        ("https://user@example.com", "up to the @"),
        ("https://user:pw@example.com", "up to the @"),
        ("https://a.*.example", "first part of one"),
        ("https://*.*.example", "first part of one"),
        ("https://*example.com", "first part of one"),
        ("https://*.10.0.0.1", "CIDR"),
        ("https://*.[::1]", "CIDR"),
        ("https://*.", "not valid"),
        ("https://a..example", "not valid"),
        ("https://exa mple.com", "not valid"),
        ("https://example%.com", "not valid"),
        ("https://xn--a.example", "not valid"),
        ("https://[::1", "not valid"),
        ("https://256.0.0.1", "not valid"),
        ("https://[::1]junk", "port"),
        ("https://[::1]::80", "port"),
        ("https://10.0.0.0/33", "10.0.0.0/8"),
        ("https://example.com:http", "1 to 65535"),
        ("https://example.com:0", "1 to 65535"),
        ("https://example.com:65536", "1 to 65535"),
        ("https://example.com:8000..70000", "1 to 65535"),
        ("https://example.com:8000..", "1 to 65535"),
        ("https://example.com:9000..8000", "no port in it"),
        ("https://example.com:8000..8000", "no port in it"),
        ("https://self:x", "1 to 65535"),
        ("{http,https}://example.com", "an entry for each"),
        ("https://{a,b}.example.com", "an entry for each"),
        ("https://{{ host }}", "variable"),
    ];
    for (entry, fix) in table {
        let error = AllowList::parse(&["https://good.example", entry]).unwrap_err();
        assert_eq!(error.index, 1);
        let text = error.to_string();
        assert!(text.starts_with("entry 2 of allowed_outbound_hosts"), "{text}");
        assert!(text.contains(fix), "{entry:?}: {text}");
    }
}

#[test]
fn chained_components_can_be_listed() {
    let list = AllowList::parse(&["http://a.spin.internal", "https://x.example", "http://*.spin.internal"]).unwrap();
    assert_eq!(list.chained().collect::<Vec<_>>(), [Chained::One("a"), Chained::Any]);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(entry in "\\PC{0,40}") {
        let _ = AllowList::parse(&[entry]);
    }

    #[test]
    fn what_is_nearly_an_entry_is_read_or_refused(entry in "(http|https|\\*)://[a-c*.:/\\[\\]0-9@]{0,16}") {
        let _ = AllowList::parse(&[entry]);
    }
}
