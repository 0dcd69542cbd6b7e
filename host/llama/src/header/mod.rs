//! A first look at a GGUF file, before llama.cpp maps it.
//!
//! It walks the header once, believing no length in it, and compares what the
//! tensors need with the size of the file: a download that was cut short gets
//! an error that says so. What the keys mean is llama.cpp's business, save for
//! those on which it ends the process: its assertions on what a file says are
//! checked here first.
//!
//! The format: <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>.

mod adapter;
mod cursor;
mod families;
mod numbers;
mod tensors;
mod value;
mod vocabulary;

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use crate::error::LoadError;
use cursor::Cursor;
use numbers::Numbers;
use value::{Value, Values};

/// Where tensors begin, unless `general.alignment` says otherwise.
const DEFAULT_ALIGNMENT: u32 = 32;
/// The alignments that are believed: ggml needs tensors at multiples of 32
/// bytes, and nobody needs more than a huge page.
const ALIGNMENTS: std::ops::RangeInclusive<u32> = DEFAULT_ALIGNMENT..=1 << 30;
/// The most tensors that are believed.
const MAX_TENSORS: u64 = 1 << 24;
/// The most keys that are believed; real files have some dozens.
const MAX_KEYS: u64 = 1 << 16;
/// The most characters of a name out of a file that stand in an error.
const SHOWN: usize = 80;

/// What the first look finds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Header {
    /// `general.architecture`, shortened where it is longer than any.
    pub(crate) arch: String,
    /// Number of tensors.
    pub(crate) tensors: u64,
    /// Whether there is a list of tokens.
    pub(crate) has_tokens: bool,
    /// Whether there is a classification head.
    pub(crate) has_head: bool,
}

/// What is wrong with a header.
#[derive(Debug)]
enum Fault {
    Io(io::Error),
    NotGguf([u8; 4]),
    Version(u32),
    Truncated { expected: u64 },
    Damaged(String),
    Value(String),
    Tokenizer(String),
    NotAlone(String),
    Split(u16),
    Adapter(String),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Fault {
    fn damaged(reason: impl Into<String>) -> Self {
        Self::Damaged(reason.into())
    }

    fn value(reason: impl Into<String>) -> Self {
        Self::Value(reason.into())
    }
}

/// A name out of a file as it stands in errors: printable and short.
pub(crate) fn shown(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    let mut characters = name.chars();
    let mut shown = String::new();
    for character in characters.by_ref().take(SHOWN) {
        if character.is_control() {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    if characters.next().is_some() {
        shown.push('…');
    }
    shown
}

/// What a file has to be.
#[derive(Debug, Clone, Copy)]
enum Purpose<'a> {
    /// A model.
    Model,
    /// A LoRA adapter for models of an architecture.
    Adapter(&'a str),
}

/// Checks the header of a model file.
pub(crate) fn check(path: &Path) -> Result<Header, LoadError> {
    check_for(path, Purpose::Model)
}

/// Checks the header of a LoRA adapter for models of the architecture `arch`.
pub(crate) fn check_adapter(path: &Path, arch: &str) -> Result<(), LoadError> {
    check_for(path, Purpose::Adapter(arch)).map(drop)
}

fn check_for(path: &Path, purpose: Purpose<'_>) -> Result<Header, LoadError> {
    let path = || path.to_path_buf();
    let io = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => LoadError::NotFound { path: path() },
        _ => LoadError::Io { path: path(), source },
    };
    // Asked before it is opened: opening a pipe would wait for a writer.
    let meta = std::fs::metadata(path()).map_err(io)?;
    if !meta.is_file() {
        return Err(LoadError::NotAFile { path: path() });
    }
    let size = meta.len();
    if size == 0 {
        return Err(LoadError::Empty { path: path() });
    }
    let file = File::open(path()).map_err(io)?;
    read(BufReader::with_capacity(1 << 16, file), size, purpose).map_err(|fault| match fault {
        Fault::Io(source) => io(source),
        Fault::NotGguf(found) => LoadError::NotGguf { path: path(), found: found.escape_ascii().to_string() },
        Fault::Version(version) => LoadError::Version { path: path(), version },
        Fault::Truncated { expected } => LoadError::Truncated { path: path(), expected, actual: size },
        Fault::Damaged(reason) => LoadError::Damaged { path: path(), reason },
        Fault::Value(reason) => LoadError::BadValue { path: path(), reason },
        Fault::Tokenizer(tokenizer) => LoadError::UnsupportedTokenizer { path: path(), tokenizer },
        Fault::NotAlone(arch) => LoadError::NotADecoder { path: path(), arch },
        Fault::Split(parts) => LoadError::Split { path: path(), parts },
        Fault::Adapter(reason) => LoadError::BadAdapter { path: path(), reason },
    })
}

fn read(source: impl Read, size: u64, purpose: Purpose<'_>) -> Result<Header, Fault> {
    let mut cursor = Cursor::new(source, size);
    let magic: [u8; 4] = match cursor.bytes() {
        Ok(magic) => magic,
        Err(Fault::Truncated { .. }) => return Err(Fault::Truncated { expected: 24 }),
        Err(other) => return Err(other),
    };
    if &magic != b"GGUF" {
        return Err(Fault::NotGguf(magic));
    }
    let version = cursor.u32()?;
    if !(2..=3).contains(&version) {
        return Err(Fault::Version(version));
    }
    let tensors = cursor.u64()?;
    let keys = cursor.u64()?;
    // A tensor takes at least 24 bytes of header, a key 13.
    let least = tensors.saturating_mul(24).saturating_add(keys.saturating_mul(13));
    if tensors > MAX_TENSORS || keys > MAX_KEYS {
        return Err(Fault::damaged(format!("{tensors} tensors and {keys} keys")));
    }
    if least > size {
        return Err(Fault::Truncated { expected: least });
    }
    let mut header = Header { tensors, ..Header::default() };
    let mut values = Values::default();
    for _ in 0..keys {
        let key = cursor.name("a key")?;
        let kind = cursor.u32()?;
        let value = if key == "tokenizer.ggml.tokens" && kind == 9 {
            header.has_tokens = tokens(&mut cursor)?;
            Value::Other(9)
        } else {
            cursor.value(kind)?
        };
        if !values.insert(key.clone(), value) {
            return Err(Fault::damaged(format!("the key {} stands twice", shown(key.as_bytes()))));
        }
    }
    let alignment = u64::from(alignment(&values)?);
    match purpose {
        Purpose::Model => judge(&mut header, &values)?,
        Purpose::Adapter(arch) => adapter::judge(&values, arch)?,
    }
    let mut needed = 0_u64;
    for _ in 0..tensors {
        let tensor = tensors::read(&mut cursor)?;
        if matches!(purpose, Purpose::Adapter(_)) {
            adapter::judge_tensor(&tensor)?;
        }
        needed = needed.max(tensor.end);
        header.has_head |= tensor.name == "cls.output.weight" || tensor.name == "cls.weight";
    }
    if tensors > 0 {
        let begin = cursor.at().next_multiple_of(alignment);
        let expected = begin.checked_add(needed).ok_or_else(|| Fault::damaged("tensors of no sane size"))?;
        if expected > size {
            return Err(Fault::Truncated { expected });
        }
    }
    Ok(header)
}

/// Reads the list of tokens, of whatever type it is. Whether it has any.
fn tokens(cursor: &mut Cursor<impl Read>) -> Result<bool, Fault> {
    if cursor.u32()? != 8 {
        return Err(Fault::value("tokenizer.ggml.tokens is not a list of texts"));
    }
    Ok(vocabulary::tokens(cursor)? > 0)
}

/// Where tensors begin: at multiples of this.
fn alignment(values: &Values) -> Result<u32, Fault> {
    match values.get("general.alignment") {
        None => Ok(DEFAULT_ALIGNMENT),
        Some(Value::Unsigned(number)) if number.is_power_of_two() && ALIGNMENTS.contains(number) => Ok(*number),
        Some(Value::Unsigned(number)) => {
            Err(Fault::value(format!("general.alignment is {number}, but must be a power of two from 32 on")))
        }
        Some(_) => Err(Fault::value("general.alignment is of another type than u32")),
    }
}

/// Checks the values of a model.
fn judge(header: &mut Header, values: &Values) -> Result<(), Fault> {
    match values.get("split.count") {
        // The other parts would be loaded without a look at them.
        Some(Value::Short(parts)) if *parts > 1 => return Err(Fault::Split(*parts)),
        _ => {}
    }
    match values.get("general.architecture") {
        Some(Value::Text(arch)) if arch.contains(&0) => return Err(Fault::damaged("the architecture contains a NUL")),
        Some(Value::Text(arch)) => header.arch = shown(arch),
        Some(Value::LongText) => return Err(Fault::value("general.architecture is a text of more than 1024 bytes")),
        _ => {}
    }
    let sees_all = values.get(&format!("{}.attention.causal", header.arch)) == Some(&Value::Bool(false));
    if sees_all || !families::stands_alone(&header.arch) {
        return Err(Fault::NotAlone(header.arch.clone()));
    }
    Numbers::new(&header.arch, values).check()?;
    vocabulary::check(values)
}

#[cfg(test)]
mod tests;
