//! Tries to reach the machine's own network and the cloud's metadata, in all spellings of
//! their addresses, by HTTP and by sockets.

use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};

use hostile::wasi::http::types::ResponseOutparam;
use hostile::{Asked, answer, fetch, tally};

const AUTHORITIES: [&str; 18] = [
    "127.0.0.1",
    "127.1",
    "0",
    "0.0.0.0",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "localhost",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[::]",
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "[fd00:ec2::254]",
    "metadata.google.internal",
    "metadata",
    "169.254.169.254.nip.io",
];

fn handle(_asked: Asked, out: ResponseOutparam) {
    let by_http = AUTHORITIES.iter().map(|authority| match fetch(authority, "/latest/meta-data/") {
        Ok(status) => format!("answered {status}"),
        Err(why) => why,
    });
    let by_http = tally(by_http);
    let mut reached = Vec::new();
    for authority in AUTHORITIES {
        let host = authority.trim_matches(['[', ']']);
        if (host, 80)
            .to_socket_addrs()
            .is_ok_and(|mut addresses| addresses.next().is_some() && host.parse::<std::net::IpAddr>().is_err())
        {
            reached.push(format!("resolved {host}"));
        }
        let Ok(address) = host.parse::<std::net::IpAddr>() else { continue };
        let address = SocketAddr::new(address, 80);
        if TcpStream::connect(address).is_ok() {
            reached.push(format!("connected {address}"));
        }
        if UdpSocket::bind("0.0.0.0:0").and_then(|socket| socket.send_to(b"harm", address)).is_ok() {
            reached.push(format!("sent {address}"));
        }
    }
    if TcpListener::bind("127.0.0.1:0").is_ok() {
        reached.push("listening".to_owned());
    }
    answer(out, &format!("{by_http}; reached {reached:?}"));
}

hostile::guest!(handle);
