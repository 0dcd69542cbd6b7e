//! What may not stand in source.

use super::code::{code_only, has_word};
use super::{File, Problem};

/// The one room that talks to C.
const UNSAFE_ROOM: &str = "host/llama/";
/// This check names what it looks for.
const HERE: &str = "xtask/src/tidy/";

/// Words that may not stand anywhere in source, comments included.
const PUT_OFF: &[&str] = &["TODO", "FIXME", "XXX"];

/// Rust code that may not stand anywhere, and why.
const FORBIDDEN: &[(&str, &str)] = &[
    ("todo!", "unfinished work: finish it or leave it out"),
    ("unimplemented!", "unfinished work: finish it or leave it out"),
    ("dbg!", "left over from debugging: use tracing"),
    ("#[ignore", "a test that does not run proves nothing: make it run or delete it"),
];

/// Names of modules that say nothing of what is in them.
const VAGUE: &[&str] = &["utils", "util", "helpers", "misc", "common"];

/// Checks a source file.
pub(super) fn check(file: &File) -> Vec<Problem> {
    if file.path.starts_with(HERE) {
        return Vec::new();
    }
    let mut problems = Vec::new();
    let ours = !super::wit::is_copied(file);
    if ours && ["rs", "wit", "toml", "py", "sh", "run"].contains(&file.ending()) {
        for (index, line) in file.text.lines().enumerate() {
            if let Some(word) = PUT_OFF.iter().find(|word| has_word(line, word)) {
                problems.push(Problem::line(
                    file,
                    index,
                    format!("{word}: do it now, or file an issue and leave it out"),
                ));
            }
        }
    }
    if file.ending() == "rs" {
        problems.extend(rust(file));
    }
    problems
}

fn rust(file: &File) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, line) in code_only(&file.text).lines().enumerate() {
        for (word, why) in FORBIDDEN {
            if line.contains(word) {
                problems.push(Problem::line(file, index, format!("{word}: {why}")));
            }
        }
        if has_word(line, "unsafe") && !file.path.starts_with(UNSAFE_ROOM) {
            problems.push(Problem::line(
                file,
                index,
                format!("unsafe outside {UNSAFE_ROOM}: one room is all that has to be audited"),
            ));
        }
    }
    let name = file.path.rsplit('/').next().and_then(|name| name.strip_suffix(".rs"));
    if name.is_some_and(|name| VAGUE.contains(&name)) && !file.path.starts_with("tests/") {
        problems.push(Problem::file(file, "a vague name: call it by what it knows"));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::file;

    fn count(path: &str, text: &str) -> usize {
        check(&file(path, text)).len()
    }

    #[test]
    fn unsafe_is_for_one_room() {
        assert_eq!(count("host/wasm/src/lib.rs", "fn f() { unsafe { g() } }\n"), 1);
        assert_eq!(count("components/x/src/lib.rs", "#[unsafe(no_mangle)]\n"), 1);
        assert_eq!(count("host/llama/src/lib.rs", "fn f() { unsafe { g() } }\n"), 0);
        assert_eq!(count("host/wasm/src/lib.rs", "// unsafe\n#![deny(unsafe_code)]\n"), 0);
        assert_eq!(count("host/wasm/src/lib.rs", "let text = \"unsafe\";\n"), 0);
    }

    #[test]
    fn unfinished_work_is_told_in_comments_too() {
        assert_eq!(count("a.rs", "// TODO: later\n"), 1);
        assert_eq!(count("a.wit", "/// FIXME\n"), 1);
        assert_eq!(count("wit/wasi-nn/wasi-nn.wit", "/// TODO: theirs\n"), 0);
        assert_eq!(count("a.rs", "fn f() { todo!() }\n"), 1);
        assert_eq!(count("a.rs", "fn f() { unimplemented!() }\n"), 1);
        assert_eq!(count("a.rs", "fn f() { dbg!(1); }\n"), 1);
        assert_eq!(count("a.rs", "const TODOS: u8 = 1;\n"), 0);
        assert_eq!(count("a.md", "TODO\n"), 0);
    }

    #[test]
    fn ignored_tests_are_told() {
        assert_eq!(count("a.rs", "#[test]\n#[ignore]\nfn f() {}\n"), 1);
        assert_eq!(count("a.rs", "#[ignore = \"slow\"]\n"), 1);
    }

    #[test]
    fn vague_names_are_told() {
        assert_eq!(count("host/x/src/utils.rs", ""), 1);
        assert_eq!(count("host/x/src/queue.rs", ""), 0);
    }
}
