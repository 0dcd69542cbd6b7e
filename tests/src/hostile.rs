//! A host that serves hostile guests to one tenant, and the same host to its neighbours.

use std::ffi::OsStr;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::host::Host;
use crate::keys::key;
use crate::metrics::{Scrape, eventually};
use crate::{guests, paths};

/// The guests of `components/hostile`, each under a path of its name.
pub const GUESTS: [&str; 20] = [
    "alternates",
    "clocks",
    "endless",
    "env",
    "grammar-bomb",
    "handles",
    "headers",
    "kv-hog",
    "log-flood",
    "path-escape",
    "randomness",
    "recursion",
    "slow-reader",
    "spin",
    "spin-in-call",
    "ssrf",
    "sub-requests",
    "template-bomb",
    "token-bomb",
    "two-memories",
];

const MODEL: &str = "smollm2-135m-instruct-q4_1";

/// What a site is to be like.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    /// CPU time and wall time of a request to a hostile guest, as in a manifest.
    pub cpu: &'a str,
    pub wall: &'a str,
    /// Lines below `[tenant.bad.limits]`.
    pub limits: &'a str,
    /// Further arguments of the host.
    pub args: &'a [&'a str],
}

/// A host with three tenants: `bad`, `good`, and `idle`, which asks nothing. The OpenAI
/// API stands under `/v1`, a handler that says hello under `/hello`.
pub struct Site {
    pub host: Host,
    /// The tenants' keys.
    pub bad: String,
    pub good: String,
    _folder: TempDir,
}

/// An answer, or the beginning of one.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub text: String,
    /// Whether the body ended as it should.
    pub is_whole: bool,
}

impl Answer {
    /// The code of an error that the host made.
    pub fn code(&self) -> String {
        let json: Value = serde_json::from_str(&self.text).unwrap_or_default();
        json["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

impl Site {
    pub fn start(terms: &Terms<'_>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [bad, good, idle] = [(); 3].map(|()| key());
        let config = format!(
            "[tenant.bad]\nkeys = [\"{}\"]\n[tenant.bad.limits]\n{}\n[tenant.good]\nkeys = [\"{}\"]\n\
             [tenant.good.limits]\nrequests_per_minute = \"unlimited\"\ntokens_out_per_minute = \"unlimited\"\n\
             [tenant.idle]\nkeys = [\"{}\"]\n",
            bad.1, terms.limits, good.1, idle.1
        );
        let (config_path, manifest) = (folder.path().join("nala.toml"), folder.path().join("spin.toml"));
        std::fs::write(&config_path, config).unwrap();
        std::fs::write(&manifest, application(terms)).unwrap();
        let mut args: Vec<&OsStr> = vec!["up".as_ref(), manifest.as_os_str(), "--model".as_ref()];
        let model = paths::model();
        args.extend([model.as_os_str(), "--config".as_ref(), config_path.as_os_str()]);
        args.extend(terms.args.iter().map(|arg| OsStr::new(*arg)));
        let host = Host::start(args);
        Self { host, bad: bad.0, good: good.0, _folder: folder }
    }

    /// Asks with a key, and reads as much of the answer as comes.
    pub fn ask(&self, key: &str, path: &str) -> Answer {
        ask(&self.host.url(path), key)
    }

    /// Asks as `good` for a word from the model's mouth.
    pub fn good_completes(&self) {
        let answer = complete(&self.host.url("/v1/chat/completions"), &self.good);
        assert_eq!(answer.status, 200, "{}\n{}", answer.text, self.host.log());
        assert!(answer.text.contains("Paris"), "{}", answer.text);
    }

    /// Waits until nobody holds anything any more but what `kept` names.
    pub fn until_empty(&self, kept: &[&str]) {
        until_empty(&self.host, kept);
    }

    /// How many lines of the log contain all of these.
    pub fn logged(&self, words: &[&str]) -> usize {
        self.host.log().lines().filter(|line| words.iter().all(|word| line.contains(word))).count()
    }

    /// Waits until so many lines contain all of these.
    pub fn until_logged(&self, words: &[&str], lines: usize) {
        eventually(&format!("{lines} lines with {words:?}"), Duration::from_secs(10), || self.logged(words) >= lines);
    }
}

/// Waits until nobody holds anything of a host any more but what `kept` names.
pub fn until_empty(host: &Host, kept: &[&str]) {
    let mut left = Vec::new();
    for _ in 0..500 {
        left = held(&host.metrics());
        left.retain(|line| !kept.iter().any(|kept| line.contains(kept)));
        if left.is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("this is still held: {left:#?}\n{}", host.log());
}

/// What is held of anything that a host counts.
fn held(metrics: &Scrape) -> Vec<String> {
    const GAUGES: [&str; 7] = [
        "nala_tenant_held{",
        "nala_wasm_instances ",
        "nala_http_requests_in_flight ",
        "nala_engine_sessions{",
        "nala_engine_running{",
        "nala_engine_queued{",
        "nala_engine_kv_cells_used{",
    ];
    let gauges = metrics.text().lines().filter(|line| GAUGES.iter().any(|gauge| line.starts_with(gauge)));
    gauges.filter(|line| !line.ends_with(" 0")).map(str::to_owned).collect()
}

/// The manifest of an application with all of them.
pub(crate) fn application(terms: &Terms<'_>) -> String {
    let mut text = "spin_manifest_version = 2\n[application]\nname = \"hostile\"\nversion = \"0.1.0\"\n".to_owned();
    let mut component = |name: &str, route: Option<&str>, source: &Path, limits: Option<(&str, &str)>| {
        if let Some(route) = route {
            writeln!(text, "[[trigger.http]]\nroute = \"{route}\"\ncomponent = \"{name}\"").unwrap();
        }
        writeln!(text, "[component.{name}]\nsource = {source:?}").unwrap();
        if route.is_some() {
            writeln!(text, "ai_models = [\"{MODEL}\"]\n[component.{name}.tool.nala]\nrenderer = \"chat-template\"")
                .unwrap();
        }
        if let Some((cpu, wall)) = limits {
            writeln!(text, "[component.{name}.tool.nala.limits]\ncpu = \"{cpu}\"\nwall = \"{wall}\"").unwrap();
        }
    };
    component("openai", Some("/v1/..."), &guests::guest("components", "openai"), None);
    component("chat-template", None, &guests::guest("components", "chat-template"), None);
    component("hello", Some("/hello"), &guests::guest("host/wasm/guests", "behaviours"), None);
    for name in GUESTS {
        let route = format!("/{name}/...");
        component(name, Some(&route), &guests::hostile(name), Some((terms.cpu, terms.wall)));
    }
    text
}

/// Asks with a key, and reads as much of the answer as comes.
pub fn ask(url: &str, key: &str) -> Answer {
    let request = ureq::get(url).config().http_status_as_error(false).timeout_global(Some(Duration::from_secs(120)));
    read(request.build().header("x-api-key", key).call())
}

/// Asks the model for the capital of France.
pub fn complete(url: &str, key: &str) -> Answer {
    let request = ureq::post(url).config().http_status_as_error(false).timeout_global(Some(Duration::from_secs(120)));
    let request = request.build().header("x-api-key", key).header("content-type", "application/json");
    read(request.send(crate::chat::request(crate::chat::FRANCE, 8).to_string()))
}

fn read(answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Answer {
    let Ok(answer) = answer else { return Answer { status: 0, text: String::new(), is_whole: false } };
    let status = answer.status().as_u16();
    let mut bytes = Vec::new();
    let read = std::io::Read::read_to_end(&mut answer.into_body().into_reader(), &mut bytes);
    Answer { status, text: String::from_utf8_lossy(&bytes).into_owned(), is_whole: read.is_ok() }
}
