//! What whoever serves the agent says of it, in its environment.

use std::time::Duration;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// What the agent is told about itself (`AGENT_INSTRUCTIONS`).
    pub(crate) instructions: String,
    /// The most turns of the model (`AGENT_MAX_STEPS`).
    pub(crate) max_steps: u32,
    /// The most tokens that it writes in a run (`AGENT_MAX_TOKENS`).
    pub(crate) max_tokens: u32,
    /// The time of a run, after which it begins no further turn (`AGENT_SECONDS`).
    pub(crate) time: Duration,
    /// The most bytes of a tool's answer that the model reads (`AGENT_RESULT_BYTES`).
    pub(crate) result_bytes: usize,
    /// What it is called as a tool of others (`AGENT_TOOL_NAME`),
    pub(crate) tool_name: String,
    /// and what it does then (`AGENT_TOOL_DESCRIPTION`).
    pub(crate) tool_description: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            instructions: INSTRUCTIONS.to_owned(),
            max_steps: 8,
            max_tokens: 1024,
            time: Duration::from_secs(60),
            result_bytes: 4096,
            tool_name: "run_agent".to_owned(),
            tool_description: "Has an agent do something with tools of its own, and gives its answer.".to_owned(),
        }
    }
}

const INSTRUCTIONS: &str = "You do what you are asked. Call the tools that help you, and give the answer with \
                            final_answer as soon as you know it.";

impl Settings {
    pub(crate) fn of_environment() -> Result<Self, String> {
        Self::of(|name| std::env::var(name).ok())
    }

    fn of(value: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let number = |name: &str, default: u32| match value(name) {
            None => Ok(default),
            Some(text) => match text.parse() {
                Ok(number) if number > 0 => Ok(number),
                _ => Err(format!("{name} is {text:?} in the agent's environment; write a number from 1 on")),
            },
        };
        let text = |name: &str, default: String| value(name).filter(|text| !text.trim().is_empty()).unwrap_or(default);
        let default = Self::default();
        Ok(Self {
            instructions: text("AGENT_INSTRUCTIONS", default.instructions),
            max_steps: number("AGENT_MAX_STEPS", default.max_steps)?,
            max_tokens: number("AGENT_MAX_TOKENS", default.max_tokens)?,
            time: Duration::from_secs(number("AGENT_SECONDS", 60)?.into()),
            result_bytes: number("AGENT_RESULT_BYTES", 4096)? as usize,
            tool_name: text("AGENT_TOOL_NAME", default.tool_name),
            tool_description: text("AGENT_TOOL_DESCRIPTION", default.tool_description),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_has_a_default_and_what_is_wrong_is_told() {
        let none = Settings::of(|_| None).unwrap();
        assert_eq!((none.max_steps, none.time), (8, Duration::from_secs(60)));
        let some = Settings::of(|name| (name == "AGENT_MAX_STEPS").then(|| "3".to_owned())).unwrap();
        assert_eq!(some, Settings { max_steps: 3, ..none });
        for wrong in ["0", "-1", "many", ""] {
            let error = Settings::of(|name| (name == "AGENT_SECONDS").then(|| wrong.to_owned())).unwrap_err();
            assert!(error.contains("AGENT_SECONDS"), "{error}");
        }
    }
}
