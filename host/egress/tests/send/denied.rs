//! What must not get out.

use nala_egress::{
    ConnectionLimit, Denial, EgressError, GateConfig, Idle, Networks, Prohibited, Route, Special, Timeouts,
};

use crate::bench::{Bench, Log, Names, code, config, get, get_within, got, short};
use crate::servers::Server;

fn limit() -> ConnectionLimit {
    ConnectionLimit::new(9, 9)
}

#[tokio::test]
async fn what_is_not_listed_is_not_even_resolved() {
    let server = Server::echo().await;
    let names = Names::answer(&[&["127.0.0.1"]]);
    let bench = Bench::with(config(), names.clone(), limit());
    let egress = bench.egress(&["http://other.example", "http://127.0.0.1:1"]);
    let uri = format!("http://api.example:{}/", server.port());
    let error = get(&egress, &uri).await.unwrap_err();
    assert_eq!(error, EgressError::Denied(Denial::Host { origin: uri.trim_end_matches('/').to_owned() }));
    assert_eq!(code(get(&egress, &server.url("/")).await), "HTTP-request-denied");
    assert_eq!((names.asked(), server.connections()), (0, 0));
    assert_eq!(bench.metric("egress_denied_total{reason=\"host\"}"), 2);
}

#[tokio::test]
async fn all_hosts_are_not_this_machine() {
    let server = Server::echo().await;
    let bench = Bench::with(config(), Names::answer(&[&["127.0.0.1", "::1"]]), limit());
    let egress = bench.egress(&["*://*:*"]);
    let port = server.port();
    for host in ["127.0.0.1", "localhost", "0x7f.1", "2130706433", "0", "[::1]", "[::ffff:7f00:1]", "name.example"] {
        let uri = format!("http://{host}:{port}/");
        assert_eq!(code(get(&egress, &uri).await), "destination-IP-prohibited", "{uri}");
    }
    assert_eq!(server.connections(), 0);
    assert_eq!(bench.metric("egress_denied_total{reason=\"loopback\"}"), 7);
    assert_eq!(bench.metric("egress_denied_total{reason=\"unspecified\"}"), 1);
}

#[tokio::test]
async fn a_name_is_resolved_once_and_cannot_be_bound_anew() {
    let server = Server::echo().await;
    let port = server.port();
    // An address that nobody is at, then this machine: whoever resolved again
    // between judging and connecting would get there.
    let names = Names::answer(&[&["192.0.2.1"], &["127.0.0.1"]]);
    let bench = Bench::with(config(), names.clone(), limit());
    let egress = bench.egress(&["http://*:*", "http://192.0.2.1:*"]);
    let uri = format!("http://rebind.example:{port}/");
    let timeouts = Timeouts { connect: short(300), ..Timeouts::UNSET };
    let error = get_within(&egress, &uri, timeouts).await.unwrap_err();
    assert!(error.code().starts_with("connection-") || error.code().ends_with("unroutable"), "{error}");
    assert_eq!(names.asked(), 1);
    let error = get(&egress, &uri).await.unwrap_err();
    let EgressError::AddressProhibited { why, .. } = error else { panic!("{error}") };
    assert_eq!(why, Prohibited::Special(Special::Loopback));
    assert_eq!((names.asked(), server.connections()), (2, 0));
}

#[tokio::test]
async fn a_new_connection_is_judged_by_what_its_name_means_now() {
    let server = Server::echo().await;
    let port = server.port();
    let names = Names::answer(&[&["127.0.0.1"], &["10.0.0.1"]]);
    let config = GateConfig { idle: Idle { each: 0, ..Idle::default() }, ..config() };
    let bench = Bench::with(config, names.clone(), limit());
    let egress = bench.egress(&["http://*:*", "http://127.0.0.1:*"]);
    let uri = format!("http://rebind.example:{port}/");
    got(&egress, &uri).await;
    assert_eq!(code(get(&egress, &uri).await), "destination-IP-prohibited");
    assert_eq!((names.asked(), server.connections()), (2, 1));
}

#[tokio::test]
async fn the_operator_grants_and_refuses_networks() {
    let server = Server::echo().await;
    let port = server.port();
    let uri = format!("http://inside.example:{port}/");
    for (private, refused, code) in [
        (vec!["127.0.0.0/8"], vec![], None),
        (vec!["127.0.0.0/8"], vec!["127.0.0.1"], Some("destination-IP-prohibited")),
        (vec!["10.0.0.0/8"], vec![], Some("destination-IP-prohibited")),
    ] {
        let networks = Networks::parse(&private, &refused).unwrap();
        let bench = Bench::with(GateConfig { networks, ..config() }, Names::answer(&[&["127.0.0.1"]]), limit());
        let answer = get(&bench.egress(&["http://*.example:*"]), &uri).await;
        assert_eq!(answer.err().map(|error| error.code()), code, "{private:?} {refused:?}");
    }
}

#[tokio::test]
async fn what_is_within_the_application_never_gets_a_connection() {
    let names = Names::answer(&[&["127.0.0.1"]]);
    let bench = Bench::with(config(), names.clone(), limit());
    let egress = bench.egress(&["http://self", "http://other.spin.internal"]);
    assert_eq!(egress.route(&"/x".parse().unwrap()), Ok(Route::Application));
    let other = "http://other.spin.internal/";
    assert_eq!(egress.route(&other.parse().unwrap()), Ok(Route::Component("other".into())));
    assert_eq!(code(egress.route(&"http://third.spin.internal/".parse().unwrap())), "HTTP-request-denied");
    assert_eq!(get(&egress, other).await.unwrap_err(), EgressError::Denied(Denial::NotOutside));
    assert_eq!(names.asked(), 0);
}

#[tokio::test]
async fn a_denial_tells_the_operator_once_what_to_write() {
    let log = Log::default();
    let _listening = log.listen();
    let bench = Bench::with(config(), Names::answer(&[&["10.1.2.3"]]), limit());
    let egress = bench.egress(&["https://inside.example:8443"]);
    for _ in 0..3 {
        get(&egress, "https://api.example/v1?secret=1").await.unwrap_err();
        get(&egress, "https://inside.example:8443/").await.unwrap_err();
    }
    let log = log.text();
    assert_eq!(log.matches("outgoing request denied").count(), 2, "{log}");
    assert_eq!(log.matches("add \"https://api.example\" to allowed_outbound_hosts").count(), 1, "{log}");
    assert_eq!(log.matches("add \"https://10.1.2.3:8443\" to allowed_outbound_hosts").count(), 1, "{log}");
    assert!(log.contains("component=component") && !log.contains("secret"), "{log}");
}
