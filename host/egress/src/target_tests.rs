use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;

fn route(uri: &str) -> Result<Route, EgressError> {
    Route::of(&uri.parse::<Uri>().map_err(|error| EgressError::UriInvalid(error.to_string()))?)
}

fn outside(uri: &str) -> Target {
    match route(uri) {
        Ok(Route::Outside(target)) => target,
        other => panic!("{uri}: {other:?}"),
    }
}

#[test]
fn one_host_has_one_spelling() {
    for (uri, origin) in [
        ("http://example.com", "http://example.com"),
        ("http://EXAMPLE.com:80/x", "http://example.com"),
        ("https://example.com.:443", "https://example.com"),
        ("https://example.com:80", "https://example.com:80"),
        ("http://0x7f.1", "http://127.0.0.1"),
        ("http://2130706433/", "http://127.0.0.1"),
        ("http://0177.0.0.01:8080", "http://127.0.0.1:8080"),
        ("http://127.1", "http://127.0.0.1"),
        ("http://127.0.0.1.", "http://127.0.0.1"),
        ("http://0", "http://0.0.0.0"),
        ("http://[::ffff:127.0.0.1]", "http://127.0.0.1"),
        ("http://[0:0:0:0:0:ffff:7f00:1]:1", "http://127.0.0.1:1"),
        ("http://[0::1]", "http://[::1]"),
        ("http://xn--bcher-kva.example", "http://xn--bcher-kva.example"),
        ("http://localhost.", "http://localhost"),
    ] {
        assert_eq!(outside(uri).to_string(), origin, "{uri}");
    }
}

#[test]
fn what_is_no_host_is_refused_with_a_reason() {
    let long = format!("http://{}.example", "a".repeat(64));
    let longer = format!("http://{}a", "a.".repeat(127));
    for (uri, reason) in [
        ("ftp://example.com/", "neither http nor https"),
        ("example.com:80", "no scheme"),
        ("http://user@example.com/", "user name"),
        ("http://user:secret@example.com/", "user name"),
        ("http://example.com:0/", "port 0"),
        ("http://256.256.256.256/", "256.256.256.256"),
        ("http://1.2.3.4.5/", "1.2.3.4.5"),
        ("http://a..b/", "empty"),
        ("http://example.com../", "empty"),
        (&long, "63"),
        (&longer, "253"),
    ] {
        let error = route(uri).unwrap_err();
        assert_eq!(error.code(), "HTTP-request-URI-invalid", "{uri}: {error}");
        assert!(error.to_string().contains(reason), "{uri}: {error}");
    }
}

#[test]
fn what_is_within_the_application_is_not_outside() {
    assert_eq!(route("/path"), Ok(Route::Application));
    assert_eq!(route("http://self.alt/path"), Ok(Route::Application));
    assert_eq!(route("http://SELF.ALT./path"), Ok(Route::Application));
    assert_eq!(route("http://other.spin.internal/path"), Ok(Route::Component("other".into())));
    assert_eq!(route("http://Other.Spin.Internal.:81/path"), Ok(Route::Component("other".into())));
    assert!(matches!(route("http://spin.internal/"), Ok(Route::Outside(_))));
}

/// One part of an address in one of the ways that parsers read numbers.
fn number(value: u32) -> impl Strategy<Value = String> {
    prop_oneof![
        Just(format!("{value}")),
        Just(format!("0x{value:x}")),
        Just(format!("0X{value:X}")),
        Just(format!("0{value:o}")),
        Just(format!("0x000{value:x}")),
        Just(format!("000{value:o}")),
    ]
}

/// Any of the spellings of an address of IPv4.
fn spelling(address: Ipv4Addr) -> BoxedStrategy<String> {
    let [a, b, c, d] = address.octets().map(u32::from);
    let all = u32::from(address);
    let dotted = (number(a), number(b), number(c), number(d));
    let plain = prop_oneof![
        number(all),
        (number(a), number(all & 0xff_ffff)).prop_map(|(a, b)| format!("{a}.{b}")),
        (number(a), number(b), number(all & 0xffff)).prop_map(|(a, b, c)| format!("{a}.{b}.{c}")),
        dotted.prop_map(|(a, b, c, d)| format!("{a}.{b}.{c}.{d}")),
    ];
    let (high, low) = (all >> 16, all & 0xffff);
    prop_oneof![
        plain.clone(),
        plain.prop_map(|plain| format!("{plain}.")),
        Just(format!("[::ffff:{address}]")),
        Just(format!("[::FFFF:{high:x}:{low:x}]")),
        Just(format!("[0:0:0:0:0:ffff:{high:04x}:{low:04x}]")),
        Just(format!("[64:ff9b::{address}]")),
        Just(format!("[::{address}]")),
        Just(format!("[2002:{high:x}:{low:x}::1]")),
    ]
    .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_spelling_of_a_private_address_passes(
        (text, address) in prop_oneof![
            any::<[u8; 3]>().prop_map(|[b, c, d]| Ipv4Addr::new(127, b, c, d)),
            any::<[u8; 3]>().prop_map(|[b, c, d]| Ipv4Addr::new(10, b, c, d)),
            any::<[u8; 2]>().prop_map(|[c, d]| Ipv4Addr::new(192, 168, c, d)),
            any::<[u8; 2]>().prop_map(|[c, d]| Ipv4Addr::new(172, 20, c, d)),
            any::<[u8; 3]>().prop_map(|[b, c, d]| Ipv4Addr::new(0, b, c, d)),
            Just(Ipv4Addr::new(169, 254, 169, 254)),
        ].prop_flat_map(|address| (spelling(address), Just(address)))
    ) {
        // Refused at once is well; taken for a name would be a way in, and so
        // would an address that counts as public.
        match route(&format!("http://{text}/")) {
            Ok(Route::Outside(Target { host: Host::Address(read), .. })) => {
                prop_assert!(crate::range::special(read).is_some(), "{} became {}", text, read);
                if read.is_ipv4() {
                    prop_assert_eq!(read, IpAddr::V4(address), "{}", text);
                }
            }
            Ok(other) => prop_assert!(false, "{} became {:?}", text, other),
            Err(_) => {}
        }
    }

    #[test]
    fn any_authority_is_read_or_refused_and_reading_it_again_changes_nothing(authority in "[ -~]{1,24}") {
        if let Ok(Route::Outside(target)) = route(&format!("http://{authority}/")) {
            prop_assert_eq!(outside(&target.to_string()), target);
        }
    }
}
