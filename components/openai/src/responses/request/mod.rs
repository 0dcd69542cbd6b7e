//! What a client asks for.
//!
//! As with chat completions, what cannot be honoured is refused instead of
//! ignored, unless ignoring it changes nothing that the client can see: [`OTHER`]
//! is the whole policy, and a `null` counts as not given everywhere. Defaults are
//! those of chat completions ([`parameters`](crate::parameters)), and so are the
//! ways to sample beyond `temperature` and `top_p`, by the same names.

mod content;
mod conversation;
mod earlier;
mod echo;
mod format;
mod input;
mod reasoning;
mod served;
#[cfg(test)]
mod served_tests;
mod stored;
#[cfg(test)]
mod tests;
mod tools;

use agent_loop::First;
use chat_format::Choice;
use nala_sdk::llm::MAX_LOGPROBS;
use nala_sdk::tools::{self as granted, Tool};
use serde_json::{Map, Value};

use crate::ask::{Ask, Conversation, Delivery, Last, Options, Prompt};
use crate::begin::Served;
use crate::error::ApiError;
use crate::parameters::fields::Fields;
use crate::parameters::policy::{self, Names, Policy, is_empty, never};
use crate::parameters::{AtEnd, bias, sampling, stop};
use crate::part::Part;
pub use echo::Echo;
pub(in crate::responses) use served::{List, Listed};

/// A checked request.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// What is to be generated.
    pub ask: Ask,
    /// What the answer repeats.
    pub echo: Echo,
    /// How the answer is to come.
    pub delivery: Delivery,
    /// The tools that the server calls itself.
    pub(in crate::responses) server: Server,
}

/// The tools that the server calls itself.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::responses) struct Server {
    /// An entry of type `mcp` each.
    pub(in crate::responses) lists: Vec<List>,
    /// The labels of those that the client knows already.
    pub(in crate::responses) known: Vec<String>,
    /// Those that are called first, one a turn.
    pub(in crate::responses) first: Vec<First>,
    /// The most calls.
    pub(in crate::responses) most_calls: Option<u32>,
}

impl Server {
    /// The tools among those that the model may call which the server calls itself, if there
    /// are any.
    pub(in crate::responses) fn served(&self, ask: &Ask) -> Option<Served> {
        let Prompt::Conversation(conversation) = &ask.prompt else { return None };
        if conversation.choice == Choice::None {
            return None;
        }
        let is_served = |tool: &&chat_format::Tool| self.lists.iter().any(|list| list.has(&tool.name));
        let names: Vec<String> = conversation.tools.iter().filter(is_served).map(|tool| tool.name.clone()).collect();
        (!names.is_empty()).then(|| Served { names, first: self.first.clone(), most_calls: self.most_calls })
    }
}

/// The parameters that are read: those of the Responses API, then those of Open
/// Responses, then extensions that chat completions have here, too.
pub const READ: Names = &[
    &[
        "model",
        "input",
        "instructions",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "max_output_tokens",
        "max_tool_calls",
        "top_logprobs",
        "include",
        "text",
        "reasoning",
        "stream",
        "stream_options",
        "store",
        "background",
        "truncation",
        "metadata",
        "user",
        "safety_identifier",
        "prompt_cache_key",
        "service_tier",
        "previous_response_id",
        "conversation",
        "call_first",
        "ignore_eos",
        "stop",
        "logit_bias",
    ],
    sampling::NAMES,
];

/// All other parameters that OpenAI's API has. Any that is in neither list is
/// refused as unknown.
pub const OTHER: &[(&str, Policy)] = &[
    // About caches, which are kept here without being asked for.
    ("prompt_cache_options", Policy::Harmless),
    ("prompt_cache_retention", Policy::Harmless),
    ("prompt", Policy::Only(never, "nothing is stored here: send the prompt's text as 'instructions' and 'input'")),
    ("context_management", Policy::Only(is_empty, "leave it out, and leave out items that are too old")),
    ("moderation", Policy::Only(never, "leave it out")),
    ("background_options", Policy::Only(never, "leave it out")),
    ("access_programs", Policy::Only(never, "leave it out")),
    ("image", Policy::Only(never, "leave it out")),
];

/// Further output that can be asked for. Those that belong to tools which are not
/// here, or to inputs which are refused, never have anything to show.
const INCLUDABLE: [&str; 8] = [
    LOGPROBS,
    // Thoughts are not hidden: they stand in the item itself.
    "reasoning.encrypted_content",
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
];

/// Asks for log-probabilities.
const LOGPROBS: &str = "message.output_text.logprobs";

/// Reads and checks the body of a request.
///
/// # Errors
/// 400, with the position where it does not parse or the parameter that is wrong;
/// 404 where an item is named that would have to be stored.
pub fn read(body: &[u8]) -> Result<Request, ApiError> {
    read_with(body, &granted::list)
}

/// The same where `granted` tells which tools the server has.
pub(in crate::responses) fn read_with(body: &[u8], granted: &dyn Fn() -> Vec<Tool>) -> Result<Request, ApiError> {
    let fields = policy::given(body, READ, OTHER)?;
    stored::refuse(&fields)?;
    refuse_what_is_not_done(&fields)?;

    let given = Fields(&fields);
    let model = given.text("model")?.ok_or_else(|| ApiError::missing("model", "the name of a model"))?;
    let delivery = delivery(&fields)?;
    let tools = tools::read(&fields, granted)?;
    let format = format::read(fields.get("text"))?;
    let reasoning = reasoning::read(fields.get("reasoning"))?;
    let top_logprobs = top_logprobs(&given)?;
    let instructions = given.text("instructions")?;
    let max_tokens = given.integer("max_output_tokens", 1, u64::MAX)?;
    let input::Input { messages, known } = input::read(instructions.as_deref(), fields.get("input"))?;
    let echo = echo::of(&given, &tools, &format, &reasoning, top_logprobs)?;

    let options = Options {
        sampler: sampling::sampler(&given)?,
        dry_breakers: sampling::dry_breakers(&given)?,
        at_end: if given.boolean("ignore_eos")?.unwrap_or(false) { AtEnd::GoOn } else { AtEnd::Stop },
        output: format.output,
        choices: 1,
        // More than fits is cut at the end of the context anyway.
        max_tokens: max_tokens.map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX)),
        stop: stop::read(fields.get("stop"))?,
        bias: bias::read(fields.get("logit_bias"))?,
        top_logprobs,
    };
    let most_calls = given.integer("max_tool_calls", 1, u64::MAX)?;
    let most_calls = most_calls.map(|calls| u32::try_from(calls).unwrap_or(u32::MAX));
    let server = Server { lists: tools.lists, known, first: tools.first, most_calls };
    let conversation = Conversation {
        messages,
        tools: tools.shown,
        choice: tools.choice,
        parallel: tools.parallel,
        last: Last::Answered,
        variables: reasoning.variables,
    };
    let prompt = Prompt::Conversation(conversation);
    let ask = Ask { model, prompt, param: "input", options, pace: delivery.pace() };
    Ok(Request { ask, echo, delivery, server })
}

/// Parameters that have one value here, and others at OpenAI.
fn refuse_what_is_not_done(fields: &Map<String, Value>) -> Result<(), ApiError> {
    let given = Fields(fields);
    given.boolean("store")?;
    if given.boolean("background")? == Some(true) {
        let message = "'background' is not supported, since nothing is stored that could be fetched later; leave it \
                       out and wait for the answer, or send 'stream'";
        return Err(ApiError::unsupported("background", message));
    }
    match given.text("truncation")?.as_deref() {
        None | Some("disabled") => Ok(()),
        // Which items could go without making nonsense of the rest is for the
        // client to say.
        Some("auto") => {
            let message = "'truncation' is \"auto\", but no items are left out by themselves; send \"disabled\", and \
                           fewer items where an answer says that they do not fit";
            Err(ApiError::unsupported("truncation", message))
        }
        Some(other) => Err(Fields::wrong("truncation", "\"disabled\"", &Value::from(other))),
    }
}

fn delivery(fields: &Map<String, Value>) -> Result<Delivery, ApiError> {
    let streams = Fields(fields).boolean("stream")?.unwrap_or(false);
    if let Some(value) = fields.get("stream_options") {
        if !streams {
            return Err(ApiError::invalid("stream_options", "'stream_options' needs 'stream' to be true"));
        }
        let options = Part::of(value, "stream_options")?;
        // Random padding against traffic analysis, which is for TLS over the open
        // network; there is none of it here.
        options.only(&["include_obfuscation"])?;
        options.boolean("include_obfuscation")?;
    }
    Ok(if streams { Delivery::Events } else { Delivery::Whole })
}

/// How many alternatives to report a token. Asking for some is asking for the
/// log-probabilities, with or without `include`.
fn top_logprobs(given: &Fields<'_>) -> Result<Option<u32>, ApiError> {
    let mut reported = false;
    if let Some(value) = given.0.get("include") {
        let Value::Array(names) = value else { return Err(Fields::wrong("include", "a list of strings", value)) };
        for (index, name) in names.iter().enumerate() {
            match name.as_str().filter(|name| INCLUDABLE.contains(name)) {
                Some(name) => reported |= name == LOGPROBS,
                None => {
                    let must = format!("one of {}", INCLUDABLE.join(", "));
                    return Err(Fields::wrong(&format!("include[{index}]"), &must, name));
                }
            }
        }
    }
    let top = given.integer("top_logprobs", 0, u64::from(MAX_LOGPROBS))?;
    let top = top.and_then(|top| u32::try_from(top).ok()).unwrap_or(0);
    Ok((reported || top > 0).then_some(top))
}
