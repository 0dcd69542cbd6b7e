//! Variables of the application: `fermyon:spin/variables@2.0.0`,
//! `spin:variables@3.0.0`, `fermyon:spin/config` and `wasi:config/store`.
//!
//! All four read one map of resolved values. `wasmtime-wasi-config` has only the
//! last of them, in one of the two versions that are in use, over a map of its
//! own that shows its values; hence the few lines here.

use std::collections::BTreeMap;

use wasmtime::Result;
use wasmtime::component::{Accessor, HasData, Linker};

use crate::secret::Secret;
use crate::store::StoreData;

/// Variables by their names.
pub(crate) type Variables = BTreeMap<String, Secret>;

mod spin2 {
    wasmtime::component::bindgen!({
        path: "../../wit/fermyon-spin",
        inline: "package nala:variables; world imports { import fermyon:spin/variables@2.0.0; }",
        world: "nala:variables/imports",
        imports: { default: trappable },
    });
}

mod spin3 {
    wasmtime::component::bindgen!({
        path: "../../wit/spin-variables",
        inline: "package nala:variables; world imports { import spin:variables/variables@3.0.0; }",
        world: "nala:variables/imports",
        imports: { default: trappable },
    });
}

mod spin1 {
    wasmtime::component::bindgen!({
        path: "../../wit/spin-config",
        inline: "package nala:variables; world imports { import fermyon:spin/config; }",
        world: "nala:variables/imports",
        imports: { default: trappable },
    });
}

mod config {
    wasmtime::component::bindgen!({
        path: "../../wit/wasi-config",
        world: "wasi:config/imports",
        imports: { default: trappable },
    });
}

/// The version that Spin has.
mod config_draft {
    wasmtime::component::bindgen!({
        path: "../../wit/wasi-config-2024-09-27",
        world: "wasi:config/imports",
        imports: { default: trappable },
    });
}

use config::wasi::config::store as wasi;
use config_draft::wasi::config::store as wasi_draft;
use spin1::fermyon::spin::config as v1;
use spin2::fermyon::spin::variables as v2;
use spin3::spin::variables::variables as v3;

/// Why there is no value.
enum Missing {
    InvalidName(String),
    Undefined(String),
}

/// A variable's value, by Spin's rules for names (`spin_expressions::Key`): lower
/// case letters, digits and single underscores, and a letter first.
fn value<'a>(variables: &'a Variables, name: &str) -> Result<&'a str, Missing> {
    let letter = name.starts_with(|c: char| c.is_ascii_lowercase());
    let others = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if !letter || !others || name.ends_with('_') || name.contains("__") {
        let rule = "a name has lower-case letters, digits and single underscores between them, and a letter first";
        return Err(Missing::InvalidName(format!("{name:?}: {rule}")));
    }
    let found = variables.get(name).map(Secret::expose);
    found.ok_or_else(|| {
        let fix = "this component has no such variable; give it one under [component.NAME.variables] in spin.toml";
        Missing::Undefined(format!("{name:?}: {fix}"))
    })
}

pub(crate) struct VariablesView<'a>(&'a Variables);

struct HasVariables;

impl HasData for HasVariables {
    type Data<'a> = VariablesView<'a>;
}

fn view(data: &mut StoreData) -> VariablesView<'_> {
    VariablesView(&data.granted.variables)
}

pub(crate) fn add_to_linker(linker: &mut Linker<StoreData>) -> Result<()> {
    v1::add_to_linker::<_, HasVariables>(linker, view)?;
    v2::add_to_linker::<_, HasVariables>(linker, view)?;
    v3::add_to_linker::<_, HasVariables>(linker, view)?;
    wasi::add_to_linker::<_, HasVariables>(linker, view)?;
    wasi_draft::add_to_linker::<_, HasVariables>(linker, view)
}

impl v1::Host for VariablesView<'_> {
    fn get_config(&mut self, key: String) -> Result<Result<String, v1::Error>> {
        Ok(value(self.0, &key).map(str::to_owned).map_err(|missing| match missing {
            Missing::InvalidName(text) => v1::Error::InvalidKey(text),
            // As Spin has it.
            Missing::Undefined(text) => v1::Error::Provider(text),
        }))
    }
}

impl v2::Host for VariablesView<'_> {
    fn get(&mut self, name: String) -> Result<Result<String, v2::Error>> {
        Ok(value(self.0, &name).map(str::to_owned).map_err(|missing| match missing {
            Missing::InvalidName(text) => v2::Error::InvalidName(text),
            Missing::Undefined(text) => v2::Error::Undefined(text),
        }))
    }
}

impl v3::Host for VariablesView<'_> {}

impl<T> v3::HostWithStore<T> for HasVariables {
    async fn get(accessor: &Accessor<T, Self>, name: String) -> Result<Result<String, v3::Error>> {
        Ok(accessor.with(|mut access| {
            value(access.get().0, &name).map(str::to_owned).map_err(|missing| match missing {
                Missing::InvalidName(text) => v3::Error::InvalidName(text),
                Missing::Undefined(text) => v3::Error::Undefined(text),
            })
        }))
    }
}

impl VariablesView<'_> {
    fn all(&self) -> Vec<(String, String)> {
        self.0.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect()
    }
}

/// A name that is undefined, or that none can have, is no error here but nothing.
impl wasi::Host for VariablesView<'_> {
    fn get(&mut self, key: String) -> Result<Result<Option<String>, wasi::Error>> {
        Ok(Ok(value(self.0, &key).ok().map(str::to_owned)))
    }

    fn get_all(&mut self) -> Result<Result<Vec<(String, String)>, wasi::Error>> {
        Ok(Ok(self.all()))
    }
}

impl wasi_draft::Host for VariablesView<'_> {
    fn get(&mut self, key: String) -> Result<Result<Option<String>, wasi_draft::Error>> {
        Ok(Ok(value(self.0, &key).ok().map(str::to_owned)))
    }

    fn get_all(&mut self) -> Result<Result<Vec<(String, String)>, wasi_draft::Error>> {
        Ok(Ok(self.all()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_spin() {
        let variables: Variables = [("api_key2", "s3cret")].map(|(k, v)| (k.to_owned(), v.into())).into();
        assert!(matches!(value(&variables, "api_key2"), Ok("s3cret")));
        for name in ["", "_a", "a_", "a__b", "2a", "A", "a-b", "a\0"] {
            assert!(matches!(value(&variables, name), Err(Missing::InvalidName(_))), "{name:?}");
        }
        let Err(Missing::Undefined(text)) = value(&variables, "other") else { panic!() };
        assert!(text.contains("\"other\"") && text.contains("variables") && !text.contains("s3cret"), "{text}");
    }
}
