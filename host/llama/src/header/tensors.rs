//! The descriptions of the tensors.
//!
//! llama.cpp takes a tensor of any type and ends the process at the first token
//! where its kernels do not know the type. What its CPU kernels know: products
//! and rows of tables take every type with a dot product; all that is added,
//! multiplied by element, convolved or rotated with has to be F32.

use std::io::Read;

use llama_cpp_sys_2 as sys;

use super::cursor::Cursor;
use super::{Fault, shown};

/// The most dimensions of a tensor (`GGML_MAX_DIMS`).
const MAX_DIMS: u32 = 4;

/// The types with a dot product (`type_traits_cpu` in ggml-cpu.c), which all
/// are types of tables, too (`ggml_compute_forward_get_rows` in ops.cpp).
const PRODUCTS: [sys::ggml_type; 28] = [
    sys::GGML_TYPE_F32,
    sys::GGML_TYPE_F16,
    sys::GGML_TYPE_BF16,
    sys::GGML_TYPE_Q1_0,
    sys::GGML_TYPE_Q2_0,
    sys::GGML_TYPE_Q4_0,
    sys::GGML_TYPE_Q4_1,
    sys::GGML_TYPE_Q5_0,
    sys::GGML_TYPE_Q5_1,
    sys::GGML_TYPE_Q8_0,
    sys::GGML_TYPE_MXFP4,
    sys::GGML_TYPE_NVFP4,
    sys::GGML_TYPE_Q2_K,
    sys::GGML_TYPE_Q3_K,
    sys::GGML_TYPE_Q4_K,
    sys::GGML_TYPE_Q5_K,
    sys::GGML_TYPE_Q6_K,
    sys::GGML_TYPE_TQ1_0,
    sys::GGML_TYPE_TQ2_0,
    sys::GGML_TYPE_IQ1_S,
    sys::GGML_TYPE_IQ1_M,
    sys::GGML_TYPE_IQ2_XXS,
    sys::GGML_TYPE_IQ2_XS,
    sys::GGML_TYPE_IQ2_S,
    sys::GGML_TYPE_IQ3_XXS,
    sys::GGML_TYPE_IQ3_S,
    sys::GGML_TYPE_IQ4_NL,
    sys::GGML_TYPE_IQ4_XS,
];

/// Parts of the names of tensors of two dimensions or more that are no factor
/// of a matrix product (`LLM_TENSOR_INFOS` in llama-arch.cpp).
const ELEMENTWISE: [&str; 18] = [
    "norm",
    "conv",
    "rope_f",
    "lerp",
    "time_mix_first",
    "time_mix_decay.",
    "time_mix_k_",
    "time_mix_r_k",
    "time_mix_ln",
    "sinks",
    "_scale",
    "_base.",
    "ssm_a",
    "ssm_d.",
    "exp_probs",
    "kpool_ape",
    "res_score",
    "gamma",
];

/// A tensor's description.
pub(super) struct Tensor {
    pub(super) name: String,
    pub(super) dims: Vec<u64>,
    /// Where it ends, counted from the begin of the tensors.
    pub(super) end: u64,
}

/// Reads the description of a tensor and checks it.
pub(super) fn read(cursor: &mut Cursor<impl Read>) -> Result<Tensor, Fault> {
    let name = cursor.name("a tensor's name")?;
    let shown = || shown(name.as_bytes());
    let dims = cursor.u32()?;
    if dims > MAX_DIMS {
        return Err(Fault::damaged(format!("{dims} dimensions of {}", shown())));
    }
    let mut elements = 1_u64;
    let mut shape = Vec::new();
    for _ in 0..dims {
        let length = cursor.u64()?;
        elements = elements.checked_mul(length).ok_or_else(|| Fault::damaged(format!("the shape of {}", shown())))?;
        shape.push(length);
    }
    if elements == 0 {
        return Err(Fault::damaged(format!("{} has no elements", shown())));
    }
    let kind = cursor.u32()?;
    let offset = cursor.u64()?;
    let (block, bytes) = block_size(kind).ok_or_else(|| Fault::damaged(format!("type {kind} of {}", shown())))?;
    let wants_f32 = dims < 2 || !is_factor(&name);
    if wants_f32 && kind != sys::GGML_TYPE_F32 {
        return Err(Fault::value(format!("the tensor {} has the ggml type {kind}, but must be F32", shown())));
    }
    if !PRODUCTS.contains(&kind) {
        return Err(Fault::value(format!(
            "the tensor {} has the ggml type {kind}, with which this llama.cpp cannot compute",
            shown()
        )));
    }
    let end = elements
        .div_ceil(block)
        .checked_mul(bytes)
        .and_then(|length| offset.checked_add(length))
        .ok_or_else(|| Fault::damaged(format!("the size of {}", shown())))?;
    Ok(Tensor { name, dims: shape, end })
}

/// Whether a tensor of two dimensions or more is a table or a factor of a
/// product, judged as llama.cpp's own conversion does.
fn is_factor(name: &str) -> bool {
    let weight = [".weight", ".lora_a", ".lora_b"].iter().any(|ending| name.ends_with(ending));
    weight && !ELEMENTWISE.iter().any(|part| name.contains(part))
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

    #[test]
    fn factors_are_told_from_the_rest() {
        for name in ["token_embd.weight", "blk.0.attn_q.weight", "blk.3.ssm_dt.weight", "blk.1.ffn_gate_exps.weight"] {
            assert!(is_factor(name), "{name}");
        }
        for name in ["blk.0.attn_q_norm.weight", "blk.0.ffn_up_exps.bias", "blk.0.ssm_a", "blk.0.ssm_conv1d.weight"] {
            assert!(!is_factor(name), "{name}");
        }
    }
}
