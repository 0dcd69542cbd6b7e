//! A server that is given its connections by another one.

use nala_http::{DrainReport, HttpConfig, Server, Shutdown, handler_fn};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::mpsc;

use crate::harness::{PATIENCE, text};

async fn read(stream: &mut UnixStream, needle: &str) -> String {
    let mut all = Vec::new();
    let reading = async {
        while !String::from_utf8_lossy(&all).contains(needle) {
            assert!(stream.read_buf(&mut all).await.unwrap() > 0, "{}", String::from_utf8_lossy(&all));
        }
    };
    let read = tokio::time::timeout(PATIENCE, reading).await;
    let all = String::from_utf8_lossy(&all).into_owned();
    assert!(read.is_ok(), "no answer, but {all:?}");
    all
}

#[tokio::test]
async fn connections_that_are_given_are_served_until_the_drain() {
    let (give, connections) = mpsc::channel(4);
    let server = Server::behind(connections, HttpConfig { max_connections: 1, ..HttpConfig::default() });
    assert_eq!(server.local_addr(), None);
    let shutdown = Shutdown::new();
    let serving = tokio::spawn(server.serve(handler_fn(|_| async { Ok(text("answered")) }), shutdown.signal()));
    // As many headers as a server in front could have read, and those that it added.
    let headers: String = (0..110).map(|n| format!("x-{n}: y\r\n")).collect();
    let mut open = Vec::new();
    for _ in 0..3 {
        let (mut mine, theirs) = UnixStream::pair().unwrap();
        give.send(theirs).await.unwrap();
        mine.write_all(format!("GET / HTTP/1.1\r\nhost: x\r\n{headers}\r\n").as_bytes()).await.unwrap();
        let answer = read(&mut mine, "answered").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        open.push(mine);
    }
    shutdown.drain();
    let report = tokio::time::timeout(PATIENCE, serving).await.expect("the drain ends").unwrap();
    assert_eq!(report, DrainReport { cut: 0 });
    assert!(give.is_closed(), "nobody takes any more");
}
