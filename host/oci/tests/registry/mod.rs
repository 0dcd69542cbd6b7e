//! A real registry on this machine.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A registry that ends with the test.
pub(crate) struct Registry {
    process: Child,
    pub(crate) address: SocketAddr,
    folder: tempfile::TempDir,
}

/// Whom a registry lets in.
pub(crate) enum Access {
    Everybody,
    /// The user `nala` with the password `open sesame`.
    Password,
    /// Everybody, over TLS with these files.
    #[allow(dead_code, reason = "only whoever says what to trust by its environment can use it")]
    Tls {
        certificate: PathBuf,
        key: PathBuf,
    },
}

/// `nala:open sesame` by bcrypt, the only kind that the registry reads.
const PASSWORDS: &str = "nala:$2b$05$abcdefghijklmnopqrstuupx2xBUC4954936wVIjyyPHmUBFu0wCW\n";

fn program() -> PathBuf {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    // This file is part of the tests of other crates, too.
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let unpacked = folders.map(|folder| folder.join("target/registry/root/usr/bin"));
    let mut candidates = std::env::split_paths(&paths).chain(unpacked).map(|folder| folder.join("docker-registry"));
    candidates.find(|path| path.is_file()).expect("there is no docker-registry: run `cargo xtask setup --tests`")
}

impl Registry {
    pub(crate) fn start(access: Access) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Free a moment ago; taken by somebody else only by bad luck, which the
        // registry tells and the test with it.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let storage = folder.path().join("storage");
        let mut config = format!(
            "version: 0.1\nlog:\n  level: warn\nstorage:\n  filesystem:\n    rootdirectory: {}\n  delete:\n    \
             enabled: true\nhttp:\n  addr: {address}\n",
            storage.display()
        );
        match access {
            Access::Everybody => {}
            Access::Password => {
                let passwords = folder.path().join("passwords");
                std::fs::write(&passwords, PASSWORDS).unwrap();
                config += &format!("auth:\n  htpasswd:\n    realm: tests\n    path: {}\n", passwords.display());
            }
            Access::Tls { certificate, key } => {
                let (certificate, key) = (certificate.display(), key.display());
                config += &format!("  tls:\n    certificate: {certificate}\n    key: {key}\n");
            }
        }
        let file = folder.path().join("config.yml");
        std::fs::write(&file, config).unwrap();
        let process = Command::new(program())
            .arg("serve")
            .arg(file)
            .env("OTEL_TRACES_EXPORTER", "none")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut registry = Self { process, address, folder };
        registry.wait();
        registry
    }

    fn wait(&mut self) {
        let end = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(self.address).is_err() {
            if let Some(status) = self.process.try_wait().unwrap() {
                let mut words = String::new();
                self.process.stderr.take().unwrap().read_to_string(&mut words).unwrap();
                panic!("docker-registry ended with {status}: {words}");
            }
            assert!(Instant::now() < end, "docker-registry does not listen on {}", self.address);
            std::thread::sleep(Duration::from_millis(20));
        }
        // Read on, so that it never waits for somebody to read.
        let stderr = BufReader::new(self.process.stderr.take().unwrap());
        std::thread::spawn(move || stderr.lines().map_while(Result::ok).for_each(drop));
    }

    pub(crate) fn reference(&self, rest: &str) -> nala_oci::Reference {
        nala_oci::Reference::parse(&format!("oci://{}/{rest}", self.address)).unwrap()
    }

    /// Stores bytes and a manifest without our own code.
    pub(crate) fn store(&self, repository: &str, tag: &str, manifest: &serde_json::Value, blobs: &[&[u8]]) {
        for blob in blobs {
            let begun = self.ask("POST", &format!("/v2/{repository}/blobs/uploads/"), "", b"");
            let location = begun.lines().find_map(|line| line.strip_prefix("Location: ")).unwrap();
            let path = location.split_once(&self.address.to_string()).map_or(location, |(_, path)| path);
            let digest = nala_oci::Digest::of(blob);
            let answer = self.ask("PUT", &format!("{path}&digest={digest}"), "application/octet-stream", blob);
            assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
        }
        let kind = "application/vnd.oci.image.manifest.v1+json";
        let path = format!("/v2/{repository}/manifests/{tag}");
        let answer = self.ask("PUT", &path, kind, manifest.to_string().as_bytes());
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    }

    /// What the registry answers, the head and the body.
    pub(crate) fn get(&self, path: &str) -> String {
        self.ask("GET", path, "application/vnd.oci.image.manifest.v1+json", b"")
    }

    fn ask(&self, method: &str, path: &str, kind: &str, body: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAccept: {kind}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Puts other bytes where a blob is, as a disk or a thief would.
    pub(crate) fn damage(&self, digest: &nala_oci::Digest, bytes: &[u8]) {
        let hex = digest.as_str().strip_prefix("sha256:").unwrap();
        let blobs = self.folder.path().join("storage/docker/registry/v2/blobs/sha256");
        let path = blobs.join(&hex[..2]).join(hex).join("data");
        assert!(path.is_file(), "{}", path.display());
        std::fs::write(path, bytes).unwrap();
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
