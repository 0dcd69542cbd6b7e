//! Values of the metadata.

use serde::Serialize;

/// A metadata value. Arrays are known by kind and length only: a vocabulary is
/// large and the engine has its own copy of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// Any of the unsigned integers.
    Unsigned(u64),
    /// Any of the signed integers.
    Signed(i64),
    /// Either of the floats.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// Text; bytes that are not UTF-8 are replaced.
    Text(String),
    /// A list.
    Array {
        /// What it holds.
        kind: ValueKind,
        /// How many.
        len: u64,
    },
}

/// The kind of a value (`gguf_metadata_value_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names are the format's own and say it all")]
pub enum ValueKind {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    Text,
    Array,
    U64,
    I64,
    F64,
}

impl ValueKind {
    pub(super) fn new(number: u32) -> Option<Self> {
        Some(match number {
            0 => Self::U8,
            1 => Self::I8,
            2 => Self::U16,
            3 => Self::I16,
            4 => Self::U32,
            5 => Self::I32,
            6 => Self::F32,
            7 => Self::Bool,
            8 => Self::Text,
            9 => Self::Array,
            10 => Self::U64,
            11 => Self::I64,
            12 => Self::F64,
            _ => return None,
        })
    }

    /// Bytes of one value in a file; none for those that say their own length.
    pub(super) fn fixed_size(self) -> Option<u64> {
        Some(match self {
            Self::U8 | Self::I8 | Self::Bool => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
            Self::Text | Self::Array => return None,
        })
    }

    /// The fewest bytes one value can take in a file.
    pub(super) fn least_size(self) -> u64 {
        match self {
            Self::Text => 8,
            Self::Array => 12,
            other => other.fixed_size().unwrap_or(1),
        }
    }
}
