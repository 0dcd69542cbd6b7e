//! Clients in great numbers, and ones that hold on to what they have.

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use nala_e2e::hostile::Site;

use super::wire::{exchange, get};

/// Connections, each with the beginning of something on it.
fn crowd(site: &Site, count: usize, bytes: &[u8]) -> Vec<TcpStream> {
    (0..count)
        .filter_map(|_| {
            let mut stream = TcpStream::connect(&site.host.address).ok()?;
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            // Beyond a number the host hangs up at once.
            stream.write_all(bytes).ok()?;
            Some(stream)
        })
        .collect()
}

fn good_is_served(site: &Site, beside: &str) {
    for _ in 0..5 {
        let begin = Instant::now();
        let answer = site.ask(&site.good, "/hello");
        assert_eq!((answer.status, answer.text.as_str()), (200, "hello"), "beside {beside}");
        assert!(begin.elapsed() < Duration::from_secs(2), "{beside} held its neighbour up for {:?}", begin.elapsed());
    }
}

/// The same from another address of this machine.
fn is_served_from(site: &Site, from: [u8; 4]) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let socket = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(IpAddr::from(from), 0)).unwrap();
        socket.connect(site.host.address.parse().unwrap()).await.unwrap()
    });
    let mut stream = socket.into_std().unwrap();
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream.write_all(&get("/hello", &site.good)).unwrap();
    let mut answer = [0; 512];
    let n = stream.read(&mut answer).unwrap_or(0);
    String::from_utf8_lossy(&answer[..n]).starts_with("HTTP/1.1 200")
}

#[test]
fn slow_heads_are_cut_and_hold_nobody_up() {
    let site = super::site();
    let mut slow = crowd(&site, 200, b"GET /hello HT");
    let begin = Instant::now();
    // A byte now and then does not make a head of it.
    while begin.elapsed() < Duration::from_secs(12) {
        slow.retain_mut(|stream| stream.write_all(b"T").is_ok());
        good_is_served(&site, "slow heads");
        std::thread::sleep(Duration::from_millis(500));
    }
    let mut rest = [0; 64];
    let open = slow.iter_mut().filter_map(|stream| stream.read(&mut rest).ok()).filter(|n| *n > 0).count();
    assert_eq!(open, 0, "none of them was answered");
    nala_e2e::metrics::eventually("they are cut", Duration::from_secs(5), || {
        site.host.metrics().sum("nala_http_connections") < 50.0
    });
    site.until_empty(&[]);
}

#[test]
fn slow_bodies_take_their_own_tenants_places_only() {
    let site = super::site();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nx-api-key: {}\r\ncontent-length: 1000\r\n\r\n{{",
        site.bad
    );
    let slow = crowd(&site, 80, head.as_bytes());
    nala_e2e::metrics::eventually("they have all places", Duration::from_secs(10), || {
        site.host.metrics().with("nala_tenant_held", "tenant=\"bad\",what=\"requests\"") == 32.0
    });
    good_is_served(&site, "slow bodies");
    site.good_completes();
    // The tenant itself is told so, early and with its limit.
    let refused = site.ask(&site.bad, "/hello");
    assert_eq!((refused.status, refused.code().as_str()), (429, "requests"), "{refused:?}");
    drop(slow);
    site.until_empty(&[]);
    assert_eq!(site.ask(&site.bad, "/hello").status, 200);
}

#[test]
fn one_client_cannot_have_all_connections() {
    let site = super::site();
    let crowd = crowd(&site, 1100, b"G");
    assert!(crowd.len() > 700);
    let metrics = site.host.metrics();
    assert!(metrics.sum("nala_http_connections") <= 768.0, "{}", metrics.text());
    assert!(metrics.sum("nala_http_connections_refused_total") > 0.0);
    assert!(is_served_from(&site, [127, 0, 0, 2]), "another client is");
    drop(crowd);
    nala_e2e::metrics::eventually("the places are free again", Duration::from_secs(5), || {
        site.host.metrics().sum("nala_http_connections") < 10.0
    });
    good_is_served(&site, "nobody");
}

#[test]
fn clients_that_never_read_hold_their_own_tenants_places_only() {
    let site = super::site();
    let mut deaf = crowd(&site, 40, &get("/endless/fast", &site.bad));
    deaf.extend(crowd(&site, 10, &get("/endless/slow", &site.bad)));
    for _ in 0..5 {
        good_is_served(&site, "clients that never read");
        std::thread::sleep(Duration::from_millis(300));
    }
    site.good_completes();
    // Instances end with their time; what a client holds, it holds until it is gone.
    nala_e2e::metrics::eventually("no instance is kept for them", Duration::from_secs(20), || {
        site.host.metrics().sum("nala_wasm_instances") == 0.0
    });
    drop(deaf);
    site.until_empty(&[]);
}

#[test]
fn half_a_connection_is_none() {
    let site = super::site_with("200ms", "60s");
    let half = crowd(&site, 40, &get("/spin-in-call/wait", &site.bad));
    nala_e2e::metrics::eventually("they wait", Duration::from_secs(5), || {
        site.host.metrics().sum("nala_wasm_instances") >= 30.0
    });
    half.iter().for_each(|stream| stream.shutdown(Shutdown::Write).unwrap());
    let begin = Instant::now();
    site.until_empty(&[]);
    assert!(begin.elapsed() < Duration::from_secs(10), "they ended with their clients, not with their time");
    drop(half);
}

#[test]
fn a_flood_of_requests_on_one_connection_is_answered_in_its_order() {
    let site = super::site();
    let flood: Vec<u8> =
        (0..500).flat_map(|n| get(if n % 2 == 0 { "/hello" } else { "/nothing" }, &site.bad)).collect();
    let (address, sent) = (site.host.address.clone(), flood.clone());
    let flooding = std::thread::spawn(move || exchange(&address, &sent));
    good_is_served(&site, "a flood");
    let answers = flooding.join().unwrap().text;
    let statuses: Vec<_> = answers.split("HTTP/1.1 ").skip(1).filter_map(|head| head.get(..3)).collect();
    assert_eq!(statuses.len(), 500, "{answers:.300}");
    assert!(statuses.chunks(2).all(|pair| pair == ["200", "404"]), "{statuses:?}");
    // Nobody reads: the host stops to work for it, and goes on with others.
    let mut deaf = crowd(&site, 8, &flood);
    for stream in &mut deaf {
        stream.set_nonblocking(true).unwrap();
        while stream.write(&flood).is_ok() {}
    }
    good_is_served(&site, "floods that nobody reads");
    drop(deaf);
    site.until_empty(&[]);
}
