//! Tenants of a class are served by a process of their own.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use nala_class::{Door, Keeper, Process};
use nala_e2e::api::{ask, ask_with};
use nala_e2e::host::{Host, Turn};
use nala_e2e::keys::key;
use nala_e2e::metrics::eventually;
use nala_e2e::raw::Raw;
use nala_e2e::{chat, guests, paths};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Long enough to load the model on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// An admin key, and those of a tenant that is served by the host and of one that is
/// served by the class's process.
struct Keys {
    admin: String,
    mine: String,
    guest: String,
}

fn file(folder: &Path) -> std::path::PathBuf {
    folder.join("nala.toml")
}

/// Writes the operator's file, and says what stands in it.
fn prepare(folder: &Path) -> (Keys, String) {
    let ((admin, admin_stored), (mine, mine_stored), (guest, guest_stored)) = (key(), key(), key());
    let config = format!(
        "[admin]\nkeys = [{admin_stored:?}]\n[class.untrusted]\nprocess = \"own\"\nthreads = 1\n\
         [tenant.mine]\nkeys = [{mine_stored:?}]\n\
         [tenant.guest]\nclass = \"untrusted\"\nkeys = [{guest_stored:?}]\n"
    );
    fs::write(file(folder), &config).unwrap();
    // Compiled code is the class's own; here it stays between runs.
    let (class, kept) = (folder.join("state/class/untrusted"), paths::root().join("target/e2e-class-cache"));
    fs::create_dir_all(&class).unwrap();
    fs::create_dir_all(&kept).unwrap();
    std::os::unix::fs::symlink(kept, class.join("components")).unwrap();
    (Keys { admin, mine, guest }, config)
}

fn line(folder: &Path) -> Vec<OsString> {
    let mut line: Vec<OsString> = ["up", "--threads", "1", "--model"].map(Into::into).into();
    line.extend([paths::model().into(), "--config".into(), file(folder).into()]);
    line.extend(["--state-dir".into(), folder.join("state").into()]);
    line
}

struct Shared {
    host: Host,
    keys: Keys,
    folder: TempDir,
    config: String,
}

fn start() -> Shared {
    let folder = tempfile::tempdir().unwrap();
    let (keys, config) = prepare(folder.path());
    let host = Host::start(line(folder.path()).iter().map(OsString::as_os_str));
    let shared = Shared { host, keys, folder, config };
    shared.until_ready();
    shared
}

impl Shared {
    fn phase(&self) -> String {
        let (status, body) = ask("GET", &format!("http://{}/readyz", self.host.admin), "", "", &[]);
        assert_eq!((status, body["status"].as_str()), (200, Some("ready")), "the host itself: {body}");
        body["classes"]["untrusted"].as_str().unwrap().to_owned()
    }

    fn until_ready(&self) {
        eventually("the class's process is ready", PATIENCE, || self.phase() == "ready");
    }

    /// The number of the class's process that was started last.
    fn child(&self) -> u32 {
        let log = self.host.log();
        let started = log.lines().rfind(|line| line.contains("the process of a class was started"));
        let pid = started.unwrap_or_else(|| panic!("{log}")).split("pid=").nth(1).unwrap();
        pid.split_whitespace().next().unwrap().parse().unwrap()
    }

    fn complete(&self, key: &str, request: &Value) -> (u16, Value) {
        let body = request.to_string();
        ask("POST", &self.host.url("/v1/chat/completions"), key, "application/json", body.as_bytes())
    }

    fn stream(&self, key: &str, content: &str, tokens: u32) -> Raw {
        let mut request = chat::request(content, tokens);
        request["stream"] = true.into();
        Raw::post_as(Some(key), &self.host.address, "/v1/chat/completions", &request.to_string())
    }
}

fn signal(name: &str, pid: u32) {
    let status = Command::new("kill").args([name, &pid.to_string()]).status().expect("kill runs");
    assert!(status.success(), "{name} {pid}");
}

/// Whether a process runs; one that nobody has waited for does not.
fn runs(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Whoever has started a process.
fn parent(pid: u32) -> u32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn two_processes_serve_their_own_tenants_and_look_like_one_host() {
    let shared = start();
    let Shared { host, keys, folder, config } = &shared;
    let france = chat::request(chat::FRANCE, 8);
    for key in [&keys.mine, &keys.guest] {
        let (status, answer) = shared.complete(key, &france);
        assert_eq!(status, 200, "{answer}");
        assert!(answer["choices"][0]["message"]["content"].as_str().unwrap().contains("Paris"), "{answer}");
    }
    assert_eq!(shared.complete("nala_0_0", &france).0, 401);
    // What a client says of itself goes for as little as it always does, and its number of
    // the request is kept.
    let forged = [
        ("x-api-key", keys.guest.as_str()),
        ("x-nala-tenant", "mine"),
        ("forwarded", "for=mine"),
        ("x-request-id", "number-7"),
    ];
    let (status, headers, account) = ask_with("GET", &host.url("/.well-known/nala/usage"), &forged, "", &[]);
    assert_eq!((status, headers["x-request-id"].to_str().unwrap()), (200, "number-7"));
    assert_eq!(
        (account["tenant"].as_str(), account["used"]["requests"].as_u64()),
        (Some("guest"), Some(1)),
        "{account}"
    );
    // An error of the class's process looks like one of the host's.
    let (status, refused) = shared.complete(&keys.guest, &json!({ "model": "none", "messages": [] }));
    assert!(status == 404 || status == 400, "{status} {refused}");
    assert!(refused["error"]["message"].is_string(), "{refused}");

    let metrics = host.metrics();
    let used = |labels: &str| metrics.with("nala_tenant_used_total", labels);
    let tokens = r#"component="openai",what="tokens_in""#;
    assert!(used(&format!(r#"{{class="untrusted",tenant="guest",{tokens}"#)) > 0.0, "{}", metrics.text());
    assert!(used(&format!(r#"{{tenant="mine",{tokens}"#)) > 0.0, "{}", metrics.text());
    assert_eq!(used(r#"{tenant="guest""#), 0.0, "nothing of it was done in the host's own process");
    assert_eq!(used(r#"class="untrusted",tenant="mine""#), 0.0);
    assert_eq!(metrics.with("nala_class_up", r#"class="untrusted""#), 1.0);
    assert!(metrics.with("nala_engine_generated_tokens_total", r#"class="untrusted""#) > 0.0);
    assert_eq!(metrics.text().matches("# TYPE nala_tenant_used counter").count(), 1);
    assert!(metrics.text().ends_with("# EOF\n"));
    let (status, bill) = ask("GET", &format!("http://{}/v1/usage", host.admin), &keys.admin, "", &[]);
    let bill = bill.as_str().map_or_else(|| bill.to_string(), str::to_owned);
    assert_eq!(status, 200, "{bill}");
    for tenant in ["mine", "guest"] {
        let line = bill.lines().find(|line| line.contains(&format!(r#""tenant":"{tenant}""#)));
        let line: Value = serde_json::from_str(line.unwrap_or_else(|| panic!("{bill}"))).unwrap();
        assert!(line["tokens_out"].as_u64().unwrap() > 0, "{line}");
    }

    // A new key is known to both.
    let (second, second_stored) = key();
    fs::write(file(folder.path()), format!("{config}[keys]\nfile = \"keys.toml\"\n")).unwrap();
    fs::write(folder.path().join("keys.toml"), format!("[tenant.guest]\nkeys = [{second_stored:?}]\n")).unwrap();
    eventually("the new key is known", Duration::from_secs(15), || shared.complete(&second, &france).0 == 200);
}

#[test]
fn what_is_deployed_for_a_tenant_of_a_class_is_served_by_its_process() {
    let shared = start();
    let Shared { host, keys, folder, .. } = &shared;
    let wasm = fs::read(guests::ask()).unwrap();
    let of = |tenant: &str, what: &str| format!("http://{}/v1/tenants/{tenant}/{what}", host.admin);
    let put = |key: &str| ask("POST", &of("guest", "components"), key, "application/wasm", &wasm);
    assert_eq!(put(&keys.guest).0, 401, "a tenant's key is none of the operator's");
    let (status, component) = put(&keys.admin);
    assert_eq!(status, 201, "{component}");
    let spin_toml = "spin_manifest_version = 2\n[application]\nname = \"shop\"\n\
                     [[trigger.http]]\nroute = \"/shop/...\"\ncomponent = \"shop\"\n\
                     [component.shop]\nsource = \"shop.wasm\"\nai_models = [\"smollm2-135m-instruct-q4_1\"]\n\
                     [component.shop.tool.nala]\nrenderer = \"nala:chat-template\"\n";
    let document = json!({ "spin_toml": spin_toml, "components": { "shop": component["digest"] } }).to_string();
    let deploy = |key: &str| ask("PUT", &of("guest", "apps/shop"), key, "application/json", document.as_bytes());
    let (status, version) = deploy(&keys.admin);
    assert_eq!((status, version["version"].as_u64()), (201, Some(1)), "{version}");
    let (_, listed) = ask("GET", &of("guest", "apps"), &keys.admin, "", &[]);
    assert_eq!(listed["apps"][0]["name"], "shop", "{listed}");
    let (_, listed) = ask("GET", &of("mine", "apps"), &keys.admin, "", &[]);
    assert_eq!(listed["apps"], json!([]));
    let shop = |key: &str| ask("POST", &host.url("/shop/ask"), key, "text/plain", b"What is the capital of France?");
    let (status, answer) = shop(&keys.guest);
    assert_eq!(status, 200, "{answer}");
    assert_eq!(shop(&keys.mine).0, 404);
    // It lies where the class's process keeps it, and nowhere else.
    let state = folder.path().join("state");
    let all = |folder: &Path| walk(&folder.join("deployed")).iter().filter(|name| name.contains("guest")).count();
    assert!(all(&state.join("class/untrusted")) > 0, "{:?}", walk(&state));
    assert_eq!(all(&state), 0, "{:?}", walk(&state));
    // And is there when the process was killed.
    signal("-KILL", shared.child());
    eventually("it is served again", PATIENCE, || shop(&keys.guest).0 == 200);
}

/// The paths of all files below a folder.
fn walk(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(walk(&entry.path())),
            false => found.push(entry.path().display().to_string()),
        }
    }
    found
}

#[test]
fn a_class_whose_process_is_killed_is_back_soon_and_nobody_else_notices() {
    let shared = start();
    let Shared { host, keys, .. } = &shared;
    let mut mine = shared.stream(&keys.mine, "Write a long story about a dog.", 150);
    let mut guest = shared.stream(&keys.guest, "Write a long story about a cat.", 2000);
    mine.read_until("\"content\":");
    guest.read_until("\"content\":");
    let child = shared.child();
    signal("-KILL", child);
    let cut = guest.read_to_end();
    assert!(!cut.contains("[DONE]") && !cut.ends_with("0\r\n\r\n"), "it looks whole: {cut}");
    // What comes before the host has seen it is sent, and has no answer.
    let is_up = || host.metrics().with("nala_class_up", r#"class="untrusted""#);
    eventually("the host sees it", Duration::from_secs(5), || is_up() == 0.0);
    // The first pause is half a second, and the model is loaded after it.
    let request = chat::request(chat::FRANCE, 8).to_string();
    let authorization = format!("Bearer {}", keys.guest);
    let headers = [("authorization", authorization.as_str())];
    let url = host.url("/v1/chat/completions");
    let (status, headers, refused) = ask_with("POST", &url, &headers, "application/json", request.as_bytes());
    assert_eq!((status, refused["error"]["code"].as_str()), (503, Some("class_unavailable")), "{refused}");
    assert!(headers.contains_key("retry-after"));
    assert_ne!(shared.phase(), "ready");
    assert_eq!(host.metrics().with("nala_class_up", r#"class="untrusted""#), 0.0);
    let (status, _) = ask("GET", &format!("http://{}/v1/usage", host.admin), &keys.admin, "", &[]);
    assert_eq!(status, 503, "a bill without the class's tenants is none");
    assert!(mine.read_until("[DONE]").contains("finish_reason\":\""), "the neighbour's stream goes on to its end");
    shared.until_ready();
    assert_ne!(shared.child(), child);
    assert_eq!(shared.complete(&keys.guest, &chat::request(chat::FRANCE, 8)).0, 200);
}

#[test]
fn a_class_ends_with_its_host_however_that_ends() {
    let shared = start();
    let child = shared.child();
    let keeper = parent(child);
    assert!(runs(child) && runs(keeper));
    let mut stream = shared.stream(&shared.keys.guest, "Write a long story about a cat.", 2000);
    stream.read_until("\"content\":");
    signal("-KILL", shared.host.pid());
    eventually("both have ended", Duration::from_secs(20), || !runs(child) && !runs(keeper));
}

#[test]
fn a_drain_finishes_what_the_class_answers() {
    let Shared { host, keys, folder, config } = start();
    let shared = Shared { host, keys, folder, config };
    let child = shared.child();
    let mut stream = shared.stream(&shared.keys.guest, "Write a short story about a dog.", 60);
    stream.read_until("\"content\":");
    // As a service manager does: to all processes, the class's first.
    signal("-TERM", child);
    std::thread::sleep(Duration::from_millis(50));
    shared.host.terminate();
    let rest = stream.read_until("[DONE]");
    assert!(rest.contains("finish_reason\":\""), "{rest}");
    let Shared { host, folder, .. } = shared;
    let status = host.wait();
    assert!(status.success(), "{status}");
    assert!(!runs(child), "the host has waited for it");
    let books = fs::read_to_string(folder.path().join("state/class/untrusted/usage/usage.jsonl")).unwrap();
    assert!(books.contains(r#""tenant":"guest""#), "{books}");
}

#[test]
fn a_client_that_hangs_up_ends_its_work_in_the_class() {
    let shared = start();
    let of = |name: &str| shared.host.metrics().with(name, r#"class="untrusted""#);
    let mut raw = shared.stream(&shared.keys.guest, "Count from 1 to 100000, one number a line.", 4000);
    for _ in 0..5 {
        raw.read_until("\"content\":");
    }
    assert_eq!(of("nala_engine_running"), 1.0);
    let at_hang_up = of("nala_engine_generated_tokens_total");
    raw.hang_up();
    eventually("the sequence is released", Duration::from_secs(5), || of("nala_engine_sessions") == 0.0);
    let after = of("nala_engine_generated_tokens_total");
    assert!(after - at_hang_up < 100.0, "{at_hang_up} at the end, {after} later");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(of("nala_engine_generated_tokens_total"), after, "nothing is generated for nobody");
}

#[tokio::test]
async fn the_process_of_a_class_believes_nothing_but_its_own_tenants_keys() {
    let _turn = tokio::task::spawn_blocking(Turn::take).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (keys, _) = prepare(folder.path());
    // This test is the host in front.
    let mut keeper = Command::new(paths::host_binary());
    keeper.args(["keep", "--class", "untrusted", "--"]).args(line(folder.path()));
    let process = Process::follow(Keeper::start(keeper).unwrap()).unwrap();
    let get = async |door, path: &str, key: &str| {
        let request = Request::get(path).header("host", "localhost").header("authorization", format!("Bearer {key}"));
        let request = request.body(Full::<bytes::Bytes>::default()).unwrap();
        let (head, body) = process.forward(door, request).await.ok()?.into_parts();
        let body = body.collect().await.ok()?.to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        Some((head.status, body["error"]["code"].as_str().unwrap_or_default().to_owned()))
    };
    let good = || Some((StatusCode::OK, String::new()));
    let end = tokio::time::Instant::now() + PATIENCE;
    while get(Door::Requests, "/v1/models", &keys.guest).await != good() {
        assert!(tokio::time::Instant::now() < end, "it does not come up");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let refused = |code: &str| Some((StatusCode::UNAUTHORIZED, code.to_owned()));
    for key in [&keys.mine, &keys.admin, "nala_0_0"] {
        assert_eq!(get(Door::Requests, "/v1/models", key).await, refused("invalid_api_key"));
    }
    // The host in front has seen the operator's key, and shows it to nobody.
    assert_eq!(get(Door::Operator, "/v1/tenants", "").await, good());
    assert_eq!(get(Door::Requests, "/v1/tenants", &keys.admin).await, refused("invalid_api_key"));
    let of_another = get(Door::Operator, "/v1/tenants/mine/apps", "").await;
    assert_eq!(of_another, Some((StatusCode::NOT_FOUND, "unknown_tenant".into())));
    process.stop(PATIENCE).await;
    assert_eq!(get(Door::Requests, "/v1/models", &keys.guest).await, None, "it has ended");
}

#[test]
fn a_class_is_refused_where_it_cannot_be() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(file(folder.path()), "[class.untrusted]\nprocess = \"own\"\n[tenant.mine]\n").unwrap();
    let refused = Host::refused(line(folder.path()).iter().map(OsString::as_os_str));
    assert!(refused.stderr.contains("nala.toml:1:"), "{}", refused.stderr);
    assert!(refused.stderr.contains("no tenant is of the class `untrusted`"), "{}", refused.stderr);
    // Whoever starts the process of a class by hand is told that it is none.
    prepare(folder.path());
    let of_class = Command::new(paths::host_binary()).args(line(folder.path())).env("NALA_CLASS", "untrusted").output();
    let stderr = String::from_utf8(of_class.unwrap().stderr).unwrap();
    assert!(stderr.contains("standard input is no link to a host"), "{stderr}");
    let none = Command::new(paths::host_binary()).args(line(folder.path())).env("NALA_CLASS", "none").output();
    let stderr = String::from_utf8(none.unwrap().stderr).unwrap();
    assert!(stderr.contains("the operator's file has no class none"), "{stderr}");
}
