//! Resources and prompts: what a component has for reading, beside tools or without them.
//!
//! [`library!`](crate::library!) exports them, by four functions:
//!
//! ```
//! use nala_sdk::library::{Asset, Catalogue, Completion, Filled, Message, Prompt, Subject};
//! use nala_sdk::tools::{Content, Contents, Error};
//!
//! fn catalogue() -> Catalogue {
//!     Catalogue {
//!         assets: vec![Asset::new("notes://today", "today")],
//!         patterns: Vec::new(),
//!         prompts: vec![Prompt::new("greet").taking("name", "Who is greeted")],
//!     }
//! }
//!
//! fn read(uri: &str) -> Result<Vec<Contents>, Error> {
//!     match uri {
//!         "notes://today" => Ok(vec![Contents::text(uri, "Nothing yet.")]),
//!         other => Err(Error::UnknownTool(format!("there is no note {other:?}"))),
//!     }
//! }
//!
//! fn fill(_prompt: &str, arguments: &[(String, String)]) -> Result<Filled, Error> {
//!     let name = arguments.iter().find(|(key, _)| key == "name").map_or("you", |(_, value)| value);
//!     Ok(Filled { description: None, messages: vec![Message::user(format!("Greet {name}."))] })
//! }
//!
//! fn complete(_of: &Subject, _parameter: &str, _beginning: &str) -> Result<Completion, Error> {
//!     Ok(Completion { values: Vec::new(), total: None, has_more: false })
//! }
//!
//! nala_sdk::library!(catalogue, read, fill, complete);
//! ```

pub use crate::bindings::nala::tools::types::{
    Asset, Catalogue, Completion, Filled, Message, Parameter, Pattern, Prompt, Role, Subject,
};
use crate::tools::{Body, Content, Contents};

/// What wit-bindgen makes of the world of what is read.
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
        world: "nala:tools/source",
        path: ["../../wit/wasi-io", "../../wit/nala-tools"],
        pub_export_macro: true,
        default_bindings_module: "nala_sdk::library::export",
        with: {
            "nala:tools/types@0.1.0": crate::bindings::nala::tools::types,
            "nala:tools/report@0.1.0": crate::tools::export::nala::tools::report,
        },
        generate_all,
    });
}

impl Asset {
    /// A resource of which nothing is known but where it is.
    #[must_use]
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self { uri: uri.into(), name: name.into(), title: None, description: None, mime_type: None }
    }
}

impl Prompt {
    /// A prompt without anything to be filled in.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), title: None, description: None, parameters: Vec::new() }
    }

    /// With something that has to be filled in.
    #[must_use]
    pub fn taking(mut self, name: impl Into<String>, description: impl Into<String>) -> Self {
        self.parameters.push(Parameter { name: name.into(), description: Some(description.into()), required: true });
        self
    }
}

impl Message {
    /// Something that a person says.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        Self { role: Role::User, content: Content::Text(text.into()) }
    }
}

impl Contents {
    /// A resource that is a text.
    #[must_use]
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self { uri: uri.into(), mime_type: Some("text/plain".to_owned()), body: Body::Text(text.into()) }
    }
}

/// Makes a component of resources and prompts: `library!(catalogue, read, fill, complete);`.
///
/// The first function tells what there is, always the same. It can stand beside
/// [`provider!`](crate::provider).
#[macro_export]
macro_rules! library {
    ($catalogue:path, $read:path, $fill:path, $complete:path) => {
        // Natively the functions are only checked, so that they can be tested.
        #[cfg(not(target_family = "wasm"))]
        const _: () = {
            use $crate::library::{Catalogue, Completion, Filled, Subject};
            use $crate::tools::{Contents, Error};
            let _: fn() -> Catalogue = $catalogue;
            let _: fn(&str) -> Result<Vec<Contents>, Error> = $read;
            let _: fn(&str, &[(String, String)]) -> Result<Filled, Error> = $fill;
            let _: fn(&Subject, &str, &str) -> Result<Completion, Error> = $complete;
        };

        #[cfg(target_family = "wasm")]
        #[allow(
            unsafe_code,
            clippy::undocumented_unsafe_blocks,
            reason = "generated: exporting functions from a component"
        )]
        const _: () = {
            use $crate::library::{Catalogue, Completion, Filled, Subject};
            use $crate::tools::{Contents, Error};

            struct Library;

            impl $crate::library::export::exports::nala::tools::library::Guest for Library {
                fn describe() -> Catalogue {
                    $catalogue()
                }

                fn read(uri: String) -> Result<Vec<Contents>, Error> {
                    $read(&uri)
                }

                fn fill(name: String, arguments: Vec<(String, String)>) -> Result<Filled, Error> {
                    $fill(&name, &arguments)
                }

                fn complete(subject: Subject, name: String, beginning: String) -> Result<Completion, Error> {
                    $complete(&subject, &name, &beginning)
                }
            }

    $crate::library::export::export!(Library with_types_in $crate::library::export);
        };
    };
}
