//! `wasmtime serve`, with its fastest allocator.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A peer that serves. Killed when dropped.
pub(crate) struct Peer {
    child: Child,
    /// `127.0.0.1:PORT`
    pub(crate) address: String,
}

impl Peer {
    pub(crate) fn start(program: &str, wasm: &Path, flags: &[&str]) -> Self {
        let mut child = Command::new(program)
            .args(["serve", "-Opooling-allocator=y", "-Ccache=y", "-Scli=y", "--addr=127.0.0.1:0"])
            .args(flags)
            .arg(wasm)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("wasmtime starts");
        let mut lines = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut said = String::new();
        let address = loop {
            let mut line = String::new();
            let read = lines.read_line(&mut line).expect("it can be read");
            assert!(read > 0, "wasmtime ended before it served:\n{said}");
            if let Some((_, address)) = line.split_once("http://") {
                break address.trim().trim_end_matches('/').to_owned();
            }
            said += &line;
        };
        // Nobody reads what else it says, and it must not wait for that.
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        Self { child, address }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
