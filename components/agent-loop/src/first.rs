//! Tools that are called first.

use chat_format::Tool;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A tool that is called whatever the model thinks of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum First {
    /// As it likes.
    Tool(String),
    /// With arguments of a schema that is narrower than the tool's own: small models need
    /// to be shown the way.
    Within(Within),
}

/// See [`First::Within`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Within {
    /// The tool.
    pub tool: String,
    /// JSON schema of its arguments, an object.
    pub arguments: Map<String, Value>,
}

impl First {
    /// The tool's name.
    #[must_use]
    pub fn tool(&self) -> &str {
        match self {
            Self::Tool(tool) | Self::Within(Within { tool, .. }) => tool,
        }
    }

    /// The schema of its arguments, where that is not the tool's own.
    #[must_use]
    pub fn arguments(&self) -> Option<&Map<String, Value>> {
        match self {
            Self::Tool(_) => None,
            Self::Within(within) => Some(&within.arguments),
        }
    }

    /// The same tools, where the arguments of this one are held to that schema.
    #[must_use]
    pub fn narrowed(&self, tools: &[Tool]) -> Vec<Tool> {
        let mut tools = tools.to_vec();
        for tool in tools.iter_mut().filter(|tool| tool.name == self.tool()) {
            if let Some(schema) = self.arguments() {
                tool.parameters = Some(schema.clone());
            }
        }
        tools
    }
}

#[cfg(test)]
mod tests {
    use chat_format::Strict;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_tool_that_is_meant_takes_less() {
        let tool = |name: &str| Tool {
            name: name.to_owned(),
            description: None,
            parameters: Some(Map::new()),
            strict: Strict::Lenient,
        };
        let first: First = serde_json::from_value(json!({ "tool": "b", "arguments": { "type": "object" } })).unwrap();
        let narrowed = first.narrowed(&[tool("a"), tool("b")]);
        let schemas: Vec<_> = narrowed.iter().map(|tool| tool.parameters.as_ref().unwrap().len()).collect();
        assert_eq!(schemas, [0, 1]);
        assert_eq!(First::Tool("b".to_owned()).narrowed(&[tool("b")]), [tool("b")]);
    }
}
