//! minijinja, made to behave as transformers' Jinja environment.
//!
//! That is (transformers 5, `utils/chat_template_utils.py`): `trim_blocks`,
//! `lstrip_blocks`, loop controls, the `{% generation %}` tag, `raise_exception`,
//! `strftime_now`, a `tojson` that is Python's `json.dumps`, and Python's methods
//! of strings and dictionaries. What minijinja's language lacks, [`Source`]
//! rewrites.
//!
//! `tests/goldens` compares 70 templates of real models with transformers 5.24.0
//! and Jinja2 3.1.6, byte for byte. These are all the differences:
//!
//! | template | transformers | here |
//! |---|---|---|
//! | Kimi-K2-Instruct, Kimi-K2-Thinking: tool calls | refused, the sandbox lets no list change | as Jinja2 renders them outside of the sandbox |
//! | functionary-medium-v3.1: tools | `&lt;`, `&#34;`… in the names and schemas, since `\|safe` turns on escaping for HTML | `<`, `"` |
//! | c4ai-command-r-plus, Hermes-2-Pro, Hermes-3 without tools; LFM2.5-8B-A1B with `content: null` | fail, `none` cannot be walked over | rendered: there is nothing in `none` |
//! | DeepSeek-V3.2, DeepSeek-V4, DeepSeek-V4-Flash: arguments as text | fail, there is no filter `from_json` | rendered |
//! | llama-cpp-deepseek-r1: tools | fails, `tojson` does not take what `map` gives | rendered |
//!
//! Beyond these templates, known to differ from Python: `+` of lists that change
//! sees later changes; `%` formats only where a constant stands on its left; `~`
//! prints numbers like `1e-07` in minijinja's way where its operands are more than
//! names, attributes and calls; integers beyond 64 bits in JSON become floats.

use std::fmt;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Rest, Serde, Value, ValueKind};
use minijinja::{AutoEscape, Environment, ErrorKind, OutputSpan, State, UndefinedBehavior};

use crate::{Error, MAX_PROMPT, clock, depth, json, list, methods, percent, print, source::Source};

/// How much a template may do: about one unit an instruction and one for 64
/// bytes, so at most 64 MB of data.
const FUEL: u64 = 1_000_000;

/// How deep a template may nest its calls; what a component's stack of 1 MiB
/// bears.
const RECURSION: usize = 64;

/// A template that is ready to be rendered, any number of times.
#[derive(Debug)]
pub struct Program<'a> {
    environment: Environment<'a>,
    mark: Option<char>,
}

/// The name of the one template of an environment, as errors show it.
const NAME: &str = "chat template";

/// What a template printed, and which of its parts printed it.
#[derive(Debug)]
pub struct Rendered {
    /// The text.
    pub text: String,
    /// Where it comes from.
    pub spans: Vec<OutputSpan>,
}

/// The words of `raise_exception`.
#[derive(Debug)]
struct Refusal(String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

impl<'a> Program<'a> {
    /// Compiles a template.
    ///
    /// `now` is the time that `strftime_now` tells, in seconds since 1970. `mark`
    /// is the code point that marks text from outside in the variables of some or
    /// all renderings, if any does (see `origin.rs`).
    ///
    /// # Errors
    /// [`Error::Template`] when it does not parse.
    pub fn compile(source: &'a Source<'_>, now: u64, mark: Option<char>) -> Result<Self, Error> {
        let mut environment = environment(now, mark).map_err(explain)?;
        environment.add_template(NAME, source.text()).map_err(explain)?;
        Ok(Self { environment, mark })
    }

    /// Renders with the given variables.
    ///
    /// # Errors
    /// [`Error::Refused`] when the template raises, [`Error::Template`] when it
    /// fails or exceeds a limit.
    pub fn render(&self, variables: &serde_json::Value) -> Result<Rendered, Error> {
        let template = self.environment.get_template(NAME).map_err(explain)?;
        let (text, spans) = template.render_with_spans(Value::from(Serde(variables))).map_err(explain)?;
        let marks = self.mark.map_or(0, |mark| text.matches(mark).count() * mark.len_utf8());
        if text.len() - marks > MAX_PROMPT {
            return Err(Error::Template(format!("the prompt is longer than {MAX_PROMPT} bytes; send less")));
        }
        Ok(Rendered { text, spans })
    }
}

fn environment<'a>(now: u64, mark: Option<char>) -> Result<Environment<'a>, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_undefined_behavior(UndefinedBehavior::Lenient);
    environment.set_unknown_method_callback(methods::call);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(RECURSION);
    environment.add_function("raise_exception", |message: &Value| {
        let refusal = Refusal(message.to_string());
        Err::<Value, _>(minijinja::Error::new(ErrorKind::InvalidOperation, "raise_exception").with_source(refusal))
    });
    environment.add_function("strftime_now", move |format: &str| clock::strftime(format, now));
    environment.add_filter("tojson", move |state: &State, value: &Value, args: Rest<Value>, kwargs: Kwargs| {
        json::tojson(mark, state, value, &args, &kwargs)
    });
    environment.add_filter("from_json", json::from_json);
    environment.add_filter(percent::FILTER, percent::format);
    environment.add_filter(list::FILTER, list::growing);
    environment.add_filter(depth::FILTER, depth::checked);
    environment.add_filter(depth::ASSIGNED, depth::assigned);
    for name in ["string", print::FILTER] {
        environment.add_filter(name, move |state: &State, value: &Value| print::filter(mark, state, value));
    }
    environment.set_formatter(move |out, state, value| print::expression(mark, out, state, value));
    environment.add_test("iterable", iterable);
    environment.add_test("sequence", sequence);
    Ok(environment)
}

/// As in Python, and unlike minijinja: none cannot be iterated over, what is
/// undefined can.
fn iterable(value: &Value) -> bool {
    sequence(value) || value.kind() == ValueKind::Iterable
}

/// As in Python, and unlike minijinja: strings and dictionaries count as sequences,
/// and what is undefined does; what other filters make counts if it has a length and
/// can be indexed.
fn sequence(value: &Value) -> bool {
    match value.kind() {
        ValueKind::Undefined | ValueKind::String | ValueKind::Seq | ValueKind::Map => true,
        ValueKind::Iterable => match value.len() {
            Some(0) => true,
            Some(_) => value.get_item_by_index(0).is_ok_and(|first| !first.is_undefined()),
            None => false,
        },
        _ => false,
    }
}

fn explain(error: minijinja::Error) -> Error {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(current) = cause {
        if let Some(Refusal(words)) = current.downcast_ref() {
            return Error::Refused(words.clone());
        }
        cause = current.source();
    }
    if error.kind() == ErrorKind::OutOfFuel {
        return Error::Template(
            "it does more work than a template may; the conversation is too long, or the \
             template does not end"
                .to_owned(),
        );
    }
    let line = error.line().map(|line| format!(" (line {line})")).unwrap_or_default();
    match error.detail() {
        Some(detail) => Error::Template(format!("{}: {detail}{line}", error.kind())),
        None => Error::Template(format!("{}{line}", error.kind())),
    }
}
