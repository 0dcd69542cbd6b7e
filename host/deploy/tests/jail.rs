//! The jail around a helper that behaves in every way that a compiler should not.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking"
)]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nala_deploy::{Jail, JailError, JailLimits, Slowness};

/// Builds with the tests, as every example of the package does.
fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.parent().unwrap().parent().unwrap().join("examples").join(name);
    assert!(path.is_file(), "{} is not there: run `cargo build --release -p nala-deploy --examples`", path.display());
    path
}

const LIMITS: JailLimits = JailLimits {
    cpu: Duration::from_secs(20),
    wall: Duration::from_secs(60),
    memory_bytes: 256 << 20,
    output_bytes: 1 << 20,
};

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn output(&self) -> PathBuf {
        self.folder.path().join("output")
    }

    fn compile(&self, input: &str, limits: &JailLimits) -> Result<String, JailError> {
        let path = self.folder.path().join("input");
        std::fs::write(&path, input).unwrap();
        let jail = Jail::new(example("jailed"), ["compile"]);
        let compiled = jail.compile(&path, &self.output(), limits)?;
        let text = std::fs::read_to_string(self.output()).unwrap();
        assert_eq!(compiled.bytes, text.len() as u64);
        Ok(text)
    }

    /// What is left beside the input.
    fn files(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.folder.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name != "input").collect()
    }
}

/// Runs what fails, and checks that nothing is left of it.
fn failure(input: &str, limits: &JailLimits) -> JailError {
    let place = Place::new();
    let error = place.compile(input, limits).unwrap_err();
    assert_eq!(place.files(), Vec::<String>::new(), "{input} leaves something behind");
    error
}

#[test]
fn what_is_compiled_is_there() {
    let place = Place::new();
    assert_eq!(place.compile("copy some code", &LIMITS).unwrap(), "some code");
    assert_eq!(place.files(), ["output"]);
}

#[test]
fn a_failure_leaves_what_was_there_before() {
    let place = Place::new();
    place.compile("copy some code", &LIMITS).unwrap();
    place.compile("refuse it", &LIMITS).unwrap_err();
    assert_eq!(std::fs::read_to_string(place.output()).unwrap(), "some code");
    assert_eq!(place.files(), ["output"]);
}

#[test]
fn nothing_is_inherited() {
    assert_eq!(Place::new().compile("tell", &LIMITS).unwrap(), "0 variables, 0 bytes");
}

#[test]
fn what_the_helper_says_is_told() {
    match failure("refuse the type at 0x17 is not known", &LIMITS) {
        JailError::Rejected(message) => assert_eq!(message, "the type at 0x17 is not known"),
        error => panic!("{error}"),
    }
}

#[test]
fn a_flood_of_messages_is_cut_and_does_not_stand_still() {
    match failure("flood", &LIMITS) {
        JailError::Rejected(message) => assert_eq!(message.len(), 4096),
        error => panic!("{error}"),
    }
}

#[test]
fn cpu_time_ends() {
    let limits = JailLimits { cpu: Duration::from_millis(300), ..LIMITS };
    let error = failure("loop", &limits);
    assert!(matches!(error, JailError::TooSlow(Slowness::Cpu(_))), "{error}");
}

#[test]
fn time_by_the_clock_ends() {
    let limits = JailLimits { wall: Duration::from_millis(300), ..LIMITS };
    let begin = Instant::now();
    let error = failure("sleep", &limits);
    assert!(matches!(error, JailError::TooSlow(Slowness::Wall(_))), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(30), "it took {:?}", begin.elapsed());
    assert_eq!(error.to_string(), "compiling took longer than 300ms: make the component smaller, or raise the limit");
}

#[test]
fn memory_ends() {
    let error = failure("allocate", &LIMITS);
    assert!(matches!(error, JailError::TooMuchMemory { limit } if limit == 256 << 20), "{error}");
}

#[test]
fn the_output_ends() {
    let error = failure("write", &LIMITS);
    assert!(matches!(error, JailError::TooLarge { limit: 1_048_576 }), "{error}");
}

#[test]
fn open_files_end() {
    match failure("open", &LIMITS) {
        JailError::Rejected(message) => assert!(message.contains("Too many open files"), "{message}"),
        error => panic!("{error}"),
    }
}

#[test]
fn a_crash_is_told_apart() {
    let error = failure("crash", &LIMITS);
    assert!(matches!(error, JailError::Crashed { signal: 6, .. }), "{error}");
}

#[test]
fn an_output_has_to_be_a_file() {
    for input in ["vanish", "link"] {
        let error = failure(input, &LIMITS);
        assert!(matches!(error, JailError::NoOutput), "{input}: {error}");
    }
}

#[test]
fn who_is_left_behind_ends_too() {
    let place = Place::new();
    let left = place.compile("fork", &LIMITS).unwrap();
    gone(&left);
}

#[test]
fn who_is_left_behind_by_one_that_is_late_ends_too() {
    let place = Place::new();
    std::fs::write(place.folder.path().join("input"), "fork and-sleep").unwrap();
    let limits = JailLimits { wall: Duration::from_secs(3), ..LIMITS };
    let draft = place.folder.path().join("output.compiling");
    let left = std::thread::scope(|scope| {
        let read = scope.spawn(|| {
            let end = Instant::now() + Duration::from_secs(2);
            while Instant::now() < end {
                match std::fs::read_to_string(&draft) {
                    Ok(text) if !text.is_empty() => return text,
                    _ => std::thread::sleep(Duration::from_millis(5)),
                }
            }
            panic!("nobody was started in time");
        });
        let error = place.compile("fork and-sleep", &limits).unwrap_err();
        assert!(matches!(error, JailError::TooSlow(Slowness::Wall(_))), "{error}");
        read.join().unwrap()
    });
    gone(&left);
}

/// Waits until a process is not there or has only not been waited for.
fn gone(pid: &str) {
    let status = Path::new("/proc").join(pid).join("stat");
    let end = Instant::now() + Duration::from_secs(10);
    while std::fs::read_to_string(&status).is_ok_and(|text| text.contains("(sleep)") && !text.contains(") Z ")) {
        assert!(Instant::now() < end, "process {pid} is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_helper_that_is_not_there_is_named() {
    let place = Place::new();
    let jail = Jail::new("/no/such/helper", ["compile"]);
    let error = jail.compile(&place.output(), &place.output(), &LIMITS).unwrap_err().to_string();
    assert!(error.starts_with("/no/such/helper does not start: "), "{error}");
}
