//! The hostile tenant: its guests, and its clients.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use nala_e2e::hostile::Site;

/// A way to be a bad neighbour.
pub(crate) struct Noise {
    pub(crate) name: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    /// A guest is asked again and again, under this path.
    Guest(&'static str),
    /// A client that behaves so, again and again.
    Client(Client),
}

#[derive(Clone, Copy)]
enum Client {
    /// Sends a byte of a head now and then.
    SlowHead,
    /// Asks for an endless answer and reads nothing of it.
    Deaf,
    /// Opens connections and closes them.
    Churn,
    /// Sends requests without end on one connection, and reads no answer.
    Flood,
    /// Sends ten megabytes that nobody reads.
    Bodies,
    /// Tries keys.
    Keys,
}

const fn guest(name: &'static str, path: &'static str) -> Noise {
    Noise { name, kind: Kind::Guest(path) }
}

const fn client(name: &'static str, client: Client) -> Noise {
    Noise { name, kind: Kind::Client(client) }
}

pub(crate) const ALL: &[Noise] = &[
    guest("spin", "/spin/now"),
    guest("alternates", "/alternates/"),
    guest("small-calls", "/spin-in-call/small"),
    guest("large-calls", "/spin-in-call/large"),
    guest("long-calls", "/spin-in-call/long"),
    guest("waits", "/spin-in-call/wait"),
    guest("two-memories", "/two-memories/"),
    guest("handles", "/handles/fields"),
    guest("tokens", "/token-bomb/tokens?4000000"),
    guest("recursion", "/recursion/stack"),
    guest("log-flood", "/log-flood/lines"),
    guest("endless", "/endless/fast"),
    guest("sub-requests", "/sub-requests/?300"),
    guest("kv-hog", "/kv-hog/keep"),
    guest("grammars", "/grammar-bomb/forever"),
    guest("templates", "/template-bomb/forever"),
    guest("clocks", "/clocks/"),
    client("slow-heads", Client::SlowHead),
    client("deaf", Client::Deaf),
    client("churn", Client::Churn),
    client("flood", Client::Flood),
    client("bodies", Client::Bodies),
    client("keys", Client::Keys),
];

/// What goes on until it is stopped.
pub(crate) struct Running {
    end: Arc<AtomicBool>,
    connections: Vec<JoinHandle<BTreeMap<String, usize>>>,
}

impl Running {
    /// Ends it, and says how its requests were answered, by status.
    pub(crate) fn stop(self) -> BTreeMap<String, usize> {
        self.end.store(true, Ordering::Relaxed);
        let mut all = BTreeMap::new();
        for connection in self.connections {
            for (status, count) in connection.join().expect("a client") {
                *all.entry(status).or_default() += count;
            }
        }
        all
    }
}

impl Noise {
    pub(crate) fn start(&self, site: &Site, connections: usize) -> Running {
        let end = Arc::new(AtomicBool::new(false));
        let one = |n: usize| {
            let connection = Connection {
                address: site.host.address.clone(),
                key: site.bad.clone(),
                end: Arc::clone(&end),
                n,
                answers: BTreeMap::new(),
            };
            let kind = self.kind;
            std::thread::spawn(move || connection.run(kind))
        };
        Running { connections: (0..connections).map(one).collect(), end }
    }
}

struct Connection {
    address: String,
    key: String,
    end: Arc<AtomicBool>,
    n: usize,
    answers: BTreeMap<String, usize>,
}

impl Connection {
    fn run(mut self, kind: Kind) -> BTreeMap<String, usize> {
        // In life such clients compute on machines of their own. Here they share the cores
        // with the server, which is what is measured, and with the honest client.
        let own = rustix::thread::gettid().to_string();
        let done = std::process::Command::new("chrt").args(["--idle", "--pid", "0", &own]).status();
        assert!(done.is_ok_and(|status| status.success()), "chrt, of util-linux, lets a thread step back");
        while !self.is_over() {
            let done = match kind {
                Kind::Guest(path) => self.ask(path),
                Kind::Client(client) => self.misbehave(client),
            };
            if done.is_none() {
                *self.answers.entry("cut".to_owned()).or_default() += 1;
                // Refused: not to spin, which would only measure this client.
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        self.answers
    }

    fn is_over(&self) -> bool {
        self.end.load(Ordering::Relaxed)
    }

    fn open(&self) -> Option<TcpStream> {
        let stream = TcpStream::connect(&self.address).ok()?;
        stream.set_read_timeout(Some(Duration::from_millis(100))).ok()?;
        stream.set_write_timeout(Some(Duration::from_millis(100))).ok()?;
        Some(stream)
    }

    fn head(&self, path: &str, more: &str) -> String {
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nx-api-key: {}\r\n{more}\r\n", self.key)
    }

    /// Reads to the end of the connection, or of the time.
    fn answer(&mut self, stream: &mut TcpStream) -> Option<()> {
        let mut part = vec![0; 64 << 10];
        let mut status = None;
        loop {
            match stream.read(&mut part) {
                Ok(0) => break,
                Ok(n) => {
                    status.get_or_insert_with(|| String::from_utf8_lossy(&part[9..n.clamp(9, 12)]).into_owned());
                }
                Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {
                    if self.is_over() {
                        return Some(());
                    }
                }
                Err(_) => break,
            }
        }
        *self.answers.entry(status?).or_default() += 1;
        Some(())
    }

    fn ask(&mut self, path: &str) -> Option<()> {
        let mut stream = self.open()?;
        stream.write_all(self.head(path, "connection: close\r\n").as_bytes()).ok()?;
        self.answer(&mut stream)
    }

    fn misbehave(&mut self, client: Client) -> Option<()> {
        match client {
            Client::SlowHead => {
                let mut stream = self.open()?;
                while !self.is_over() {
                    stream.write_all(b"G").ok()?;
                    std::thread::sleep(Duration::from_millis(100));
                }
            }
            Client::Deaf => {
                let mut stream = self.open()?;
                stream.write_all(self.head("/endless/fast", "").as_bytes()).ok()?;
                while !self.is_over() {
                    std::thread::sleep(Duration::from_millis(100));
                }
            }
            Client::Churn => {
                drop(self.open()?);
                std::thread::sleep(Duration::from_millis(2));
            }
            Client::Flood => {
                let mut stream = self.open()?;
                let many = self.head("/hello", "").repeat(100);
                while !self.is_over() {
                    match stream.write(many.as_bytes()) {
                        Ok(_) => {}
                        Err(error)
                            if matches!(
                                error.kind(),
                                std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                            ) => {}
                        Err(_) => return None,
                    }
                }
            }
            Client::Bodies => {
                let mut stream = self.open()?;
                let length = 10 << 20;
                let head =
                    self.head("/slow-reader/answer", &format!("connection: close\r\ncontent-length: {length}\r\n"));
                stream.write_all(head.as_bytes()).ok()?;
                let part = vec![b'x'; 64 << 10];
                for _ in 0..length / part.len() {
                    if stream.write_all(&part).is_err() {
                        break;
                    }
                }
                return self.answer(&mut stream);
            }
            Client::Keys => {
                let mut stream = self.open()?;
                let wrong = format!("nala_{:016x}_{:064x}", self.n, self.answers.values().sum::<usize>());
                let head = format!(
                    "GET /hello HTTP/1.1\r\nhost: localhost\r\nx-api-key: {wrong}\r\nconnection: close\r\n\r\n"
                );
                stream.write_all(head.as_bytes()).ok()?;
                return self.answer(&mut stream);
            }
        }
        Some(())
    }
}
