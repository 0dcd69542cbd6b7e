use super::*;
use crate::error::Prohibited;
use crate::range::Special;
use crate::target::Route;

struct Case {
    allow: &'static [&'static str],
    private: &'static [&'static str],
    refused: &'static [&'static str],
    standing: Standing,
}

const NOTHING: Case = Case { allow: &[], private: &[], refused: &[], standing: Standing::Unknown };

impl Case {
    fn try_all(&self, uri: &str, addresses: &[&str]) -> Result<Vec<String>, EgressError> {
        let Ok(Route::Outside(target)) = Route::of(&uri.parse().unwrap()) else { panic!("{uri}") };
        let allow = AllowList::parse(self.allow).unwrap();
        let networks = Networks::parse(self.private, self.refused).unwrap();
        let addresses: Vec<IpAddr> = addresses.iter().map(|a| a.parse().unwrap()).collect();
        judged(&addresses, &target, self.standing, &allow, &networks)
            .map(|all| all.iter().map(ToString::to_string).collect())
    }

    fn prohibits(&self, uri: &str, address: &str) -> Option<Prohibited> {
        match self.try_all(uri, &[address]) {
            Ok(_) => None,
            Err(EgressError::AddressProhibited { why, .. }) => Some(why),
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn a_name_never_grants_a_private_address() {
    let case = Case { allow: &["*://*:*", "http://a.example", "http://*.example", "http://0.0.0.0/0"], ..NOTHING };
    for (address, kind) in [
        ("127.0.0.1", Special::Loopback),
        ("::1", Special::Loopback),
        ("10.0.0.1", Special::Private),
        ("fd00::1", Special::Private),
        ("169.254.169.254", Special::Metadata),
        ("::ffff:192.168.0.1", Special::Private),
        ("64:ff9b::10.0.0.1", Special::Private),
        ("0.0.0.0", Special::Unspecified),
    ] {
        assert_eq!(case.prohibits("http://a.example", address), Some(Prohibited::Special(kind)), "{address}");
    }
    assert_eq!(case.prohibits("http://a.example", "93.184.215.14"), None);
}

#[test]
fn an_address_is_granted_for_its_scheme_and_port_only() {
    let case = Case { allow: &["*://*:*", "http://10.0.0.0/8:8080", "http://127.0.0.1:1"], ..NOTHING };
    assert_eq!(case.prohibits("http://a.example:8080", "10.1.2.3"), None);
    assert_eq!(case.prohibits("http://10.1.2.3:8080", "10.1.2.3"), None);
    assert_eq!(case.prohibits("http://[::ffff:127.0.0.1]:1", "::ffff:127.0.0.1"), None);
    for uri in ["http://a.example:8081", "https://a.example:8080", "https://10.1.2.3:8080"] {
        assert_eq!(case.prohibits(uri, "10.1.2.3"), Some(Prohibited::Special(Special::Private)), "{uri}");
    }
}

#[test]
fn localhost_listed_by_name_is_loopback_and_nothing_else() {
    let case = Case { allow: &["http://localhost:80", "http://x.localhost:80"], ..NOTHING };
    assert_eq!(case.prohibits("http://localhost", "127.0.0.1"), None);
    assert_eq!(case.prohibits("http://x.localhost", "::1"), None);
    assert_eq!(case.prohibits("http://localhost", "10.0.0.1"), Some(Prohibited::Special(Special::Private)));
    // Another name, although it is at the same address.
    assert_eq!(case.prohibits("http://y.localhost", "127.0.0.1"), Some(Prohibited::Special(Special::Loopback)));
    let wide = Case { allow: &["http://*", "http://*.localhost"], ..NOTHING };
    assert_eq!(wide.prohibits("http://x.localhost", "127.0.0.1"), Some(Prohibited::Special(Special::Loopback)));
}

#[test]
fn an_operator_grants_and_refuses_for_all() {
    let case =
        Case { allow: &["http://*"], private: &["10.1.0.0/16"], refused: &["10.1.9.0/24", "93.184.0.0/16"], ..NOTHING };
    assert_eq!(case.prohibits("http://a.example", "10.1.2.3"), None);
    assert_eq!(case.prohibits("http://a.example", "10.2.2.3"), Some(Prohibited::Special(Special::Private)));
    assert_eq!(case.prohibits("http://a.example", "10.1.9.3"), Some(Prohibited::ByOperator));
    assert_eq!(case.prohibits("http://a.example", "93.184.215.14"), Some(Prohibited::ByOperator));
}

#[test]
fn families_take_turns_and_what_is_refused_is_left_out() {
    let case = Case { allow: &["http://*"], ..NOTHING };
    let tried = case.try_all(
        "http://a.example",
        &["1.1.1.1", "10.0.0.1", "1.0.0.1", "::ffff:1.1.1.1", "2606:4700::1111", "2606:4700::1001", "::1", "9.9.9.9"],
    );
    let order =
        ["[2606:4700::1111]:80", "1.1.1.1:80", "[2606:4700::1001]:80", "1.0.0.1:80", "9.9.9.9:80"].map(str::to_owned);
    assert_eq!(tried.unwrap(), order);
    let many: Vec<String> = (1..100).map(|n| format!("8.8.8.{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(case.try_all("http://a.example", &many).unwrap().len(), MAX_ADDRESSES);
    assert_eq!(case.try_all("http://a.example", &[]).unwrap_err().code(), "DNS-error");
}

#[test]
fn an_origin_that_proves_who_it_is_may_be_in_a_network_of_ones_own() {
    let allow = &["https://kubernetes.default.svc"];
    let proven = Case { allow, refused: &["10.9.0.0/16"], standing: Standing::Proven, ..NOTHING };
    for address in ["10.96.0.1", "fd00::1", "100.64.0.1", "127.0.0.1"] {
        assert_eq!(proven.prohibits("https://kubernetes.default.svc", address), None, "{address}");
    }
    for (address, kind) in [
        ("169.254.169.254", Special::Metadata),
        ("169.254.1.1", Special::LinkLocal),
        ("100.100.100.200", Special::Metadata),
        ("0.0.0.0", Special::Unspecified),
    ] {
        let why = proven.prohibits("https://kubernetes.default.svc", address);
        assert_eq!(why, Some(Prohibited::Special(kind)), "{address}");
    }
    // The operator's no is stronger than the operator's name.
    let refused = proven.prohibits("https://kubernetes.default.svc", "10.9.0.1");
    assert_eq!(refused, Some(Prohibited::ByOperator));
    let unknown = Case { allow, ..NOTHING };
    let why = unknown.prohibits("https://kubernetes.default.svc", "10.96.0.1");
    assert_eq!(why, Some(Prohibited::Special(Special::Private)));
}
