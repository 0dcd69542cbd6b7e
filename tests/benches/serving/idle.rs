//! What applications cost that are deployed and asked by nobody, and how fast many
//! instances are launched.

use std::path::Path;
use std::time::Instant;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use nala_e2e::guests;
use nala_wasm::{App, CompileCache, Grant, Runtime, RuntimeConfig, Source};

use crate::report::quantile;

/// Applications that idle.
const IDLE: usize = 1000;
/// Requests of a round.
const REQUESTS: usize = 2000;
/// Rounds on each side.
const ROUNDS: usize = 5;
/// Instances that are launched.
const LAUNCHES: u32 = 2048;

pub(crate) fn print() {
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    tokio.block_on(async {
        let wasm = guests::guest("host/wasm/guests", "capabilities");
        let cache = tempfile::tempdir().expect("a folder");
        let config = RuntimeConfig {
            cache: CompileCache::Directory(cache.path().to_owned()),
            instances: LAUNCHES,
            ..RuntimeConfig::default()
        };
        let runtime = Runtime::new(config).expect("a runtime");
        let asked = load(&runtime, &wasm, "asked");
        rate(&asked).await;
        let mut alone: Vec<f64> = Vec::new();
        for _ in 0..ROUNDS {
            alone.push(rate(&asked).await);
        }
        let before = resident();
        // Each is read, compiled (out of the cache) and linked by itself, as if each had
        // code of its own.
        let idle: Vec<App> = (0..IDLE).map(|n| load(&runtime, &wasm, &format!("idle-{n}"))).collect();
        let each = (resident() - before) / IDLE as f64 / 1024.0;
        let mut beside: Vec<f64> = Vec::new();
        for _ in 0..ROUNDS {
            beside.push(rate(&asked).await);
        }
        for rates in [&mut alone, &mut beside] {
            rates.sort_by(f64::total_cmp);
        }
        let (alone, beside) = (quantile(&alone, 0.5), quantile(&beside, 0.5));
        println!(
            "\n{IDLE} idle applications: {each:.0} KiB resident each; hello, one after another: {alone:.0} requests/s \
             alone, {beside:.0} beside them: {:.3} of it",
            beside / alone
        );
        drop(idle);
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            let begin = Instant::now();
            for _ in 0..LAUNCHES {
                asked.instantiate_once().await.expect("an instance");
            }
            times.push(begin.elapsed().as_secs_f64());
        }
        times.sort_by(f64::total_cmp);
        println!("{LAUNCHES} instances launched in {:.3} s (median of {ROUNDS})", quantile(&times, 0.5));
    });
}

fn load(runtime: &Runtime, wasm: &Path, name: &str) -> App {
    let compiled = runtime.compile(name, Source::File(wasm)).expect("the guest compiles");
    runtime.load(&compiled, Grant::default()).expect("the guest loads")
}

/// Requests a second, one after another.
async fn rate(app: &App) -> f64 {
    let begin = Instant::now();
    for _ in 0..REQUESTS {
        let request = http::Request::get("http://localhost/told").body(Full::<Bytes>::default()).expect("a request");
        let response = app.handle(request).await.expect("a response");
        response.into_body().collect().await.expect("a body");
    }
    REQUESTS as f64 / begin.elapsed().as_secs_f64()
}

/// Resident memory of this process, in bytes.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux says what a process uses");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it says what is resident");
    let kib: f64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib * 1024.0
}
