//! A loaded model: `llama-cpp-2`'s type, and the raw pointer it hides.

use std::collections::BTreeMap;
use std::ptr::NonNull;

use llama_cpp_2::model::LlamaModel;
use llama_cpp_sys_2 as sys;
use nala_engine::{EmbeddingInfo, ModelInfo, Pooling, RankingInfo, StateKind};

use crate::header::Header;
use crate::options::LoadOptions;

const _: () = assert!(
    size_of::<LlamaModel>() == size_of::<NonNull<sys::llama_model>>()
        && align_of::<LlamaModel>() == align_of::<NonNull<sys::llama_model>>()
);

/// The pointer inside of a model, valid while the model lives.
pub(crate) fn raw(model: &LlamaModel) -> NonNull<sys::llama_model> {
    // SAFETY: in llama-cpp-2 0.1.160, to which Cargo.toml pins us exactly,
    // `LlamaModel` is `repr(transparent)` over `Ptr<llama_model>`, which is
    // `repr(transparent)` over `NonNull<llama_model>` (src/model.rs, src/ptr.rs).
    // Size and alignment are asserted above; the read copies a plain pointer.
    unsafe { std::ptr::from_ref(model).cast::<NonNull<sys::llama_model>>().read() }
}

/// Collects what is known of a model.
pub(crate) fn info(model: &LlamaModel, header: &Header, options: &LoadOptions) -> ModelInfo {
    let state = if model.is_hybrid() {
        StateKind::Hybrid
    } else if model.is_recurrent() {
        StateKind::Recurrent
    } else {
        StateKind::Attention
    };
    let metadata: BTreeMap<String, String> = (0..model.meta_count())
        .filter_map(|index| Some((model.meta_key_by_index(index).ok()?, model.meta_val_str_by_index(index).ok()?)))
        .collect();
    ModelInfo {
        arch: header.arch.clone(),
        description: description(model),
        n_vocab: u32::try_from(model.vocab().n_tokens()).unwrap_or(0),
        n_embd: u32::try_from(model.n_embd()).unwrap_or(0),
        ctx_train: context_trained(model),
        state,
        window: window(model),
        adapters: options.adapters.iter().map(|adapter| adapter.name.clone()).collect(),
        embeddings: Some(embeddings(model, header, &metadata, options)),
        // An empty one would turn every conversation into nothing.
        chat_template: metadata.get("tokenizer.chat_template").filter(|template| !template.trim().is_empty()).cloned(),
        metadata,
        tensor_bytes: model.size(),
        parameters: model.n_params(),
    }
}

/// How many tokens back layers with a sliding window look.
fn window(model: &LlamaModel) -> Option<u32> {
    // SAFETY: the model is alive.
    let window = unsafe { sys::llama_model_n_swa(raw(model).as_ptr()) };
    u32::try_from(window).ok().filter(|&window| window > 0)
}

/// The longest text that a head ranks, in tokens. It is decoded at once, and
/// llama.cpp keeps a row of logits for each of its tokens.
const RANKED_TOKENS: u32 = 512;

/// What the model offers as embeddings. Every decoder has some: the state of its
/// tokens before they become logits.
fn embeddings(
    model: &LlamaModel,
    header: &Header,
    metadata: &BTreeMap<String, String>,
    options: &LoadOptions,
) -> EmbeddingInfo {
    // The numbers of `enum llama_pooling_type` in llama.h.
    let pooling = metadata.get(&format!("{}.pooling_type", header.arch)).map(String::as_str);
    let trained = context_trained(model);
    // SAFETY: the model is alive.
    let (width, scores) = unsafe {
        let model = raw(model).as_ptr();
        (sys::llama_model_n_embd_out(model), sys::llama_model_n_cls_out(model))
    };
    let most = options.longest_embedding();
    let most = if trained == 0 { most } else { trained.min(most) };
    EmbeddingInfo {
        width: u32::try_from(width).unwrap_or(0),
        max_tokens: most,
        pooling: match pooling {
            Some("2") => Pooling::First,
            Some("3") => Pooling::Last,
            Some("4") if header.has_head => Pooling::Rank,
            _ => Pooling::Mean,
        },
        ranking: (header.has_head && pooling == Some("4") && scores > 0)
            .then_some(RankingInfo { scores, max_tokens: most.min(RANKED_TOKENS) }),
    }
}

/// The widths of a head's keys and values; those of the first layer.
pub(crate) fn head_widths(model: &LlamaModel, info: &ModelInfo) -> (u32, u32) {
    // SAFETY: the model is alive.
    let heads = unsafe { sys::llama_model_n_head(raw(model).as_ptr()) };
    let shared = info.n_embd.checked_div(u32::try_from(heads).unwrap_or(0)).unwrap_or(0);
    let width = |name: &str| {
        let value = info.metadata.get(&format!("{}.attention.{name}", info.arch));
        value.and_then(|value| value.parse().ok()).unwrap_or(shared)
    };
    (width("key_length"), width("value_length"))
}

/// The context the model was trained for, in tokens; 0: unknown.
pub(crate) fn context_trained(model: &LlamaModel) -> u32 {
    // Not `LlamaModel::n_ctx_train`, which panics on a damaged value.
    // SAFETY: the model is alive.
    let trained = unsafe { sys::llama_model_n_ctx_train(raw(model).as_ptr()) };
    u32::try_from(trained).unwrap_or(0)
}

/// Whether the model continues text on its own.
pub(crate) fn is_plain_decoder(model: &LlamaModel) -> bool {
    let model = raw(model).as_ptr();
    // SAFETY: the model is alive; the calls only read.
    unsafe { sys::llama_model_has_decoder(model) && !sys::llama_model_has_encoder(model) }
}

/// Such as `llama 135M Q4_1`.
fn description(model: &LlamaModel) -> String {
    let mut buffer = [0_u8; 128];
    // SAFETY: the model is alive; llama.cpp writes at most the given number of
    // bytes, the closing NUL included.
    unsafe {
        sys::llama_model_desc(raw(model).as_ptr(), buffer.as_mut_ptr().cast(), buffer.len());
    }
    let text = buffer.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}
