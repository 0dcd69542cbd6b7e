//! Files that are something else, belong to somebody else or cannot grow.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests fail by panicking")]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use nala_keyvalue::{Config, Error, KeyValue, OpenError, Scope, Store};

const FILE: &str = "keyvalue.redb";
/// Tells a child where to work.
const HOLD: &str = "NALA_TEST_KEYVALUE_HOLD";
const FULL: &str = "NALA_TEST_KEYVALUE_FULL";

fn open(folder: &Path) -> Result<KeyValue, OpenError> {
    KeyValue::open(folder, Config::default())
}

fn store(kv: &KeyValue) -> Store {
    kv.store(&Scope::new("t", "a").unwrap(), "s").unwrap()
}

#[test]
fn data_is_there_again_and_for_the_host_alone() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("made/if/missing");
    store(&open(&inner).unwrap()).set("k", b"v").unwrap();
    let mode = std::fs::metadata(inner.join(FILE)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = open(&inner).unwrap();
    assert_eq!(store(&again).get("k").unwrap().unwrap(), b"v");
}

#[test]
fn what_is_no_database_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(FILE);
    for content in [b"x".to_vec(), b"some text\n".repeat(1000), vec![0; 100_000]] {
        std::fs::write(&file, &content).unwrap();
        let error = open(folder.path()).unwrap_err();
        assert!(matches!(error, OpenError::NotADatabase { .. }), "{error:?}");
        assert!(error.to_string().contains(FILE) && error.to_string().contains("move it away"), "{error}");
        assert!(std::fs::read(&file).unwrap() == content, "the file was changed");
    }
}

#[test]
fn a_folder_that_cannot_be_is_told() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let error = open(&folder.path().join("file")).unwrap_err();
    assert!(matches!(error, OpenError::Folder { .. }), "{error:?}");
    std::fs::create_dir(folder.path().join(FILE)).unwrap();
    let error = open(folder.path()).unwrap_err();
    assert!(matches!(error, OpenError::Io { .. }), "{error:?}");
}

#[test]
fn a_redb_file_of_somebody_else_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let table: redb::TableDefinition<'_, u64, u64> = redb::TableDefinition::new("theirs");
    let other = redb::Database::create(folder.path().join(FILE)).unwrap();
    let transaction = other.begin_write().unwrap();
    transaction.open_table(table).unwrap().insert(1, 2).unwrap();
    transaction.commit().unwrap();
    drop(other);
    let error = open(folder.path()).unwrap_err();
    assert!(matches!(error, OpenError::NotADatabase { .. }) && error.to_string().contains("theirs"), "{error}");
    // One of another format.
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()).unwrap());
    let facts: redb::TableDefinition<'_, &str, u64> = redb::TableDefinition::new("facts");
    let newer = redb::Database::open(folder.path().join(FILE)).unwrap();
    let transaction = newer.begin_write().unwrap();
    transaction.open_table(facts).unwrap().insert("format", 2).unwrap();
    transaction.commit().unwrap();
    drop(newer);
    let error = open(folder.path()).unwrap_err();
    assert!(matches!(error, OpenError::Format { found: 2, expected: 1, .. }), "{error}");
}

#[test]
fn damaged_files_give_errors_and_no_panics() {
    let folder = tempfile::tempdir().unwrap();
    let whole = {
        let kv = open(folder.path()).unwrap();
        for n in 0..200 {
            store(&kv).set(&format!("k{n}"), &[n; 300]).unwrap();
        }
        drop(kv);
        std::fs::read(folder.path().join(FILE)).unwrap()
    };
    let mut refused = 0;
    for place in (0..whole.len()).step_by(whole.len() / 150) {
        let mut damaged = whole.clone();
        damaged[place..].iter_mut().take(16).for_each(|byte| *byte ^= 0x55);
        std::fs::write(folder.path().join(FILE), &damaged).unwrap();
        // The file was closed in order, so that damage may first be found by a read.
        match open(folder.path()) {
            Err(error) => {
                assert!(error.to_string().contains(FILE), "{error}");
                refused += 1;
            }
            Ok(kv) => {
                let store = store(&kv);
                let _ = (store.get_keys(), store.get("k7"), store.set("k8", b"x"), kv.recount());
            }
        }
    }
    for length in [0, 1, 100, 4096, whole.len() / 2, whole.len() - 1] {
        std::fs::write(folder.path().join(FILE), &whole[..length]).unwrap();
        let outcome = open(folder.path());
        assert_eq!(outcome.is_ok(), length == 0, "{length} bytes: {outcome:?}");
    }
    println!("{refused} damaged files were refused when they were opened");
}

/// A child that holds the file until its input ends.
#[test]
fn hold_the_file() {
    let Some(folder) = std::env::var_os(HOLD) else { return };
    let _kv = open(Path::new(&folder)).unwrap();
    println!("\nholding");
    std::io::stdout().flush().unwrap();
    let _ = std::io::stdin().lines().count();
}

#[test]
fn a_file_that_another_process_has_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "hold_the_file", "--nocapture"])
        .env(HOLD, folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "holding"));
    let error = open(folder.path()).unwrap_err();
    assert!(matches!(error, OpenError::Locked { .. }), "{error:?}");
    assert!(error.to_string().contains("another process"), "{error}");
    drop(child.stdin.take());
    lines.for_each(drop);
    assert!(child.wait().unwrap().success());
    // In one process, too; and what is closed can be opened.
    let kv = open(folder.path()).unwrap();
    assert!(matches!(open(folder.path()), Err(OpenError::Locked { .. })));
    drop(kv);
    open(folder.path()).unwrap();
}

/// A child whose files may not grow beyond some size.
#[test]
fn fill_the_disk() {
    let Some(folder) = std::env::var_os(FULL) else { return };
    let kv = open(Path::new(&folder)).unwrap();
    let store = store(&kv);
    let value = |n: u32| vec![n as u8; 50_000];
    let mut kept = 0;
    let error = loop {
        match store.set(&format!("k{kept}"), &value(kept)) {
            Ok(()) => kept += 1,
            Err(error) => break error,
        }
        assert!(kept < 1000, "the limit does not hold");
    };
    assert!(kept > 10, "{kept}: {error}");
    assert!(matches!(error, Error::Io(_)), "{error:?}");
    for round in 0..3 {
        for n in 0..kept {
            assert_eq!(store.get(&format!("k{n}")).unwrap().unwrap(), value(n), "round {round}");
        }
        let again = store.set("large", &vec![0; 500_000]);
        assert!(matches!(again, Err(Error::Io(_))), "{again:?}");
    }
    assert_eq!(kv.recount().unwrap().differences, []);
    assert_eq!(kv.recount().unwrap().keys, u64::from(kept));
    // What is deleted makes room.
    for n in 0..kept / 2 {
        store.delete(&format!("k{n}")).unwrap();
    }
    store.set("new", &value(1)).unwrap();
    println!("\n{kept} values were kept on the full disk: {error}");
}

#[test]
fn a_full_disk_is_an_error_and_what_is_there_is_read() {
    let folder = tempfile::tempdir().unwrap();
    // Blocks of 512 bytes; without the trap, the system would end the child.
    let script = "trap '' XFSZ; ulimit -f 8192; exec \"$0\" --exact fill_the_disk --nocapture";
    let ended = Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .env(FULL, folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{text}\n{}", String::from_utf8_lossy(&ended.stderr));
    assert!(text.contains("values were kept"), "{text}");
    println!("{text}");
    let kv = open(folder.path()).unwrap();
    assert!(store(&kv).exists("new").unwrap());
}
