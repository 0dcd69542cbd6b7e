//! HTTP as bytes on a socket: for what a client library would hide.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// A connection with one request on it.
pub struct Raw {
    stream: TcpStream,
}

impl Raw {
    /// Sends a POST with a JSON body.
    pub fn post(address: &str, path: &str, body: &str) -> Self {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        Self::send(address, &[head.as_bytes(), body.as_bytes()].concat())
    }

    pub fn send(address: &str, bytes: &[u8]) -> Self {
        let mut stream = TcpStream::connect(address).expect("the host accepts");
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.write_all(bytes).expect("the request can be sent");
        Self { stream }
    }

    /// Reads until the text has come.
    pub fn read_until(&mut self, text: &str) -> String {
        let mut all = Vec::new();
        let mut buffer = [0; 4096];
        while !String::from_utf8_lossy(&all).contains(text) {
            let n = self.stream.read(&mut buffer).expect("the host answers in time");
            assert!(n > 0, "the connection ended before {text:?}:\n{}", String::from_utf8_lossy(&all));
            all.extend_from_slice(&buffer[..n]);
        }
        String::from_utf8_lossy(&all).into_owned()
    }

    /// Reads to the end of the connection.
    pub fn read_to_end(mut self) -> String {
        let mut all = Vec::new();
        let _ = self.stream.read_to_end(&mut all);
        String::from_utf8_lossy(&all).into_owned()
    }

    /// Hangs up.
    pub fn hang_up(self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}
