//! Whole answers and streams of tests, as files beside the sources.
//!
//! `NALA_WRITE_SNAPSHOTS=1` writes them anew instead of comparing; look at what changed.

use std::path::Path;

/// Compares a text with a file of a folder, which is given from `src/` on.
pub(crate) fn compare(folder: &str, file: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(folder).join(file);
    if std::env::var_os("NALA_WRITE_SNAPSHOTS").is_some() {
        std::fs::write(&path, actual).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    for (number, (is, must)) in actual.lines().zip(expected.lines()).enumerate() {
        assert_eq!(is, must, "line {} of {file}", number + 1);
    }
    assert_eq!(actual, expected, "{file} differs");
}
