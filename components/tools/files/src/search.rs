//! Files by their names and by what is in them.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::folders::{DEEPEST, Folders, Place};
use crate::list::{self, Kind, SEEN, What};
use crate::pattern::Pattern;
use crate::trouble;

/// How many matches are told.
const TOLD: usize = 1000;

/// How much of a file is searched for a text.
const FILE_MOST: u64 = 16 << 20;

/// How much is searched of all files.
const ALL_MOST: u64 = 256 << 20;

/// The longest line that is searched as one.
const LINE_MOST: u64 = 64 << 10;

/// How many characters of a line are told.
const EXCERPT: usize = 200;

pub(crate) const INPUT: &str = r#"{
  "type": "object",
  "properties": {
    "pattern": {
      "type": "string",
      "description": "A part of the name in any case, or a glob: *.md of names, src/**/*.rs of paths below the folder"
    },
    "text": {"type": "string", "minLength": 1, "description": "A text that files have in one line, exactly"},
    "path": {"type": "string", "description": "PATH; all that is granted if it is left out"}
  },
  "required": ["pattern"],
  "additionalProperties": false
}"#;

pub(crate) const OUTPUT: &str = r#"{
  "type": "object",
  "properties": {
    "matches": {
      "type": "array",
      "items": {
        "type": "object",
        "properties": {
          "path": {"type": "string"},
          "kind": {"enum": ["file", "folder", "link", "other"]},
          "bytes": {"type": "integer", "description": "The length of a file"},
          "line": {"type": "integer", "description": "The first line that has the text, from 1"},
          "excerpt": {"type": "string", "description": "What is around it in the line"}
        },
        "required": ["path", "kind"],
        "additionalProperties": false
      }
    },
    "more": {"type": "boolean", "description": "Whether not all was searched, or not all that was found is told"},
    "note": {"type": "string", "description": "Why"}
  },
  "required": ["matches", "more"],
  "additionalProperties": false
}"#;

#[derive(Deserialize)]
pub(crate) struct Asked {
    pattern: String,
    text: Option<String>,
    path: Option<String>,
}

#[derive(Default, Serialize)]
pub(crate) struct Found {
    matches: Vec<Match>,
    more: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Serialize)]
struct Match {
    path: String,
    #[serde(flatten)]
    what: What,
    #[serde(flatten)]
    line: Option<Line>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Line {
    line: u64,
    excerpt: String,
}

impl Found {
    fn lacks(&mut self, why: String) {
        self.more = true;
        self.note.get_or_insert(why);
    }
}

pub(crate) fn search(folders: &Folders, asked: Asked) -> Result<Found, String> {
    let roots = match asked.path.as_deref() {
        None | Some("" | "." | "/") => {
            folders.all().iter().map(|folder| folders.place(&folder.name)).collect::<Result<_, _>>()?
        }
        Some(path) => vec![folders.place(path)?],
    };
    if roots.is_empty() {
        return Err(trouble::NOTHING_GRANTED.to_owned());
    }
    let pattern = Pattern::new(&asked.pattern);
    let text = asked.text.as_deref().filter(|text| !text.is_empty());
    let mut found = Found::default();
    let mut seen = 0;
    let mut left = ALL_MOST;
    for root in roots {
        let mut below = vec![(root.clone(), Vec::<String>::new())];
        // What is asked for is told if it cannot be read; what is found on the way is not.
        let mut first = Some(list::names(&root)?);
        while let Some((place, path)) = below.pop() {
            let Some((names, more)) = first.take().or_else(|| list::names(&place).ok()) else {
                found.lacks("some folders cannot be read".to_owned());
                continue;
            };
            if more {
                found.lacks(format!("some folders have more than {SEEN} entries"));
            }
            let mut inner = Vec::new();
            for name in names {
                if seen == SEEN {
                    found.lacks(format!("only {SEEN} files and folders were looked at; name a folder"));
                    return Ok(found);
                }
                seen += 1;
                let entry = Place {
                    name: format!("{}/{name}", place.name.trim_end_matches('/')),
                    path: place.path.join(&name),
                    access: place.access,
                };
                let what = What::at(&entry.path);
                let path: Vec<String> = path.iter().cloned().chain([name]).collect();
                if pattern.fits(&path.iter().map(String::as_str).collect::<Vec<_>>()) {
                    let line = match text {
                        None => Some(None),
                        Some(text) if what.kind == Kind::File => within(&entry.path, text, &mut left).map(Some),
                        Some(_) => None,
                    };
                    if let Some(line) = line {
                        found.matches.push(Match { path: entry.name.clone(), what, line });
                    }
                    if found.matches.len() == TOLD {
                        found.lacks(format!("only {TOLD} matches are told"));
                        return Ok(found);
                    }
                    if left == 0 {
                        found.lacks(format!("only {ALL_MOST} bytes were searched; name a folder"));
                        return Ok(found);
                    }
                }
                // Links are not followed: they may lead in a circle.
                if what.kind == Kind::Folder {
                    if path.len() < DEEPEST {
                        inner.push((entry, path));
                    } else {
                        found.lacks(format!("folders deeper than {DEEPEST} were not searched"));
                    }
                }
            }
            below.extend(inner.into_iter().rev());
        }
    }
    Ok(found)
}

/// The first line of a file that has a text. What is no text has none.
fn within(path: &Path, text: &str, left: &mut u64) -> Option<Line> {
    let most = FILE_MOST.min(*left);
    let mut file = BufReader::with_capacity(64 << 10, File::open(path).ok()?).take(most);
    let mut line = Vec::new();
    let mut number = 1;
    let found = loop {
        line.clear();
        match file.by_ref().take(LINE_MOST).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => break None,
            Ok(_) if line.contains(&0) => break None,
            Ok(_) => {}
        }
        let here = String::from_utf8_lossy(&line);
        if let Some(at) = here.find(text) {
            let start =
                here.get(..at).unwrap_or_default().char_indices().rev().nth(EXCERPT / 4).map_or(0, |(at, _)| at);
            let excerpt: String = here.get(start..).unwrap_or_default().trim_end().chars().take(EXCERPT).collect();
            break Some(Line { line: number, excerpt });
        }
        number += u64::from(line.ends_with(b"\n"));
    };
    *left -= most - file.limit();
    found
}
