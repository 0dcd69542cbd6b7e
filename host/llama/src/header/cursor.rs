//! Reads the header forward, never past the end of the file.

use std::io::{self, Read};

use super::Fault;
use super::value::Value;

/// The longest key, tensor name or token that is believed.
const MAX_NAME: u64 = 65_535;
/// The longest text value that is kept.
const KEPT_TEXT: u64 = 1024;
/// The longest list of numbers that is kept: more than there can be layers.
const KEPT_NUMBERS: u64 = 1024;

/// A reader that knows where it is.
pub(super) struct Cursor<R> {
    source: R,
    at: u64,
    size: u64,
}

impl<R: Read> Cursor<R> {
    pub(super) fn new(source: R, size: u64) -> Self {
        Self { source, at: 0, size }
    }

    /// Bytes read so far.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Refuses to go on where `length` more bytes are not there.
    fn claim(&mut self, length: u64) -> Result<(), Fault> {
        let end = self.at.checked_add(length).ok_or_else(|| Fault::damaged("a length out of range"))?;
        if end > self.size {
            return Err(Fault::Truncated { expected: end });
        }
        self.at = end;
        Ok(())
    }

    pub(super) fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        self.claim(N as u64)?;
        let mut bytes = [0; N];
        self.source.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Fault> {
        self.bytes().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Fault> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn skip(&mut self, length: u64) -> Result<(), Fault> {
        self.claim(length)?;
        let skipped = io::copy(&mut self.source.by_ref().take(length), &mut io::sink())?;
        if skipped == length { Ok(()) } else { Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()) }
    }

    fn take(&mut self, length: u64) -> Result<Vec<u8>, Fault> {
        self.claim(length)?;
        let mut taken = Vec::new();
        self.source.by_ref().take(length).read_to_end(&mut taken)?;
        if taken.len() as u64 == length { Ok(taken) } else { Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()) }
    }

    /// A short string.
    pub(super) fn short(&mut self, what: &str) -> Result<Vec<u8>, Fault> {
        let length = self.u64()?;
        if length > MAX_NAME {
            return Err(Fault::damaged(format!("{what} of {length} bytes")));
        }
        self.take(length)
    }

    /// A name. llama.cpp reads names up to their first NUL, so that two names
    /// could pass for one behind the back of every check here.
    pub(super) fn name(&mut self, what: &str) -> Result<String, Fault> {
        let name = self.short(what)?;
        if name.contains(&0) {
            return Err(Fault::damaged(format!("{what} contains a NUL: {}", super::shown(&name))));
        }
        // Names that are not UTF-8 mean nothing to llama.cpp.
        Ok(String::from_utf8_lossy(&name).into_owned())
    }

    /// The length of a list of strings, each of which takes at least its length.
    pub(super) fn strings(&mut self) -> Result<u64, Fault> {
        let count = self.u64()?;
        if count > self.size / 8 {
            return Err(Fault::damaged(format!("a list of {count} strings")));
        }
        Ok(count)
    }

    /// A value of a type; long ones are walked over and not kept.
    pub(super) fn value(&mut self, kind: u32) -> Result<Value, Fault> {
        Ok(match kind {
            2 => Value::Short(u16::from_le_bytes(self.bytes()?)),
            4 => Value::Unsigned(self.u32()?),
            6 => Value::Float(f32::from_bits(self.u32()?)),
            7 => Value::Bool(self.bytes::<1>()? != [0]),
            8 => {
                let length = self.u64()?;
                if length > KEPT_TEXT {
                    self.skip(length)?;
                    return Ok(Value::LongText);
                }
                Value::Text(self.take(length)?)
            }
            9 => {
                let kind = self.u32()?;
                if kind == 8 {
                    for _ in 0..self.strings()? {
                        let length = self.u64()?;
                        self.skip(length)?;
                    }
                    return Ok(Value::Other(9));
                }
                let count = self.u64()?;
                let bytes = count
                    .checked_mul(scalar_bytes(kind)?)
                    .ok_or_else(|| Fault::damaged(format!("a list of {count} numbers")))?;
                if count > KEPT_NUMBERS || !matches!(kind, 4..=7) {
                    self.skip(bytes)?;
                    return Ok(Value::Other(9));
                }
                self.numbers(kind, count)?
            }
            _ => {
                let bytes = scalar_bytes(kind)?;
                self.skip(bytes)?;
                Value::Other(kind)
            }
        })
    }

    fn numbers(&mut self, kind: u32, count: u64) -> Result<Value, Fault> {
        Ok(match kind {
            6 => {
                let floats: Result<_, Fault> = (0..count).map(|_| self.u32().map(f32::from_bits)).collect();
                Value::Floats(floats?)
            }
            7 => {
                let numbers: Result<_, Fault> =
                    (0..count).map(|_| self.bytes::<1>().map(|byte| u32::from(byte != [0]))).collect();
                Value::Numbers(numbers?)
            }
            // llama.cpp reads signed ones as unsigned, too.
            _ => {
                let numbers: Result<_, Fault> = (0..count).map(|_| self.u32()).collect();
                Value::Numbers(numbers?)
            }
        })
    }
}

/// Bytes of a number of a GGUF type.
fn scalar_bytes(kind: u32) -> Result<u64, Fault> {
    match kind {
        0 | 1 | 7 => Ok(1),
        2 | 3 => Ok(2),
        4..=6 => Ok(4),
        10..=12 => Ok(8),
        _ => Err(Fault::damaged(format!("a value of type {kind}"))),
    }
}
