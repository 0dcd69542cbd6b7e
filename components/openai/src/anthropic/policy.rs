//! Which parameters there are, and what is done with each.

use serde_json::Value;

use crate::parameters::policy::{Names, Policy, is_empty, never};
use crate::parameters::sampling;

/// The parameters that are read.
///
/// The ways to sample beyond `temperature`, `top_p` and `top_k` are extensions, by
/// the names and with the ranges that they have in chat completions.
pub const READ: Names = &[
    &[
        "model",
        "max_tokens",
        "messages",
        "system",
        "tools",
        "tool_choice",
        "stop_sequences",
        "stream",
        "thinking",
        "output_config",
        "output_format",
    ],
    sampling::NAMES,
];

/// All other parameters that Anthropic's API has, its betas included. Any that is
/// in neither list is refused as unknown.
pub const OTHER: &[(&str, Policy)] = &[
    // About the account, the bill and the client: not about the answer.
    ("metadata", Policy::Harmless),
    ("service_tier", Policy::Harmless),
    ("user_profile_id", Policy::Harmless),
    ("workspace_id", Policy::Harmless),
    ("billing_policy", Policy::Harmless),
    ("fallback_credit_token", Policy::Harmless),
    // What clouds want in the body instead of a header.
    ("anthropic_version", Policy::Harmless),
    ("anthropic_beta", Policy::Harmless),
    // All prompts are cached.
    ("cache_control", Policy::Harmless),
    ("diagnostics", Policy::Only(names_no_message, "leave it out")),
    ("speed", Policy::Only(is_standard, "leave it out or send \"standard\"")),
    ("inference_geo", Policy::Only(never, "leave it out")),
    ("container", Policy::Only(never, "leave it out")),
    ("mcp_servers", Policy::Only(is_empty, "leave it out and declare the servers' tools in 'tools'")),
    ("context_management", Policy::Only(removes_nothing, "leave it out and send what the model is to see")),
    ("compaction", Policy::Only(never, "leave it out and send what the model is to see")),
    ("thread", Policy::Only(never, "leave it out and send the whole conversation")),
    ("fallbacks", Policy::Only(is_empty, "leave it out")),
];

fn is_standard(value: &Value) -> bool {
    value == "standard"
}

fn names_no_message(value: &Value) -> bool {
    value.as_object().is_some_and(|fields| fields.values().all(Value::is_null))
}

/// Some clients always send the edit that keeps all thoughts.
fn removes_nothing(value: &Value) -> bool {
    let Value::Object(fields) = value else { return false };
    let keeps = |edit: &Value| edit["type"] == "clear_thinking_20251015" && edit["keep"] == "all";
    let edits = |value: &Value| value.is_null() || value.as_array().is_some_and(|edits| edits.iter().all(keeps));
    fields.iter().all(|(name, value)| name == "edits" && edits(value))
}
