//! Families that write a name and then the arguments as JSON, and those whose
//! messages have headers.

use crate::literal::GEMMA_QUOTE;
use crate::notation::{
    Block, Body, Forcing, Header, InThought, Margin, Naming, Notation, Place, THINK, Tagged, Thought,
};

pub(super) static FUNCTIONARY_3_1: Notation = Notation {
    blocks: &[
        Block { open: "<function=", close: "</function>", body: Body::Named(Naming::Tag), in_thought: InThought::Text },
        Block {
            open: "<|python_tag|>",
            close: "",
            body: Body::Json(crate::notation::Keys::Fixed),
            in_thought: InThought::Ends,
        },
    ],
    forced: Forcing::Named { prefix: "<function=", between: ">", after: "</function>" },
    ..Notation::NONE
};

pub(super) static FUNCTIONARY_3_2: Notation = Notation {
    blocks: &[Block { open: ">>>", close: "", body: Body::Named(Naming::Recipient), in_thought: InThought::Text }],
    prompts: &[">>>"],
    // The prompt ends with `>>>` already.
    forced: Forcing::Named { prefix: "", between: "\n", after: "" },
    ..Notation::NONE
};

const DEEPSEEK_BLOCKS: &[Block] = &[Block {
    open: "<｜tool▁call▁begin｜>",
    close: "<｜tool▁call▁end｜>",
    body: Body::Named(Naming::DeepSeek),
    in_thought: InThought::Ends,
}];
const DEEPSEEK_SILENT: &[&str] = &[
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁calls▁end｜>",
    // As models of this family misspell it.
    "<｜tool_calls_begin｜>",
    "<｜tool calls begin｜>",
];

pub(super) static DEEPSEEK_R1: Notation = Notation {
    thoughts: &[THINK],
    blocks: DEEPSEEK_BLOCKS,
    silent: DEEPSEEK_SILENT,
    inner: &["<｜tool▁sep｜>"],
    forced: Forcing::Named {
        prefix: "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>",
        between: "\n```json\n",
        after: "\n```",
    },
    ..Notation::NONE
};

pub(super) static DEEPSEEK_V3_1: Notation = Notation {
    thoughts: &[THINK],
    blocks: DEEPSEEK_BLOCKS,
    silent: DEEPSEEK_SILENT,
    inner: &["<｜tool▁sep｜>"],
    forced: Forcing::Named {
        prefix: "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>",
        between: "<｜tool▁sep｜>",
        after: "",
    },
    ..Notation::NONE
};

pub(super) static KIMI_K2: Notation = Notation {
    thoughts: &[THINK],
    blocks: &[Block {
        open: "<|tool_call_begin|>",
        close: "<|tool_call_end|>",
        body: Body::Named(Naming::Kimi),
        in_thought: InThought::Ends,
    }],
    silent: &["<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"],
    inner: &["<|tool_call_argument_begin|>"],
    forced: Forcing::Named {
        prefix: "<|tool_calls_section_begin|><|tool_call_begin|>functions.",
        between: ":0<|tool_call_argument_begin|>",
        after: "",
    },
    ..Notation::NONE
};

pub(super) static SOLAR_OPEN: Notation = Notation {
    thoughts: &[Thought { open: "<|think|>", close: "<|end|>", place: Place::Anywhere }],
    blocks: &[Block {
        open: "<|tool_call:begin|>",
        close: "<|tool_call:end|>",
        body: Body::Named(Naming::Solar),
        in_thought: InThought::Ends,
    }],
    silent: &["<|begin|>assistant", "<|content|>", "<|end|>", "<|tool_calls|>", "<|calls|>"],
    inner: &["<|begin|>", "<|tool_call:name|>", "<|tool_call:args|>"],
    forced: Forcing::Named {
        prefix: "<|tool_calls|><|tool_call:begin|>call000000<|tool_call:name|>",
        between: "<|tool_call:args|>",
        after: "",
    },
    ..Notation::NONE
};

pub(super) static HARMONY: Notation = Notation {
    blocks: &[
        Block {
            open: "<|start|>assistant",
            close: "<|call|>",
            body: Body::Header(Header::Harmony),
            in_thought: InThought::Ends,
        },
        Block {
            open: "<|channel|>",
            close: "<|call|>",
            body: Body::Header(Header::Harmony),
            in_thought: InThought::Ends,
        },
    ],
    silent: &["<|end|>", "<|return|>", "<|call|>"],
    prompts: &[
        "<|start|>assistant",
        "<|channel|>analysis<|message|>",
        "<|start|>assistant<|channel|>analysis<|message|>",
    ],
    inner: &["<|start|>", "<|message|>", "<|constrain|>"],
    forced: Forcing::Named {
        prefix: "<|channel|>commentary to=functions.",
        between: " <|constrain|>json<|message|>",
        after: "",
    },
    ..Notation::NONE
};

pub(super) static MUSE_GLIMMER: Notation = Notation {
    blocks: &[
        Block { open: "<|start|>assistant", close: "", body: Body::Header(Header::Muse), in_thought: InThought::Ends },
        Block {
            open: "<atem:function_calls>",
            close: "</atem:function_calls>",
            body: Body::Tagged(Tagged {
                call: Some("<atem:invoke name=\""),
                call_close: "</atem:invoke>",
                argument: "<atem:parameter name=\"",
                argument_close: "</atem:parameter>",
                name_end: "\"",
                tag_end: Some(">"),
                json: None,
                margin: Margin::None,
            }),
            in_thought: InThought::Ends,
        },
    ],
    silent: &["<|eom|>", "<|eot|>"],
    prompts: &["<|start|>assistant"],
    inner: &["<|start|>", "<|message|>"],
    forced: Forcing::Object {
        prefix: " to=user<|message|><atem:function_calls>\n",
        keys: ("name", "arguments"),
        after: "\n</atem:function_calls>",
        again: None,
    },
    ..Notation::NONE
};

pub(super) static GEMMA_4: Notation = Notation {
    thoughts: &[Thought { open: "<|channel>thought\n", close: "<channel|>", place: Place::Anywhere }],
    blocks: &[Block { open: "<|tool_call>", close: "<tool_call|>", body: Body::Gemma, in_thought: InThought::Ends }],
    inner: &[GEMMA_QUOTE],
    forced: Forcing::Named { prefix: "<|tool_call>call:", between: "", after: "" },
    ..Notation::NONE
};
