//! `cargo xtask tidy`: the project's own rules, each with its reason.
//!
//! A rule that matters is checked here or by a lint; one that only stands in a
//! document is forgotten.

mod code;
mod links;
mod manifests;
mod rooms;
mod source;
mod text;
mod wit;

use std::fmt;

use anyhow::{Result, bail};

use crate::process::say;
use crate::repo::Repo;

/// A file of ours that is text.
struct File {
    /// Relative to the root, with `/`.
    path: String,
    text: String,
}

impl File {
    /// The part of the name after the last dot; the name where there is none.
    fn ending(&self) -> &str {
        self.path.rsplit(['.', '/']).next().unwrap_or_default()
    }
}

/// A rule that is broken, and why it is one.
#[derive(Debug, PartialEq, Eq)]
struct Problem {
    path: String,
    /// From 1; none for the file as a whole.
    line: Option<usize>,
    what: String,
}

impl Problem {
    fn file(file: &File, what: impl Into<String>) -> Self {
        Self { path: file.path.clone(), line: None, what: what.into() }
    }

    /// `index` counts lines from 0.
    fn line(file: &File, index: usize, what: impl Into<String>) -> Self {
        Self { path: file.path.clone(), line: Some(index + 1), what: what.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.what),
            None => write!(f, "{}: {}", self.path, self.what),
        }
    }
}

/// Runs the verb.
///
/// # Errors
/// A rule is broken, or a file cannot be read.
pub(crate) fn main(repo: &Repo) -> Result<()> {
    let files = read(repo)?;
    let mut problems = Vec::new();
    for check in [text::check, source::check, wit::check, manifests::check] {
        problems.extend(files.iter().flat_map(check));
    }
    problems.extend(files.iter().flat_map(|file| links::check(file, &|path| repo.path(path).exists())));
    problems.extend(rooms::check(&rooms::Graph::of(repo)?));
    if problems.is_empty() {
        say(&format!("tidy: {} files keep the rules", files.len()));
        return Ok(());
    }
    for problem in &problems {
        eprintln!("{problem}");
    }
    bail!("{} rules are broken: each line above says which and why", problems.len())
}

/// Reads all text files; what is not UTF-8 is none.
fn read(repo: &Repo) -> Result<Vec<File>> {
    let mut files = Vec::new();
    for path in repo.files()? {
        let bytes = std::fs::read(repo.root().join(&path))?;
        if let (Ok(text), Some(path)) = (String::from_utf8(bytes), path.to_str()) {
            files.push(File { path: path.to_owned(), text });
        }
    }
    Ok(files)
}

#[cfg(test)]
fn file(path: &str, text: &str) -> File {
    File { path: path.to_owned(), text: text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_names_its_place() {
        let file = file("a/b.rs", "");
        assert_eq!(Problem::line(&file, 0, "x").to_string(), "a/b.rs:1: x");
        assert_eq!(Problem::file(&file, "x").to_string(), "a/b.rs: x");
        assert_eq!(file.ending(), "rs");
    }
}
