//! Why components cannot be composed.

use std::fmt;

use nala_manifest::dependencies::{Configuration, DependencyName};
use thiserror::Error;

/// Why components cannot be composed. [`help`](Self::help) says what to do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ComposeError {
    /// The main component cannot be read.
    #[error("`{main}` cannot be composed: {reason}")]
    Main {
        /// The main component.
        main: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A dependency cannot be read.
    #[error("the dependency `{dependency}` cannot be composed: {reason}")]
    Unreadable {
        /// Its name.
        dependency: Box<DependencyName>,
        /// What is wrong with it.
        reason: String,
    },
    /// The main component imports nothing of that name.
    #[error("the dependency `{dependency}` answers no import of `{main}`, which imports {}", Names(imports))]
    Unmatched {
        /// Its name.
        dependency: Box<DependencyName>,
        /// The main component.
        main: String,
        /// All that it imports.
        imports: Vec<String>,
    },
    /// Two dependencies answer one import.
    #[error("the dependencies `{other}` and `{dependency}` would both answer the import `{import}`")]
    Conflict {
        /// The import.
        import: String,
        /// The second one.
        dependency: Box<DependencyName>,
        /// The first one.
        other: Box<DependencyName>,
    },
    /// The dependency does not export what it is to answer by.
    #[error(
        "the dependency `{dependency}` does not export `{export}` for the import `{import}`; it exports {}",
        Names(exports)
    )]
    MissingExport {
        /// Its name.
        dependency: Box<DependencyName>,
        /// The import that it is to answer.
        import: String,
        /// What it is to answer by.
        export: String,
        /// All that it exports.
        exports: Vec<String>,
    },
    /// It exports it, in another shape.
    #[error("the export `{export}` of the dependency `{dependency}` does not fit the import `{import}`: {reason}")]
    Mismatch {
        /// Its name.
        dependency: Box<DependencyName>,
        /// The import that it is to answer.
        import: String,
        /// What it is to answer by.
        export: String,
        /// Where they differ.
        reason: String,
    },
    /// The dependency imports what it cannot be denied, and does not inherit it.
    #[error("the dependency `{dependency}` imports `{import}`, which it does not inherit{}", Reason(*key))]
    NotInherited {
        /// Its name.
        dependency: Box<DependencyName>,
        /// What it imports.
        import: String,
        /// What would have to be inherited, if it is one thing.
        key: Option<Configuration>,
    },
    /// What the dependency does not inherit cannot be denied to it.
    #[error("the dependency `{dependency}` cannot be denied {}: {reason}", Names(imports))]
    Undeniable {
        /// Its name.
        dependency: Box<DependencyName>,
        /// What it imports and does not inherit.
        imports: Vec<String>,
        /// What stands in the way.
        reason: String,
    },
    /// A middleware that calls nothing behind it.
    #[error("the middleware `{middleware}` hands no requests on: it imports {}", Names(imports))]
    HandsNothingOn {
        /// Its name.
        middleware: Box<DependencyName>,
        /// All that it imports.
        imports: Vec<String>,
    },
    /// A middleware calls what the one behind it is not.
    #[error(
        "the middleware `{middleware}` hands requests on by `{import}`, which `{behind}` does not answer: {reason}"
    )]
    NotBehind {
        /// Its name.
        middleware: Box<DependencyName>,
        /// What is behind it.
        behind: String,
        /// What it calls.
        import: String,
        /// What stands in the way.
        reason: String,
    },
    /// The parts fit one by one, and not together.
    #[error("`{main}` and its dependencies cannot be joined: {reason}")]
    Join {
        /// The main component.
        main: String,
        /// What stands in the way.
        reason: String,
    },
    /// All together is too large.
    #[error("`{main}` has {bytes} bytes with its dependencies; a component may have at most {most}")]
    TooLarge {
        /// The main component.
        main: String,
        /// The size in bytes.
        bytes: u64,
        /// The most, in bytes.
        most: u64,
    },
    /// The libraries that read and join components failed.
    #[error("`{main}` and its dependencies have something in them that cannot be composed here")]
    Crashed {
        /// The main component.
        main: String,
    },
}

impl ComposeError {
    /// Whose fault it is, if it is one dependency's.
    #[must_use]
    pub fn dependency(&self) -> Option<&DependencyName> {
        match self {
            Self::Unreadable { dependency, .. }
            | Self::Unmatched { dependency, .. }
            | Self::Conflict { dependency, .. }
            | Self::MissingExport { dependency, .. }
            | Self::Mismatch { dependency, .. }
            | Self::NotInherited { dependency, .. }
            | Self::Undeniable { dependency, .. } => Some(dependency),
            Self::HandsNothingOn { middleware, .. } | Self::NotBehind { middleware, .. } => Some(middleware),
            Self::Main { .. } | Self::Join { .. } | Self::TooLarge { .. } | Self::Crashed { .. } => None,
        }
    }

    /// What to do.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            Self::Main { .. } | Self::Unreadable { .. } => {
                "give a component, as `cargo build --target wasm32-wasip2` or `wasm-tools component new` make it"
                    .to_owned()
            }
            Self::Unmatched { .. } => {
                "name one of these imports, or remove the dependency; an import that the code does not use is left out \
                 of a component"
                    .to_owned()
            }
            Self::Conflict { .. } => {
                "remove one, or name the interface that each is to answer: \"namespace:package/interface\"".to_owned()
            }
            Self::MissingExport { exports, .. } if exports.is_empty() => "give a component that exports it".to_owned(),
            Self::MissingExport { import, exports, .. } => {
                let same = exports.iter().find(|export| interface(export) == interface(import));
                let meant = same.or(exports.first()).map(String::as_str).unwrap_or_default();
                format!("say which of its exports answers, such as `export = \"{meant}\"`, or give another component")
            }
            Self::Mismatch { .. } => "build both for the same version of the interface".to_owned(),
            Self::NotInherited { key: Some(key), .. } => {
                format!("write `inherit_configuration = [\"{key}\"]` in the dependency, or build it without the import")
            }
            Self::NotInherited { key: None, .. } => {
                "write `inherit_configuration = true` in the dependency, or build it without the import".to_owned()
            }
            Self::Undeniable { .. } => {
                "write `inherit_configuration = true` in the dependency, or build it without these imports".to_owned()
            }
            Self::HandsNothingOn { .. } => {
                "give a component that imports and exports `wasi:http/handler`, such as one of spin-sdk with the \
                 feature http-middleware"
                    .to_owned()
            }
            Self::NotBehind { .. } => {
                "build all of them for the same release of WASI: middleware of WASI 0.3 calls components of WASI 0.3"
                    .to_owned()
            }
            Self::Join { .. } => {
                "build all of them for the same versions of what they import, or compose them before, for example \
                 with `wac plug`"
                    .to_owned()
            }
            Self::TooLarge { .. } => "leave a dependency out, or build for size".to_owned(),
            Self::Crashed { .. } => {
                "compose them before, for example with `wac plug`, and report this together with the components"
                    .to_owned()
            }
        }
    }
}

/// What an interface is called without its package and version.
fn interface(name: &str) -> &str {
    let path = name.split_once('@').map_or(name, |(path, _)| path);
    path.rsplit_once('/').map_or(path, |(_, interface)| interface)
}

/// Names in a sentence.
struct Names<'a>(&'a [String]);

/// So many are shown.
const SHOWN: usize = 12;

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("nothing");
        }
        for (index, name) in self.0.iter().take(SHOWN).enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}`{name}`")?;
        }
        match self.0.len().checked_sub(SHOWN) {
            None | Some(0) => Ok(()),
            Some(more) => write!(f, " and {more} more"),
        }
    }
}

/// Why something must be inherited.
struct Reason(Option<Configuration>);

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(key) => write!(f, " (`{key}`), and which has no answer for those who have it not"),
            None => f.write_str(", and nothing says which right that gives"),
        }
    }
}
