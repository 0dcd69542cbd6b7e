//! The header itself: magic, counts, metadata, tensor table, data section.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::kind::TensorKind;
use super::reader::Bounded;
use super::value::Value;
use crate::place;

/// The most dimensions a tensor has (`GGML_MAX_DIMS`).
const MAX_DIMENSIONS: u32 = 4;
/// The alignment of tensors where the metadata names none.
const DEFAULT_ALIGNMENT: u64 = 32;
/// The most characters of a name out of a file that stand in an error.
const SHOWN: usize = 80;
/// The largest alignment that makes sense: a huge page.
const MAX_ALIGNMENT: u64 = 1 << 30;

/// What a GGUF file says about itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Header {
    /// Version of the format, 2 or 3.
    pub version: u32,
    /// The metadata, by key.
    pub metadata: BTreeMap<String, Value>,
    /// The tensors, in the order of the file.
    pub tensors: Vec<Tensor>,
    /// Where the tensors' data begins, in bytes from the start of the file.
    pub data_start: u64,
    /// Size of the file, in bytes.
    pub file_size: u64,
}

/// One entry of the tensor table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tensor {
    /// The name, such as `blk.0.attn_q.weight`.
    pub name: String,
    /// The dimensions, fastest first.
    pub dimensions: Vec<u64>,
    /// How elements are stored.
    pub kind: TensorKind,
    /// Where the data is, in bytes from [`Header::data_start`].
    pub offset: u64,
    /// Number of elements.
    pub elements: u64,
    /// Bytes of the data; none for a format this version does not know.
    pub bytes: Option<u64>,
}

/// Why a file's header cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The file could not be opened or read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The path leads to something else than a file.
    #[error("{} is {found}, not a file: give the path of a GGUF file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it leads to, such as `a folder`.
        found: &'static str,
    },
    /// A read failed.
    #[error("the file cannot be read: {0}")]
    Read(#[from] io::Error),
    /// The first four bytes are not `GGUF`.
    #[error("this is not a GGUF file: it does not begin with `GGUF`; give a file ending in .gguf")]
    NotGguf,
    /// A file for machines of the other byte order.
    #[error("this GGUF file is big-endian: get the little-endian one")]
    BigEndian,
    /// A version other than 2 and 3.
    #[error(
        "this GGUF file has version {0} of the format, 2 and 3 are supported: convert the model again with a current llama.cpp"
    )]
    Version(u32),
    /// The header reaches beyond the end of the file.
    #[error("the file is truncated: its header goes on at byte {at}, where it ends; download it again")]
    Ends {
        /// Byte of the file.
        at: u64,
    },
    /// The data of a tensor reaches beyond the end of the file.
    #[error(
        "the file is truncated: `{tensor}` ends at byte {end}, but the file has {file_size} bytes; download it again"
    )]
    Truncated {
        /// The tensor that ends last.
        tensor: String,
        /// Where it ends, in bytes.
        end: u64,
        /// Size of the file, in bytes.
        file_size: u64,
    },
    /// A count that the file is too small for.
    #[error("the header is damaged: it announces {count} {what}, more than the file can hold")]
    TooMany {
        /// What is counted.
        what: &'static str,
        /// How many are announced.
        count: u64,
    },
    /// A text that is longer than any real one.
    #[error("the header is damaged: a text of {len} bytes at byte {at}")]
    TooLong {
        /// Byte of the file.
        at: u64,
        /// The announced length, in bytes.
        len: u64,
    },
    /// Arrays inside arrays without end.
    #[error("the header is damaged: arrays nest too deeply at byte {at}")]
    TooDeep {
        /// Byte of the file.
        at: u64,
    },
    /// A kind of value that the format does not have.
    #[error("the header is damaged: a value of the unknown kind {number} at byte {at}")]
    UnknownValueKind {
        /// Byte of the file.
        at: u64,
        /// The number found.
        number: u32,
    },
    /// A tensor whose description makes no sense.
    #[error("the header is damaged: tensor `{tensor}`: {problem}")]
    BadTensor {
        /// The tensor.
        tensor: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// `general.alignment` is unusable.
    #[error("the header is damaged: general.alignment is no power of two up to 1 GiB")]
    BadAlignment,
    /// A key or tensor name that stands twice.
    #[error("the header is damaged: `{0}` stands twice")]
    Twice(String),
}

impl Header {
    /// Reads the header of the file at `path`.
    ///
    /// # Errors
    /// [`HeaderError`] for what is no GGUF file, or a damaged or truncated one.
    pub fn read(path: &Path) -> Result<Self, HeaderError> {
        let failed = |source| HeaderError::File { path: path.to_owned(), source };
        // Asked before it is opened: opening a pipe would wait for a writer.
        let metadata = fs::metadata(path).map_err(failed)?;
        if let Some(found) = place::not_a_file(&metadata) {
            return Err(HeaderError::NotAFile { path: path.to_owned(), found });
        }
        Self::parse(File::open(path).map_err(failed)?, metadata.len())
    }

    /// Reads the header at the beginning of `source`, which has `file_size`
    /// bytes.
    ///
    /// # Errors
    /// Those of [`Header::read`].
    pub fn parse(source: impl Read + Seek, file_size: u64) -> Result<Self, HeaderError> {
        let mut reader = Bounded::new(source, file_size);
        if file_size < 4 || reader.array::<4>()? != *b"GGUF" {
            return Err(HeaderError::NotGguf);
        }
        let version = reader.u32()?;
        match version {
            2 | 3 => {}
            other if other != 0 && other & 0xffff == 0 => return Err(HeaderError::BigEndian),
            other => return Err(HeaderError::Version(other)),
        }
        let tensor_count = reader.u64()?;
        let value_count = reader.u64()?;

        // A key's length, kind and one byte of value.
        reader.check_count("metadata values", value_count, 13)?;
        let mut metadata = BTreeMap::new();
        for _ in 0..value_count {
            let key = reader.name()?;
            let kind = reader.kind()?;
            let value = reader.value(kind)?;
            if metadata.contains_key(&key) {
                return Err(HeaderError::Twice(shown(&key)));
            }
            metadata.insert(key, value);
        }

        // A name's length, the number of dimensions, kind and offset.
        reader.check_count("tensors", tensor_count, 24)?;
        let mut tensors = Vec::new();
        for _ in 0..tensor_count {
            tensors.push(tensor(&mut reader)?);
        }

        let alignment = match metadata.get("general.alignment") {
            None => DEFAULT_ALIGNMENT,
            Some(Value::Unsigned(n)) if n.is_power_of_two() && *n <= MAX_ALIGNMENT => *n,
            Some(_) => return Err(HeaderError::BadAlignment),
        };
        let header =
            Self { version, metadata, tensors, data_start: reader.position().next_multiple_of(alignment), file_size };
        header.check_extents()?;
        Ok(header)
    }

    fn check_extents(&self) -> Result<(), HeaderError> {
        let mut last = (0, "");
        for tensor in &self.tensors {
            let bytes = tensor.bytes.unwrap_or(0);
            let end = self
                .data_start
                .checked_add(tensor.offset)
                .and_then(|start| start.checked_add(bytes))
                .ok_or_else(|| bad(&tensor.name, "its data lies beyond 2^64 bytes"))?;
            last = last.max((end, tensor.name.as_str()));
        }
        let (end, name) = last;
        if end > self.file_size {
            return Err(HeaderError::Truncated { tensor: shown(name), end, file_size: self.file_size });
        }
        Ok(())
    }
}

/// A name out of a file as it stands in errors: printable and short.
fn shown(name: &str) -> String {
    let shown: String = name.chars().take(SHOWN).flat_map(printable).collect();
    if name.chars().nth(SHOWN).is_some() { format!("{shown}…") } else { shown }
}

fn printable(character: char) -> impl Iterator<Item = char> {
    let escaped = character.is_control().then(|| character.escape_default());
    let kept = escaped.is_none().then_some(character);
    escaped.into_iter().flatten().chain(kept)
}

fn bad(tensor: &str, problem: &'static str) -> HeaderError {
    HeaderError::BadTensor { tensor: shown(tensor), problem }
}

fn tensor<R: Read + Seek>(reader: &mut Bounded<R>) -> Result<Tensor, HeaderError> {
    let name = reader.name()?;
    let count = reader.u32()?;
    if count > MAX_DIMENSIONS {
        return Err(bad(&name, "it has more than four dimensions"));
    }
    let mut dimensions = Vec::new();
    let mut elements = 1_u64;
    for _ in 0..count {
        let dimension = reader.u64()?;
        elements = elements.checked_mul(dimension).ok_or_else(|| bad(&name, "it has more than 2^64 elements"))?;
        dimensions.push(dimension);
    }
    let kind = TensorKind::new(reader.u32()?);
    let offset = reader.u64()?;
    let bytes = kind.bytes_of(elements);
    if bytes.is_none() && kind.name().is_some() {
        return Err(bad(&name, "its size is no whole number of its format's blocks"));
    }
    Ok(Tensor { name, dimensions, kind, offset, elements, bytes })
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
