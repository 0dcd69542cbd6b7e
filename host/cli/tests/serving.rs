//! The binary while it serves: a component that answers nothing is enough.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod support;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Long enough for a loaded machine; a test that needs it has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Takes every request and answers none, so that the host says 500.
const SILENT: &str = r#"(component
    (import "wasi:http/types@0.2.6" (instance $types
        (export "incoming-request" (type (sub resource)))
        (export "response-outparam" (type (sub resource)))))
    (alias export $types "incoming-request" (type $request))
    (alias export $types "response-outparam" (type $out))
    (core module $module (func (export "handle") (param i32 i32)))
    (core instance $code (instantiate $module))
    (func $handle (param "request" (own $request)) (param "response-out" (own $out))
        (canon lift (core func $code "handle")))
    (instance $handler (export "handle" (func $handle)))
    (export "wasi:http/incoming-handler@0.2.6" (instance $handler)))"#;

/// Killed when dropped.
struct Host(Child);

impl Drop for Host {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _status = self.0.wait();
    }
}

impl Host {
    fn wait(mut self) -> ExitStatus {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < end, "it does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn serve(home: &Path, address: &str, stderr: impl Into<Stdio>) -> Host {
    std::fs::write(home.join("silent.wasm"), wat::parse_str(SILENT).unwrap()).unwrap();
    let child = support::command(home)
        .args(["run", "silent.wasm", "--no-cache", "--listen", address])
        .stdout(Stdio::null())
        .stderr(stderr)
        .spawn()
        .unwrap();
    Host(child)
}

/// The next free port; the log that would name one cannot be read here.
fn free() -> String {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// Asks until the component has been asked, and says what came back.
fn answer(address: &str) -> String {
    let end = Instant::now() + PATIENCE;
    loop {
        let said = ask(address).unwrap_or_else(|error| format!("nothing: {error}"));
        if said.starts_with("HTTP/1.1 500") {
            return said;
        }
        assert!(Instant::now() < end, "the last answer was {said:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn ask(address: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET / HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n")?;
    let mut said = String::new();
    stream.read_to_string(&mut said)?;
    Ok(said)
}

#[test]
fn a_log_that_cannot_be_written_fails_no_request() {
    let home = tempfile::tempdir().unwrap();
    let address = free();
    let _host = serve(home.path(), &address, File::create("/dev/full").unwrap());
    for _ in 0..3 {
        assert!(answer(&address).contains("no_response"));
    }
}

#[test]
fn a_log_that_nobody_reads_any_more_fails_no_request() {
    let home = tempfile::tempdir().unwrap();
    let address = free();
    let mut host = serve(home.path(), &address, Stdio::piped());
    let mut log = BufReader::new(host.0.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("Serving") {
        line.clear();
        assert!(log.read_line(&mut line).unwrap() > 0, "it ended without serving");
    }
    drop(log);
    for _ in 0..3 {
        assert!(answer(&address).contains("no_response"));
    }
    signal(&host, "-TERM");
    assert_eq!(host.wait().code(), Some(0));
}

#[test]
fn a_lost_terminal_ends_the_host_in_good_order() {
    let home = tempfile::tempdir().unwrap();
    let address = free();
    let host = serve(home.path(), &address, Stdio::null());
    answer(&address);
    signal(&host, "-HUP");
    assert_eq!(host.wait().code(), Some(0));
}

fn signal(host: &Host, name: &str) {
    assert!(Command::new("kill").args([name, &host.0.id().to_string()]).status().unwrap().success());
}
