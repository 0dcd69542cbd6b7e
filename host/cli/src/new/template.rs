//! The templates, which are inside this binary.

use nala_models::DEFAULT_MODEL;

use super::ProjectName;

/// What a project begins with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Template {
    /// Asks the model.
    #[default]
    RustHandler,
    /// Answers without one.
    RustHello,
}

/// A file of a template.
pub(super) struct File {
    /// Where it goes, from the folder of the project.
    pub(super) path: &'static str,
    text: &'static str,
}

macro_rules! files {
    ($template:literal: $($path:literal = $file:literal,)*) => {
        &[$(File { path: $path, text: include_str!(concat!("../../templates/", $template, "/", $file)) },)*]
    };
}

const RUST_HANDLER: &[File] = files! {
    "rust-handler":
    "Cargo.toml" = "Cargo.toml.template",
    "spin.toml" = "spin.toml.template",
    "README.md" = "README.md.template",
    ".gitignore" = "gitignore.template",
    "src/lib.rs" = "src/lib.rs",
};

const RUST_HELLO: &[File] = files! {
    "rust-hello":
    "Cargo.toml" = "Cargo.toml.template",
    "spin.toml" = "spin.toml.template",
    "README.md" = "README.md.template",
    ".gitignore" = "gitignore.template",
    "src/lib.rs" = "src/lib.rs",
};

impl Template {
    pub(crate) const ALL: &[Self] = &[Self::RustHandler, Self::RustHello];

    /// Its name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::RustHandler => "rust-handler",
            Self::RustHello => "rust-hello",
        }
    }

    /// One line about it.
    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::RustHandler => "A handler in Rust that asks the model",
            Self::RustHello => "A handler in Rust that answers by itself, with wasi:http alone",
        }
    }

    /// Whether it asks a model, by the SDK.
    pub(super) fn asks_a_model(self) -> bool {
        match self {
            Self::RustHandler => true,
            Self::RustHello => false,
        }
    }

    pub(super) fn files(self) -> &'static [File] {
        match self {
            Self::RustHandler => RUST_HANDLER,
            Self::RustHello => RUST_HELLO,
        }
    }
}

impl File {
    /// What is written: the text with all that is special about the project.
    pub(super) fn text(&self, name: &ProjectName, sdk: &str) -> String {
        // The SDK last: its path is the user's, and may look like any of the others.
        self.text
            .replace("@NAME@", name.as_str())
            .replace("@FILE@", &name.file_stem())
            .replace("@MODEL@", DEFAULT_MODEL)
            .replace("@SDK@", sdk)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use nala_manifest::Application;

    use super::*;

    #[test]
    fn every_template_is_filled_in_and_its_manifest_is_sound() {
        let name: ProjectName = "my-app".parse().unwrap();
        for template in Template::ALL {
            for file in template.files() {
                let text = file.text(&name, "{ path = \"sdk\" }");
                for mark in ["@NAME@", "@FILE@", "@MODEL@", "@SDK@"] {
                    assert!(!text.contains(mark), "{}: {mark}", file.path);
                }
                if file.path == "spin.toml" {
                    let application = Application::parse(&text, Path::new(""), None).unwrap();
                    assert!(application.warnings.is_empty(), "{:?}", application.warnings);
                    let component = application.component("my-app").unwrap();
                    assert_eq!(component.source.path().unwrap(), "target/wasm32-wasip2/release/my_app.wasm");
                    assert_eq!(component.renderer.is_some(), template.asks_a_model());
                }
            }
        }
    }
}
