//! Families that write calls as JSON, or as Python in brackets.

use crate::notation::{Bare, Block, Body, Forcing, InThought, Keys, Naming, Notation, Place, THINK, Thought};

const fn json(open: &'static str, close: &'static str, in_thought: InThought) -> Block {
    Block { open, close, body: Body::Json(Keys::Fixed), in_thought }
}

pub(super) static HERMES: Notation =
    Notation { thoughts: &[THINK], blocks: &[json("<tool_call>", "</tool_call>", InThought::Text)], ..Notation::NONE };

pub(super) static GENERIC: Notation = Notation {
    thoughts: &[THINK],
    blocks: &[json("<tool_call>", "</tool_call>", InThought::Text)],
    bare: Bare::Fenced,
    ..Notation::NONE
};

pub(super) static LLAMA_3: Notation = Notation {
    thoughts: &[THINK],
    blocks: &[json("<|python_tag|>", "", InThought::Ends)],
    bare: Bare::Json,
    forced: Forcing::Object { prefix: "", keys: ("name", "parameters"), after: "", again: None },
    ..Notation::NONE
};

pub(super) static PYTHONIC: Notation = Notation {
    blocks: &[Block {
        open: "<|python_start|>",
        close: "<|python_end|>",
        body: Body::Python,
        in_thought: InThought::Ends,
    }],
    bare: Bare::Python,
    forced: Forcing::Object { prefix: "", keys: ("name", "parameters"), after: "", again: None },
    ..Notation::NONE
};

pub(super) static LFM_2: Notation = Notation {
    thoughts: &[THINK],
    blocks: &[Block {
        open: "<|tool_call_start|>",
        close: "<|tool_call_end|>",
        body: Body::Python,
        in_thought: InThought::Ends,
    }],
    bare: Bare::Python,
    forced: Forcing::Array { prefix: "<|tool_call_start|>", keys: Some(("name", "arguments")), after: "" },
    ..Notation::NONE
};

const MISTRAL_THOUGHT: Thought = Thought { open: "[THINK]", close: "[/THINK]", place: Place::Anywhere };
const MISTRAL_BLOCK: Block =
    Block { open: "[TOOL_CALLS]", close: "", body: Body::Named(Naming::Mistral), in_thought: InThought::Ends };

pub(super) static MISTRAL_OLD: Notation = Notation {
    thoughts: &[MISTRAL_THOUGHT],
    blocks: &[MISTRAL_BLOCK],
    inner: &["[CALL_ID]", "[ARGS]"],
    forced: Forcing::Array { prefix: "[TOOL_CALLS]", keys: Some(("name", "arguments")), after: "" },
    ..Notation::NONE
};

pub(super) static MISTRAL: Notation = Notation {
    thoughts: &[MISTRAL_THOUGHT],
    blocks: &[MISTRAL_BLOCK],
    inner: &["[CALL_ID]", "[ARGS]"],
    forced: Forcing::Named { prefix: "[TOOL_CALLS]", between: "[ARGS]", after: "" },
    ..Notation::NONE
};

pub(super) static GRANITE_3: Notation = Notation {
    thoughts: &[THINK],
    blocks: &[
        json("<|tool_call|>", "<|/tool_call|>", InThought::Ends),
        json("<tool_call>", "</tool_call>", InThought::Text),
    ],
    silent: &["<response>", "</response>"],
    forced: Forcing::Array { prefix: "<|tool_call|>", keys: Some(("name", "arguments")), after: "" },
    ..Notation::NONE
};

pub(super) static FUNCTOOLS: Notation = Notation {
    blocks: &[json("functools[", "", InThought::Text), json("<|tool_call|>", "<|/tool_call|>", InThought::Ends)],
    forced: Forcing::Array { prefix: "functools", keys: Some(("name", "arguments")), after: "" },
    ..Notation::NONE
};

pub(super) static APERTUS: Notation = Notation {
    thoughts: &[Thought { open: "<|inner_prefix|>", close: "<|inner_suffix|>", place: Place::Anywhere }],
    blocks: &[Block {
        open: "<|tools_prefix|>",
        close: "<|tools_suffix|>",
        body: Body::Json(Keys::Name),
        in_thought: InThought::Ends,
    }],
    forced: Forcing::Array { prefix: "<|tools_prefix|>", keys: None, after: "" },
    ..Notation::NONE
};

pub(super) static APRIEL: Notation = Notation {
    thoughts: &[
        Thought { open: "Here are my reasoning steps:\n", close: "[BEGIN FINAL RESPONSE]", place: Place::Beginning },
        Thought { open: "<thinking>", close: "</thinking>", place: Place::Beginning },
    ],
    blocks: &[json("<tool_calls>", "</tool_calls>", InThought::Text)],
    silent: &["[END FINAL RESPONSE]"],
    forced: Forcing::Array { prefix: "<tool_calls>", keys: Some(("name", "arguments")), after: "</tool_calls>" },
    ..Notation::NONE
};

pub(super) static NEMOTRON_NANO_2: Notation = Notation {
    thoughts: &[THINK],
    blocks: &[json("<TOOLCALL>", "</TOOLCALL>", InThought::Text)],
    forced: Forcing::Array { prefix: "<TOOLCALL>", keys: Some(("name", "arguments")), after: "</TOOLCALL>" },
    ..Notation::NONE
};

pub(super) static MINIMAX_M1: Notation = Notation {
    thoughts: &[THINK],
    blocks: &[json("<tool_calls>", "</tool_calls>", InThought::Text)],
    forced: Forcing::Object { prefix: "<tool_calls>\n", keys: ("name", "arguments"), after: "", again: Some("\n") },
    ..Notation::NONE
};

pub(super) static COMMAND_R_PLUS: Notation = Notation {
    blocks: &[Block { open: "Action:", close: "", body: Body::FencedJson, in_thought: InThought::Text }],
    forced: Forcing::Array { prefix: "Action:\n```json\n", keys: Some(("tool_name", "parameters")), after: "\n```" },
    ..Notation::NONE
};

pub(super) static COMMAND_R_7B: Notation = Notation {
    thoughts: &[Thought { open: "<|START_THINKING|>", close: "<|END_THINKING|>", place: Place::Anywhere }],
    blocks: &[json("<|START_ACTION|>", "<|END_ACTION|>", InThought::Ends)],
    silent: &["<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"],
    forced: Forcing::Array { prefix: "<|START_ACTION|>", keys: Some(("tool_name", "parameters")), after: "" },
    ..Notation::NONE
};

pub(super) static GIGACHAT_3: Notation = Notation {
    blocks: &[json("function call<|role_sep|>\n", "<|message_sep|>", InThought::Ends)],
    silent: &["<|message_sep|>"],
    prompts: &[],
    forced: Forcing::Object {
        prefix: "<|message_sep|>\n\nfunction call<|role_sep|>\n",
        keys: ("name", "arguments"),
        after: "",
        again: None,
    },
    ..Notation::NONE
};

pub(super) static GIGACHAT_3_1: Notation = Notation {
    blocks: &[json("<|function_call|>", "<|message_sep|>", InThought::Ends)],
    silent: &["<|message_sep|>"],
    forced: Forcing::Object { prefix: "<|function_call|>", keys: ("name", "arguments"), after: "", again: None },
    ..Notation::NONE
};
