//! A state folder as its users see it.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking"
)]

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::num::NonZeroU64;
use std::path::Path;
use std::time::{Duration, SystemTime};

use nala_deploy::{
    AppName, Collected, Component, Digest, Error, Manifest, State, TenantLimits, TenantName, Usage, VersionNumber,
};
use serde_json::json;

const HOUR: Duration = Duration::from_secs(3600);
const LIMITS: TenantLimits = TenantLimits {
    component_bytes: 100_000,
    components: 4,
    bytes: 200_000,
    applications: 2,
    versions: NonZeroU64::new(3).unwrap(),
};

fn acme() -> TenantName {
    "acme".parse().unwrap()
}

fn zeta() -> TenantName {
    "zeta".parse().unwrap()
}

fn shop() -> AppName {
    "shop".parse().unwrap()
}

fn number(number: u64) -> VersionNumber {
    number.to_string().parse().unwrap()
}

fn manifest(components: &[(&str, Digest)]) -> Manifest {
    let facts = json!({"imports": ["wasi:http/types@0.2.0"], "granted": [], "limits": {"memory": 1_000_000}});
    let component = |digest: &Digest| Component { digest: *digest, facts: facts.clone() };
    Manifest {
        spin_toml: "spin_manifest_version = 2\n".to_owned(),
        components: components.iter().map(|(id, digest)| ((*id).to_owned(), component(digest))).collect(),
        note: "the first".to_owned(),
        by: "mia".to_owned(),
        created_unix_s: 1_700_000_000,
    }
}

fn put(state: &State, tenant: &TenantName, bytes: &[u8]) -> Digest {
    state.put_component(tenant, bytes, &LIMITS).unwrap()
}

/// Deploys a component of these bytes as `shop` of `acme`.
fn deploy(state: &State, bytes: &[u8]) -> VersionNumber {
    let digest = put(state, &acme(), bytes);
    state.deploy(&acme(), &shop(), &manifest(&[("front", digest)]), &LIMITS).unwrap().number
}

fn blobs(folder: &Path) -> usize {
    std::fs::read_dir(folder.join("blobs/sha256")).unwrap().count()
}

#[test]
fn what_is_deployed_is_there_after_opening_again() {
    let folder = tempfile::tempdir().unwrap();
    let state = State::open(folder.path().join("new")).unwrap();
    let digest = put(&state, &acme(), b"code");
    let deployed = state.deploy(&acme(), &shop(), &manifest(&[("front", digest)]), &LIMITS).unwrap();
    assert_eq!((deployed.number, deployed.components["front"].bytes), (VersionNumber::FIRST, 4));
    drop(state);

    let state = State::open(folder.path().join("new")).unwrap();
    let current = state.current(&acme(), &shop()).unwrap();
    assert_eq!(current, deployed);
    assert_eq!((&*current.by, current.created_unix_s), ("mia", 1_700_000_000));
    assert_eq!(current.components["front"].facts["limits"]["memory"], 1_000_000);
    assert_eq!(state.read_component(&digest).unwrap(), b"code");
    assert_eq!(std::fs::read(state.component_path(&digest).unwrap()).unwrap(), b"code");
    assert_eq!(state.usage(&acme()), Usage { components: 1, bytes: 4, applications: 1 });
    let listed = state.list(None);
    assert_eq!((listed.len(), &listed[0].app, listed[0].current), (1, &shop(), VersionNumber::FIRST));
    assert_eq!(state.list(Some(&zeta())), []);
}

#[test]
fn one_goes_back_and_on_and_removes() {
    let folder = tempfile::tempdir().unwrap();
    let state = State::open(folder.path()).unwrap();
    for bytes in [b"1", b"2", b"3", b"4"] {
        deploy(&state, bytes);
    }
    let history = state.history(&acme(), &shop()).unwrap();
    let numbers: Vec<u64> = history.versions.iter().map(|version| version.number.get()).collect();
    assert_eq!((numbers, history.current.get()), (vec![2, 3, 4], 4));

    state.roll_back(&acme(), &shop(), number(2)).unwrap();
    assert_eq!(state.current(&acme(), &shop()).unwrap().components["front"].digest, Digest::of(b"2"));
    let error = state.roll_back(&acme(), &shop(), number(1)).unwrap_err().to_string();
    assert_eq!(error, "shop of acme has no version 1: choose one of its history, from 2 to 4");
    assert_eq!(state.inspect(&acme(), &shop(), number(3)).unwrap().components["front"].digest, Digest::of(b"3"));
    assert!(matches!(state.inspect(&acme(), &shop(), number(9)), Err(Error::NoSuchVersion { .. })));

    state.remove(&acme(), &shop()).unwrap();
    for error in [
        state.current(&acme(), &shop()).unwrap_err(),
        state.remove(&acme(), &shop()).unwrap_err(),
        state.roll_back(&acme(), &shop(), number(2)).unwrap_err(),
        state.history(&acme(), &shop()).unwrap_err(),
    ] {
        assert!(matches!(error, Error::NoSuchApplication { .. }), "{error}");
    }
    assert_eq!(deploy(&state, b"5"), VersionNumber::FIRST);
}

#[test]
fn a_digest_is_no_key_to_what_others_have_put() {
    let folder = tempfile::tempdir().unwrap();
    let state = State::open(folder.path()).unwrap();
    let digest = put(&state, &acme(), b"secret");
    let manifest = manifest(&[("front", digest)]);
    let error = state.deploy(&zeta(), &shop(), &manifest, &LIMITS).unwrap_err();
    assert!(matches!(&error, Error::NoSuchComponent { component, .. } if component == "front"), "{error}");
    assert_eq!(state.list(None), []);
    // Who has the bytes may, and they are stored once.
    put(&state, &zeta(), b"secret");
    state.deploy(&zeta(), &shop(), &manifest, &LIMITS).unwrap();
    assert_eq!(blobs(folder.path()), 1);
}

#[test]
fn limits_are_a_tenants_own() {
    let folder = tempfile::tempdir().unwrap();
    let state = State::open(folder.path()).unwrap();
    let put = |tenant: &TenantName, bytes: &[u8]| state.put_component(tenant, bytes, &LIMITS);
    let error = put(&acme(), &[0; 100_001]).unwrap_err();
    assert!(matches!(error, Error::ComponentTooLarge { limit: 100_000 }), "{error}");
    put(&acme(), &[0; 100_000]).unwrap();
    put(&acme(), &[1; 99_000]).unwrap();
    let error = put(&acme(), &[2; 1001]).unwrap_err();
    assert!(matches!(error, Error::TooManyBytes { wanted: 200_001, limit: 200_000, .. }), "{error}");
    // What is there costs nothing more.
    put(&acme(), &[0; 100_000]).unwrap();
    put(&acme(), b"3").unwrap();
    put(&acme(), b"4").unwrap();
    let error = put(&acme(), b"5").unwrap_err();
    assert!(matches!(error, Error::TooManyComponents { wanted: 5, limit: 4, .. }), "{error}");
    put(&zeta(), b"5").unwrap();
    // Refused bytes are not left anywhere.
    assert_eq!((blobs(folder.path()), std::fs::read_dir(folder.path().join("drafts")).unwrap().count()), (5, 0));

    let manifest = manifest(&[("front", Digest::of(b"3"))]);
    for app in ["one", "two", "two"] {
        state.deploy(&acme(), &app.parse().unwrap(), &manifest, &LIMITS).unwrap();
    }
    let error = state.deploy(&acme(), &"three".parse().unwrap(), &manifest, &LIMITS).unwrap_err();
    assert!(matches!(error, Error::TooManyApplications { limit: 2, .. }), "{error}");
}

#[test]
fn what_nobody_names_is_collected_once_it_is_old() {
    let folder = tempfile::tempdir().unwrap();
    let state = State::open(folder.path()).unwrap();
    deploy(&state, b"deployed");
    put(&state, &acme(), b"put");
    let now = SystemTime::now();
    assert_eq!(state.collect(HOUR, now).unwrap(), Collected::default());
    assert_eq!(state.collect(HOUR, now - 2 * HOUR).unwrap(), Collected::default(), "a clock that was put back");
    assert!(state.holds(&acme(), &Digest::of(b"put")));
    let collected = state.collect(HOUR, now + 2 * HOUR).unwrap();
    assert_eq!(collected, Collected { claims: 1, components: 1, bytes: 3 });
    assert!(!state.holds(&acme(), &Digest::of(b"put")));
    assert!(matches!(state.read_component(&Digest::of(b"put")), Err(Error::NoSuchBlob(_))));
    // What old versions name stays as long as they do.
    for bytes in [b"2", b"3", b"4"] {
        deploy(&state, bytes);
    }
    let collected = state.collect(HOUR, now).unwrap();
    assert_eq!(collected, Collected { claims: 0, components: 1, bytes: 8 });
    state.verify().unwrap();
}

#[test]
fn putting_again_keeps_it_for_longer() {
    let folder = tempfile::tempdir().unwrap();
    let state = State::open(folder.path()).unwrap();
    let digest = put(&state, &acme(), b"put");
    let hex = digest.to_string().replace("sha256:", "");
    let claim = std::fs::File::options().write(true).open(folder.path().join("claims/acme").join(hex)).unwrap();
    claim.set_modified(SystemTime::now() - 2 * HOUR).unwrap();
    drop(state);
    let state = State::open(folder.path()).unwrap();
    put(&state, &acme(), b"put");
    assert_eq!(state.collect(HOUR, SystemTime::now()).unwrap(), Collected::default());
}

#[test]
fn puts_and_collections_at_the_same_time_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let state = State::open(folder.path()).unwrap();
    let limits = TenantLimits { components: 1000, applications: 1000, ..LIMITS };
    std::thread::scope(|scope| {
        for worker in 0..4_u32 {
            let (state, limits) = (&state, &limits);
            scope.spawn(move || {
                for n in 0..10_u32 {
                    // Half of them are put by several at once.
                    let bytes = if n % 2 == 0 { format!("shared {n}") } else { format!("{worker} {n}") };
                    let digest = state.put_component(&acme(), bytes.as_bytes(), limits).unwrap();
                    let app = format!("app-{worker}-{n}").parse().unwrap();
                    state.deploy(&acme(), &app, &manifest(&[("front", digest)]), limits).unwrap();
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..20 {
                state.collect(HOUR, SystemTime::now()).unwrap();
            }
        });
    });
    state.verify().unwrap();
    assert_eq!(state.list(None).len(), 40);
    drop(state);
    State::open(folder.path()).unwrap().verify().unwrap();
}

#[test]
fn a_reader_that_fails_leaves_nothing() {
    struct Broken(u32);
    impl Read for Broken {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0 += 1;
            match self.0 {
                1 => Ok(buffer.len()),
                2 => Err(io::ErrorKind::Interrupted.into()),
                _ => Err(io::Error::other("the connection is gone")),
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let state = State::open(folder.path()).unwrap();
    let error = state.put_component(&acme(), Broken(0), &LIMITS).unwrap_err();
    assert_eq!(error.to_string(), "the component could not be read to its end: the connection is gone");
    assert_eq!((blobs(folder.path()), std::fs::read_dir(folder.path().join("drafts")).unwrap().count()), (0, 0));
}

#[test]
fn damage_is_found_and_named() {
    let digest = Digest::of(b"code");
    let blob = format!("blobs/sha256/{}", digest.to_string().replace("sha256:", ""));
    let cases: &[(&str, Option<&[u8]>, &str)] = &[
        (&blob, Some(b"c"), "is not there with its 4 bytes"),
        (&blob, None, "is not there with its 4 bytes"),
        ("apps/acme/shop/current", Some(b"{"), "damaged at"),
        ("apps/acme/shop/current", Some(br#"{"current":2,"last":1,"kept":[1]}"#), "version 2 runs and is not kept"),
        ("apps/acme/shop/versions/1.json", None, "the record names this version"),
        ("apps/acme/shop/versions/1.json", Some(b"{}"), "missing field"),
        ("format", Some(b"something else"), "no state folder that this version can read"),
    ];
    for (path, content, why) in cases {
        let folder = tempfile::tempdir().unwrap();
        deploy(&State::open(folder.path()).unwrap(), b"code");
        match content {
            Some(content) => std::fs::write(folder.path().join(path), content).unwrap(),
            None => std::fs::remove_file(folder.path().join(path)).unwrap(),
        }
        let error = State::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains(why), "{path}: {error}");
    }
    // Only reading it shows this one.
    let folder = tempfile::tempdir().unwrap();
    deploy(&State::open(folder.path()).unwrap(), b"code");
    std::fs::write(folder.path().join(&blob), b"c0de").unwrap();
    let state = State::open(folder.path()).unwrap();
    for error in [state.verify().unwrap_err(), state.read_component(&digest).unwrap_err()] {
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
    }
}

#[test]
fn a_folder_of_something_else_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("letter.txt"), "dear").unwrap();
    let error = State::open(folder.path()).unwrap_err();
    assert!(matches!(error, Error::Format { .. }), "{error}");
    assert_eq!(std::fs::read_to_string(folder.path().join("letter.txt")).unwrap(), "dear");
}

#[test]
fn facts_that_could_not_be_read_again_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let state = State::open(folder.path()).unwrap();
    let digest = put(&state, &acme(), b"code");
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    let components = BTreeMap::from([("front".to_owned(), Component { digest, facts: deep })]);
    let error = state.deploy(&acme(), &shop(), &Manifest { components, ..Manifest::default() }, &LIMITS).unwrap_err();
    assert!(error.to_string().contains("nest it less deeply"), "{error}");
    assert_eq!(state.list(None), []);
}
