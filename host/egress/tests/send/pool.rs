//! Which connections are used again, and by whom.

use nala_egress::{ConnectionLimit, GateConfig, Idle};
use tokio::io::AsyncWriteExt;

use crate::bench::{Bench, Names, code, config, get, got, short};
use crate::servers::{Server, read_head};

#[tokio::test]
async fn a_connection_is_used_again_by_its_own_tenant_only() {
    let server = Server::echo().await;
    let bench = Bench::new();
    let (one, two) = (bench.of("one", &["http://127.0.0.1:*"]), bench.of("two", &["http://127.0.0.1:*"]));
    for round in 1..=3 {
        got(&one, &server.url("/")).await;
        bench.until("egress_connections_reused_total", round - 1).await;
        tokio::time::sleep(short(20)).await;
    }
    assert_eq!(server.connections(), 1);
    got(&two, &server.url("/")).await;
    assert_eq!(server.connections(), 2);
    assert_eq!(bench.metric("egress_connections_opened_total"), 2);
    assert_eq!(bench.metric("egress_connections"), 2);
}

#[tokio::test]
async fn a_connection_is_judged_again_for_another_component() {
    let server = Server::echo().await;
    let bench = Bench::with(config(), Names::answer(&[&["127.0.0.1"]]), ConnectionLimit::new(9, 9));
    let uri = format!("http://inside.example:{}/", server.port());
    got(&bench.egress(&["http://inside.example:*", "http://127.0.0.1:*"]), &uri).await;
    tokio::time::sleep(short(50)).await;
    let other = bench.egress(&["http://inside.example:*"]);
    assert_eq!(code(get(&other, &uri).await), "destination-IP-prohibited");
}

#[tokio::test]
async fn a_connection_that_the_server_closed_costs_nothing() {
    let server = Server::run(|mut stream, _| async move {
        read_head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.unwrap();
    })
    .await;
    let bench = Bench::new();
    let egress = bench.egress(&["http://127.0.0.1:*"]);
    for _ in 0..5 {
        assert_eq!(got(&egress, &server.url("/")).await, "ok");
    }
    assert_eq!(server.connections(), 5);
    bench.until("egress_connections", 0).await;
}

#[tokio::test]
async fn an_idle_connection_is_closed_after_its_time() {
    let server = Server::echo().await;
    let idle = Idle { time: short(100), ..Idle::default() };
    let bench = Bench::with(GateConfig { idle, ..config() }, Names::answer(&[]), ConnectionLimit::new(9, 9));
    let egress = bench.egress(&["http://127.0.0.1:*"]);
    got(&egress, &server.url("/")).await;
    tokio::time::sleep(short(20)).await;
    assert_eq!(bench.metric("egress_connections"), 1);
    bench.until("egress_connections", 0).await;
    got(&egress, &server.url("/")).await;
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn an_old_connection_is_made_anew_so_that_dns_is_followed() {
    let server = Server::echo().await;
    let idle = Idle { age: short(150), ..Idle::default() };
    let names = Names::answer(&[&["127.0.0.1"]]);
    let bench = Bench::with(GateConfig { idle, ..config() }, names.clone(), ConnectionLimit::new(9, 9));
    let port = server.port();
    let egress = bench.egress(&["http://a.example:*", "http://127.0.0.1:*"]);
    let uri = format!("http://a.example:{port}/");
    got(&egress, &uri).await;
    tokio::time::sleep(short(30)).await;
    got(&egress, &uri).await;
    assert_eq!(names.asked(), 1);
    tokio::time::sleep(short(200)).await;
    got(&egress, &uri).await;
    assert_eq!((names.asked(), server.connections()), (2, 2));
}

#[tokio::test]
async fn as_many_idle_connections_are_kept_as_there_may_be() {
    let idle = Idle { each: 2, all: 3, ..Idle::default() };
    let bench = Bench::with(GateConfig { idle, ..config() }, Names::answer(&[]), ConnectionLimit::new(99, 99));
    for (tenant, kept) in [("one", 2), ("two", 3), ("three", 3)] {
        let egress = bench.of(tenant, &["http://127.0.0.1:*"]);
        for _ in 0..4 {
            got(&egress, &Server::echo().await.url("/")).await;
        }
        bench.until("egress_connections", kept).await;
    }
}
