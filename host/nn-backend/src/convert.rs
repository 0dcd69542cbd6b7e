//! Between the types of wasmtime-wasi-nn and ours.

use nala_nn::{Element, Error};
use wasmtime_wasi_nn::Tensor;
use wasmtime_wasi_nn::backend::BackendError;
use wasmtime_wasi_nn::wit::TensorType;

/// The traits have no way to say of what kind an error is, and a guest is told
/// `runtime-error` and the words of [`BackendError`]. Ours are its source, which
/// wasmtime-wasi-nn writes to the host's log.
pub(crate) fn failed(error: Error) -> BackendError {
    BackendError::BackendAccess(wasmtime::Error::msg(error.to_string()))
}

pub(crate) fn into_nn(tensor: Tensor) -> Result<nala_nn::Tensor, Error> {
    let element = match tensor.ty {
        TensorType::Fp16 => Element::Fp16,
        TensorType::Fp32 => Element::Fp32,
        TensorType::Fp64 => Element::Fp64,
        TensorType::Bf16 => Element::Bf16,
        TensorType::U8 => Element::U8,
        TensorType::I32 => Element::I32,
        TensorType::I64 => Element::I64,
    };
    nala_nn::Tensor::new(tensor.dimensions, element, tensor.data)
}

pub(crate) fn of_nn(tensor: nala_nn::Tensor) -> Tensor {
    let ty = match tensor.element() {
        Element::Fp16 => TensorType::Fp16,
        Element::Fp32 => TensorType::Fp32,
        Element::Fp64 => TensorType::Fp64,
        Element::Bf16 => TensorType::Bf16,
        Element::U8 => TensorType::U8,
        Element::I32 => TensorType::I32,
        Element::I64 => TensorType::I64,
    };
    Tensor { dimensions: tensor.dimensions().to_vec(), ty, data: tensor.into_data() }
}
