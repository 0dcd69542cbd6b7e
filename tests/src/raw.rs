//! HTTP as bytes on a socket: for what a client library would hide.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// A connection with one request on it.
pub struct Raw {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl Raw {
    /// Sends a POST with a JSON body.
    pub fn post(address: &str, path: &str, body: &str) -> Self {
        Self::post_as(None, address, path, body)
    }

    /// The same, with somebody's key.
    pub fn post_as(key: Option<&str>, address: &str, path: &str, body: &str) -> Self {
        let key = key.map(|key| format!("x-api-key: {key}\r\n")).unwrap_or_default();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\n{key}content-type: application/json\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        );
        Self::send(address, &[head.as_bytes(), body.as_bytes()].concat())
    }

    pub fn send(address: &str, bytes: &[u8]) -> Self {
        let mut stream = TcpStream::connect(address).expect("the host accepts");
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.write_all(bytes).expect("the request can be sent");
        Self { stream, unread: Vec::new() }
    }

    /// Reads until the text has come. What came with it is kept for the next
    /// read.
    pub fn read_until(&mut self, text: &str) -> String {
        let mut buffer = [0; 4096];
        let mut seen = 0;
        loop {
            let found = self.unread[seen..].windows(text.len()).position(|window| window == text.as_bytes());
            if let Some(at) = found {
                let rest = self.unread.split_off(seen + at + text.len());
                return String::from_utf8_lossy(&std::mem::replace(&mut self.unread, rest)).into_owned();
            }
            seen = (self.unread.len() + 1).saturating_sub(text.len());
            let n = self.stream.read(&mut buffer).expect("the host answers in time");
            assert!(n > 0, "the connection ended before {text:?}:\n{}", String::from_utf8_lossy(&self.unread));
            self.unread.extend_from_slice(&buffer[..n]);
        }
    }

    /// Reads to the end of the connection.
    pub fn read_to_end(mut self) -> String {
        let _ = self.stream.read_to_end(&mut self.unread);
        String::from_utf8_lossy(&self.unread).into_owned()
    }

    /// Hangs up.
    pub fn hang_up(self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}
