//! The numbers that describe a model: those on which llama.cpp ends the process
//! (its assertions), divides by zero, or computes what is no number.

use std::ops::RangeInclusive;

use super::value::{Value, Values};
use super::{Fault, families, shown};

/// What llama.cpp knows as `rope.scaling.type`; others end the process.
const ROPE_SCALINGS: [&[u8]; 4] = [b"none", b"linear", b"yarn", b"longrope"];

/// The numbers of one architecture.
pub(super) struct Numbers<'a> {
    arch: &'a str,
    values: &'a Values,
}

impl<'a> Numbers<'a> {
    pub(super) fn new(arch: &'a str, values: &'a Values) -> Self {
        Self { arch, values }
    }

    /// Checks them all.
    pub(super) fn check(&self) -> Result<(), Fault> {
        for (name, value) in self.values.of(self.arch) {
            self.check_one(name, value)?;
        }
        self.check_layers()?;
        self.check_experts()?;
        self.check_heads()
    }

    fn fault(&self, name: &str, what: impl std::fmt::Display) -> Fault {
        Fault::value(format!("{}.{} {what}", self.arch, shown(name.as_bytes())))
    }

    /// Checks what can be told of a value alone.
    fn check_one(&self, name: &str, value: &Value) -> Result<(), Fault> {
        match value {
            Value::Unsigned(number) => self.check_range(name, *number)?,
            Value::Numbers(numbers) => {
                for &number in numbers {
                    self.check_range(name, number)?;
                }
                let uneven = numbers.windows(2).any(|pair| matches!(pair, [a, b] if a != b));
                if uneven && !families::may_differ(self.arch, name) {
                    return Err(self.fault(name, "differs between layers, which this architecture does not know"));
                }
                if name == "rope.dimension_sections" && numbers.iter().take(3).all(|&section| section == 0) {
                    return Err(self.fault(name, "has no sections"));
                }
            }
            Value::Float(number) => self.check_float(name, *number)?,
            Value::Floats(numbers) => numbers.iter().try_for_each(|&number| self.check_float(name, number))?,
            Value::Text(kind) if name == "rope.scaling.type" && !ROPE_SCALINGS.contains(&kind.as_slice()) => {
                return Err(self.fault(name, format!("is `{}`", shown(kind))));
            }
            Value::LongText if name == "rope.scaling.type" => return Err(self.fault(name, "is a long text")),
            _ => {}
        }
        Ok(())
    }

    fn check_range(&self, name: &str, number: u32) -> Result<(), Fault> {
        match believed(name) {
            Some(range) if !range.contains(&number) => {
                let (least, most) = (range.start(), range.end());
                Err(self.fault(name, format!("is {number}, but must be from {least} to {most}")))
            }
            _ => Ok(()),
        }
    }

    fn check_float(&self, name: &str, number: f32) -> Result<(), Fault> {
        if !number.is_finite() {
            return Err(self.fault(name, format!("is {number}, not a number to compute with")));
        }
        let range = match name {
            // Below, the powers of it leave what a float can hold.
            "rope.freq_base" | "rope.freq_base_swa" => 1.0..=1e15,
            "rope.scaling.factor" | "rope.scale_linear" if number != 0.0 => 1e-3..=1e6,
            _ if name.ends_with("_epsilon") => 0.0..=1e3,
            _ => return Ok(()),
        };
        if range.contains(&number) {
            return Ok(());
        }
        let (least, most) = (range.start(), range.end());
        Err(self.fault(name, format!("is {number}, but must be from {least} to {most}")))
    }

    /// A number that is there, and one for all layers.
    fn number(&self, name: &str) -> Option<u32> {
        self.layer(name, 0)
    }

    /// A number of a layer.
    fn layer(&self, name: &str, layer: usize) -> Option<u32> {
        match self.values.get(&format!("{}.{name}", self.arch)) {
            Some(Value::Unsigned(number)) => Some(*number),
            Some(Value::Numbers(numbers)) => numbers.get(layer).copied(),
            _ => None,
        }
    }

    fn check_layers(&self) -> Result<(), Fault> {
        let (Some(layers), Some(extra)) = (self.number("block_count"), self.number("nextn_predict_layers")) else {
            return Ok(());
        };
        if extra >= layers {
            return Err(self.fault("nextn_predict_layers", format!("is {extra}, but there are {layers} layers")));
        }
        Ok(())
    }

    fn check_experts(&self) -> Result<(), Fault> {
        let count = self.number("expert_count").unwrap_or(0);
        let used = match self.values.get(&format!("{}.expert_used_count", self.arch)) {
            Some(Value::Unsigned(number)) => *number,
            Some(Value::Numbers(numbers)) => numbers.iter().copied().max().unwrap_or(0),
            _ => 0,
        };
        if count == 0 && families::needs_experts(self.arch) {
            return Err(self.fault("expert_count", "is missing or 0, but this architecture consists of experts"));
        }
        // The dense models of this family are written as ones of a lone expert.
        if count <= 1 && used <= 1 && self.arch.starts_with("hunyuan") {
            return Ok(());
        }
        if used > count || (count > 0 && used == 0) {
            return Err(self.fault("expert_used_count", format!("is {used}, but there are {count} experts")));
        }
        let groups = self.number("expert_group_count").unwrap_or(0);
        let groups_used = self.number("expert_group_used_count").unwrap_or(0);
        if groups > 0 && groups >= count {
            return Err(self.fault("expert_group_count", format!("is {groups}, but there are {count} experts")));
        }
        if groups > 1 && !count.is_multiple_of(groups) {
            return Err(self.fault("expert_group_count", format!("is {groups}, which does not divide {count} experts")));
        }
        if groups > 1 && !(1..groups).contains(&groups_used) {
            return Err(
                self.fault("expert_group_used_count", format!("is {groups_used}, but there are {groups} groups"))
            );
        }
        Ok(())
    }

    /// The numbers of attention, which have to go with each other.
    fn check_heads(&self) -> Result<(), Fault> {
        let layers = self.number("block_count").unwrap_or(1);
        for layer in 0..layers as usize {
            let heads = self.layer("attention.head_count", layer).unwrap_or(0);
            let shared = self.layer("attention.head_count_kv", layer).unwrap_or(heads);
            if shared > 0 && !heads.is_multiple_of(shared) {
                let what = format!("is {shared}, which does not divide the {heads} heads of layer {layer}");
                return Err(self.fault("attention.head_count_kv", what));
            }
        }
        let heads = self.number("attention.head_count").unwrap_or(0);
        let Some(share) = self.number("embedding_length").and_then(|width| width.checked_div(heads)) else {
            return Ok(());
        };
        let key = self.number("attention.key_length").unwrap_or(share);
        let value = self.number("attention.value_length").unwrap_or(share);
        let rotated = self.number("rope.dimension_count").unwrap_or(key);
        if key == 0 || value == 0 {
            return Err(self.fault("attention.head_count", format!("is {heads}, which leaves heads without a width")));
        }
        if key != value && families::has_heads_of_one_width(self.arch) {
            let what = format!("is {value}, but the keys' length is {key}, and both must be the same");
            return Err(self.fault("attention.value_length", what));
        }
        if !rotated.is_multiple_of(2) || rotated > key {
            let what = format!("is {rotated}, but must be even and at most {key}, the length of a key");
            return Err(self.fault("rope.dimension_count", what));
        }
        if rotated != key && families::rotates_whole_heads(self.arch) {
            return Err(self.fault("rope.dimension_count", format!("is {rotated}, but must be {key}")));
        }
        Ok(())
    }
}

/// The values of a key that can be: outside of them llama.cpp ends the process
/// (`LLAMA_MAX_LAYERS`, `LLAMA_MAX_EXPERTS`), divides by zero, or computes
/// shapes that wrap around.
fn believed(name: &str) -> Option<RangeInclusive<u32>> {
    match name {
        "block_count" => Some(1..=512),
        "expert_count" | "expert_used_count" | "expert_group_count" | "expert_group_used_count" => Some(0..=1024),
        "attention.head_count" | "attention.head_count_kv" => Some(0..=1 << 16),
        "attention.key_length" | "attention.value_length" => Some(0..=1 << 16),
        "attention.key_length_swa" | "attention.value_length_swa" => Some(1..=1 << 16),
        "rope.dimension_count_swa" => Some(0..=1 << 16),
        "rope.dimension_sections" => Some(0..=1 << 16),
        "embedding_length" => Some(1..=1 << 24),
        "feed_forward_length" | "expert_feed_forward_length" | "expert_shared_feed_forward_length" => Some(0..=1 << 24),
        "ssm.conv_kernel" | "ssm.inner_size" | "ssm.state_size" | "ssm.time_step_rank" => Some(1..=1 << 20),
        "ssm.group_count" => Some(0..=1 << 20),
        "wkv.head_size" | "experts_per_group" => Some(1..=1 << 20),
        "shortconv.l_cache" => Some(2..=1 << 16),
        _ => None,
    }
}
