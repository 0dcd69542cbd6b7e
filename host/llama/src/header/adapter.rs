//! What a LoRA adapter says of itself.
//!
//! llama.cpp compares it with the model, but ends the process where a value has
//! another type than it expects (`gguf_get_val_str`), and divides by the rank.

use super::tensors::Tensor;
use super::value::{Value, Values};
use super::{Fault, shown};

fn fault(reason: impl Into<String>) -> Fault {
    Fault::Adapter(reason.into())
}

/// Checks the values of an adapter for models of an architecture.
pub(super) fn judge(values: &Values, arch: &str) -> Result<(), Fault> {
    for (key, wanted) in [("general.type", "adapter"), ("adapter.type", "lora")] {
        match values.get(key) {
            Some(Value::Text(text)) if text == wanted.as_bytes() => {}
            Some(Value::Text(text)) => return Err(fault(format!("{key} is `{}`, not `{wanted}`", shown(text)))),
            Some(_) => return Err(fault(format!("{key} is not a short text"))),
            None => return Err(fault(format!("it has no {key}"))),
        }
    }
    match values.get("general.architecture") {
        Some(Value::Text(text)) if text == arch.as_bytes() => {}
        Some(Value::Text(text)) => {
            return Err(fault(format!(
                "it is for models of the architecture `{}`, and this one is `{arch}`",
                shown(text)
            )));
        }
        _ => return Err(fault("it names no architecture")),
    }
    match values.get("adapter.lora.alpha") {
        Some(Value::Float(alpha)) if alpha.is_finite() => {}
        Some(_) => return Err(fault("adapter.lora.alpha is not a number to compute with")),
        None => return Err(fault("it has no adapter.lora.alpha")),
    }
    // Such an adapter is to be in force from certain tokens on only.
    if values.get("adapter.alora.invocation_tokens").is_some() {
        return Err(fault("it is an \"activated\" LoRA, which is not supported"));
    }
    Ok(())
}

/// Checks a tensor of an adapter.
pub(super) fn judge_tensor(tensor: &Tensor) -> Result<(), Fault> {
    let name = tensor.name.as_str();
    if !name.ends_with(".lora_a") && !name.ends_with(".lora_b") && !name.ends_with("_norm.weight") {
        return Err(fault(format!("the tensor {} is no part of a LoRA", shown(name.as_bytes()))));
    }
    if tensor.dims.len() < 2 && !name.ends_with("_norm.weight") {
        return Err(fault(format!("the tensor {} is no matrix", shown(name.as_bytes()))));
    }
    Ok(())
}
