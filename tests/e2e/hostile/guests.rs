//! What each hostile guest ends in, for itself and for nobody else.

use std::time::{Duration, Instant};

use nala_e2e::hostile::{Answer, Site, Terms, ask};

/// How a request to a hostile guest ends.
#[derive(Debug)]
enum End {
    /// The host answers for it: status and code.
    Fails(u16, &'static str),
    /// The guest is refused what it wanted, in its own words, and lives on.
    Says(&'static str),
    /// As `Says`, with these words among others.
    Tells(&'static [&'static str]),
    /// The response breaks off, visibly.
    BreaksOff,
}

use End::{BreaksOff, Fails, Says, Tells};

const ENDS: &[(&str, End)] = &[
    ("/spin/now", Fails(500, "cpu_limit")),
    ("/spin/late", BreaksOff),
    ("/spin-in-call/small", Fails(500, "cpu_limit")),
    ("/spin-in-call/large", Fails(500, "cpu_limit")),
    ("/spin-in-call/long", Fails(500, "cpu_limit")),
    ("/spin-in-call/wait", Fails(504, "wall_limit")),
    ("/two-memories/", Fails(500, "memory_limit")),
    ("/handles/fields", Fails(500, "guest_trapped")),
    ("/handles/pollables", Fails(500, "guest_trapped")),
    ("/handles/bodies", Fails(500, "guest_trapped")),
    ("/handles/sessions", Says("16 sessions, then Error::Quota(QuotaKind::Sessions)")),
    ("/token-bomb/tokens?4000000", Tells(&["ContextFull"])),
    ("/token-bomb/tokens?5000000", Fails(500, "guest_trapped")),
    ("/token-bomb/text?4000000", Tells(&["InvalidArgument", "4000000 bytes"])),
    ("/token-bomb/text?20000000", Fails(500, "guest_trapped")),
    ("/token-bomb/decode?4000000", Tells(&["InvalidArgument"])),
    ("/token-bomb/inputs?100000", Tells(&["InvalidArgument"])),
    ("/recursion/stack", Fails(500, "guest_trapped")),
    ("/recursion/http", Says("Err(\"ErrorCode::HttpRequestDenied\")")),
    ("/log-flood/lines", Says("flooded")),
    ("/log-flood/line", Says("flooded")),
    ("/slow-reader/wait", Fails(504, "wall_limit")),
    ("/slow-reader/answer", Says("read nothing")),
    ("/endless/fast", BreaksOff),
    ("/endless/slow", BreaksOff),
    ("/sub-requests/?300", Says("ErrorCode::HttpRequestDenied 300")),
    ("/kv-hog/keep", Fails(504, "wall_limit")),
    ("/grammar-bomb/each", Tells(&["Constraint"])),
    ("/grammar-bomb/keep", Tells(&["kept, then Error::Quota"])),
    ("/template-bomb/each", Tells(&["loops template", "include template", "syntax template"])),
    ("/template-bomb/forever", Fails(500, "cpu_limit")),
    ("/clocks/", Tells(&["monotonic", "wall"])),
    ("/randomness/secure", Fails(500, "guest_trapped")),
    ("/randomness/insecure", Fails(500, "guest_trapped")),
    ("/randomness/seeds", Tells(&["1"])),
    ("/path-escape/", Says("folders [] reached []")),
    ("/ssrf/", Tells(&["ErrorCode::HttpRequestDenied", "reached []"])),
    ("/env/", Tells(&["variables [] arguments []", "input Ok(0)"])),
];

/// What is wrong with an answer, if anything is.
fn wrong(answer: &Answer, end: &End) -> bool {
    match end {
        Fails(status, code) => (answer.status, answer.code().as_str()) != (*status, *code) || !answer.is_whole,
        Says(text) => (answer.status, answer.text.as_str()) != (200, *text) || !answer.is_whole,
        Tells(words) => {
            answer.status != 200 || !answer.is_whole || !words.iter().all(|word| answer.text.contains(word))
        }
        BreaksOff => answer.status != 200 || answer.is_whole,
    }
}

fn name(path: &str) -> &str {
    path.split('/').nth(1).unwrap()
}

/// Good asks while bad is at it, and again when it is over.
fn good_is_served(site: &Site, beside: &str) {
    let begin = Instant::now();
    let answer = site.ask(&site.good, "/hello");
    assert_eq!((answer.status, answer.text.as_str()), (200, "hello"), "beside {beside}");
    assert!(begin.elapsed() < Duration::from_secs(2), "{beside} held its neighbour up for {:?}", begin.elapsed());
}

#[test]
fn each_guest_ends_in_its_own_error_and_its_neighbour_is_served() {
    let site = super::site();
    let mut differing = Vec::new();
    for (path, end) in ENDS {
        let app = format!("app=\"{}\"", name(path));
        let (lost, broken) = (["a request got no response", &app], ["app", "a response broke off", &app]);
        let before = (site.logged(&lost), site.logged(&broken));
        let (url, key) = (site.host.url(path), site.bad.clone());
        let bad = std::thread::spawn(move || ask(&url, &key));
        good_is_served(&site, path);
        let answer = bad.join().unwrap();
        if wrong(&answer, end) {
            let text: String = answer.text.chars().take(300).collect();
            differing.push(format!("{path}: {} {text} (whole: {}), and not {end:?}", answer.status, answer.is_whole));
        }
        good_is_served(&site, path);
        // The log tells of it once, and names the component.
        let once = match end {
            Fails(..) => (1, 0),
            Says(_) | Tells(_) => (0, 0),
            BreaksOff => (0, 1),
        };
        if once.0 > 0 {
            site.until_logged(&lost, before.0 + 1);
        }
        if once.1 > 0 {
            site.until_logged(&broken, before.1 + 1);
        }
        let after = (site.logged(&lost) - before.0, site.logged(&broken) - before.1);
        if after != once {
            differing.push(format!("{path}: told {after:?} times, and not {once:?}"));
        }
        site.until_empty(&[]);
    }
    assert!(differing.is_empty(), "{differing:#?}\n{}", site.host.log());
    site.good_completes();
    assert_eq!(site.host.metrics().sum("nala_http_handler_panics_total"), 0.0);
}

#[test]
fn what_a_guest_logs_is_bounded_and_cannot_be_taken_for_the_hosts() {
    let limits = "log_bytes_per_minute = \"300KiB\"";
    let site = Site::start(&Terms { cpu: "200ms", wall: "3s", limits, args: &[] });
    assert_eq!(site.ask(&site.bad, "/log-flood/forged").text, "flooded");
    site.until_logged(&["a forged line"], 1);
    let log = site.host.log();
    assert!(!log.contains(['\x1b', '\r', '\0', '\u{202e}']), "{log:?}");
    assert!(log.lines().all(|line| !line.starts_with("2026-01-01T00:00:00Z ERROR")), "{log}");
    let before = site.host.log().len();
    for _ in 0..4 {
        assert_eq!(site.ask(&site.bad, "/log-flood/lines").text, "flooded");
        assert_eq!(site.ask(&site.bad, "/log-flood/line").text, "flooded");
    }
    // The guest's own limit is told once for each request, the tenant's once it is reached.
    site.until_logged(&["the limit log_bytes_per_minute is reached"], 1);
    assert!(site.logged(&["the rest of this guest's output is dropped"]) >= 3);
    let grown = site.host.log().len() - before;
    assert!(grown < 3 * (300 << 10), "{grown} bytes for 800 MiB");
    good_is_served(&site, "a flood of the log");
    let usage = site.ask(&site.bad, "/.well-known/nala/usage");
    let usage: serde_json::Value = serde_json::from_str(&usage.text).unwrap();
    assert!(usage["used"]["log_bytes"].as_u64().unwrap() <= 300 << 10, "{usage}");
}

#[test]
fn a_hog_of_kv_cells_leaves_its_neighbour_room() {
    let site = super::site_with("2s", "20s");
    let hogs: Vec<_> = (0..4)
        .map(|_| {
            let (url, key) = (site.host.url("/kv-hog/keep"), site.bad.clone());
            std::thread::spawn(move || ask(&url, &key))
        })
        .collect();
    // Until all of them hold what they can get.
    site.until_logged(&["kv-hog", "then Error::"], 4);
    let metrics = site.host.metrics();
    assert!(metrics.with("nala_tenant_held", "what=\"kv_cells\"") > 8000.0, "{}", metrics.text());
    for _ in 0..3 {
        let begin = Instant::now();
        site.good_completes();
        assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    }
    for hog in hogs {
        let answer = hog.join().unwrap();
        assert_eq!((answer.status, answer.code().as_str()), (504, "wall_limit"), "{answer:?}");
    }
    site.until_empty(&[]);
}

#[test]
fn what_is_saved_by_name_is_bounded_for_its_tenant() {
    let site = Site::start(&Terms { cpu: "2s", wall: "60s", limits: "saved_sessions = 5", args: &[] });
    let answer = site.ask(&site.bad, "/kv-hog/save");
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.text.contains("saved 5"), "{answer:?}");
    assert!(answer.text.contains("995"), "{answer:?}");
    site.good_completes();
}
