//! `nala-host` as a child process.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::metrics::Scrape;
use crate::paths;

/// Hosts serve one after another: each computes on all cores, whose threads
/// spin, so two at a time would be many times slower than one.
static TAKEN: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());

/// The right to run a host.
pub struct Turn;

impl Turn {
    pub fn take() -> Self {
        let mut taken = TAKEN.0.lock().unwrap();
        while *taken {
            taken = TAKEN.1.wait(taken).unwrap();
        }
        *taken = true;
        Self
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *TAKEN.0.lock().unwrap() = false;
        TAKEN.1.notify_one();
    }
}

/// A host that serves. Killed when dropped.
pub struct Host {
    child: Child,
    /// None: it serves beside another one.
    _turn: Option<Turn>,
    /// `127.0.0.1:PORT`
    pub address: String,
    /// The same of the operator's listener.
    pub admin: String,
    log: Arc<Mutex<String>>,
}

/// What a host that did not come up said.
#[derive(Debug)]
pub struct Refused {
    pub status: ExitStatus,
    pub stderr: String,
}

impl Host {
    /// The built-in application.
    pub fn up() -> Self {
        Self::start(["up".as_ref(), "--model".as_ref(), paths::model().as_os_str()])
    }

    /// One handler, with the model.
    pub fn run(wasm: impl Into<PathBuf>) -> Self {
        let wasm = wasm.into();
        Self::start(["run".as_ref(), wasm.as_os_str(), "--model".as_ref(), paths::model().as_os_str()])
    }

    /// The application whose manifest lies in a folder, with the model as `small`. `rest` are
    /// further arguments.
    pub fn application(folder: &Path, rest: &[&OsStr]) -> Self {
        let manifest = folder.join("spin.toml");
        let model = format!("small={}", paths::model().display());
        let args = ["up".as_ref(), manifest.as_os_str(), "--model".as_ref(), model.as_ref()];
        Self::start(args.into_iter().chain(rest.iter().copied()))
    }

    pub fn start<'a>(args: impl IntoIterator<Item = &'a OsStr>) -> Self {
        match Self::try_start(args) {
            Ok(host) => host,
            Err(refused) => panic!("nala-host ended with {}:\n{}", refused.status, refused.stderr),
        }
    }

    /// Starts it on ports of its own choice and waits until it serves.
    pub fn try_start<'a>(args: impl IntoIterator<Item = &'a OsStr>) -> Result<Self, Refused> {
        Self::launch(Command::new(paths::host_binary()).args(args).arg("--cache-dir").arg(paths::cache()))
    }

    /// The same for a command of the caller's making.
    pub fn launch(command: &mut Command) -> Result<Self, Refused> {
        Self::launch_in(command, Some(Turn::take()))
    }

    /// An application without a model, which computes little and so can be served beside
    /// this one.
    pub fn beside(&self, folder: &Path) -> Self {
        let mut command = Command::new(paths::host_binary());
        command.arg("up").arg(folder.join("spin.toml")).arg("--cache-dir").arg(paths::cache());
        match Self::launch_in(&mut command, None) {
            Ok(host) => host,
            Err(refused) => panic!("nala-host ended with {}:\n{}", refused.status, refused.stderr),
        }
    }

    fn launch_in(command: &mut Command, turn: Option<Turn>) -> Result<Self, Refused> {
        command
            .args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("nala-host starts");
        let log = Arc::new(Mutex::new(String::new()));
        let lines = collect(&mut child, &log);
        let end = Instant::now() + Duration::from_secs(60);
        let (mut address, mut admin) = (None, None);
        while address.is_none() || admin.is_none() {
            match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    // "Serving on http://ADDR" and "Admin on http://ADDR", in that order or the other.
                    if let Some(found) = http_address(&line) {
                        let slot = if line.to_lowercase().contains("admin") { &mut admin } else { &mut address };
                        slot.get_or_insert(found);
                    }
                }
                // Both outputs are closed: it is ending.
                Err(RecvTimeoutError::Disconnected) => {
                    let status = child.wait().expect("a child can be waited for");
                    return Err(Refused { status, stderr: log.lock().unwrap().clone() });
                }
                Err(RecvTimeoutError::Timeout) => {
                    let _ = child.kill();
                    panic!("nala-host was not ready within a minute:\n{}", log.lock().unwrap());
                }
            }
        }
        let host = Self { child, _turn: turn, address: address.unwrap(), admin: admin.unwrap(), log };
        Ok(host)
    }

    /// Expects the host to refuse to start.
    pub fn refused<'a>(args: impl IntoIterator<Item = &'a OsStr>) -> Refused {
        match Self::try_start(args) {
            Ok(host) => panic!("nala-host serves on {}, and should have refused", host.address),
            Err(refused) => refused,
        }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn metrics(&self) -> Scrape {
        let text = ureq::get(format!("http://{}/metrics", self.admin)).call().expect("metrics can be read");
        Scrape::new(text.into_body().read_to_string().expect("metrics are text"))
    }

    /// What it has said so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        let status = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().expect("kill runs");
        assert!(status.success());
    }

    /// Waits for it to end by itself.
    pub fn wait(mut self) -> ExitStatus {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(status) = self.child.try_wait().expect("a child can be asked") {
                return status;
            }
            assert!(Instant::now() < end, "nala-host did not end:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Gathers both outputs line by line. The channel ends when they do.
fn collect(child: &mut Child, log: &Arc<Mutex<String>>) -> Receiver<String> {
    let (sender, lines) = channel();
    let outputs: [Option<Box<dyn Read + Send>>; 2] =
        [child.stdout.take().map(|o| Box::new(o) as _), child.stderr.take().map(|e| Box::new(e) as _)];
    for output in outputs.into_iter().flatten() {
        let (sender, log) = (sender.clone(), Arc::clone(log));
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                log.lock().unwrap().push_str(&format!("{line}\n"));
                let _ = sender.send(line);
            }
        });
    }
    lines
}

fn http_address(line: &str) -> Option<String> {
    let rest = line.split("http://").nth(1)?;
    let address: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.' || *c == ':').collect();
    Some(address)
}
