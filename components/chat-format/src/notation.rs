//! What a family's notation consists of.

/// The parts of a notation.
#[derive(Debug)]
pub(crate) struct Notation {
    /// How thoughts are marked.
    pub(crate) thoughts: &'static [Thought],
    /// What calls begin with, and how they go on.
    pub(crate) blocks: &'static [Block],
    /// Markers that say nothing: they are left out.
    pub(crate) silent: &'static [&'static str],
    /// Calls without a marker, at the beginning of the answer or after a call.
    pub(crate) bare: Bare,
    /// What the prompt may end with and is to be read as the answer's beginning,
    /// beside the beginnings of thoughts.
    pub(crate) prompts: &'static [&'static str],
    /// Texts that may be control tokens, beside those of thoughts, blocks and
    /// `silent`.
    pub(crate) inner: &'static [&'static str],
    /// How a call is written when there has to be one.
    pub(crate) forced: Forcing,
}

impl Notation {
    /// A notation without anything.
    pub(crate) const NONE: Self = Self {
        thoughts: &[],
        blocks: &[],
        silent: &[],
        bare: Bare::Nothing,
        prompts: &[],
        inner: &[],
        forced: Forcing::HERMES,
    };
}

/// A kind of thought.
#[derive(Debug)]
pub(crate) struct Thought {
    pub(crate) open: &'static str,
    pub(crate) close: &'static str,
    pub(crate) place: Place,
}

/// Where a marker means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Only where nothing was said yet: at the beginning, or after a thought or
    /// call. For markers that a model may also want to talk about.
    Beginning,
    /// Everywhere.
    Anywhere,
}

/// `<think>`, as most write it.
pub(crate) const THINK: Thought = Thought { open: "<think>", close: "</think>", place: Place::Beginning };

/// What begins with a marker and holds one or more calls.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) open: &'static str,
    /// What it ends with. Empty where nothing ends it.
    pub(crate) close: &'static str,
    pub(crate) body: Body,
    /// Whether it also ends a thought.
    pub(crate) in_thought: InThought,
}

/// What a block's marker means within a thought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InThought {
    /// Nothing: the model may be talking about it.
    Text,
    /// The thought is over. For control tokens.
    Ends,
}

/// How a block goes on after its marker.
#[derive(Debug)]
pub(crate) enum Body {
    /// Calls as JSON objects, or arrays of such.
    Json(Keys),
    /// As [`Body::Json`], in a fence: ```` ```json ````.
    FencedJson,
    /// A name, then the arguments as JSON.
    Named(Naming),
    /// Names and arguments in tags.
    Tagged(Tagged),
    /// A name, then pairs of tags for keys and values.
    Pairs(Pairs),
    /// Python calls in brackets.
    Python,
    /// `call:NAME{key:value}`.
    Gemma,
    /// Elements named for the arguments, with a marker before each tag.
    Elements,
    /// The header of a message, up to `<|message|>`.
    Header(Header),
}

/// Where in the JSON of a call its name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    /// Under `name`, with the arguments under `arguments` or `parameters`.
    Fixed,
    /// The name is the only key, and the arguments are its value.
    Name,
}

/// How a name is written before its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Naming {
    /// `NAME[CALL_ID]ID[ARGS]{..}`, or the older `[{..}]`.
    Mistral,
    /// `function<｜tool▁sep｜>NAME` and fenced JSON, or `NAME<｜tool▁sep｜>{..}`.
    DeepSeek,
    /// `functions.NAME:INDEX<|tool_call_argument_begin|>{..}`.
    Kimi,
    /// `ID<|tool_call:name|>NAME<|tool_call:args|>{..}`.
    Solar,
    /// `NAME>{..}`.
    Tag,
    /// `NAME` and a line break, then the arguments; or `all`, then text.
    Recipient,
}

/// Names and arguments in tags.
#[derive(Debug)]
pub(crate) struct Tagged {
    /// Before the name. None: the block's marker is.
    pub(crate) call: Option<&'static str>,
    pub(crate) call_close: &'static str,
    /// Before an argument's name.
    pub(crate) argument: &'static str,
    pub(crate) argument_close: &'static str,
    /// After a name.
    pub(crate) name_end: &'static str,
    /// After a tag's attributes, if it may have some; they come after the name.
    pub(crate) tag_end: Option<&'static str>,
    /// Before and after all arguments as JSON.
    pub(crate) json: Option<(&'static str, &'static str)>,
    pub(crate) margin: Margin,
}

/// What stands around a value between its tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Margin {
    /// Nothing.
    None,
    /// A line break before and one after, if the model wrote them.
    Line,
    /// Nothing; but the value may be in `<![CDATA[` and `]]>`.
    CData,
}

/// Pairs of tags for keys and values.
#[derive(Debug)]
pub(crate) struct Pairs {
    /// What follows the name, if not a line break or the first key.
    pub(crate) separator: &'static str,
    pub(crate) key: (&'static str, &'static str),
    pub(crate) value: (&'static str, &'static str),
}

/// What a message's header tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Header {
    /// Messages to `functions.NAME` are calls, their text the arguments.
    Harmony,
    /// Messages to `self` are thoughts; calls are in blocks of their own.
    Muse,
}

/// Calls without a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bare {
    /// There are none.
    Nothing,
    /// JSON objects.
    Json,
    /// Python calls in brackets, or JSON objects.
    Python,
    /// JSON objects, and fences of JSON or Python calls.
    Fenced,
}

/// How a call is written when there has to be one.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Forcing {
    /// `{"name": NAME, "arguments": {..}}`, with the names of the keys.
    Object {
        /// Before the first call.
        prefix: &'static str,
        /// The keys of name and arguments.
        keys: (&'static str, &'static str),
        /// After each call; plain text.
        after: &'static str,
        /// Before another call; plain text. None: there is no other.
        again: Option<&'static str>,
    },
    /// The same, in an array.
    Array {
        /// Before the array.
        prefix: &'static str,
        /// The keys of name and arguments. None: the name is the key.
        keys: Option<(&'static str, &'static str)>,
        /// After the array; plain text.
        after: &'static str,
    },
    /// A name, then the arguments as JSON. Only one call.
    Named {
        /// Before the name.
        prefix: &'static str,
        /// Between name and arguments; may name control tokens. They are the
        /// prompt's where only one tool can be called, and plain text elsewhere.
        between: &'static str,
        /// After the arguments; plain text.
        after: &'static str,
    },
}

impl Forcing {
    /// The notation of Hermes.
    pub(crate) const HERMES: Self = Self::Object {
        prefix: "<tool_call>\n",
        keys: ("name", "arguments"),
        after: "\n</tool_call>",
        again: Some("\n<tool_call>\n"),
    };
}
