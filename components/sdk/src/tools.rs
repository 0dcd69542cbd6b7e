//! Tools: components that are called with JSON, by models and by programs.
//!
//! [`provider!`](crate::provider) makes a component of two functions, one that tells which
//! tools there are and one that does what they do:
//!
//! ```
//! use nala_sdk::tools::{Answer, Error, Tool};
//!
//! fn tools() -> Vec<Tool> {
//!     let schema = r#"{"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}"#;
//!     vec![Tool::new("reverse", "Turns a text around.", schema).read_only()]
//! }
//!
//! fn call(_name: &str, arguments: &str) -> Result<Answer, Error> {
//!     // They are a JSON object; whether they follow the schema is for the tool to say.
//!     Ok(Answer::text(arguments.chars().rev().collect::<String>()))
//! }
//!
//! nala_sdk::provider!(tools, call);
//! ```
//!
//! [`list`], [`call`] and [`start`] are the other side: the tools that a component was
//! granted (`tools` under `[component.NAME.tool.nala]`).

use crate::bindings::nala::tools::registry as host;

pub use crate::bindings::nala::tools::registry::{Event, Request, Running};
pub use crate::bindings::nala::tools::types::{
    Abilities, Annotations, Answer, Body, Content, Contents, Entry, Error, Inquiry, Link, Media, Progress, Question,
    Refusal, Severity, Tool,
};

/// What wit-bindgen makes of the world of a tool.
#[doc(hidden)]
#[allow(
    unsafe_code,
    missing_docs,
    unreachable_pub,
    clippy::undocumented_unsafe_blocks,
    clippy::allow_attributes_without_reason,
    reason = "generated: lifting and lowering across the component boundary is unsafe"
)]
pub mod export {
    wit_bindgen::generate!({
        world: "nala:tools/tool",
        path: ["../../wit/wasi-io", "../../wit/nala-tools"],
        pub_export_macro: true,
        default_bindings_module: "nala_sdk::tools::export",
        with: {
            "nala:tools/types@0.1.0": crate::bindings::nala::tools::types,
        },
        generate_all,
    });
}

impl Tool {
    /// A tool of which nothing is known but what it takes.
    #[must_use]
    pub fn new(name: impl Into<String>, description: impl Into<String>, input_schema: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: description.into(),
            input_schema: input_schema.into(),
            output_schema: None,
            annotations: Annotations { read_only: None, destructive: None, idempotent: None, open_world: None },
        }
    }

    /// With a name for people.
    #[must_use]
    pub fn titled(self, title: impl Into<String>) -> Self {
        Self { title: Some(title.into()), ..self }
    }

    /// With a schema of what it answers, see [`Answer::structured`].
    #[must_use]
    pub fn answering(self, output_schema: impl Into<String>) -> Self {
        Self { output_schema: Some(output_schema.into()), ..self }
    }

    /// One that changes nothing.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.annotations.read_only = Some(true);
        self
    }

    /// One that deals with what is outside of the application.
    #[must_use]
    pub fn open_world(mut self) -> Self {
        self.annotations.open_world = Some(true);
        self
    }
}

impl Answer {
    /// A text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Content::Text(text.into())], structured: None, is_error: false }
    }

    /// JSON, which is also the text.
    #[must_use]
    pub fn structured(json: impl Into<String>) -> Self {
        let json = json.into();
        Self { structured: Some(json.clone()), ..Self::text(json) }
    }

    /// Why it could not be done, for a model to read.
    #[must_use]
    pub fn error(why: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(why) }
    }
}

impl Question {
    /// A question for a person, who answers by filling in a form: `message` says what is
    /// wanted, and `schema` is a flat JSON Schema of an object, as text.
    ///
    /// ```
    /// # use nala_sdk::tools::Question;
    /// let schema = r#"{"type": "object", "properties": {"name": {"type": "string"}}}"#;
    /// let question = Question::form("name", "What is your \"name\"?", schema);
    /// assert!(question.parameters.contains(r#""message":"What is your \"name\"?""#));
    /// ```
    #[must_use]
    pub fn form(key: impl Into<String>, message: &str, schema: &str) -> Self {
        let message = quoted(message);
        let parameters = format!("{{\"mode\":\"form\",\"message\":{message},\"requestedSchema\":{schema}}}");
        Self { key: key.into(), kind: Inquiry::Elicitation, parameters }
    }

    /// A question of any kind, in the protocol's own words.
    #[must_use]
    pub fn new(key: impl Into<String>, kind: Inquiry, parameters: impl Into<String>) -> Self {
        Self { key: key.into(), kind, parameters: parameters.into() }
    }
}

/// A text as JSON.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Tells whoever called this tool what goes on: `data` is JSON of any kind, as text.
pub fn log(severity: Severity, logger: Option<&str>, data: &str) {
    export::nala::tools::report::log(&Entry { severity, logger: logger.map(str::to_owned), data: data.to_owned() });
}

/// Asks whoever called this tool, and waits for the replies, one for each question: JSON
/// objects as text. The call may end here and be begun again with what was replied, so ask
/// before anything is changed.
///
/// # Errors
/// See [`Refusal`].
pub fn ask(questions: &[Question]) -> Result<Vec<String>, Refusal> {
    export::nala::tools::report::ask(questions)
}

/// Tells whoever called this tool how far the call has got. `done` grows with each report.
pub fn report(done: f64, total: Option<f64>, message: Option<&str>) {
    let message = message.map(str::to_owned);
    export::nala::tools::report::tell(&Progress { done, total, message });
}

/// The tools that this component may call.
#[must_use]
pub fn list() -> Vec<Tool> {
    host::list_tools()
}

/// Calls a tool and waits for its answer. The arguments are a JSON object.
///
/// # Errors
/// See [`Error`].
pub fn call(name: &str, arguments: &str) -> Result<Answer, Error> {
    host::call(name, arguments)
}

/// Begins to call a tool, so that several can be called at a time.
///
/// # Errors
/// See [`Error`].
pub fn start(name: &str, arguments: &str) -> Result<Running, Error> {
    host::start(name, arguments)
}

/// Begins whatever a component can be asked, on behalf of somebody who can be asked this.
///
/// # Errors
/// See [`Error`].
pub fn begin(request: &Request, abilities: Abilities) -> Result<Running, Error> {
    host::begin(request, abilities)
}

/// What the components whose tools this one may call have for reading.
#[must_use]
pub fn library() -> crate::library::Catalogue {
    host::list_library()
}

/// Makes a component of tools: `provider!(tools, call);`.
///
/// The first function tells which tools there are, always the same; the second one does
/// what the tool of a name does, with arguments that are a JSON object as text.
#[macro_export]
macro_rules! provider {
    ($describe:path, $call:path) => {
        // Natively the functions are only checked, so that they can be tested.
        #[cfg(not(target_family = "wasm"))]
        const _: () = {
            let _: fn() -> Vec<$crate::tools::Tool> = $describe;
            let _: fn(&str, &str) -> Result<$crate::tools::Answer, $crate::tools::Error> = $call;
        };

        #[cfg(target_family = "wasm")]
        #[allow(
            unsafe_code,
            clippy::undocumented_unsafe_blocks,
            reason = "generated: exporting functions from a component"
        )]
        const _: () = {
            struct Provider;

            impl $crate::tools::export::exports::nala::tools::provider::Guest for Provider {
                fn describe() -> Vec<$crate::tools::Tool> {
                    $describe()
                }

                fn call(name: String, arguments: String) -> Result<$crate::tools::Answer, $crate::tools::Error> {
                    $call(&name, &arguments)
                }
            }

    $crate::tools::export::export!(Provider with_types_in $crate::tools::export);
        };
    };
}
