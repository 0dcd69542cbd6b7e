//! Whether a component's imports can be had.

use wasmtime::Engine;
use wasmtime::component::Component;

use super::{Grant, LoadError, Offered};

/// The packages that a component may import from, and interfaces of packages that
/// are not offered as a whole.
const OFFERED: &[&str] = &[
    "wasi:cli@0.2",
    "wasi:cli@0.3",
    "wasi:clocks@0.2",
    "wasi:clocks@0.3",
    "wasi:filesystem@0.2",
    "wasi:filesystem@0.3",
    "wasi:http@0.2",
    "wasi:http@0.3",
    "wasi:io@0.2",
    "wasi:random@0.2",
    "wasi:random@0.3",
    "wasi:sockets@0.2",
    "wasi:sockets@0.3",
    "wasi:nn@0.2.0-rc-2024-10-28",
    "fermyon:spin/llm@2.0",
    "nala:llm@0.1",
    "nala:chat@0.1",
];

/// The names of a component's imports.
pub(super) fn names(component: &Component, engine: &Engine) -> Vec<String> {
    component.component_type().imports(engine).map(|(name, _)| name.to_owned()).collect()
}

/// Refuses imports that the linker could only call missing, with the reason.
pub(super) fn check(name: &str, imports: &[String], grant: &Grant) -> Result<(), LoadError> {
    for import in imports {
        let names = [package(import), interface(import)];
        if !names.into_iter().flatten().any(|name| OFFERED.contains(&name.as_str())) {
            return Err(LoadError::UnknownImport {
                name: name.to_owned(),
                import: import.clone(),
                offered: Offered(OFFERED),
            });
        }
        let fix = if is_of_models(import) && grant.models.is_empty() {
            "grant it a model: --model NAME for `run`, `ai_models` in spin.toml"
        } else if import.starts_with("nala:chat/render") && grant.renderer.is_none() {
            "name the component that renders prompts: `renderer` under [component.NAME.tool.nala]"
        } else {
            continue;
        };
        return Err(LoadError::NotGranted { name: name.to_owned(), import: import.clone(), fix });
    }
    Ok(())
}

/// Whether an import is of no use without a model.
pub(super) fn is_of_models(import: &str) -> bool {
    ["nala:llm/", "wasi:nn/", "fermyon:spin/llm@"].iter().any(|models| import.starts_with(models))
}

/// `ns:pkg@MAJOR.MINOR` of an interface's name.
fn package(import: &str) -> Option<String> {
    let (interface, version) = import.split_once('@')?;
    let (package, _) = interface.split_once('/')?;
    Some(format!("{package}@{}", compatible(version)?))
}

/// `ns:pkg/interface@MAJOR.MINOR` of an interface's name.
fn interface(import: &str) -> Option<String> {
    let (interface, version) = import.split_once('@')?;
    Some(format!("{interface}@{}", compatible(version)?))
}

/// What other versions that fit begin with. Pre-releases fit only themselves.
fn compatible(version: &str) -> Option<String> {
    if version.contains('-') {
        return Some(version.to_owned());
    }
    let mut numbers = version.split('.');
    Some(format!("{}.{}", numbers.next()?, numbers.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_fit_are_known_by_their_minor() {
        assert_eq!(package("wasi:http/types@0.2.12").as_deref(), Some("wasi:http@0.2"));
        assert_eq!(package("nala:llm/model@0.9.0").as_deref(), Some("nala:llm@0.9"));
        assert_eq!(package("print"), None);
        assert_eq!(interface("fermyon:spin/llm@2.0.0").as_deref(), Some("fermyon:spin/llm@2.0"));
        assert_eq!(package("wasi:nn/graph@0.2.0-rc-2024-10-28").as_deref(), Some("wasi:nn@0.2.0-rc-2024-10-28"));
    }

    #[test]
    fn what_cannot_be_had_is_named_with_the_fix() {
        let refused = |import: &str| check("a", &[import.to_owned()], &Grant::default()).unwrap_err().to_string();
        assert!(refused("nala:llm/model@0.9.0").contains("offers"));
        assert!(refused("print").contains("`print`"));
        assert!(refused("nala:llm/model@0.1.0").contains("--model"));
        for import in ["wasi:nn/graph@0.2.0-rc-2024-10-28", "fermyon:spin/llm@2.0.0"] {
            assert!(refused(import).contains("--model"), "{import}");
        }
        for import in ["wasi:nn/graph@0.2.0-rc-2024-08-19", "fermyon:spin/mysql@2.0.0"] {
            assert!(refused(import).contains("does not have"), "{import}");
        }
        assert!(refused("nala:chat/render@0.1.0").contains("renderer"));
        assert!(check("a", &["wasi:io/poll@0.2.6".to_owned()], &Grant::default()).is_ok());
    }
}
