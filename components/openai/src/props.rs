//! `GET /props`: what clients of llama.cpp's server ask of a model before they begin.
//!
//! By its names, and only what is known here: no path of a file, no image input. It
//! opens the model, and so waits for one that is not loaded. `?model=` names another than
//! the first.

use nala_sdk::chat::Template;
use nala_sdk::http::{Request, Response};
use nala_sdk::llm::{self, Info};
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::parameters::DEFAULT_MIN_P;
use crate::tokens;

/// Answers with the properties of a model.
///
/// # Errors
/// 404 and 503 for the model.
pub(crate) fn get(request: Request) -> Result<Response, ApiError> {
    let model = tokens::open(request.query("model").as_deref())?;
    let props = describe(&model.info(), &Template::of(&model), llm::limits().sessions);
    Ok(Response::new(200, "application/json", props.to_string()))
}

/// `slots` are the sequences that one request may have at once. How many the host
/// works on at once is not known to a component.
fn describe(info: &Info, template: &Template, slots: u32) -> Value {
    json!({
        "default_generation_settings": {
            "n_ctx": info.ctx_max,
            // Those of a chat completion that says nothing of it.
            "params": {
                "temperature": 1.0,
                "top_p": 1.0,
                "top_k": 0,
                "min_p": f64::from((DEFAULT_MIN_P * 100.0).round()) / 100.0,
                "repeat_penalty": 1.0,
                "frequency_penalty": 0.0,
                "presence_penalty": 0.0,
            },
        },
        "total_slots": slots,
        "model_alias": info.name,
        "modalities": {"vision": false, "video": false, "audio": false},
        "chat_template": template.source,
        "bos_token": template.bos_token.as_deref().unwrap_or_default(),
        "eos_token": template.eos_token.as_deref().unwrap_or_default(),
        "build_info": concat!("nala-", env!("CARGO_PKG_VERSION")),
        "is_sleeping": false,
    })
}

#[cfg(test)]
mod tests {
    use nala_sdk::llm::{Caps, StateKind};

    use super::*;

    #[test]
    fn a_model_is_described_by_what_is_known_of_it() {
        let info = Info {
            name: "m".to_owned(),
            arch: "llama".to_owned(),
            n_vocab: 10,
            n_embd: 4,
            ctx_max: 2048,
            state: StateKind::Attention,
            caps: Caps::empty(),
            cache_block: 16,
        };
        let template = Template { source: "{{ x }}".to_owned(), bos_token: None, eos_token: Some("</s>".to_owned()) };
        let props = describe(&info, &template, 16);
        assert_eq!(props["default_generation_settings"]["n_ctx"], 2048);
        assert_eq!(props["default_generation_settings"]["params"]["min_p"], 0.05);
        assert_eq!((&props["bos_token"], &props["eos_token"]), (&json!(""), &json!("</s>")));
        assert_eq!((&props["model_alias"], &props["total_slots"]), (&json!("m"), &json!(16)));
        assert!(props.get("model_path").is_none());
    }
}
