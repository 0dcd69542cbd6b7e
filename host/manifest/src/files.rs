//! `files` and `exclude_files`: what of the manifest's folder a component sees.
//!
//! A pattern is relative to the manifest's folder; what it matches has the same
//! path for the component, below `/`. `*` and `?` stay in one folder, `**` goes
//! through any number of them; in `exclude_files`, `*` goes through folders as
//! well. A symbolic link is followed if what it leads to is in the folder, and
//! refused if not.
//!
//! Source: <https://spinframework.dev/writing-apps#including-files-with-components>.

mod expand;
mod path;

use std::path::{Path, PathBuf};

use glob::Pattern;

use crate::diagnostic::{Diagnostic, Place};
use crate::reader::Node;

pub use path::{GuestPath, RelativePath};

/// What of the manifest's folder a component sees.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Files {
    /// The manifest's folder.
    folder: PathBuf,
    mounts: Vec<Mount>,
    excluded: Vec<Pattern>,
}

/// An entry of `files`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// What it takes.
    pub what: What,
    /// Where it stands.
    pub place: Place,
}

/// What an entry of `files` takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// `"images/**/*.png"`: the files that match, or the file or all that is
    /// in the folder with exactly this path.
    Pattern(RelativePath),
    /// `{ source, destination }`: a file, or all that is in a folder.
    Placed {
        /// The file or folder.
        source: RelativePath,
        /// Its path for the component.
        destination: GuestPath,
    },
}

/// A file that a component sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountedFile {
    /// The file itself: absolute, without links, in the manifest's folder.
    pub host: PathBuf,
    /// Its path for the component.
    pub guest: GuestPath,
}

impl Files {
    /// The entries, in the order of the manifest.
    #[must_use]
    pub fn mounts(&self) -> &[Mount] {
        &self.mounts
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.mounts.is_empty()
    }

    /// Finds the files, by their paths for the component.
    ///
    /// # Errors
    /// The entry that takes nothing that is there, that leads out of the
    /// manifest's folder, that names one path with another entry, or that
    /// cannot be read; more than [`Files::MOST`] files.
    pub fn expand(&self) -> Result<Vec<MountedFile>, Box<Diagnostic>> {
        expand::expand(&self.folder, &self.mounts, &self.excluded)
    }

    /// The most files that a component may have.
    pub const MOST: usize = 100_000;
}

/// Reads `files` and `exclude_files`.
pub(crate) fn read(files: Option<Node<'_>>, exclude: Option<Node<'_>>, folder: &Path) -> Files {
    let mounts = files.and_then(Node::list).unwrap_or_default().into_iter().filter_map(mount).collect();
    let excluded = exclude.and_then(Node::list).unwrap_or_default().into_iter().filter_map(excluded).collect();
    Files { folder: folder.to_owned(), mounts, excluded }
}

const HELP: &str = "write a path in the manifest's folder, such as \"assets/**/*\"";

fn mount(node: Node<'_>) -> Option<Mount> {
    let what = if node.is_table() {
        let table = node.table("the entry of `files`")?;
        let source = table.need("source", "write `source = \"assets\"`").and_then(|node| relative(node, Takes::Paths));
        let help = "write the path for the component, such as `destination = \"/assets\"`";
        let destination = table.need("destination", help).and_then(|node| {
            let text = node.text()?;
            text.parse().map_or_else(
                |error| {
                    let help = format!("write an absolute path, such as \"/{}\"", text.trim_matches(['/', '.']));
                    node.fail(format!("`{text}` cannot be a path for the component: {error}"), help)
                },
                Some,
            )
        });
        table.close();
        What::Placed { source: source?, destination: destination? }
    } else if node.is_text() {
        What::Pattern(relative(node, Takes::Patterns)?)
    } else {
        return node.fail(
            "an entry of `files` must be a pattern or a table",
            "write \"assets/**/*\" or { source = \"assets\", destination = \"/assets\" }",
        );
    };
    Some(Mount { what, place: node.place() })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Patterns,
    Paths,
}

fn relative(node: Node<'_>, takes: Takes) -> Option<RelativePath> {
    let text = node.text()?;
    let path: RelativePath = match text.parse() {
        Ok(path) => path,
        Err(error) => return node.fail(format!("`{text}` cannot be used: {error}"), HELP),
    };
    if takes == Takes::Paths {
        return Some(path);
    }
    if path.is_folder_itself() {
        return node.fail(
            format!("`{text}` is the manifest's folder itself"),
            "write { source = \".\", destination = \"/\" } for all that is in it, or a pattern such as \"./**/*\"",
        );
    }
    if let Err(error) = Pattern::new(path.as_str()) {
        let message = format!("`{text}` is no pattern: {} at character {}", error.msg, error.pos + 1);
        return node.fail(message, "write `**` only as a whole segment, and close each `[`");
    }
    if path.as_str().ends_with("**") {
        let help = format!("write \"{text}/*\" for all files below");
        return node.fail(format!("`{text}` matches folders only, and no file"), help);
    }
    if matches!(text, "*" | "**/*") {
        let help = format!("name a folder for them, or write \"./{text}\" to say that it is meant");
        node.document.warning(node.span(), "the component sees all of the manifest's folder", help);
    }
    Some(path)
}

fn excluded(node: Node<'_>) -> Option<Pattern> {
    let text = node.text()?;
    let path: RelativePath = match text.parse() {
        Ok(path) => path,
        Err(error) => return node.fail(format!("`{text}` cannot be used: {error}"), HELP),
    };
    Pattern::new(path.as_str()).map_or_else(
        |error| {
            let message = format!("`{text}` is no pattern: {} at character {}", error.msg, error.pos + 1);
            node.fail(message, "write `**` only as a whole segment, and close each `[`")
        },
        Some,
    )
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
