//! What is in a folder.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::folders::{Access, Folders, Place};
use crate::trouble;

/// How many entries are told.
const TOLD: usize = 1000;

/// How many are looked at, to tell the first by their names.
pub(crate) const SEEN: usize = 10_000;

pub(crate) const INPUT: &str = r#"{
  "type": "object",
  "properties": {
    "path": {"type": "string", "description": "PATH; what is granted if it is left out"}
  },
  "additionalProperties": false
}"#;

pub(crate) const OUTPUT: &str = r#"{
  "type": "object",
  "properties": {
    "path": {"type": "string"},
    "entries": {
      "type": "array",
      "items": {
        "type": "object",
        "properties": {
          "name": {"type": "string"},
          "kind": {"enum": ["file", "folder", "link", "other"]},
          "bytes": {"type": "integer", "description": "The length of a file"},
          "writable": {"type": "boolean", "description": "Whether files can be written in a granted folder"}
        },
        "required": ["name", "kind"],
        "additionalProperties": false
      }
    },
    "writable": {"type": "boolean", "description": "Whether files can be written here"},
    "more": {"type": "boolean", "description": "Whether there is more than the entries"}
  },
  "required": ["path", "entries", "writable", "more"],
  "additionalProperties": false
}"#;

#[derive(Deserialize)]
pub(crate) struct Asked {
    #[serde(default)]
    path: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct Listed {
    path: String,
    entries: Vec<Entry>,
    writable: bool,
    more: bool,
}

#[derive(Serialize)]
struct Entry {
    name: String,
    #[serde(flatten)]
    what: What,
    #[serde(skip_serializing_if = "Option::is_none")]
    writable: Option<bool>,
}

/// What something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct What {
    pub(crate) kind: Kind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    File,
    Folder,
    Link,
    Other,
}

impl What {
    /// What is at a path, following nothing.
    pub(crate) fn at(path: &Path) -> Self {
        let Ok(found) = fs::symlink_metadata(path) else { return Self { kind: Kind::Other, bytes: None } };
        let kind = match found.file_type() {
            kind if kind.is_file() => Kind::File,
            kind if kind.is_dir() => Kind::Folder,
            kind if kind.is_symlink() => Kind::Link,
            _ => Kind::Other,
        };
        Self { kind, bytes: (kind == Kind::File).then_some(found.len()) }
    }
}

pub(crate) fn list(folders: &Folders, asked: Asked) -> Result<Listed, String> {
    let path = asked.path.unwrap_or_default();
    // What is granted need not be in one folder.
    let is_all = match path.trim() {
        "" | "." => folders.all().len() != 1,
        "/" => folders.place("/").is_err(),
        _ => false,
    };
    if is_all {
        return granted(folders);
    }
    let place = folders.place(&path)?;
    let (names, mut more) = names(&place)?;
    more |= names.len() > TOLD;
    let told = names.into_iter().take(TOLD);
    let entries = told.map(|name| Entry { what: What::at(&place.path.join(&name)), name, writable: None }).collect();
    Ok(Listed { path: place.name, entries, writable: place.access == Access::Write, more })
}

/// The folders that are granted.
fn granted(folders: &Folders) -> Result<Listed, String> {
    let entry = |folder: &crate::folders::Folder| Entry {
        name: folder.name.clone(),
        what: What { kind: Kind::Folder, bytes: None },
        writable: Some(folder.access == Access::Write),
    };
    let entries: Vec<_> = folders.all().into_iter().map(entry).collect();
    if entries.is_empty() {
        return Err(trouble::NOTHING_GRANTED.to_owned());
    }
    Ok(Listed { path: "/".to_owned(), entries, writable: false, more: false })
}

/// The names in a folder in their order, and whether there are more.
pub(crate) fn names(place: &Place) -> Result<(Vec<String>, bool), String> {
    let fail = |error| trouble::reading(&place.name, &error);
    let mut names = Vec::new();
    for entry in fs::read_dir(&place.path).map_err(fail)? {
        if names.len() == SEEN {
            names.sort();
            return Ok((names, true));
        }
        names.push(entry.map_err(fail)?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok((names, false))
}
