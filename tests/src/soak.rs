//! Everything at once for a while, and what the host holds afterwards.
//!
//! Chats, streams whose readers hang up, handlers, hostile guests, and deployments with
//! roll-backs and removals, each by clients of its own. What is held is measured when
//! the host has come to rest, after a first while in which caches fill and threads
//! start, and again at the end: the difference is what is leaked.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use crate::api::ask;
use crate::host::Host;
use crate::hostile::{self, Terms};
use crate::keys::key;
use crate::raw::Raw;
use crate::{chat, guests, paths};

/// What hostile guests do to no end, or to the end of what they may have.
const HOSTILE: [&str; 9] = [
    "/spin/now",
    "/spin-in-call/wait",
    "/two-memories/",
    "/handles/fields",
    "/recursion/stack",
    "/log-flood/lines",
    "/sub-requests/?100",
    "/grammar-bomb/forever",
    "/template-bomb/forever",
];

/// A host, and those who ask it.
pub struct Soak {
    pub host: Host,
    chatting: String,
    hostile: String,
    deploying: String,
    admin: String,
    _folder: TempDir,
}

/// What a host that does nothing holds.
#[derive(Debug, Clone, Copy)]
pub struct Held {
    /// Bytes of memory that are no file's.
    pub anonymous: u64,
    /// Open file descriptors.
    pub files: usize,
    pub threads: usize,
}

/// How often each thing was done as it should, and how often not.
pub type Counts = BTreeMap<&'static str, (usize, usize)>;

impl Soak {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [chatting, hostile, deploying, admin] = [(); 4].map(|()| key());
        let free = "limits.requests_per_minute = \"unlimited\"\nlimits.cpu_per_minute = \"unlimited\"\n\
                    limits.tokens_in_per_minute = \"unlimited\"\nlimits.tokens_out_per_minute = \"unlimited\"\n";
        let tenants = [("chatting", &chatting), ("hostile", &hostile), ("deploying", &deploying)]
            .map(|(name, key)| format!("[tenant.{name}]\nkeys = [{:?}]\n{free}", key.1));
        let config = format!("[admin]\nkeys = [{:?}]\n{}", admin.1, tenants.concat());
        let terms = Terms { cpu: "200ms", wall: "2s", limits: "", args: &[] };
        let (config_path, manifest) = (folder.path().join("nala.toml"), folder.path().join("spin.toml"));
        fs::write(&config_path, config).unwrap();
        fs::write(&manifest, hostile::application(&terms)).unwrap();
        let (model, state) = (paths::model(), folder.path().join("state"));
        let host = Host::start([
            "up".as_ref(),
            manifest.as_os_str(),
            "--model".as_ref(),
            model.as_os_str(),
            "--config".as_ref(),
            config_path.as_os_str(),
            "--state-dir".as_ref(),
            state.as_os_str(),
            "--log-level".as_ref(),
            "error".as_ref(),
        ]);
        let [chatting, hostile, deploying, admin] = [chatting, hostile, deploying, admin].map(|(secret, _)| secret);
        Self { host, chatting, hostile, deploying, admin, _folder: folder }
    }

    /// Has all clients ask for so long.
    pub fn load(&self, length: Duration) -> Counts {
        let end = AtomicBool::new(false);
        let clients: [(&'static str, &(dyn Fn(usize) -> bool + Sync)); 5] = [
            ("chats", &|_| self.chats()),
            ("hang-ups", &|n| self.hangs_up(n)),
            ("hellos", &|_| self.says_hello()),
            ("hostile guests", &|n| self.is_hostile(n)),
            ("deployments", &|n| self.deploys(n)),
        ];
        std::thread::scope(|scope| {
            let running = clients.map(|(name, client)| {
                let end = &end;
                scope.spawn(move || {
                    let mut counts = (0, 0);
                    for n in 0.. {
                        if end.load(Ordering::Relaxed) {
                            break;
                        }
                        if client(n) {
                            counts.0 += 1;
                        } else {
                            counts.1 += 1;
                        }
                    }
                    (name, counts)
                })
            });
            std::thread::sleep(length);
            end.store(true, Ordering::Relaxed);
            running.into_iter().map(|client| client.join().expect("a client")).collect()
        })
    }

    /// Waits until nobody holds anything, and says what the process holds then.
    pub fn rest(&self) -> Held {
        hostile::until_empty(&self.host, &[]);
        let process = format!("/proc/{}", self.host.pid());
        let count = |what: &str| fs::read_dir(format!("{process}/{what}")).expect("it runs").count();
        let end = Instant::now() + Duration::from_secs(30);
        // Connections, and threads that wait for work, end a while after their last one.
        let mut held = (count("fd"), count("task"));
        let mut since = Instant::now();
        while since.elapsed() < Duration::from_secs(12) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(200));
            let now = (count("fd"), count("task"));
            if now != held {
                (held, since) = (now, Instant::now());
            }
        }
        Held { anonymous: anonymous(&process), files: held.0, threads: held.1 }
    }

    fn chats(&self) -> bool {
        let answer = hostile::complete(&self.host.url("/v1/chat/completions"), &self.chatting);
        answer.status == 200 && answer.text.contains("Paris")
    }

    /// Reads a part of a stream, at times none of it, and goes.
    fn hangs_up(&self, n: usize) -> bool {
        let mut request = chat::request("Write a long story about a fox.", 200);
        request["stream"] = true.into();
        let (key, address) = (Some(self.chatting.as_str()), &self.host.address);
        let mut raw = Raw::post_as(key, address, "/v1/chat/completions", &request.to_string());
        for _ in 0..n % 4 {
            raw.read_until("\"content\":");
        }
        raw.hang_up();
        std::thread::sleep(Duration::from_millis(50));
        true
    }

    fn says_hello(&self) -> bool {
        let answer = hostile::ask(&self.host.url("/hello"), &self.chatting);
        std::thread::sleep(Duration::from_millis(5));
        (answer.status, answer.text.as_str()) == (200, "hello")
    }

    /// A hostile guest ends somehow, and is answered.
    fn is_hostile(&self, n: usize) -> bool {
        hostile::ask(&self.host.url(HOSTILE[n % HOSTILE.len()]), &self.hostile).status != 0
    }

    /// Deploys two versions, goes back, and removes both; each time what should answers.
    fn deploys(&self, n: usize) -> bool {
        let api = |method: &str, path: &str, kind: &str, body: &[u8]| {
            let url = format!("http://{}/v1/tenants/deploying{path}", self.host.admin);
            ask(method, &url, &self.admin, kind, body)
        };
        let answers = |version: usize| {
            let answer = hostile::ask(&self.host.url("/soak/version"), &self.deploying);
            let hello = hostile::ask(&self.host.url("/soak/hello"), &self.deploying);
            (answer.status, answer.text) == (200, version.to_string()) && hello.text.starts_with("Hello")
        };
        let wasm = fs::read(guests::guest("host/wasm/guests", "hello")).unwrap();
        let (_, put) = api("POST", "/components", "application/wasm", &wasm);
        let version = |number: usize| {
            let spin_toml = format!(
                "spin_manifest_version = 2\n[application]\nname = \"soak\"\n\
                 [[trigger.http]]\nroute = \"/soak/version\"\nstatic_response = {{ body = \"{number}\" }}\n\
                 [[trigger.http]]\nroute = \"/soak/hello\"\ncomponent = \"hello\"\n\
                 [component.hello]\nsource = \"hello.wasm\"\n"
            );
            json!({"spin_toml": spin_toml, "components": {"hello": put["digest"]}}).to_string()
        };
        let deploy = |number: usize| api("PUT", "/apps/soak", "application/json", version(number).as_bytes());
        let (_, first) = deploy(2 * n);
        let deployed = answers(2 * n) && deploy(2 * n + 1).0 == 201 && answers(2 * n + 1);
        let back = json!({"to": first["version"]}).to_string();
        let returned = api("POST", "/apps/soak/rollback", "", back.as_bytes()).0 == 200 && answers(2 * n);
        let removed = api("DELETE", "/apps/soak", "", &[]).0 == 200;
        deployed && returned && removed
    }
}

/// Bytes of memory of a process that are no file's.
fn anonymous(process: &str) -> u64 {
    let rollup = fs::read_to_string(format!("{process}/smaps_rollup")).expect("Linux says what a process uses");
    let line = rollup.lines().find_map(|line| line.strip_prefix("Anonymous:")).expect("it says what is anonymous");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}
