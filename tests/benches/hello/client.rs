//! A client that asks the same again and again, each connection as soon as it was
//! answered.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What it saw.
pub(crate) struct Seen {
    /// Requests a second, of all connections.
    pub(crate) rate: f64,
    /// Seconds from request to answer, sorted.
    times: Vec<f64>,
    /// Answers that were not what they should be.
    pub(crate) errors: usize,
}

impl Seen {
    pub(crate) fn quantile(&self, q: f64) -> f64 {
        self.times[((self.times.len() - 1) as f64 * q) as usize]
    }
}

/// Asks for so long, on so many connections.
pub(crate) fn ask(address: &str, length: Duration, connections: usize) -> Seen {
    let end = AtomicBool::new(false);
    let begin = Instant::now();
    let all = std::thread::scope(|scope| {
        let connections: Vec<_> = (0..connections).map(|_| scope.spawn(|| connection(address, &end))).collect();
        std::thread::sleep(length);
        end.store(true, Ordering::Relaxed);
        connections.into_iter().map(|each| each.join().expect("a client")).collect::<Vec<_>>()
    });
    let took = begin.elapsed().as_secs_f64();
    let errors = all.iter().map(|(_, errors)| errors).sum();
    let mut times: Vec<f64> = all.into_iter().flat_map(|(times, _)| times).collect();
    times.sort_by(f64::total_cmp);
    assert!(!times.is_empty(), "{address} answered nothing");
    Seen { rate: times.len() as f64 / took, times, errors }
}

fn connection(address: &str, end: &AtomicBool) -> (Vec<f64>, usize) {
    let (mut times, mut errors) = (Vec::new(), 0);
    let request = format!("GET / HTTP/1.1\r\nhost: {address}\r\n\r\n");
    let mut stream = None;
    let mut buffer = [0; 4096];
    while !end.load(Ordering::Relaxed) {
        let open = stream.get_or_insert_with(|| {
            let stream = TcpStream::connect(address).expect("the server accepts");
            stream.set_nodelay(true).expect("a socket has this option");
            stream
        });
        let begin = Instant::now();
        if exchange(open, request.as_bytes(), &mut buffer) {
            times.push(begin.elapsed().as_secs_f64());
        } else {
            errors += 1;
            stream = None;
        }
    }
    (times, errors)
}

/// False: that was not the answer.
fn exchange(stream: &mut TcpStream, request: &[u8], buffer: &mut [u8]) -> bool {
    if stream.write_all(request).is_err() {
        return false;
    }
    let mut filled = 0;
    loop {
        match stream.read(&mut buffer[filled..]) {
            Ok(0) | Err(_) => return false,
            Ok(n) => filled += n,
        }
        let got = &buffer[..filled];
        if is_whole(got) {
            return got.starts_with(b"HTTP/1.1 200 ") && got.windows(16).any(|part| part == b"Hello from WASI ");
        }
    }
}

/// Whether an answer has come to its end: in chunks to the last one, with a length to
/// the end of its line.
fn is_whole(got: &[u8]) -> bool {
    let Some(head) = got.windows(4).position(|part| part == b"\r\n\r\n") else { return false };
    let is_chunked = got[..head].windows(18).any(|part| part.eq_ignore_ascii_case(b"transfer-encoding:"));
    if is_chunked { got.ends_with(b"\r\n0\r\n\r\n") } else { got[head + 4..].ends_with(b"\n") }
}
