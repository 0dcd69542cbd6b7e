//! A first look at a GGUF file, before llama.cpp maps it.
//!
//! It walks the header once, believing no length in it, and compares what the
//! tensors need with the size of the file: a download that was cut short gets
//! an error that says so. What the keys mean is llama.cpp's business, save for
//! those on which it ends the process.
//!
//! The format: <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::ops::RangeInclusive;
use std::path::Path;

use llama_cpp_sys_2 as sys;

use crate::error::LoadError;

/// Where tensors begin, unless `general.alignment` says otherwise.
const DEFAULT_ALIGNMENT: u64 = 32;
/// The longest key or tensor name that is believed.
const MAX_NAME: u64 = 65_535;
/// The most tensors or keys that are believed.
const MAX_ENTRIES: u64 = 1 << 24;
/// What llama.cpp knows as `rope.scaling.type`; others end the process.
const ROPE_SCALINGS: [&[u8]; 4] = [b"none", b"linear", b"yarn", b"longrope"];
/// The most dimensions of a tensor (`GGML_MAX_DIMS`).
const MAX_DIMS: u32 = 4;

/// What the first look finds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Header {
    /// `general.architecture`.
    pub(crate) arch: String,
    /// Number of tensors.
    pub(crate) tensors: u64,
    /// Whether there is a list of tokens.
    pub(crate) has_tokens: bool,
}

/// What is wrong with a header.
#[derive(Debug)]
enum Fault {
    Io(io::Error),
    NotGguf([u8; 4]),
    Version(u32),
    Truncated { expected: u64 },
    Damaged(String),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Checks the header of a file.
pub(crate) fn check(path: &Path) -> Result<Header, LoadError> {
    let path = || path.to_path_buf();
    let io = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => LoadError::NotFound { path: path() },
        _ => LoadError::Io { path: path(), source },
    };
    let meta = std::fs::metadata(path()).map_err(io)?;
    if !meta.is_file() {
        return Err(LoadError::NotAFile { path: path() });
    }
    let size = meta.len();
    if size == 0 {
        return Err(LoadError::Empty { path: path() });
    }
    let file = File::open(path()).map_err(io)?;
    read(BufReader::with_capacity(1 << 16, file), size).map_err(|fault| match fault {
        Fault::Io(source) => io(source),
        Fault::NotGguf(found) => LoadError::NotGguf { path: path(), found: found.escape_ascii().to_string() },
        Fault::Version(version) => LoadError::Version { path: path(), version },
        Fault::Truncated { expected } => LoadError::Truncated { path: path(), expected, actual: size },
        Fault::Damaged(reason) => LoadError::Damaged { path: path(), reason },
    })
}

fn read(source: impl Read, size: u64) -> Result<Header, Fault> {
    let mut cursor = Cursor { source, at: 0, size };
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
    if tensors.max(keys) > MAX_ENTRIES {
        return Err(damaged(format!("{tensors} tensors and {keys} keys")));
    }
    if least > size {
        return Err(Fault::Truncated { expected: least });
    }
    let mut header = Header { tensors, ..Header::default() };
    let mut alignment = DEFAULT_ALIGNMENT;
    for _ in 0..keys {
        let key = cursor.name("a key")?;
        let kind = cursor.u32()?;
        match (key.as_slice(), kind) {
            (b"general.architecture", 8) => {
                header.arch = String::from_utf8_lossy(&cursor.name("the architecture")?).into();
            }
            (b"general.alignment", 4) => alignment = u64::from(cursor.u32()?),
            (key, 4) if believed(key).is_some() => {
                let value = cursor.u32()?;
                if believed(key).is_some_and(|range| !range.contains(&value)) {
                    let key = String::from_utf8_lossy(key);
                    return Err(damaged(format!("{key} is {value}")));
                }
            }
            (key, 8) if key.ends_with(b".rope.scaling.type") => {
                let kind = cursor.name("a rope scaling type")?;
                if !ROPE_SCALINGS.contains(&kind.as_slice()) {
                    let kind = kind.escape_ascii();
                    return Err(damaged(format!("the rope scaling type is `{kind}`")));
                }
            }
            (key, 6) if key.ends_with(b"_epsilon") => {
                let epsilon = f32::from_bits(cursor.u32()?);
                if !(epsilon.is_finite() && epsilon >= 0.0) {
                    return Err(damaged(format!("an epsilon of {epsilon}")));
                }
            }
            _ => {
                header.has_tokens |= key == b"tokenizer.ggml.tokens" && kind == 9;
                cursor.skip_value(kind)?;
            }
        }
    }
    if !alignment.is_power_of_two() {
        return Err(damaged(format!("an alignment of {alignment}")));
    }
    let mut needed = 0_u64;
    for _ in 0..tensors {
        needed = needed.max(cursor.tensor_end()?);
    }
    if tensors > 0 {
        let begin = cursor.at.next_multiple_of(alignment);
        let expected = begin.checked_add(needed).ok_or_else(|| damaged("tensors of no sane size"))?;
        if expected > size {
            return Err(Fault::Truncated { expected });
        }
    }
    Ok(header)
}

fn damaged(reason: impl Into<String>) -> Fault {
    Fault::Damaged(reason.into())
}

/// Reads the header forward, never past the end of the file.
struct Cursor<R> {
    source: R,
    at: u64,
    size: u64,
}

impl<R: Read> Cursor<R> {
    /// Refuses to go on where `length` more bytes are not there.
    fn claim(&mut self, length: u64) -> Result<(), Fault> {
        let end = self.at.checked_add(length).ok_or_else(|| damaged("a length out of range"))?;
        if end > self.size {
            return Err(Fault::Truncated { expected: end });
        }
        self.at = end;
        Ok(())
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        self.claim(N as u64)?;
        let mut bytes = [0; N];
        self.source.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn u32(&mut self) -> Result<u32, Fault> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Fault> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn skip(&mut self, length: u64) -> Result<(), Fault> {
        self.claim(length)?;
        let skipped = io::copy(&mut self.source.by_ref().take(length), &mut io::sink())?;
        if skipped == length { Ok(()) } else { Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()) }
    }

    /// A short string.
    fn name(&mut self, what: &str) -> Result<Vec<u8>, Fault> {
        let length = self.u64()?;
        if length > MAX_NAME {
            return Err(damaged(format!("{what} of {length} bytes")));
        }
        self.claim(length)?;
        let mut name = Vec::new();
        self.source.by_ref().take(length).read_to_end(&mut name)?;
        Ok(name)
    }

    fn skip_string(&mut self) -> Result<(), Fault> {
        let length = self.u64()?;
        self.skip(length)
    }

    fn skip_value(&mut self, kind: u32) -> Result<(), Fault> {
        match kind {
            8 => self.skip_string(),
            9 => {
                let kind = self.u32()?;
                let count = self.u64()?;
                if kind == 8 {
                    // Each string takes at least its length.
                    if count > self.size / 8 {
                        return Err(damaged(format!("a list of {count} strings")));
                    }
                    (0..count).try_for_each(|_| self.skip_string())
                } else {
                    let bytes = count
                        .checked_mul(scalar_bytes(kind)?)
                        .ok_or_else(|| damaged(format!("a list of {count} numbers")))?;
                    self.skip(bytes)
                }
            }
            _ => {
                let bytes = scalar_bytes(kind)?;
                self.skip(bytes)
            }
        }
    }

    /// Reads the description of a tensor and returns where it ends, counted
    /// from the begin of the tensors.
    fn tensor_end(&mut self) -> Result<u64, Fault> {
        let name = self.name("a tensor's name")?;
        let name = || String::from_utf8_lossy(&name).into_owned();
        let dims = self.u32()?;
        if dims > MAX_DIMS {
            return Err(damaged(format!("{dims} dimensions of {}", name())));
        }
        let mut elements = 1_u64;
        for _ in 0..dims {
            elements = elements.checked_mul(self.u64()?).ok_or_else(|| damaged(format!("the shape of {}", name())))?;
        }
        let kind = self.u32()?;
        let offset = self.u64()?;
        let (block, bytes) = block_size(kind).ok_or_else(|| damaged(format!("type {kind} of {}", name())))?;
        elements
            .div_ceil(block)
            .checked_mul(bytes)
            .and_then(|length| offset.checked_add(length))
            .ok_or_else(|| damaged(format!("the size of {}", name())))
    }
}

/// The values of a key that can be: outside of them llama.cpp ends the process
/// (`LLAMA_MAX_LAYERS`, `LLAMA_MAX_EXPERTS`) or computes shapes that wrap around.
fn believed(key: &[u8]) -> Option<RangeInclusive<u32>> {
    let name = key.rsplit(|&byte| byte == b'.').next()?;
    match name {
        b"block_count" => Some(1..=512),
        b"expert_count" => Some(0..=1024),
        b"head_count" | b"head_count_kv" | b"key_length" | b"value_length" => Some(0..=1 << 16),
        b"embedding_length" | b"feed_forward_length" => Some(0..=1 << 24),
        _ => None,
    }
}

/// Bytes of a number of a GGUF type.
fn scalar_bytes(kind: u32) -> Result<u64, Fault> {
    match kind {
        0 | 1 | 7 => Ok(1),
        2 | 3 => Ok(2),
        4..=6 => Ok(4),
        10..=12 => Ok(8),
        _ => Err(damaged(format!("a value of type {kind}"))),
    }
}

/// Elements and bytes of a block of a ggml type; None for types that do not
/// exist (any more).
fn block_size(kind: u32) -> Option<(u64, u64)> {
    if kind >= sys::GGML_TYPE_COUNT {
        return None;
    }
    // SAFETY: both read a static table of GGML_TYPE_COUNT entries.
    let (block, bytes) = unsafe { (sys::ggml_blck_size(kind), sys::ggml_type_size(kind)) };
    let block = u64::try_from(block).ok().filter(|&block| block > 0)?;
    Some((block, bytes as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of one F32 tensor of 8 elements and some keys of each shape.
    fn sample() -> Vec<u8> {
        let mut out = Vec::new();
        let text = |out: &mut Vec<u8>, text: &str| {
            out.extend((text.len() as u64).to_le_bytes());
            out.extend(text.as_bytes());
        };
        out.extend(b"GGUF");
        out.extend(3_u32.to_le_bytes());
        out.extend(1_u64.to_le_bytes());
        out.extend(4_u64.to_le_bytes());
        text(&mut out, "general.architecture");
        out.extend(8_u32.to_le_bytes());
        text(&mut out, "llama");
        text(&mut out, "general.alignment");
        out.extend(4_u32.to_le_bytes());
        out.extend(64_u32.to_le_bytes());
        text(&mut out, "tokenizer.ggml.tokens");
        out.extend(9_u32.to_le_bytes());
        out.extend(8_u32.to_le_bytes());
        out.extend(2_u64.to_le_bytes());
        text(&mut out, "a");
        text(&mut out, "b");
        text(&mut out, "tokenizer.ggml.scores");
        out.extend(9_u32.to_le_bytes());
        out.extend(6_u32.to_le_bytes());
        out.extend(2_u64.to_le_bytes());
        out.extend([0; 8]);
        text(&mut out, "token_embd.weight");
        out.extend(2_u32.to_le_bytes());
        out.extend(4_u64.to_le_bytes());
        out.extend(2_u64.to_le_bytes());
        out.extend(0_u32.to_le_bytes());
        out.extend(0_u64.to_le_bytes());
        out.resize(out.len().next_multiple_of(64) + 32, 0);
        out
    }

    fn read_all(bytes: &[u8]) -> Result<Header, Fault> {
        read(bytes, bytes.len() as u64)
    }

    #[test]
    fn a_whole_file_is_read() {
        let header = read_all(&sample()).unwrap();
        assert_eq!(header, Header { arch: "llama".into(), tensors: 1, has_tokens: true });
    }

    #[test]
    fn every_truncation_is_noticed() {
        let file = sample();
        for end in 0..file.len() {
            let fault = read_all(&file[..end]).unwrap_err();
            let noticed = matches!(&fault, Fault::Truncated { expected } if *expected > end as u64);
            assert!(noticed, "{end}: {fault:?}");
        }
    }

    #[test]
    fn no_flipped_byte_leads_astray() {
        let file = sample();
        for at in 0..file.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut file = file.clone();
                file[at] ^= flip;
                // Whatever it says: it ends, and it does not panic.
                let _ = read_all(&file);
            }
        }
    }

    #[test]
    fn lengths_are_not_believed() {
        let mut file = sample();
        file[16..24].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(matches!(read_all(&file), Err(Fault::Damaged(_))));
        let mut file = sample();
        file[24..32].copy_from_slice(&(u64::MAX - 3).to_le_bytes());
        assert!(matches!(read_all(&file), Err(Fault::Damaged(_))));
    }

    #[test]
    fn other_formats_and_versions_are_told_apart() {
        assert!(matches!(read_all(b"PK\x03\x04etc"), Err(Fault::NotGguf(_))));
        let mut file = sample();
        file[4] = 1;
        assert!(matches!(read_all(&file), Err(Fault::Version(1))));
    }
}
