//! `nala-host up --watch`: what changes is built and exchanged, and no request is lost.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

#[path = "support/answers.rs"]
mod answers;
mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Long enough for a loaded machine; a test that needs it has failed.
const PATIENCE: Duration = Duration::from_secs(120);

const MANIFEST: &str = r#"
spin_manifest_version = 2
[application]
name = "watched"
[[trigger.http]]
route = "/..."
component = "app"
[component.app]
source = "app.wasm"
[component.app.build]
command = "cp source.bin app.wasm && echo the build has said this"
watch = ["source.*"]
"#;

/// A host that watches `spin.toml` in its folder. Killed when dropped.
struct Host {
    child: Child,
    address: String,
    log: Arc<Mutex<String>>,
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

impl Host {
    fn start(home: &Path) -> Self {
        let mut child = support::command(home)
            .args(["up", "spin.toml", "--watch", "--no-cache", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        collect(child.stdout.take().unwrap(), &log);
        collect(child.stderr.take().unwrap(), &log);
        let mut host = Self { child, address: String::new(), log };
        host.eventually("it serves", |log| log.contains("Serving watched"));
        host.address = host.log().split_once("http://").unwrap().1.lines().next().unwrap().to_owned();
        host
    }

    fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    fn eventually(&self, what: &str, holds: impl Fn(&str) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !holds(&self.log()) {
            assert!(Instant::now() < end, "{what} does not happen:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn terminate(mut self) -> ExitStatus {
        assert!(Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap().success());
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < end, "it does not end:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn collect(from: impl Read + Send + 'static, log: &Arc<Mutex<String>>) {
    let log = Arc::clone(log);
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            log.lock().unwrap().push_str(&format!("{line}\n"));
        }
    });
}

/// Clients that ask all the time.
struct Clients {
    threads: Vec<JoinHandle<Vec<String>>>,
    stop: Arc<AtomicBool>,
    /// The last answer, how many there were, and the longest time without one.
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    last: String,
    count: usize,
    at: Option<Instant>,
    longest: Duration,
}

impl Clients {
    fn start(address: &str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let client = |_| {
            let (address, stop, seen) = (address.to_owned(), Arc::clone(&stop), Arc::clone(&seen));
            std::thread::spawn(move || {
                let mut all = Vec::new();
                loop {
                    // One request more after the end is told: another client may have been the
                    // first to see what is served by then.
                    let ending = stop.load(Ordering::Relaxed);
                    let answer = ask(&address, "/").unwrap_or_else(|error| format!("nothing: {error}"));
                    let status = answer.split(' ').nth(1).unwrap_or("none").to_owned();
                    let mut seen = seen.lock().unwrap();
                    let now = Instant::now();
                    seen.longest = seen.longest.max(seen.at.map_or(Duration::ZERO, |at| now - at));
                    (seen.at, seen.count) = (Some(now), seen.count + 1);
                    seen.last.clone_from(&status);
                    drop(seen);
                    if all.last() != Some(&status) {
                        all.push(status);
                    }
                    if ending {
                        return all;
                    }
                    std::thread::sleep(Duration::from_millis(2));
                }
            })
        };
        Self { threads: (0..3).map(client).collect(), stop, seen }
    }

    fn wait_for(&self, status: &str) {
        let end = Instant::now() + PATIENCE;
        while self.seen.lock().unwrap().last != status {
            assert!(Instant::now() < end, "{status} does not come, but {}", self.seen.lock().unwrap().last);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// What each client saw, without repetitions.
    fn stop(self) -> Vec<Vec<String>> {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    }
}

fn ask(address: &str, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n")?;
    let mut said = String::new();
    stream.read_to_string(&mut said)?;
    Ok(said)
}

/// A component that takes seconds to compile, and answers with `status`.
fn slow_to_compile(status: u16) -> Vec<u8> {
    let step = "(local.set 0 (i64.add (i64.mul (local.get 0) (i64.const 7)) (i64.rotl (local.get 0) (i64.const 3))))";
    let function = format!("(func (param i64) (result i64) {} (local.get 0))", step.repeat(200));
    let module = format!("(core module {})", function.repeat(1500));
    let text = answers::text(status);
    let (head, body) = text.split_once('\n').unwrap();
    wat::parse_str(format!("{head}\n{module}\n{body}")).unwrap()
}

#[test]
fn no_request_is_lost_over_exchanges_and_failures() {
    let home = tempfile::tempdir().unwrap();
    let write = |file: &str, bytes: &[u8]| fs::write(home.path().join(file), bytes).unwrap();
    write("spin.toml", MANIFEST.as_bytes());
    write("source.bin", &answers::component(200));
    let host = Host::start(home.path());
    for said in ["--sandbox off", "[app] the build has said this", "Watching spin.toml"] {
        assert!(host.log().contains(said), "{said}: {}", host.log());
    }
    let clients = Clients::start(&host.address);
    clients.wait_for("200");

    write("source.bin", &answers::component(202));
    clients.wait_for("202");

    // What is built and cannot be loaded is told once, with its place.
    write("source.bin", b"nonsense");
    host.eventually("the nonsense is told", |log| log.contains("is served on"));
    let before = clients.seen.lock().unwrap().count;
    host.eventually("requests are answered", |_| clients.seen.lock().unwrap().count > before + 50);
    let log = host.log();
    assert_eq!(log.matches("is not WebAssembly").count(), 1, "{log}");
    assert!(log.contains("spin.toml:8: component `app` cannot be served"), "{log}");

    // A build that fails, told with its command.
    write("spin.toml", MANIFEST.replace("cp source.bin app.wasm", "false").as_bytes());
    host.eventually("the manifest is read", |log| log.matches("is served on").count() == 2);
    write("source.bin", b"anything");
    host.eventually("the build is told", |log| log.contains("`false && echo the build has said this` ended with"));

    // A manifest that is wrong, with its place.
    write("spin.toml", b"spin_manifest_version = 2\nnonsense = 1\n");
    host.eventually("the manifest is told", |log| log.contains("spin.toml:2:1: unknown key `nonsense`"));
    assert_eq!(clients.seen.lock().unwrap().last, "202");

    // Both at once, with a compilation that takes long.
    clients.seen.lock().unwrap().longest = Duration::ZERO;
    let (serving, begin) = (host.log().matches("Serving the change").count(), Instant::now());
    write("source.bin", &slow_to_compile(203));
    write("spin.toml", MANIFEST.as_bytes());
    clients.wait_for("203");
    let (took, longest) = (begin.elapsed(), clients.seen.lock().unwrap().longest);
    assert!(longest < took / 2, "nobody was answered for {longest:?} while the change took {took:?}");
    assert!(took > Duration::from_secs(1), "{took:?} is too short to see anything");
    // It is told behind the exchange, which a client may have seen before.
    host.eventually("the change is told", |log| log.matches("Serving the change").count() > serving);
    assert_eq!(host.log().matches("Serving the change").count(), serving + 1, "{}", host.log());

    for seen in clients.stop() {
        assert_eq!(seen, ["200", "202", "203"], "{}", host.log());
    }
    assert_eq!(host.terminate().code(), Some(0));
}

#[test]
fn a_change_of_the_manifest_alone_is_served_and_new_models_are_not_loaded() {
    let home = tempfile::tempdir().unwrap();
    let manifest = |body: &str| {
        format!(
            "spin_manifest_version = 2\n[application]\nname = \"watched\"\n\
             [[trigger.http]]\nroute = \"/...\"\nstatic_response = {{ body = \"{body}\" }}\n"
        )
    };
    let path = home.path().join("spin.toml");
    fs::write(&path, manifest("one")).unwrap();
    let host = Host::start(home.path());
    assert!(ask(&host.address, "/").unwrap().ends_with("one"));
    let more = "[[trigger.http]]\nroute = \"/app\"\ncomponent = \"app\"\n\
        [component.app]\nsource = \"app.wasm\"\nai_models = [\"new\"]\n";
    fs::write(home.path().join("app.wasm"), answers::component(202)).unwrap();
    fs::write(&path, manifest("two") + more).unwrap();
    host.eventually("it is served", |log| log.contains("Serving the change"));
    assert!(ask(&host.address, "/").unwrap().ends_with("two"));
    assert!(ask(&host.address, "/app").unwrap().starts_with("HTTP/1.1 202"));
    assert!(host.log().contains("the model new is not loaded while"), "{}", host.log());
    // What it names now is watched, too.
    fs::write(home.path().join("app.wasm"), answers::component(203)).unwrap();
    host.eventually("it is served", |log| log.matches("Serving the change").count() == 2);
    assert!(ask(&host.address, "/app").unwrap().starts_with("HTTP/1.1 203"));
}

#[test]
fn variables_in_a_file_beside_the_manifest_are_watched() {
    let home = tempfile::tempdir().unwrap();
    let manifest = "spin_manifest_version = 2\n[application]\nname = \"watched\"\n\
        [variables]\ntoken = { required = true }\n\
        [[trigger.http]]\nroute = \"/...\"\nstatic_response = { body = \"here\" }\n";
    fs::write(home.path().join("spin.toml"), manifest).unwrap();
    let dotenv = |text: &str| fs::write(home.path().join(".env"), text).unwrap();
    dotenv("SPIN_VARIABLE_TOKEN=one\n");
    let host = Host::start(home.path());
    dotenv("# no longer there\n");
    host.eventually("what is missing is told", |log| log.contains("`token`"));
    dotenv("SPIN_VARIABLE_TOKEN=my secret words\n");
    host.eventually("what is wrong is told", |log| log.contains("line 1 is no NAME=VALUE"));
    assert!(!host.log().contains("secret"), "{}", host.log());
    dotenv("SPIN_VARIABLE_TOKEN='my secret words'\n");
    host.eventually("it is served", |log| log.contains("Serving the change"));
    assert!(ask(&host.address, "/").unwrap().ends_with("here"));
}

#[test]
fn a_build_ends_with_the_host() {
    let home = tempfile::tempdir().unwrap();
    let at = |file: &str| home.path().join(file);
    fs::write(at("spin.toml"), MANIFEST.replace("cp source.bin app.wasm", "echo $$ > pid; touch started; sleep 300"))
        .unwrap();
    fs::write(at("app.wasm"), answers::component(200)).unwrap();
    let host = Host::start(home.path());
    fs::write(at("source.bin"), "changed").unwrap();
    host.eventually("the build runs", |_| at("started").exists());
    let begin = Instant::now();
    assert_eq!(host.terminate().code(), Some(0));
    assert!(begin.elapsed() < Duration::from_secs(60), "the build was waited for");
    let pid = fs::read_to_string(at("pid")).unwrap();
    assert!(!Path::new("/proc").join(pid.trim()).exists(), "the build goes on");
}

#[test]
fn what_contradicts_watching_is_refused() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("spin.toml"), MANIFEST).unwrap();
    let ran = |args: &[&str]| {
        let output = support::command(home.path()).args(args).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = ran(&["up", "--watch"]);
    assert_eq!(code, Some(2), "{said}");
    let (code, said) = ran(&["up", "spin.toml", "--watch", "--sandbox", "required"]);
    assert!(code == Some(1) && said.contains("--sandbox required"), "{said}");
    // A build that fails before anything is served ends the start.
    let (code, said) = ran(&["up", "spin.toml", "--watch", "--listen", "127.0.0.1:0"]);
    assert!(code == Some(1) && said.contains("`cp source.bin app.wasm"), "{said}");
}
