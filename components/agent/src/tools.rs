//! The tools that the model is shown: those that were granted, and the one that answers.

use agent_loop::First;
use chat_format::Strict;
use nala_sdk::Error;
use nala_sdk::tools::{self, Tool};
use serde_json::{Map, Value, json};

/// The tool by which the model answers.
pub(crate) const ANSWER: &str = "final_answer";

/// All tools of a run.
pub(crate) struct Tools(pub(crate) Vec<chat_format::Tool>);

impl Tools {
    /// Those that the host grants.
    pub(crate) fn granted(answer_schema: Option<&Map<String, Value>>) -> Result<Self, Error> {
        Self::of(tools::list(), answer_schema)
    }

    fn of(granted: Vec<Tool>, answer_schema: Option<&Map<String, Value>>) -> Result<Self, Error> {
        if granted.iter().any(|tool| tool.name == ANSWER) {
            let why = format!("a tool is named `{ANSWER}`, by which the model answers; give it another name");
            return Err(Error::Status(500, why));
        }
        let shown = granted.into_iter().map(|tool| chat_format::Tool {
            name: tool.name,
            description: Some(tool.description),
            // The host has read it as an object.
            parameters: serde_json::from_str(&tool.input_schema).ok(),
            strict: Strict::Lenient,
        });
        Ok(Self(shown.chain([answer(answer_schema)]).collect()))
    }

    /// Refuses names of tools that there are not.
    pub(crate) fn check(&self, first: &[First]) -> Result<(), Error> {
        let known: Vec<&str> = self.0.iter().map(|tool| tool.name.as_str()).collect();
        match first.iter().map(First::tool).find(|name| !known.contains(name)) {
            None => Ok(()),
            Some(name) => {
                let why = format!("`call_first` names the tool {name:?}; there are {}", known.join(", "));
                Err(Error::Status(400, why))
            }
        }
    }

    /// As chat templates show them.
    pub(crate) fn shown(&self) -> Vec<nala_sdk::chat::Tool> {
        let shown = |tool: &chat_format::Tool| nala_sdk::chat::Tool {
            name: tool.name.clone(),
            description: tool.description.clone(),
            parameters: tool.parameters.clone().map(|schema| Value::Object(schema).to_string()),
        };
        self.0.iter().map(shown).collect()
    }
}

fn answer(schema: Option<&Map<String, Value>>) -> chat_format::Tool {
    let text = json!({
        "type": "object",
        "properties": { "answer": { "type": "string", "description": "The answer, in full" } },
        "required": ["answer"],
    });
    let text = text.as_object().cloned();
    chat_format::Tool {
        name: ANSWER.to_owned(),
        description: Some("Gives the answer and ends the work.".to_owned()),
        parameters: schema.cloned().or(text),
        strict: Strict::Lenient,
    }
}

/// What an answer says, of what the model wrote.
pub(crate) fn answer_of(arguments: &str, has_schema: bool) -> Value {
    match serde_json::from_str::<Value>(arguments) {
        Ok(value) if has_schema => value,
        Ok(value) => value.get("answer").cloned().unwrap_or(value),
        Err(_) => Value::String(arguments.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str) -> Tool {
        Tool::new(name, "d", r#"{"type": "object", "properties": {}}"#)
    }

    #[test]
    fn the_model_is_shown_what_was_granted_and_how_to_answer() {
        let tools = Tools::of(vec![tool("a")], None).unwrap();
        let names: Vec<&str> = tools.0.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["a", ANSWER]);
        tools.check(&[First::Tool("a".to_owned())]).unwrap();
        let Err(Error::Status(400, why)) = tools.check(&[First::Tool("b".to_owned())]) else { panic!("there is no b") };
        assert!(why.contains("there are a, final_answer"), "{why}");
        assert!(tools.shown()[1].parameters.as_deref().unwrap().contains("\"answer\""));
        let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
        let tools = Tools::of(vec![], schema.as_object()).unwrap();
        assert_eq!(tools.0[0].parameters.as_ref(), schema.as_object());
        assert!(Tools::of(vec![tool(ANSWER)], None).is_err());
    }

    #[test]
    fn an_answer_is_a_text_or_what_its_schema_says() {
        assert_eq!(answer_of(r#"{"answer": "1591"}"#, false), json!("1591"));
        assert_eq!(answer_of(r#"{"answer": 3}"#, true), json!({ "answer": 3 }));
        assert_eq!(answer_of("{", false), json!("{"));
    }
}
