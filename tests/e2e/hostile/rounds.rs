//! Round after round of everything at once, and nothing is left of it.

use std::path::PathBuf;

use nala_e2e::hostile::{Site, Terms, ask};

const ROUNDS: usize = 50;
/// What is made once and kept, as threads and arenas of the allocator, is there by then.
const WARM: usize = 15;

/// What ends soon.
const QUICK: &[&str] = &[
    "/spin/now",
    "/spin/late",
    "/alternates/",
    "/spin-in-call/small",
    "/spin-in-call/large",
    "/spin-in-call/long?200000",
    "/two-memories/",
    "/handles/fields",
    "/handles/pollables",
    "/handles/bodies",
    "/handles/sessions",
    "/token-bomb/tokens?4000000",
    "/token-bomb/tokens?5000000",
    "/token-bomb/text?4000000",
    "/recursion/stack",
    "/recursion/http",
    "/log-flood/line",
    "/endless/fast",
    "/sub-requests/?50",
    "/grammar-bomb/each",
    "/template-bomb/each",
    "/template-bomb/forever",
    "/randomness/secure",
    "/headers/longer",
    "/headers/shorter",
    "/headers/large",
    "/path-escape/",
    "/ssrf/",
    "/env/",
];

/// What waits until its time is up, in every tenth round.
const SLOW: &[&str] =
    &["/spin-in-call/wait", "/slow-reader/wait", "/endless/slow", "/kv-hog/keep", "/grammar-bomb/keep"];

fn round(site: &Site, paths: impl Iterator<Item = &'static str>) {
    let all: Vec<_> = paths
        .map(|path| {
            let (url, key) = (site.host.url(path), site.bad.clone());
            std::thread::spawn(move || ask(&url, &key))
        })
        .collect();
    let good = site.ask(&site.good, "/hello");
    assert_eq!((good.status, good.text.as_str()), (200, "hello"));
    all.into_iter().for_each(|one| drop(one.join().unwrap()));
}

/// Of the process: handles that are open, threads, and KiB in RAM that belong to no file.
fn usage(site: &Site) -> [usize; 3] {
    let folder = PathBuf::from(format!("/proc/{}", site.host.pid()));
    let count = |name: &str| std::fs::read_dir(folder.join(name)).expect("the host's folder can be read").count();
    let status = std::fs::read_to_string(folder.join("status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    [count("fd"), count("task"), line.trim().trim_end_matches(" kB").parse().unwrap()]
}

#[test]
fn fifty_rounds_of_everything_leave_nothing_behind() {
    // Confined, a process lets nobody look into its folder.
    let terms = Terms {
        cpu: "30ms",
        wall: "1s",
        limits: super::NO_MINUTES,
        args: &["--sandbox", "off", "--log-level", "error"],
    };
    let site = Site::start(&terms);
    let mut warm = None;
    for n in 0..ROUNDS {
        let slow = if n % 10 == 0 { SLOW } else { &[] };
        round(&site, QUICK.iter().chain(slow).copied());
        if n + 1 == WARM {
            site.until_empty(&[]);
            warm = Some(usage(&site));
        }
    }
    site.until_empty(&[]);
    site.good_completes();
    site.until_empty(&[]);
    let [handles, threads, kib] = warm.unwrap();
    let [handles_now, threads_now, kib_now] = usage(&site);
    println!("handles {handles} -> {handles_now}, threads {threads} -> {threads_now}, KiB {kib} -> {kib_now}");
    assert!(handles_now <= handles + 8, "{handles} handles after {WARM} rounds, {handles_now} after {ROUNDS}");
    assert!(threads_now <= threads + 16, "{threads} threads after {WARM} rounds, {threads_now} after {ROUNDS}");
    // A leak of 1 KiB for each of a thousand requests would be lost in the noise of an
    // allocator; one instance's memory that stays, or one prompt of a round, is not.
    assert!(kib_now <= kib + (32 << 10), "{kib} KiB after {WARM} rounds, {kib_now} after {ROUNDS}");
}
