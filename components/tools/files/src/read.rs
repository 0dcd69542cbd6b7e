//! What is in a file.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};

use serde::{Deserialize, Serialize};

use crate::folders::Folders;
use crate::trouble::{self, quoted};

/// The most bytes of a file in one answer.
const MOST: usize = 256 << 10;

/// The fewest that can be asked for: any character fits.
const FEWEST: usize = 4;

pub(crate) const INPUT: &str = r#"{
  "type": "object",
  "properties": {
    "path": {"type": "string", "description": "PATH"},
    "offset": {"type": "integer", "minimum": 0, "description": "Where to begin, in bytes; 0 if it is left out"},
    "max_bytes": {
      "type": "integer",
      "minimum": 4,
      "maximum": 262144,
      "description": "The most bytes to read; 262144 if it is left out"
    }
  },
  "required": ["path"],
  "additionalProperties": false
}"#;

pub(crate) const OUTPUT: &str = r#"{
  "type": "object",
  "properties": {
    "path": {"type": "string"},
    "text": {"type": "string"},
    "offset": {"type": "integer", "description": "Where the text begins, in bytes"},
    "bytes": {"type": "integer", "description": "The length of the file"},
    "next_offset": {"type": "integer", "description": "Where to go on; left out at the end"}
  },
  "required": ["path", "text", "offset", "bytes"],
  "additionalProperties": false
}"#;

#[derive(Deserialize)]
pub(crate) struct Asked {
    path: String,
    #[serde(default)]
    offset: u64,
    max_bytes: Option<usize>,
}

#[derive(Serialize)]
pub(crate) struct Part {
    path: String,
    text: String,
    offset: u64,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
}

pub(crate) fn read(folders: &Folders, asked: Asked) -> Result<Part, String> {
    let place = folders.place(&asked.path)?;
    let path = place.name;
    let fail = |error| trouble::reading(&path, &error);
    // A pipe would be waited for, so it is not even opened.
    let found = fs::symlink_metadata(&place.path).map_err(fail)?;
    if !found.is_file() {
        let what = if found.is_dir() { "a folder; list_files tells what is in it" } else { "no file" };
        return Err(format!("{} is {what}", quoted(&path)));
    }
    let mut file = File::open(&place.path).map_err(fail)?;
    let bytes = file.metadata().map_err(fail)?.len();
    let Asked { offset, max_bytes, .. } = asked;
    if offset > bytes {
        return Err(format!("{} has {bytes} bytes, so nothing is at {offset}", quoted(&path)));
    }
    let most = max_bytes.unwrap_or(MOST).clamp(FEWEST, MOST);
    file.seek(SeekFrom::Start(offset)).map_err(fail)?;
    let mut part = Vec::new();
    // Three more may be needed to tell a character that is cut from what is no text.
    file.take(most as u64 + 3).read_to_end(&mut part).map_err(fail)?;

    let skipped = if offset == 0 { 0 } else { part.iter().take(3).take_while(|byte| is_inner(**byte)).count() };
    let mut end = part.len().min(most);
    while end < part.len() && part.get(end).is_some_and(|byte| is_inner(*byte)) && end + 3 > most && end > skipped {
        end -= 1;
    }
    let text = part.get(skipped..end).unwrap_or_default();
    let no_text = || format!("{} is no text in UTF-8; it has {bytes} bytes", quoted(&path));
    let text = std::str::from_utf8(text).ok().filter(|text| !text.contains('\0')).ok_or_else(no_text)?.to_owned();
    let (offset, next) = (offset + skipped as u64, offset + end as u64);
    let next_offset = (next < bytes && end > 0).then_some(next);
    Ok(Part { path, text, offset, bytes, next_offset })
}

/// Whether a byte goes on with a character of UTF-8.
fn is_inner(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}
