//! What a manifest may say, and this host does not do: it would be another application
//! without it.

use nala_manifest::source::Source;
use nala_manifest::{Application, Component, Diagnostic};

use super::composing;

/// Where the code of components comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// From where the manifest says.
    Named,
    /// It was sent with the manifest.
    Sent,
}

/// All of it, each with its place.
pub(crate) fn unserved(application: &Application, code: Code) -> Vec<Diagnostic> {
    let middleware = application.triggers.iter().filter_map(|trigger| {
        let help = "compose the component with it before, for example with `wac plug`";
        Some(trigger.middleware.first()?.place.error("middleware is not supported yet", help))
    });
    middleware.chain(application.components.values().flat_map(|component| of_component(component, code))).collect()
}

fn of_component(component: &Component, code: Code) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    found.extend(component.dependencies.values().filter_map(|dependency| composing::refused(dependency, code)));
    if code == Code::Named && !matches!(component.source, Source::Path(_)) {
        let help = "download it, and write the path of the file: source = \"app.wasm\"";
        found.push(component.source_place.error("only files can be sources yet", help));
    }
    found
}
