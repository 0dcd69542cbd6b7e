//! Families that write arguments in tags.
//!
//! No grammar can hold plain text between tags to a JSON schema, so forced calls
//! are JSON within the family's marker; their readers take that too.

use crate::elements::MARK;
use crate::notation::{Block, Body, Forcing, InThought, Margin, Notation, Pairs, Place, THINK, Tagged, Thought};

const QWEN_TAGS: Tagged = Tagged {
    call: Some("<function="),
    call_close: "</function>",
    argument: "<parameter=",
    argument_close: "</parameter>",
    name_end: ">",
    tag_end: None,
    json: None,
    margin: Margin::Line,
};

/// Some leave the outer tag out, so that the call begins with its name.
const QWEN_INNER: Tagged = Tagged { call: None, ..QWEN_TAGS };

pub(super) static QWEN_CODER: Notation = Notation {
    thoughts: &[THINK],
    blocks: &[
        Block {
            open: "<tool_call>",
            close: "</tool_call>",
            body: Body::Tagged(QWEN_TAGS),
            in_thought: InThought::Text,
        },
        Block {
            open: "<function=",
            close: "</tool_call>",
            body: Body::Tagged(QWEN_INNER),
            in_thought: InThought::Text,
        },
    ],
    ..Notation::NONE
};

pub(super) static SEED_OSS: Notation = Notation {
    thoughts: &[Thought { open: "<seed:think>", close: "</seed:think>", place: Place::Anywhere }],
    blocks: &[Block {
        open: "<seed:tool_call>",
        close: "</seed:tool_call>",
        body: Body::Tagged(QWEN_TAGS),
        in_thought: InThought::Ends,
    }],
    forced: Forcing::Object { prefix: "<seed:tool_call>\n", keys: ("name", "arguments"), after: "", again: None },
    ..Notation::NONE
};

pub(super) static GLM: Notation = Notation {
    thoughts: &[THINK],
    blocks: &[Block {
        open: "<tool_call>",
        close: "</tool_call>",
        body: Body::Pairs(Pairs {
            separator: "<tool_sep>",
            key: ("<arg_key>", "</arg_key>"),
            value: ("<arg_value>", "</arg_value>"),
        }),
        in_thought: InThought::Text,
    }],
    inner: &["<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"],
    forced: Forcing::Object { prefix: "<tool_call>", keys: ("name", "arguments"), after: "", again: None },
    ..Notation::NONE
};

pub(super) static HUNYUAN_3: Notation = Notation {
    thoughts: &[Thought { open: "<think:opensource>", close: "</think:opensource>", place: Place::Anywhere }],
    blocks: &[Block {
        open: "<tool_call:opensource>",
        close: "</tool_call:opensource>",
        body: Body::Pairs(Pairs {
            separator: "<tool_sep:opensource>",
            key: ("<arg_key:opensource>", "</arg_key:opensource>"),
            value: ("<arg_value:opensource>", "</arg_value:opensource>"),
        }),
        in_thought: InThought::Ends,
    }],
    silent: &["<tool_calls:opensource>", "</tool_calls:opensource>"],
    inner: &[
        "<tool_sep:opensource>",
        "<arg_key:opensource>",
        "</arg_key:opensource>",
        "<arg_value:opensource>",
        "</arg_value:opensource>",
    ],
    forced: Forcing::Object {
        prefix: "<tool_calls:opensource>\n<tool_call:opensource>",
        keys: ("name", "arguments"),
        after: "",
        again: None,
    },
    ..Notation::NONE
};

pub(super) static MINIMAX_M2: Notation = Notation {
    thoughts: &[THINK],
    blocks: &[Block {
        open: "<minimax:tool_call>",
        close: "</minimax:tool_call>",
        body: Body::Tagged(Tagged {
            call: Some("<invoke name=\""),
            call_close: "</invoke>",
            argument: "<parameter name=\"",
            argument_close: "</parameter>",
            name_end: "\"",
            tag_end: Some(">"),
            json: None,
            margin: Margin::None,
        }),
        in_thought: InThought::Ends,
    }],
    forced: Forcing::Object {
        prefix: "<minimax:tool_call>\n",
        keys: ("name", "arguments"),
        after: "",
        again: Some("\n"),
    },
    ..Notation::NONE
};

pub(super) static MINIMAX_M3: Notation = Notation {
    thoughts: &[Thought { open: "<mm:think>", close: "</mm:think>", place: Place::Anywhere }],
    blocks: &[Block {
        open: "]<]minimax[>[<tool_call>",
        close: "]<]minimax[>[</tool_call>",
        body: Body::Elements,
        in_thought: InThought::Ends,
    }],
    inner: &[MARK],
    forced: Forcing::Object {
        prefix: "]<]minimax[>[<tool_call>\n",
        keys: ("name", "arguments"),
        after: "",
        again: Some("\n"),
    },
    ..Notation::NONE
};

const DSML: Tagged = Tagged {
    call: Some("<｜DSML｜invoke name=\""),
    call_close: "</｜DSML｜invoke>",
    argument: "<｜DSML｜parameter name=\"",
    argument_close: "</｜DSML｜parameter>",
    name_end: "\"",
    tag_end: Some(">"),
    json: None,
    margin: Margin::None,
};

const DSML_BLOCKS: &[Block] = &[
    Block {
        open: "<｜DSML｜function_calls>",
        close: "</｜DSML｜function_calls>",
        body: Body::Tagged(DSML),
        in_thought: InThought::Ends,
    },
    Block {
        open: "<｜DSML｜tool_calls>",
        close: "</｜DSML｜tool_calls>",
        body: Body::Tagged(DSML),
        in_thought: InThought::Ends,
    },
];

pub(super) static DEEPSEEK_V3_2: Notation = Notation {
    thoughts: &[THINK],
    blocks: DSML_BLOCKS,
    inner: &["｜DSML｜"],
    forced: Forcing::Object {
        prefix: "<｜DSML｜function_calls>\n",
        keys: ("name", "arguments"),
        after: "",
        again: Some("\n"),
    },
    ..Notation::NONE
};

pub(super) static DEEPSEEK_V4: Notation = Notation {
    thoughts: &[THINK],
    blocks: DSML_BLOCKS,
    inner: &["｜DSML｜"],
    forced: Forcing::Object {
        prefix: "<｜DSML｜tool_calls>\n",
        keys: ("name", "arguments"),
        after: "",
        again: Some("\n"),
    },
    ..Notation::NONE
};

pub(super) static MINICPM_5: Notation = Notation {
    thoughts: &[THINK],
    blocks: &[
        Block {
            open: "<function name=\"",
            close: "",
            body: Body::Tagged(Tagged {
                call: None,
                call_close: "</function>",
                argument: "<param name=\"",
                argument_close: "</param>",
                name_end: "\"",
                tag_end: Some(">"),
                json: None,
                margin: Margin::CData,
            }),
            in_thought: InThought::Text,
        },
        Block {
            open: "<tool_call>",
            close: "</tool_call>",
            body: Body::Json(crate::notation::Keys::Fixed),
            in_thought: InThought::Text,
        },
    ],
    ..Notation::NONE
};

pub(super) static KIMI_K3: Notation = Notation {
    thoughts: &[Thought { open: "<|open|>think<|sep|>", close: "<|close|>think<|sep|>", place: Place::Anywhere }],
    blocks: &[Block {
        open: "<|open|>call tool=\"",
        close: "",
        body: Body::Tagged(Tagged {
            call: None,
            call_close: "<|close|>call<|sep|>",
            argument: "<|open|>argument key=\"",
            argument_close: "<|close|>argument<|sep|>",
            name_end: "\"",
            tag_end: Some("<|sep|>"),
            json: Some(("<|open|>json type=\"object\"<|sep|>", "<|close|>json<|sep|>")),
            margin: Margin::None,
        }),
        in_thought: InThought::Ends,
    }],
    silent: &[
        "<|open|>response<|sep|>",
        "<|close|>response<|sep|>",
        "<|open|>tools<|sep|>",
        "<|close|>tools<|sep|>",
        "<|close|>message<|sep|>",
    ],
    prompts: &["<|open|>response<|sep|>"],
    inner: &["<|open|>", "<|close|>", "<|sep|>"],
    forced: Forcing::Named {
        prefix: "<|open|>tools<|sep|><|open|>call tool=\"",
        between: "\" index=\"1\"<|sep|><|open|>json type=\"object\"<|sep|>",
        after: "",
    },
    ..Notation::NONE
};
