//! What a manifest may say, and this host does not do: it would be another application
//! without it.

use nala_manifest::{Application, Diagnostic};

/// All of it, each with its place.
pub(crate) fn unserved(application: &Application) -> Vec<Diagnostic> {
    let middleware = application.triggers.iter().filter_map(|trigger| {
        let help = "compose the component with it before, for example with `wac plug`";
        Some(trigger.middleware.first()?.place.error("middleware is not supported yet", help))
    });
    middleware.collect()
}
