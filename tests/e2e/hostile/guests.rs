//! What each hostile guest ends in, for itself and for nobody else.

use std::time::{Duration, Instant};

use nala_e2e::hostile::{Answer, Site, Terms, ask};
use nala_e2e::metrics::eventually;

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

/// Those that are refused, or use up their CPU time.
const QUICK: &[(&str, End)] = &[
    ("/spin/now", Fails(500, "cpu_limit")),
    ("/spin/late", BreaksOff),
    ("/alternates/", Fails(500, "cpu_limit")),
    ("/spin-in-call/small", Fails(500, "cpu_limit")),
    ("/spin-in-call/large", Fails(500, "cpu_limit")),
    ("/spin-in-call/long", Fails(500, "cpu_limit")),
    ("/two-memories/", Fails(500, "memory_limit")),
    ("/handles/fields", Fails(500, "no_response")),
    ("/handles/pollables", Fails(500, "no_response")),
    ("/handles/bodies", Fails(500, "no_response")),
    ("/handles/sessions", Says("16 sessions, then Error::Quota(QuotaKind::Sessions)")),
    ("/token-bomb/tokens?4000000", Says("Err(Error::Quota(QuotaKind::Kv))")),
    ("/token-bomb/tokens?5000000", Fails(500, "no_response")),
    ("/token-bomb/text?4000000", Tells(&["InvalidArgument", "4000000 bytes"])),
    ("/token-bomb/text?20000000", Fails(500, "no_response")),
    ("/token-bomb/inputs?100000", Tells(&["Err(Error::"])),
    ("/recursion/stack", Fails(500, "guest_trapped")),
    ("/recursion/http", Says("Err(\"ErrorCode::HttpRequestDenied\")")),
    ("/slow-reader/answer", Says("read nothing")),
    ("/endless/fast", BreaksOff),
    ("/sub-requests/?300", Says("ErrorCode::HttpRequestDenied 300")),
    ("/template-bomb/forever", Fails(500, "cpu_limit")),
    ("/clocks/", Tells(&["monotonic", "wall"])),
    ("/randomness/secure", Fails(500, "no_response")),
    ("/randomness/insecure", Fails(500, "no_response")),
    ("/randomness/seeds", Says("1")),
    ("/path-escape/", Says("folders [] reached []")),
    ("/ssrf/", Tells(&["ErrorCode::HttpRequestDenied 18; reached []"])),
    ("/env/", Tells(&["variables [] arguments []", "input Ok(0)"])),
];

/// Those that are given time, and get nothing for it.
const PATIENT: &[(&str, End)] = &[
    ("/token-bomb/decode?1000000", Says("Ok(12000000)")),
    ("/log-flood/lines", Says("flooded")),
    ("/log-flood/line", Says("flooded")),
    ("/grammar-bomb/each", Tells(&["Error::Constraint"])),
    ("/grammar-bomb/keep", Tells(&["kept, then Error::Quota"])),
    ("/template-bomb/each", Tells(&["include template", "syntax template", "recursion template"])),
];

/// Those that wait until their time is up.
const WAITING: &[(&str, End)] = &[
    ("/spin-in-call/wait", Fails(504, "wall_limit")),
    ("/slow-reader/wait", Fails(504, "wall_limit")),
    ("/endless/slow", BreaksOff),
    ("/kv-hog/keep", Fails(504, "wall_limit")),
    ("/grammar-bomb/forever", Fails(504, "wall_limit")),
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

/// Lines of the log that tell of a request's end to its component.
fn told(site: &Site, path: &str) -> (usize, usize) {
    let app = format!("app=\"{}\"", name(path));
    // By the path too: a component is asked more than once.
    let path = format!("path=\"{}\"", path.split('?').next().unwrap());
    let count = |what| site.logged(&[what, &app, &path]);
    (count("a request got no response"), count("a response broke off"))
}

/// What of the ends is not as it should be.
fn differing(site: &Site, ends: &'static [(&str, End)]) -> Vec<String> {
    let mut differing = Vec::new();
    for (path, end) in ends {
        let before = told(site, path);
        let (url, key) = (site.host.url(path), site.bad.clone());
        let bad = std::thread::spawn(move || ask(&url, &key));
        good_is_served(site, path);
        let answer = bad.join().unwrap();
        if wrong(&answer, end) {
            let text: String = answer.text.chars().take(300).collect();
            differing.push(format!("{path}: {} {text} (whole: {}), and not {end:?}", answer.status, answer.is_whole));
        }
        good_is_served(site, path);
        // The log tells of it once, and names the component.
        let once = match end {
            Fails(..) => (1, 0),
            Says(_) | Tells(_) => (0, 0),
            BreaksOff => (0, 1),
        };
        let expected = (before.0 + once.0, before.1 + once.1);
        let reached = || {
            let told = told(site, path);
            told.0 >= expected.0 && told.1 >= expected.1
        };
        for _ in 0..100 {
            if reached() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        if told(site, path) != expected {
            differing.push(format!("{path}: told {:?} times, and not {expected:?}", told(site, path)));
        }
        site.until_empty(&[]);
    }
    differing
}

#[test]
fn each_guest_ends_in_its_own_error_and_its_neighbour_is_served() {
    for (cpu, wall, ends) in [("300ms", "60s", QUICK), ("10s", "60s", PATIENT), ("10s", "2s", WAITING)] {
        let site = super::site_with(cpu, wall);
        let differing = differing(&site, ends);
        assert!(differing.is_empty(), "{differing:#?}\n{}", site.host.log());
        site.good_completes();
        assert_eq!(site.host.metrics().sum("nala_http_handler_panics_total"), 0.0);
    }
}

#[test]
fn what_a_guest_logs_is_bounded_and_cannot_be_taken_for_the_hosts() {
    let limits = "log_bytes_per_minute = \"200KiB\"";
    let site = Site::start(&Terms { cpu: "10s", wall: "60s", limits, args: &[] });
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
    assert!(site.logged(&["the rest of this guest's output is dropped"]) >= 2);
    let grown = site.host.log().len() - before;
    assert!(grown < 3 * (200 << 10), "{grown} bytes for 80 MiB");
    good_is_served(&site, "a flood of the log");
    let usage = site.ask(&site.bad, "/.well-known/nala/usage");
    let usage: serde_json::Value = serde_json::from_str(&usage.text).unwrap();
    assert!(usage["used"]["log_bytes"].as_u64().unwrap() <= 400 << 10, "{usage}");
}

/// Few cells, which are filled soon.
const FEW_CELLS: &[&str] = &["--kv-cells", "2048"];

#[test]
fn a_hog_of_kv_cells_leaves_its_neighbour_room() {
    let terms = Terms { cpu: "10s", wall: "30s", limits: super::NO_MINUTES, args: FEW_CELLS };
    let site = Site::start(&terms);
    let hogs: Vec<_> = (0..4)
        .map(|_| {
            let (url, key) = (site.host.url("/kv-hog/keep"), site.bad.clone());
            std::thread::spawn(move || ask(&url, &key))
        })
        .collect();
    eventually("all that there is is theirs", Duration::from_secs(25), || {
        site.host.metrics().with("nala_tenant_held", "tenant=\"bad\",what=\"kv_cells\"") > 1000.0
    });
    for _ in 0..3 {
        site.good_completes();
    }
    for hog in hogs {
        let answer = hog.join().unwrap();
        assert_eq!((answer.status, answer.code().as_str()), (504, "wall_limit"), "{answer:?}");
    }
    site.until_empty(&[]);
}

#[test]
fn what_is_saved_by_name_is_bounded_for_its_tenant() {
    let terms = Terms { cpu: "10s", wall: "60s", limits: "saved_sessions = 5", args: FEW_CELLS };
    let site = Site::start(&terms);
    let answer = site.ask(&site.bad, "/kv-hog/save");
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.text.contains("saved 5"), "{answer:?}");
    assert!(answer.text.contains("995"), "{answer:?}");
    site.good_completes();
}
