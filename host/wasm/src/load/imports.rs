//! Whether a component's imports can be had.

use wasmtime::Engine;
use wasmtime::component::Component;

use super::{Grant, LoadError, Offered};

/// The packages that a component may import from.
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
        let known = package(import).is_some_and(|package| OFFERED.contains(&package.as_str()));
        if !known {
            return Err(LoadError::UnknownImport {
                name: name.to_owned(),
                import: import.clone(),
                offered: Offered(OFFERED),
            });
        }
        let fix = if import.starts_with("nala:llm/") && grant.models.is_empty() {
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

/// `ns:pkg@MAJOR.MINOR` of an interface's name.
fn package(import: &str) -> Option<String> {
    let (interface, version) = import.split_once('@')?;
    let (package, _) = interface.split_once('/')?;
    let mut numbers = version.split('.');
    Some(format!("{package}@{}.{}", numbers.next()?, numbers.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_fit_are_known_by_their_minor() {
        assert_eq!(package("wasi:http/types@0.2.12").as_deref(), Some("wasi:http@0.2"));
        assert_eq!(package("nala:llm/model@0.9.0").as_deref(), Some("nala:llm@0.9"));
        assert_eq!(package("print"), None);
    }

    #[test]
    fn what_cannot_be_had_is_named_with_the_fix() {
        let refused = |import: &str| check("a", &[import.to_owned()], &Grant::default()).unwrap_err().to_string();
        assert!(refused("nala:llm/model@0.9.0").contains("offers"));
        assert!(refused("print").contains("`print`"));
        assert!(refused("nala:llm/model@0.1.0").contains("--model"));
        assert!(refused("nala:chat/render@0.1.0").contains("renderer"));
        assert!(check("a", &["wasi:io/poll@0.2.6".to_owned()], &Grant::default()).is_ok());
    }
}
