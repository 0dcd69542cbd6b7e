//! Bounded reads: nothing is allocated or skipped beyond the file's end.

use std::io::{BufReader, Read, Seek};

use super::header::HeaderError;
use super::value::{Value, ValueKind};

/// The longest text that is kept; chat templates, the longest known, stay
/// under a few hundred kilobytes.
const MAX_TEXT: u64 = 16 << 20;
/// The longest key or tensor name; the format allows 65535.
const MAX_NAME: u64 = 65_535;
/// How deep arrays may nest.
const MAX_DEPTH: u32 = 4;

pub(super) struct Bounded<R> {
    inner: BufReader<R>,
    position: u64,
    len: u64,
}

impl<R: Read + Seek> Bounded<R> {
    /// Reads from the beginning of `inner`, which has `len` bytes.
    pub(super) fn new(inner: R, len: u64) -> Self {
        Self { inner: BufReader::with_capacity(64 * 1024, inner), position: 0, len }
    }

    pub(super) fn position(&self) -> u64 {
        self.position
    }

    pub(super) fn remaining(&self) -> u64 {
        self.len.saturating_sub(self.position)
    }

    /// Refuses a count of things of at least `least` bytes each that the rest
    /// of the file cannot hold.
    pub(super) fn check_count(&self, what: &'static str, count: u64, least: u64) -> Result<(), HeaderError> {
        match count.checked_mul(least) {
            Some(bytes) if bytes <= self.remaining() => Ok(()),
            _ => Err(HeaderError::TooMany { what, count }),
        }
    }

    fn take(&mut self, count: u64) -> Result<(), HeaderError> {
        if count > self.remaining() {
            return Err(HeaderError::Ends { at: self.position });
        }
        self.position += count;
        Ok(())
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], HeaderError> {
        self.take(N as u64)?;
        let mut bytes = [0; N];
        self.inner.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, HeaderError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, HeaderError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn skip(&mut self, count: u64) -> Result<(), HeaderError> {
        self.take(count)?;
        // `take` held the count against the file's size, which fits an offset.
        let offset = i64::try_from(count).map_err(|_| HeaderError::Ends { at: self.position })?;
        self.inner.seek_relative(offset)?;
        Ok(())
    }

    fn text_within(&mut self, limit: u64) -> Result<String, HeaderError> {
        let at = self.position;
        let len = self.u64()?;
        if len > limit {
            return Err(HeaderError::TooLong { at, len });
        }
        self.take(len)?;
        let len = usize::try_from(len).map_err(|_| HeaderError::TooLong { at, len })?;
        let mut bytes = vec![0; len];
        self.inner.read_exact(&mut bytes)?;
        Ok(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// A key or the name of a tensor.
    pub(super) fn name(&mut self) -> Result<String, HeaderError> {
        self.text_within(MAX_NAME)
    }

    pub(super) fn kind(&mut self) -> Result<ValueKind, HeaderError> {
        let at = self.position;
        let number = self.u32()?;
        ValueKind::new(number).ok_or(HeaderError::UnknownValueKind { at, number })
    }

    pub(super) fn value(&mut self, kind: ValueKind) -> Result<Value, HeaderError> {
        Ok(match kind {
            ValueKind::U8 => Value::Unsigned(u8::from_le_bytes(self.array()?).into()),
            ValueKind::U16 => Value::Unsigned(u16::from_le_bytes(self.array()?).into()),
            ValueKind::U32 => Value::Unsigned(self.u32()?.into()),
            ValueKind::U64 => Value::Unsigned(self.u64()?),
            ValueKind::I8 => Value::Signed(i8::from_le_bytes(self.array()?).into()),
            ValueKind::I16 => Value::Signed(i16::from_le_bytes(self.array()?).into()),
            ValueKind::I32 => Value::Signed(i32::from_le_bytes(self.array()?).into()),
            ValueKind::I64 => Value::Signed(i64::from_le_bytes(self.array()?)),
            ValueKind::F32 => Value::Float(f32::from_le_bytes(self.array()?).into()),
            ValueKind::F64 => Value::Float(f64::from_le_bytes(self.array()?)),
            ValueKind::Bool => {
                let [byte] = self.array()?;
                Value::Bool(byte != 0)
            }
            ValueKind::Text => Value::Text(self.text_within(MAX_TEXT)?),
            ValueKind::Array => {
                let kind = self.kind()?;
                let len = self.u64()?;
                self.skip_elements(kind, len, MAX_DEPTH)?;
                Value::Array { kind, len }
            }
        })
    }

    fn skip_elements(&mut self, kind: ValueKind, len: u64, depth: u32) -> Result<(), HeaderError> {
        self.check_count("elements of an array", len, kind.least_size())?;
        if let Some(size) = kind.fixed_size() {
            // `check_count` has shown that this does not overflow.
            return self.skip(len.saturating_mul(size));
        }
        let Some(depth) = depth.checked_sub(1) else {
            return Err(HeaderError::TooDeep { at: self.position });
        };
        for _ in 0..len {
            if kind == ValueKind::Text {
                let bytes = self.u64()?;
                self.skip(bytes)?;
            } else {
                let kind = self.kind()?;
                let len = self.u64()?;
                self.skip_elements(kind, len, depth)?;
            }
        }
        Ok(())
    }
}
