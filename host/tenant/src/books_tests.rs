use std::sync::Arc;

use super::*;

const PERIOD: Duration = Duration::from_secs(100);

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn totals(requests: u64) -> Totals {
    let mut usage = Usage::default();
    usage.set(Counter::Requests, requests);
    usage.set(Counter::TokensOut, 7);
    let row = |tenant: &str, component: &str| (tenant.parse().unwrap(), Arc::from(component), usage);
    [row("acme", "openai"), row("acme", "a \"b\"\n"), row("zoo", "openai")].into_iter().collect()
}

fn requests(totals: &Totals) -> u64 {
    totals.get("acme", "openai").get(Counter::Requests)
}

fn line(dir: &Path, name: &str) -> serde_json::Value {
    let text = fs::read_to_string(dir.join(name)).unwrap();
    assert_eq!(text.lines().count(), 3, "{text}");
    serde_json::from_str(text.lines().nth(1).unwrap()).unwrap()
}

#[test]
fn counters_are_read_as_they_were_written() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("new/usage");
    let (mut books, before) = Books::open(&dir, PERIOD).unwrap();
    assert_eq!(before, Totals::default());
    books.write(&totals(3), at(1_010)).unwrap();
    let line = line(&dir, CURRENT);
    assert_eq!((&line["tenant"], &line["component"]), (&"acme".into(), &"openai".into()));
    assert_eq!((&line["from"], &line["to"]), (&1_000.into(), &1_010.into()));
    assert_eq!((&line["requests"], &line["tokens_out"], &line["errors"]), (&3.into(), &7.into(), &0.into()));
    drop(books);
    assert_eq!(Books::open(&dir, PERIOD).unwrap().1, totals(3));
}

#[test]
fn a_period_ends_once_and_has_its_bounds() {
    let dir = tempfile::tempdir().unwrap();
    let (mut books, _) = Books::open(dir.path(), PERIOD).unwrap();
    books.write(&totals(1), at(1_099)).unwrap();
    books.write(&totals(2), at(1_100)).unwrap();
    // Nothing ran for some periods.
    books.write(&totals(3), at(1_450)).unwrap();
    let bounds = |name: &str| {
        let line = line(dir.path(), name);
        [&line["from"], &line["to"], &line["requests"]].map(|value| value.as_u64().unwrap())
    };
    assert_eq!(bounds("usage-1000.jsonl"), [1_000, 1_100, 2]);
    assert_eq!(bounds("usage-1100.jsonl"), [1_100, 1_200, 3]);
    assert_eq!(bounds(CURRENT), [1_400, 1_450, 3]);
    // A clock that is set back opens none again.
    books.write(&totals(4), at(1_050)).unwrap();
    assert_eq!(bounds(CURRENT), [1_400, 1_400, 4]);
    assert_eq!(bounds("usage-1000.jsonl"), [1_000, 1_100, 2]);
}

#[test]
fn who_was_killed_between_two_periods_goes_on_with_the_newer_counters() {
    let dir = tempfile::tempdir().unwrap();
    let (mut books, _) = Books::open(dir.path(), PERIOD).unwrap();
    books.write(&totals(1), at(1_050)).unwrap();
    // As far as `write` came.
    books.replace("usage-1000.jsonl", &json_lines(&totals(5), 1_000, 1_100)).unwrap();
    drop(books);
    let (mut books, restored) = Books::open(dir.path(), PERIOD).unwrap();
    assert_eq!(requests(&restored), 5);
    books.write(&restored, at(1_101)).unwrap();
    assert_eq!(line(dir.path(), "usage-1000.jsonl")["requests"], 5);
    assert_eq!(line(dir.path(), CURRENT)["from"], 1_100);
}

#[test]
fn one_folder_is_for_one_process() {
    let dir = tempfile::tempdir().unwrap();
    let (books, _) = Books::open(dir.path(), PERIOD).unwrap();
    let error = Books::open(dir.path(), PERIOD).unwrap_err();
    assert!(matches!(error, BooksError::InUse { .. }), "{error}");
    drop(books);
    assert!(Books::open(dir.path(), PERIOD).is_ok());
}

#[test]
fn damage_is_told_with_its_place_and_not_counted_away() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(CURRENT);
    let good = json_lines(&totals(1), 0, 1);
    for (text, place) in [
        (format!("{good}{{\"tenant\":"), "usage.jsonl:4:"),
        (good.replacen("\"requests\":1", "\"requests\":-1", 1), "usage.jsonl:1: this is no line of usage: `requests`"),
        (good.replacen("acme", "../acme", 1), "usage.jsonl:1:"),
        ("\n".to_owned(), "usage.jsonl:1:"),
    ] {
        fs::write(&path, &text).unwrap();
        let error = Books::open(dir.path(), PERIOD).unwrap_err().to_string();
        assert!(error.contains(place) && error.contains("move it away"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    let error = Books::open(&path, PERIOD).unwrap_err().to_string();
    assert!(error.contains("must be there and writable"), "{error}");
}

#[test]
fn counters_of_other_versions_are_no_damage() {
    let dir = tempfile::tempdir().unwrap();
    let text = r#"{"tenant":"acme","component":"openai","from":1,"to":2,"requests":4,"of_tomorrow":9}"#;
    fs::write(dir.path().join(CURRENT), text).unwrap();
    assert_eq!(requests(&Books::open(dir.path(), PERIOD).unwrap().1), 4);
}

#[test]
fn lines_of_another_process_are_added() {
    let mut sum = totals(1);
    let lines = json_lines(&totals(2), 0, 1);
    for (tenant, component, usage) in read_json_lines(&lines).unwrap().iter() {
        sum.add(tenant.clone(), component.clone(), *usage);
    }
    assert_eq!((requests(&sum), sum.get("zoo", "openai").get(Counter::TokensOut)), (3, 14));
    let error = read_json_lines(&format!("{lines}nonsense")).unwrap_err();
    assert!(error.starts_with("line 4: "), "{error}");
}
