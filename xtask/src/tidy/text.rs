//! What holds for every text file.

use super::{File, Problem};

/// A file longer than this holds more than one idea.
const MAX_LINES: usize = 800;
/// The endings of files that people write and must be able to take in.
const WRITTEN: &[&str] = &["rs", "wit", "toml", "py", "mjs", "sh", "md"];
/// Folders whose files are as somebody else made them, byte for byte.
const GIVEN: &[&str] = &["/testdata/", "/fixtures/", "/snapshots/", "/goldens/", "/wit/wasi-", "/wit/fermyon-"];

/// Checks length and white space.
pub(super) fn check(file: &File) -> Vec<Problem> {
    let given = file.path == "LICENSE" || file.ending() == "lock";
    if given || GIVEN.iter().any(|folder| format!("/{}", file.path).contains(folder)) {
        return Vec::new();
    }
    let mut problems = Vec::new();
    let lines = file.text.lines().count();
    if lines > MAX_LINES && WRITTEN.contains(&file.ending()) {
        problems.push(Problem::file(
            file,
            format!("{lines} lines, more than {MAX_LINES}: split it by what its parts know"),
        ));
    }
    for (index, line) in file.text.lines().enumerate() {
        if line.ends_with([' ', '\t']) {
            problems.push(Problem::line(file, index, "white space at the end: it makes noise in diffs"));
        }
    }
    if !file.text.is_empty() && !file.text.ends_with('\n') {
        problems.push(Problem::file(file, "no line end at the end: the next added line changes two"));
    }
    if file.text.contains('\r') {
        problems.push(Problem::file(file, "carriage returns: lines end in a line feed alone"));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::file;

    #[test]
    fn long_files_are_told() {
        assert!(check(&file("a.rs", &"x\n".repeat(800))).is_empty());
        assert_eq!(check(&file("a.rs", &"x\n".repeat(801))).len(), 1);
        assert!(check(&file("Cargo.lock", &"x\n".repeat(801))).is_empty());
    }

    #[test]
    fn white_space_is_told() {
        assert_eq!(check(&file("a.md", "a \n")).first().unwrap().line, Some(1));
        assert_eq!(check(&file("a.md", "a\nb\t\n")).first().unwrap().line, Some(2));
        assert_eq!(check(&file("a.md", "a")).len(), 1);
        assert_eq!(check(&file("a.md", "a\r\nb\r\n")).len(), 1);
        assert!(check(&file("a.md", "a\n")).is_empty());
    }

    #[test]
    fn what_others_made_is_left_alone() {
        assert!(check(&file("tests/testdata/a.md", "a \r\n")).is_empty());
        assert!(check(&file("wit/wasi-io/poll.wit", "a")).is_empty());
    }
}
