//! The formats tensors are stored in, with their block sizes.

use std::fmt;

use serde::{Serialize, Serializer};

/// The format of a tensor's elements (`ggml_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TensorKind(u32);

/// Number in the file, name, elements of a block, bytes of a block.
/// Source: `enum ggml_type` in `ggml.h` and the block sizes asserted in
/// `ggml-common.h`.
const KINDS: &[(u32, &str, u64, u64)] = &[
    (0, "F32", 1, 4),
    (1, "F16", 1, 2),
    (2, "Q4_0", 32, 18),
    (3, "Q4_1", 32, 20),
    (6, "Q5_0", 32, 22),
    (7, "Q5_1", 32, 24),
    (8, "Q8_0", 32, 34),
    (9, "Q8_1", 32, 36),
    (10, "Q2_K", 256, 84),
    (11, "Q3_K", 256, 110),
    (12, "Q4_K", 256, 144),
    (13, "Q5_K", 256, 176),
    (14, "Q6_K", 256, 210),
    (15, "Q8_K", 256, 292),
    (16, "IQ2_XXS", 256, 66),
    (17, "IQ2_XS", 256, 74),
    (18, "IQ3_XXS", 256, 98),
    (19, "IQ1_S", 256, 50),
    (20, "IQ4_NL", 32, 18),
    (21, "IQ3_S", 256, 110),
    (22, "IQ2_S", 256, 82),
    (23, "IQ4_XS", 256, 136),
    (24, "I8", 1, 1),
    (25, "I16", 1, 2),
    (26, "I32", 1, 4),
    (27, "I64", 1, 8),
    (28, "F64", 1, 8),
    (29, "IQ1_M", 256, 56),
    (30, "BF16", 1, 2),
    (34, "TQ1_0", 256, 54),
    (35, "TQ2_0", 256, 66),
    (39, "MXFP4", 32, 17),
    (40, "NVFP4", 64, 36),
    (41, "Q1_0", 128, 18),
    (42, "Q2_0", 64, 18),
];

impl TensorKind {
    /// The format with this number, known or not.
    #[must_use]
    pub fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number as files have it.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }

    /// The usual name, for formats this version knows.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        self.known().map(|(_, name, _, _)| *name)
    }

    /// Bytes that `elements` take. None for an unknown format, for a count
    /// that is no whole number of blocks, and for more than 2^64 bytes.
    #[must_use]
    pub fn bytes_of(self, elements: u64) -> Option<u64> {
        let (_, _, block, bytes) = self.known()?;
        if elements.checked_rem(*block) != Some(0) {
            return None;
        }
        elements.checked_div(*block)?.checked_mul(*bytes)
    }

    fn known(self) -> Option<&'static (u32, &'static str, u64, u64)> {
        KINDS.iter().find(|(number, ..)| *number == self.0)
    }
}

impl fmt::Display for TensorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => write!(f, "type {}", self.0),
        }
    }
}

impl Serialize for TensorKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_per_weight_are_those_everyone_quotes() {
        for (number, name, bits) in [(3, "Q4_1", 5.0), (8, "Q8_0", 8.5), (12, "Q4_K", 4.5)] {
            let kind = TensorKind::new(number);
            assert_eq!(kind.name(), Some(name));
            let bytes = kind.bytes_of(2560).unwrap();
            assert!((bytes as f64 * 8.0 / 2560.0 - bits).abs() < 1e-9, "{name}");
        }
    }

    #[test]
    fn odd_counts_and_unknown_formats_have_no_size() {
        assert_eq!(TensorKind::new(2).bytes_of(33), None);
        assert_eq!(TensorKind::new(0).bytes_of(u64::MAX), None);
        assert_eq!(TensorKind::new(4).bytes_of(32), None);
        assert_eq!(TensorKind::new(4).to_string(), "type 4");
    }
}
