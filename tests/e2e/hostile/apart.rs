//! On which threads hostile guests compute.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use nala_e2e::hostile::{Site, Terms, ask};
use nala_e2e::metrics::eventually;

/// CPU time of the host's threads, by their names, in ticks of the system.
fn cpu(site: &Site) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for task in std::fs::read_dir(format!("/proc/{}/task", site.host.pid())).expect("the host's folder can be read") {
        let task = task.unwrap().path();
        let read = |name: &str| std::fs::read_to_string(Path::new(&task).join(name)).ok();
        // A thread may end meanwhile.
        let (Some(name), Some(stat)) = (read("comm"), read("stat")) else { continue };
        // The 14th and 15th field of proc_pid_stat(5), behind a name in brackets.
        let fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
        let ticks: u64 = fields.skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum();
        *all.entry(name.trim_end().to_owned()).or_default() += ticks;
    }
    all
}

#[test]
fn guests_that_compute_and_wait_by_turns_do_so_apart_from_connections() {
    // Confined, a process lets nobody look into its folder.
    let terms = Terms { cpu: "10s", wall: "6s", limits: super::NO_MINUTES, args: &["--sandbox", "off"] };
    let site = Site::start(&terms);
    let all: Vec<_> = (0..32)
        .map(|_| {
            let (url, key) = (site.host.url("/alternates/"), site.bad.clone());
            std::thread::spawn(move || ask(&url, &key))
        })
        .collect();
    eventually("they compute", Duration::from_secs(5), || site.host.metrics().sum("nala_wasm_instances") >= 32.0);
    // What they may use before others mind.
    std::thread::sleep(Duration::from_millis(500));
    let before = cpu(&site);
    std::thread::sleep(Duration::from_secs(2));
    let after = cpu(&site);
    let used = |name: &str| after[name] - before[name];
    let (guests, workers) = (used("nala guest"), used("nala worker"));
    assert!(guests > 20 && workers * 5 < guests, "guests {guests}, connections {workers}: {after:?}");
    all.into_iter().for_each(|one| drop(one.join().unwrap()));
    site.until_empty(&[]);
}
