//! Files that are written.

use std::fs::{self, OpenOptions};
use std::io::Write;

use serde::{Deserialize, Serialize};

use crate::folders::{Access, Folders};
use crate::trouble::{self, quoted};

/// The longest text in bytes.
const MOST: usize = 1 << 20;

pub(crate) const INPUT: &str = r#"{
  "type": "object",
  "properties": {
    "path": {"type": "string", "minLength": 1, "description": "PATH"},
    "text": {"type": "string", "description": "What to write, up to 1 MiB"},
    "append": {"type": "boolean", "description": "Writes behind what is there, not in its place"}
  },
  "required": ["path", "text"],
  "additionalProperties": false
}"#;

pub(crate) const OUTPUT: &str = r#"{
  "type": "object",
  "properties": {
    "path": {"type": "string"},
    "bytes": {"type": "integer", "description": "The length that the file has now"},
    "created": {"type": "boolean", "description": "Whether there was no such file before"}
  },
  "required": ["path", "bytes", "created"],
  "additionalProperties": false
}"#;

#[derive(Deserialize)]
pub(crate) struct Asked {
    path: String,
    text: String,
    #[serde(default)]
    append: bool,
}

#[derive(Serialize)]
pub(crate) struct Written {
    path: String,
    bytes: u64,
    created: bool,
}

pub(crate) fn write(folders: &Folders, asked: Asked) -> Result<Written, String> {
    let place = folders.place(&asked.path)?;
    let path = place.name;
    if place.access == Access::Read {
        return Err(trouble::read_only(&path));
    }
    if asked.text.len() > MOST {
        return Err(format!(
            "the text has {} bytes; write at most {MOST} at once, and append the rest",
            asked.text.len()
        ));
    }
    let fail = |error| trouble::writing(&path, &error);
    let before = fs::symlink_metadata(&place.path);
    match &before {
        Ok(found) if found.is_dir() => return Err(format!("{} is a folder; give the path of a file", quoted(&path))),
        // A pipe would be waited for.
        Ok(found) if !found.is_file() => return Err(format!("{} is no file", quoted(&path))),
        Ok(_) => {}
        Err(_) => {
            if let Some(folder) = place.path.parent() {
                fs::create_dir_all(folder).map_err(fail)?;
            }
        }
    }
    let mut options = OpenOptions::new();
    if asked.append {
        options.append(true);
    } else {
        options.write(true).truncate(true);
    }
    let mut file = options.create(true).open(&place.path).map_err(fail)?;
    file.write_all(asked.text.as_bytes()).map_err(fail)?;
    let bytes = file.metadata().map_err(fail)?.len();
    Ok(Written { path, bytes, created: before.is_err() })
}
