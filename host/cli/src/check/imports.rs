//! What a component imports in vain, and the key of the manifest that grants it.

use nala_manifest::{Component, Diagnostic};
use nala_models::DEFAULT_MODEL;
use nala_wasm::{Compiled, LoadError};

/// What keeps a component from being loaded, each thing once.
pub(super) fn refused(id: &str, component: &Component, errors: Vec<LoadError>) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = Vec::new();
    for error in errors {
        let diagnostic = match &error {
            LoadError::NotGranted { import, .. } => {
                let help = match import.starts_with("nala:chat/") {
                    true => format!("write `renderer = \"nala:chat-template\"` under [component.{id}.tool.nala]"),
                    // Interfaces to models have many names.
                    false => format!("write `ai_models = [\"{DEFAULT_MODEL}\"]` under [component.{id}]"),
                };
                // Many interfaces of one package have one remedy.
                if found.iter().any(|other| other.help == help) {
                    continue;
                }
                let message = format!("component `{id}` imports `{import}`, which it is not granted");
                component.source_place.error(message, help)
            }
            LoadError::UnknownImport { import, offered, .. } => {
                let message = format!("component `{id}` imports `{import}`, which this host does not have");
                component.source_place.error(message, format!("build it for what there is: {offered}"))
            }
            _ => component.source_place.error(error.to_string(), ""),
        };
        found.push(diagnostic);
    }
    found
}

/// Imports that can always be had, and give nothing without a key of the manifest.
const EMPTY: &[(&[&str], &str, &str)] = &[
    (
        &["wasi:http/outgoing-handler@", "wasi:http/client@"],
        "and may reach no host, so each of its requests is denied",
        "allowed_outbound_hosts = [\"https://api.example.com\"]",
    ),
    (
        &["wasi:keyvalue/", "fermyon:spin/key-value", "spin:key-value/"],
        "and may open no store",
        "key_value_stores = [\"default\"]",
    ),
    (
        &["wasi:config/", "fermyon:spin/variables", "fermyon:spin/config", "spin:variables/"],
        "and sees no variable",
        "variables = { name = \"{{ name }}\" }",
    ),
];

/// Warns of them.
pub(super) fn empty(id: &str, component: &Component, compiled: &Compiled) -> Vec<Diagnostic> {
    let granted = [
        !component.allowed_outbound_hosts.is_empty(),
        !component.key_value_stores.is_empty(),
        !component.variables.is_empty(),
    ];
    let in_vain = |(prefixes, why, key): &(&[&str], &str, &str)| {
        let import = compiled.imports().find(|import| prefixes.iter().any(|prefix| import.starts_with(prefix)))?;
        let message = format!("component `{id}` imports `{import}`, {why}");
        Some(component.source_place.warning(message, format!("write `{key}` under [component.{id}]")))
    };
    EMPTY.iter().zip(granted).filter(|(_, granted)| !granted).filter_map(|(entry, _)| in_vain(entry)).collect()
}
