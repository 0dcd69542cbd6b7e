//! `model_status`: what the models do.

use nala_sdk::telemetry::{self, Model, ModelState};
use nala_sdk::tools::{Answer, Error, Tool};
use serde::{Deserialize, Serialize};

use crate::units;

pub(crate) const NAME: &str = "model_status";

/// For how long tokens may be counted, in seconds.
const SECONDS: (f64, f64) = (0.2, 20.0);

const INPUT: &str = r#"{
  "type": "object",
  "properties": {
    "model": {"type": "string", "description": "Only this model; all if it is left out"},
    "seconds": {
      "type": "number",
      "minimum": 0.2,
      "maximum": 20,
      "description": "Also count tokens for so long, to tell how many a second there are now"
    }
  },
  "additionalProperties": false
}"#;

const OUTPUT: &str = r#"{
  "type": "object",
  "properties": {
    "models": {
      "type": "array",
      "items": {
        "type": "object",
        "properties": {
          "name": {"type": "string"},
          "state": {"enum": ["unloaded", "loading", "loaded", "unloading"]},
          "sessions": {"type": "integer", "description": "Open now"},
          "running": {"type": "integer", "description": "Sequences that generate now"},
          "waiting": {"type": "integer", "description": "Prompts and sequences that wait for room"},
          "kv_cells_used": {"type": "integer"},
          "kv_cells_cached": {"type": "integer", "description": "Held for texts that may come again, and given up for others"},
          "kv_cells": {"type": "integer"},
          "generated_tokens": {"type": "integer", "description": "Since the server was started"},
          "prompt_tokens": {"type": "integer", "description": "Computed since the server was started"},
          "cached_tokens": {"type": "integer", "description": "Prompt tokens that need not be computed"},
          "generated_per_second": {"type": ["number", "null"], "description": "While it was counted"},
          "prompt_per_second": {"type": ["number", "null"], "description": "While it was counted"}
        },
        "required": ["name", "state", "running", "waiting", "kv_cells_used", "kv_cells", "generated_tokens"]
      }
    }
  },
  "required": ["models"],
  "additionalProperties": false
}"#;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    model: Option<String>,
    seconds: Option<f64>,
}

#[derive(Serialize)]
struct Told {
    models: Vec<ToldModel>,
}

#[derive(Serialize)]
struct ToldModel {
    name: String,
    state: &'static str,
    sessions: u32,
    running: u32,
    waiting: u32,
    kv_cells_used: u64,
    kv_cells_cached: u64,
    kv_cells: u64,
    generated_tokens: u64,
    prompt_tokens: u64,
    cached_tokens: u64,
    generated_per_second: Option<f64>,
    prompt_per_second: Option<f64>,
}

pub(crate) fn tool() -> Tool {
    let what = "Tells what the models of this server do now: whether they are loaded, sequences that run and wait, \
                memory for their context (KV cells), tokens so far, and with `seconds` tokens a second.";
    Tool::new(NAME, what, INPUT).titled("Models").answering(OUTPUT).read_only()
}

pub(crate) fn call(arguments: &str) -> Result<Answer, Error> {
    let Arguments { model, seconds } = crate::arguments(arguments)?;
    let time = seconds.map(|seconds| crate::seconds(seconds, SECONDS)).transpose()?;
    let read = || -> Result<(Vec<Model>, Vec<Model>), telemetry::Error> {
        let Some(time) = time else { return Ok((Vec::new(), telemetry::models()?)) };
        let before = telemetry::models()?;
        std::thread::sleep(time);
        Ok((before, telemetry::models()?))
    };
    Ok(match read() {
        Ok((before, now)) => tell(&before, now, model.as_deref()),
        Err(error) => crate::refused(error),
    })
}

fn tell(before: &[Model], now: Vec<Model>, only: Option<&str>) -> Answer {
    let names: Vec<String> = now.iter().map(|model| model.name.clone()).collect();
    let models = now.into_iter().filter(|model| only.is_none_or(|only| only == model.name));
    let models: Vec<ToldModel> = models
        .map(|model| {
            let before = before.iter().find(|before| before.name == model.name);
            told(&model, before)
        })
        .collect();
    match only.filter(|_| models.is_empty()) {
        Some(only) if names.is_empty() => Answer::error(format!("There is no model `{only}`, and no other.")),
        Some(only) => Answer::error(format!("There is no model `{only}`; there are {}.", names.join(", "))),
        None => {
            let lines: Vec<String> = models.iter().map(text).collect();
            let text = if lines.is_empty() { "There are no models.".to_owned() } else { lines.join("\n") };
            crate::answer(text, &Told { models })
        }
    }
}

fn told(model: &Model, before: Option<&Model>) -> ToldModel {
    // The readings say themselves how far they are apart.
    let seconds = before.map(|before| model.at_ms.saturating_sub(before.at_ms) as f64 / 1000.0);
    let rate = |of: fn(&Model) -> u64| {
        let (before, seconds) = (before?, seconds.filter(|seconds| *seconds > 0.0)?);
        Some(units::rounded(of(model).saturating_sub(of(before)) as f64 / seconds))
    };
    ToldModel {
        name: model.name.clone(),
        state: match model.state {
            ModelState::Unloaded => "unloaded",
            ModelState::Loading => "loading",
            ModelState::Loaded => "loaded",
            ModelState::Unloading => "unloading",
        },
        sessions: model.sessions,
        running: model.running,
        waiting: model.waiting,
        kv_cells_used: model.kv_cells_used,
        kv_cells_cached: model.kv_cells_cached,
        kv_cells: model.kv_cells,
        generated_tokens: model.generated_tokens,
        prompt_tokens: model.prompt_tokens,
        cached_tokens: model.cached_tokens,
        generated_per_second: rate(|model| model.generated_tokens),
        prompt_per_second: rate(|model| model.prompt_tokens),
    }
}

fn text(model: &ToldModel) -> String {
    let mut text = format!("{}: {}", model.name, model.state);
    if model.state == "loaded" {
        text.push_str(&format!(
            ", {} running and {} waiting, {} of {} KV cells used ({} more for texts that may come again)",
            units::count(model.running.into(), "sequence"),
            model.waiting,
            model.kv_cells_used,
            model.kv_cells,
            model.kv_cells_cached,
        ));
    }
    text.push_str(&format!(", {} generated so far", units::count(model.generated_tokens, "token")));
    if let (Some(generated), Some(read)) = (model.generated_per_second, model.prompt_per_second) {
        text.push_str(&format!(", now {generated:.1} a second and {read:.1} of prompts"));
    }
    text
}

#[cfg(test)]
mod tests {
    use nala_sdk::tools::Content;

    use super::*;

    fn model(name: &str, at_ms: u64, tokens: u64) -> Model {
        Model {
            name: name.to_owned(),
            state: ModelState::Loaded,
            at_ms,
            sessions: 3,
            running: 1,
            waiting: 0,
            kv_cells_used: 100,
            kv_cells_cached: 20,
            kv_cells: 4096,
            prompt_tokens: 2 * tokens,
            cached_tokens: 5,
            generated_tokens: tokens,
            steps: 1,
            step_us: 1,
        }
    }

    #[test]
    fn rates_are_over_the_time_between_the_readings() {
        let answer = tell(&[model("a", 1000, 50)], vec![model("a", 3000, 80), model("b", 3000, 0)], None);
        let json: serde_json::Value = serde_json::from_str(answer.structured.as_deref().unwrap()).unwrap();
        assert_eq!(json["models"][0]["generated_per_second"], 15.0, "{json}");
        assert_eq!(json["models"][0]["prompt_per_second"], 30.0, "{json}");
        assert!(json["models"][1]["generated_per_second"].is_null(), "{json}");
        let Content::Text(text) = &answer.content[0] else { panic!("{answer:?}") };
        assert!(
            text.starts_with("a: loaded, 1 sequence running and 0 waiting, 100 of 4096 KV cells used (20 more"),
            "{text}"
        );
        assert!(
            text.contains("80 tokens generated so far, now 15.0 a second and 30.0 of prompts\nb: loaded"),
            "{text}"
        );
        // The same reading twice tells no rate.
        let answer = tell(&[model("a", 1000, 50)], vec![model("a", 1000, 50)], None);
        assert!(answer.structured.unwrap().contains("\"generated_per_second\":null"));
    }

    #[test]
    fn a_model_that_is_not_there_is_told_with_those_that_are() {
        let answer = tell(&[], vec![model("a", 0, 0), model("b", 0, 0)], Some("c"));
        assert!(answer.is_error && format!("{answer:?}").contains("there are a, b"), "{answer:?}");
        let answer = tell(&[], vec![model("a", 0, 0), model("b", 0, 0)], Some("b"));
        assert!(answer.structured.is_some_and(|json| json.contains("\"b\"") && !json.contains("\"a\"")));
        assert!(tell(&[], Vec::new(), Some("c")).is_error);
        assert!(!tell(&[], Vec::new(), None).is_error);
    }
}
