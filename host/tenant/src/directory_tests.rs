use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::clock::ManualClock;
use crate::key::{Key, Secret, StoredKey};
use crate::limit::Rate;
use crate::meter::Counter;

struct Town {
    directory: Directory,
    clock: Arc<ManualClock>,
    keys: BTreeMap<&'static str, (Secret, StoredKey)>,
}

fn declared(name: &str, keys: &[&StoredKey]) -> Declared {
    Declared { keys: keys.iter().map(|key| (*key).clone()).collect(), ..Declared::new(name.parse().unwrap()) }
}

/// acme by host name, blue and blue-sub by prefixes, `any` by key alone.
fn roster(keys: &BTreeMap<&'static str, (Secret, StoredKey)>) -> Roster {
    let key = |name| &keys[name].1;
    let mut roster = Roster::new();
    let hosts = vec!["acme.example.com".parse().unwrap(), "[::1]".parse().unwrap()];
    roster.add(Declared { hosts, ..declared("acme", &[key("acme")]) }).unwrap();
    let prefix = |text: &str| Some(text.parse().unwrap());
    roster.add(Declared { prefix: prefix("/t/blue"), ..declared("blue", &[key("blue")]) }).unwrap();
    roster.add(Declared { prefix: prefix("/t/blue/sub"), ..declared("blue-sub", &[key("blue-sub")]) }).unwrap();
    roster.add(declared("any", &[key("any")])).unwrap();
    roster
}

fn town(change: impl FnOnce(&mut Roster)) -> Town {
    let keys = ["acme", "blue", "blue-sub", "any", "nobody"].map(|name| (name, Key::generate().unwrap()));
    let keys = BTreeMap::from(keys);
    let clock = Arc::new(ManualClock::default());
    let mut roster = roster(&keys);
    change(&mut roster);
    Town { directory: Directory::new(roster, &Totals::default(), Arc::clone(&clock) as Arc<dyn Clock>), clock, keys }
}

impl Town {
    fn ask(&self, key: Option<&str>, host: Option<&str>, path: &str) -> Result<(String, usize), Refusal> {
        let key = key.map(|name| self.keys.get(name).map_or(name, |(secret, _)| secret.expose()));
        let identity = self.directory.identify(&Presented { by: by(key), host, path })?;
        Ok((identity.tenant.name().to_string(), identity.path_prefix))
    }
}

fn by(key: Option<&str>) -> Shown<'_> {
    key.map_or(Shown::Nothing, Shown::Key)
}

fn is(name: &str, path_prefix: usize) -> Result<(String, usize), Refusal> {
    Ok((name.to_owned(), path_prefix))
}

#[test]
fn keys_places_and_their_refusals() {
    let town = town(|_| {});
    let elsewhere = Some("localhost:3000");
    for (key, host, path, expected) in [
        (Some("any"), elsewhere, "/v1", is("any", 0)),
        (Some("any"), None, "/v1", is("any", 0)),
        (Some("acme"), Some("ACME.example.com.:80"), "/v1", is("acme", 0)),
        (Some("acme"), Some("[0::1]:80"), "/v1", is("acme", 0)),
        // On a host of its own a path is the tenant's, whatever it says.
        (Some("acme"), Some("acme.example.com"), "/t/blue/x", is("acme", 0)),
        (Some("blue"), elsewhere, "/t/blue/v1", is("blue", 7)),
        (Some("blue"), elsewhere, "/t/blue", is("blue", 7)),
        (Some("blue"), elsewhere, "/t/blue/", is("blue", 7)),
        (Some("blue"), elsewhere, "/t/blue/subway", is("blue", 7)),
        (Some("blue"), elsewhere, "/t/blue?x=/../any", is("blue", 7)),
        (Some("blue-sub"), elsewhere, "/t/blue/sub/v1", is("blue-sub", 11)),
        (Some("blue"), elsewhere, "/t/blue/a//b/%2F/../c", is("blue", 7)),
        // Not theirs.
        (Some("any"), Some("acme.example.com"), "/v1", Err(Refusal::WrongTenant)),
        (Some("blue"), Some("acme.example.com"), "/t/blue", Err(Refusal::WrongTenant)),
        (Some("any"), elsewhere, "/t/blue", Err(Refusal::WrongTenant)),
        (Some("blue"), elsewhere, "/t/blue/sub", Err(Refusal::WrongTenant)),
        // Not where they are served.
        (Some("acme"), elsewhere, "/v1", Err(Refusal::UnknownHost)),
        (Some("blue"), elsewhere, "/t/bluebird", Err(Refusal::UnknownHost)),
        (Some("blue"), elsewhere, "/T/blue", Err(Refusal::UnknownHost)),
        (Some("any"), Some("a b"), "/v1", Err(Refusal::UnknownHost)),
        // Nobody.
        (None, elsewhere, "/v1", Err(Refusal::NoKey)),
        (None, Some("acme.example.com"), "/v1", Err(Refusal::NoKey)),
        (None, elsewhere, "/t/blue", Err(Refusal::NoKey)),
        (Some(""), elsewhere, "/v1", Err(Refusal::UnknownKey)),
        (Some("nobody"), elsewhere, "/v1", Err(Refusal::UnknownKey)),
        // One thing here and another thing elsewhere.
        (Some("any"), elsewhere, "//t/blue", Err(Refusal::AmbiguousPath)),
        (Some("any"), elsewhere, "/x/../t/blue", Err(Refusal::AmbiguousPath)),
        (Some("any"), elsewhere, "/%74/blue", Err(Refusal::AmbiguousPath)),
        (Some("any"), elsewhere, "/t%252fblue", Err(Refusal::AmbiguousPath)),
        (Some("any"), elsewhere, "\\t\\blue", Err(Refusal::AmbiguousPath)),
        (Some("blue"), elsewhere, "/t/blue/%2e%2e/other", Err(Refusal::AmbiguousPath)),
        (Some("blue"), elsewhere, "/t/blue/..", Err(Refusal::AmbiguousPath)),
        (Some("blue"), elsewhere, "/t/blue/./sub", Err(Refusal::AmbiguousPath)),
    ] {
        assert_eq!(town.ask(key, host, path), expected, "{key:?} {host:?} {path}");
    }
}

#[test]
fn anonymous_callers_are_one_tenants_and_only_where_nobody_else_is() {
    let town = town(|roster| roster.set_anonymous("any".parse().unwrap()).unwrap());
    assert_eq!(town.ask(None, Some("localhost"), "/v1"), is("any", 0));
    assert_eq!(town.ask(None, None, "/v1"), is("any", 0));
    assert_eq!(town.ask(None, Some("acme.example.com"), "/v1"), Err(Refusal::NoKey));
    assert_eq!(town.ask(None, None, "/t/blue"), Err(Refusal::NoKey));
    assert_eq!(town.ask(Some("acme"), None, "/v1"), Err(Refusal::UnknownHost));
    for wrong in ["", "nobody", "nala_", "x"] {
        assert_eq!(town.ask(Some(wrong), None, "/v1"), Err(Refusal::UnknownKey), "{wrong}");
    }
    let placed = town_with_anonymous_blue();
    assert_eq!(placed.ask(None, None, "/t/blue/x"), is("blue", 7));
    assert_eq!(placed.ask(None, None, "/x"), Err(Refusal::NoKey));
    let mut roster = Roster::new();
    assert!(roster.set_anonymous("any".parse().unwrap()).is_err());
}

fn town_with_anonymous_blue() -> Town {
    town(|roster| roster.set_anonymous("blue".parse().unwrap()).unwrap())
}

#[test]
fn nobody_is_served_by_an_empty_roster_and_everybody_by_a_local_one() {
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
    let presented = Presented { by: Shown::Nothing, host: Some("x"), path: "/" };
    let empty = Directory::new(Roster::new(), &Totals::default(), Arc::clone(&clock));
    assert_eq!(empty.identify(&presented).unwrap_err(), Refusal::NoKey);
    let local = Directory::new(Roster::local(Limits::unlimited()), &Totals::default(), clock);
    assert_eq!(local.identify(&presented).unwrap().tenant.name().as_str(), "local");
    let keyed = Presented { by: Shown::Key("x"), ..presented };
    assert_eq!(local.identify(&keyed).unwrap_err(), Refusal::UnknownKey);
}

#[test]
fn keys_are_rotated_by_having_two_of_which_one_ends() {
    let (old, old_stored) = Key::generate().unwrap();
    let (new, new_stored) = Key::generate().unwrap();
    let town = town(|roster| {
        let ending = old_stored.with_expiry(Some(std::time::UNIX_EPOCH + Duration::from_secs(60)));
        roster.add(declared("two", &[&ending, &new_stored])).unwrap();
    });
    assert_eq!(town.ask(Some(old.expose()), None, "/"), is("two", 0));
    assert_eq!(town.ask(Some(new.expose()), None, "/"), is("two", 0));
    town.clock.advance(Duration::from_secs(60));
    assert_eq!(town.ask(Some(old.expose()), None, "/"), Err(Refusal::Expired));
    assert_eq!(town.ask(Some(new.expose()), None, "/"), is("two", 0));
}

#[test]
fn what_is_presented_is_shown_without_its_key() {
    let (secret, _) = Key::generate().unwrap();
    let text = format!("{:?}", Presented { by: Shown::Key(secret.expose()), host: Some("h"), path: "/p" });
    assert!(!text.contains(secret.expose()) && text.contains("/p"), "{text}");
}

#[test]
fn a_conflict_is_told_and_leaves_nothing_behind() {
    let keys = town(|_| {}).keys;
    let mut roster = roster(&keys);
    let host = || vec!["new.example.com".parse().unwrap(), "acme.example.com".parse().unwrap()];
    let bad = [
        declared("acme", &[]),
        Declared { hosts: host(), ..declared("x", &[]) },
        Declared { hosts: vec!["new.example.com".parse().unwrap(); 2], ..declared("x", &[]) },
        Declared { prefix: Some("/t/blue".parse().unwrap()), ..declared("x", &[]) },
        declared("x", &[&keys["nobody"].1, &keys["acme"].1]),
        declared("x", &[&keys["nobody"].1, &keys["nobody"].1]),
    ];
    for tenant in bad {
        let error = roster.add(tenant).unwrap_err().to_string();
        assert!(error.contains("already"), "{error}");
    }
    let good = Declared { hosts: vec![host().remove(0)], ..declared("x", &[&keys["nobody"].1]) };
    assert_eq!(roster.add(good), Ok(()));
}

#[test]
fn a_reload_keeps_what_is_held_used_and_owed() {
    let town = town(|_| {});
    let any = town.directory.tenant("any").unwrap();
    let held = any.hold(Stock::Memory, 100).unwrap();
    any.rate(Rate::TokensOut).charge(500_000);
    any.meter("c").add(Counter::TokensOut, 500_000);

    let mut next = Roster::new();
    let limits = Limits::default().with(Stock::Memory, 50);
    next.add(Declared { limits, ..declared("any", &[&town.keys["nobody"].1]) }).unwrap();
    town.directory.reload(next);

    assert_eq!(town.ask(Some("any"), None, "/"), Err(Refusal::UnknownKey));
    assert_eq!(town.ask(Some("acme"), Some("acme.example.com"), "/"), Err(Refusal::UnknownKey));
    assert_eq!(town.ask(Some("nobody"), None, "/"), is("any", 0));
    let again = town.directory.tenant("any").unwrap();
    assert_eq!(again.quota(Stock::Memory).used(), 100);
    // The new limit is for requests of before, too.
    assert!(any.hold(Stock::Memory, 1).is_err());
    drop(held);
    assert_eq!(again.quota(Stock::Memory).used(), 0);
    assert!(again.rate(Rate::TokensOut).check().is_err());

    // Gone and back again: neither debts nor counters are forgotten.
    town.directory.reload(Roster::new());
    assert!(town.directory.tenant("any").is_none());
    assert_eq!(town.directory.totals().get("any", "c").get(Counter::TokensOut), 500_000);
    town.directory.reload(roster(&town.keys));
    assert!(town.directory.tenant("any").unwrap().rate(Rate::TokensOut).check().is_err());
    assert_eq!(any.usage().get(Counter::TokensOut), 500_000);
}

#[test]
fn reloads_under_load_lose_no_guard_and_mix_nobody_up() {
    let town = town(|_| {});
    let done = AtomicBool::new(false);
    let asked: u64 = thread::scope(|scope| {
        let load = |name: &'static str, host: &'static str| {
            let (town, done) = (&town, &done);
            scope.spawn(move || {
                let (mut asked, mut held) = (0, Vec::new());
                while !done.load(Ordering::Relaxed) || asked < 100 {
                    let key = Some(town.keys[name].0.expose());
                    let identity =
                        town.directory.identify(&Presented { by: by(key), host: Some(host), path: "/v1" }).unwrap();
                    assert_eq!(identity.tenant.name().as_str(), name);
                    held.push(identity.tenant.hold(Stock::Handles, 3).unwrap());
                    identity.tenant.meter("c").add(Counter::Requests, 1);
                    asked += 1;
                    if held.len() > 50 {
                        held.clear();
                    }
                }
                asked
            })
        };
        let threads = [load("any", "x"), load("acme", "acme.example.com"), load("any", "[::2]")];
        for _ in 0..300 {
            town.directory.reload(roster(&town.keys));
        }
        done.store(true, Ordering::Relaxed);
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(town.directory.levels().all(|(_, _, used, _)| used == 0));
    let requests = town.directory.samples().filter(|sample| sample.counter == Counter::Requests);
    assert_eq!(requests.map(|sample| sample.value).sum::<u64>(), asked);
}

#[test]
fn counting_goes_on_from_what_was_restored() {
    let before = town(|_| {});
    before.directory.tenant("any").unwrap().meter("c").add(Counter::BytesIn, 5);
    before.directory.tenant("blue").unwrap().meter("c").add(Counter::BytesIn, 6);
    let totals = before.directory.totals();
    let mut roster = Roster::new();
    roster.add(declared("any", &[])).unwrap();
    let limits = Limits::default().with(Stock::Handles, 9);
    roster.add(Declared { limits, ..declared("acme", &[]) }).unwrap();
    let after = Directory::new(roster, &totals, Arc::new(ManualClock::default()));
    after.tenant("any").unwrap().meter("c").add(Counter::BytesIn, 1);
    assert_eq!(after.totals().get("any", "c").get(Counter::BytesIn), 6);
    assert_eq!(after.totals().get("blue", "c").get(Counter::BytesIn), 6);
    assert_eq!(after.tenant("acme").unwrap().quota(Stock::Handles).limit(), 9);
}

/// Paths of parts that matter to somebody who reads them.
fn path() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("/"),
        Just("//"),
        Just("\\"),
        Just("t"),
        Just("blue"),
        Just("sub"),
        Just("x"),
        Just("."),
        Just(".."),
        Just("%2e"),
        Just("%2E%2e"),
        Just("%2f"),
        Just("%5c"),
        Just("%252f"),
        Just("%74"),
        Just("%252e"),
        Just("/t/blue"),
        Just("?"),
        Just("#"),
        Just("%"),
    ];
    prop::collection::vec(part, 0..10).prop_map(|parts| format!("/{}", parts.concat()))
}

/// A reader of another kind than ours: it decodes until nothing is left to, and
/// goes along the segments with a stack.
fn read_elsewhere(path: &str) -> Vec<String> {
    let mut text = path.split(['?', '#']).next().unwrap().to_owned();
    for (from, to) in [("%25", "%"), ("%2e", "."), ("%2E", "."), ("%2f", "/"), ("%5c", "/"), ("%74", "t"), ("\\", "/")]
    {
        text = text.replace(from, to);
    }
    let mut stack = Vec::new();
    for part in text.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            stack.pop();
        } else {
            stack.push(part.to_owned());
        }
    }
    stack
}

proptest! {
    #[test]
    fn no_path_is_one_tenants_here_and_anothers_elsewhere(path in path()) {
        let town = town_with_keys();
        let elsewhere = read_elsewhere(&path);
        let owner = match elsewhere.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["t", "blue", "sub", ..] => "blue-sub",
            ["t", "blue", ..] => "blue",
            _ => "any",
        };
        for name in ["any", "blue", "blue-sub"] {
            match town.ask(Some(name), Some("x"), &path) {
                Ok((served, prefix)) => {
                    prop_assert_eq!(&served, name);
                    prop_assert_eq!(&served, owner, "{} reads as {:?}", path, elsewhere);
                    let stripped = path.get(prefix..).unwrap();
                    prop_assert!(matches!(stripped.bytes().next(), None | Some(b'/' | b'?' | b'#')), "{stripped}");
                }
                Err(refusal) => prop_assert!(
                    matches!(refusal, Refusal::WrongTenant | Refusal::AmbiguousPath | Refusal::UnknownHost),
                    "{refusal:?}"
                ),
            }
        }
    }

    #[test]
    fn nothing_that_is_presented_without_a_good_key_is_anybodys(key in prop::option::of(".{0,90}"), host in prop::option::of(".{0,30}"), path in ".{0,30}") {
        let town = town_with_keys();
        prop_assert!(town.ask(key.as_deref(), host.as_deref(), &path).is_err());
    }
}

/// Making keys takes time, and these tests need the same ones only.
fn town_with_keys() -> &'static Town {
    static TOWN: std::sync::LazyLock<Town> = std::sync::LazyLock::new(|| town(|_| {}));
    &TOWN
}

#[test]
fn a_token_says_who_somebody_is_as_a_key_does() {
    let town = town(|_| {});
    let ask = |tenant, host, path| {
        let identity = town.directory.identify(&Presented { by: Shown::Token { tenant }, host: Some(host), path })?;
        Ok((identity.tenant.name().to_string(), identity.path_prefix))
    };
    assert_eq!(ask("any", "localhost", "/v1"), is("any", 0));
    assert_eq!(ask("blue", "localhost", "/t/blue/v1"), is("blue", 7));
    assert_eq!(ask("any", "localhost", "/t/blue/v1"), Err(Refusal::WrongTenant));
    assert_eq!(ask("acme", "localhost", "/v1"), Err(Refusal::UnknownHost));
    assert_eq!(ask("nobody", "localhost", "/v1"), Err(Refusal::UnknownTenant));
    assert_eq!(ask("", "localhost", "/v1"), Err(Refusal::UnknownTenant));
}

#[test]
fn of_a_roster_one_class_can_be_served_alone() {
    let (mine, mine_stored) = Key::generate().unwrap();
    let (other, other_stored) = Key::generate().unwrap();
    let class: crate::ClassName = "untrusted".parse().unwrap();
    let mut roster = Roster::new();
    let name = |name: &str| name.parse::<TenantName>().unwrap();
    let of_class = Declared { class: Some(class.clone()), keys: vec![mine_stored], ..Declared::new(name("mine")) };
    roster.add(of_class).unwrap();
    roster.add(Declared { keys: vec![other_stored], ..Declared::new(name("other")) }).unwrap();
    roster.set_anonymous(name("other")).unwrap();
    let directory = Directory::new(roster.only(&class), &Totals::default(), Arc::new(ManualClock::default()));
    let show = |key| Presented { by: by(key), host: None, path: "/" };
    let tenant = directory.identify(&show(Some(mine.expose()))).unwrap().tenant;
    assert_eq!((tenant.name().as_str(), tenant.class()), ("mine", None));
    assert_eq!(directory.identify(&show(Some(other.expose()))).unwrap_err(), Refusal::UnknownKey);
    assert_eq!(directory.identify(&show(None)).unwrap_err(), Refusal::NoKey);
}
