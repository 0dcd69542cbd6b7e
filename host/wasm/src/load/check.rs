//! Whether a component could be loaded, while what it would be granted is not there.

use super::{Compiled, LoadError, imports, proxy, refuse_memory};
use crate::chat::renderer::Renderer;
use crate::engine::Runtime;
use crate::limits::Limits;
use crate::tools::provider::Provider;

/// What a component is loaded as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It answers requests, see [`Runtime::load`].
    Handler,
    /// It renders prompts, see [`Runtime::load_renderer`].
    Renderer,
    /// It is a tool, or several, see [`Runtime::load_tools`].
    Tools,
}

/// What a component would be and be granted, as far as that decides whether it can be
/// loaded.
#[derive(Debug, Clone)]
pub struct Prospect {
    /// What it would be loaded as.
    pub role: Role,
    /// What else decides whether its imports can be had.
    pub offer: Offer,
    /// What a request of it could use.
    pub limits: Limits,
}

/// What decides whether a component's imports can be had.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offer {
    /// Whether it may open at least one model.
    pub models: bool,
    /// Whether somebody renders prompts for it.
    pub renderer: bool,
}

impl Runtime {
    /// Finds all that keeps a component from being loaded, but for what its files and
    /// variables bring: each import that it cannot have, and what is wrong with its
    /// exports. Nothing is run, and no model has to be there.
    pub fn check(&self, compiled: &Compiled, prospect: &Prospect) -> Vec<LoadError> {
        let Compiled { name, component, imports } = compiled;
        let mut found = imports::refused(name, imports, prospect.offer);
        found.extend(refuse_memory(self, name, &prospect.limits).err());
        // The linker would call the first of these imports missing, and nothing else.
        if found.iter().any(|error| matches!(error, LoadError::UnknownImport { .. })) {
            return found;
        }
        let whole = self.link_all(name, component).and_then(|pre| match prospect.role {
            Role::Handler => proxy(name, pre).map(drop),
            Role::Renderer => Renderer::refuse_other(name, &pre),
            Role::Tools => Provider::refuse_other(name, &pre),
        });
        found.extend(whole.err());
        found
    }
}
