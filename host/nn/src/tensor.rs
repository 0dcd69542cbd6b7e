//! Tensors as guests make them.

use std::fmt;

use crate::error::Error;

/// The most dimensions of a tensor. `wasi:nn` names no limit; ONNX models, which
/// have most, stay under ten.
pub const MAX_RANK: usize = 16;

/// What a tensor is made of: `tensor-type` of `wasi:nn/tensor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Element {
    /// Half precision.
    Fp16,
    /// Single precision.
    Fp32,
    /// Double precision.
    Fp64,
    /// "Brain" half precision.
    Bf16,
    /// Bytes.
    U8,
    /// Whole numbers of 32 bits.
    I32,
    /// Whole numbers of 64 bits.
    I64,
}

impl Element {
    /// Bytes that one takes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        match self {
            Self::U8 => 1,
            Self::Fp16 | Self::Bf16 => 2,
            Self::Fp32 | Self::I32 => 4,
            Self::Fp64 | Self::I64 => 8,
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fp16 => "FP16",
            Self::Fp32 => "FP32",
            Self::Fp64 => "FP64",
            Self::Bf16 => "BF16",
            Self::U8 => "U8",
            Self::I32 => "I32",
            Self::I64 => "I64",
        })
    }
}

/// A tensor whose data is as large as its dimensions say.
#[derive(Clone, PartialEq, Eq)]
pub struct Tensor {
    dimensions: Vec<u32>,
    element: Element,
    data: Vec<u8>,
}

impl Tensor {
    /// A tensor of these parts.
    ///
    /// # Errors
    /// [`Error`] for more than [`MAX_RANK`] dimensions, and where their product with
    /// the size of an element is not the size of the data.
    pub fn new(dimensions: Vec<u32>, element: Element, data: Vec<u8>) -> Result<Self, Error> {
        let rank = dimensions.len();
        if rank > MAX_RANK {
            return Err(Error::invalid(format!("the tensor has {rank} dimensions; {MAX_RANK} are the most")));
        }
        let product = dimensions.iter().try_fold(element.bytes(), |all, &one| all.checked_mul(one.into()));
        if product == Some(data.len() as u64) {
            return Ok(Self { dimensions, element, data });
        }
        let comes_to =
            product.map_or_else(|| "more bytes than can be counted".to_owned(), |all| format!("{all} bytes"));
        Err(Error::invalid(format!(
            "the tensor's dimensions {dimensions:?} of {element} come to {comes_to}, but its data has {}; give the \
             dimensions of the data, for text its length in bytes",
            data.len()
        )))
    }

    /// Bytes in a row.
    #[must_use]
    pub fn of_bytes(data: Vec<u8>) -> Self {
        // More than 4 GiB are refused long before; two dimensions would hold them.
        let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
        Self { dimensions: vec![length], element: Element::U8, data }
    }

    /// Its dimensions.
    #[must_use]
    pub fn dimensions(&self) -> &[u32] {
        &self.dimensions
    }

    /// What it is made of.
    #[must_use]
    pub fn element(&self) -> Element {
        self.element
    }

    /// Its data.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// Its data, without copying.
    #[must_use]
    pub fn into_data(self) -> Vec<u8> {
        self.data
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {}", self.dimensions, self.element)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_have_to_be_those_of_the_data() {
        assert!(Tensor::new(vec![2, 3], Element::Fp32, vec![0; 24]).is_ok());
        assert!(Tensor::new(vec![], Element::I64, vec![0; 8]).is_ok(), "a single value");
        assert!(Tensor::new(vec![0, u32::MAX, u32::MAX], Element::I64, vec![]).is_ok(), "nothing, however wide");
        let refused = |dimensions, bytes| Tensor::new(dimensions, Element::U8, vec![0; bytes]).unwrap_err().to_string();
        assert!(refused(vec![1], 5).contains("[1] of U8 come to 1 bytes, but its data has 5"));
        assert!(refused(vec![u32::MAX; 4], 0).contains("more bytes than can be counted"));
        assert!(refused(vec![1; 17], 1).contains("17 dimensions"));
    }
}
