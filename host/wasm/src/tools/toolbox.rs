//! The tools that a component may call.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::IgnoredAny;
use thiserror::Error;

use super::bindings::nala::tools::types::{Error, Tool};
use super::call::Running;
use super::provider::{By, Provider};
use crate::store::StoreData;

/// The tools of several components, for one that may call them.
#[derive(Clone, Default)]
pub struct Toolbox {
    providers: Vec<Arc<Provider>>,
    /// Which one has the tool of a name.
    by_name: BTreeMap<String, usize>,
}

/// Two components have a tool of the same name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{first}` and `{second}` both have a tool named `{name}`; whoever may call both could not tell them apart")]
pub struct NameTaken {
    /// The tool.
    pub name: String,
    /// Who has it,
    pub first: String,
    /// and who else.
    pub second: String,
}

impl Toolbox {
    /// The tools of these components.
    ///
    /// # Errors
    /// Two of them have the same name.
    pub fn new(providers: Vec<Arc<Provider>>) -> Result<Self, NameTaken> {
        let mut by_name: BTreeMap<String, usize> = BTreeMap::new();
        for (at, provider) in providers.iter().enumerate() {
            for tool in provider.tools() {
                let Some(first) = by_name.insert(tool.name.clone(), at).and_then(|first| providers.get(first)) else {
                    continue;
                };
                let (first, second) = (first.name().to_owned(), provider.name().to_owned());
                return Err(NameTaken { name: tool.name.clone(), first, second });
            }
        }
        Ok(Self { providers, by_name })
    }

    /// All tools, in the order of the components.
    pub(super) fn list(&self) -> Vec<Tool> {
        self.providers.iter().flat_map(|provider| provider.tools()).cloned().collect()
    }

    /// Begins to call a tool for the request that a guest answers.
    pub(super) fn start(&self, name: &str, arguments: String, caller: &StoreData) -> Result<Running, Error> {
        let Some(provider) = self.by_name.get(name).and_then(|at| self.providers.get(*at)) else {
            return Err(Error::UnknownTool(unknown(name, self.by_name.keys())));
        };
        check_arguments(&arguments)?;
        // A guest that is still being made calls nobody: its end would be nobody's.
        let Some(request) = &caller.request else {
            return Err(Error::Failed("tools are called while a request is answered, and not before".into()));
        };
        let Some(origin) = request.origin.deeper() else {
            return Err(Error::Failed("too many calls lie in each other".into()));
        };
        let by = By { origin, deadline: request.deadline, calls: Arc::clone(&request.calls) };
        provider.start(name, arguments, by, &caller.account.tenant)
    }
}

/// The longest arguments, in bytes: models write them.
const LONGEST_ARGUMENTS: usize = 1 << 20;

/// Arguments are a JSON object, whatever the tool takes. Nothing is kept of what is read.
pub(super) fn check_arguments(arguments: &str) -> Result<(), Error> {
    let wrong = |why: String| Err(Error::InvalidArguments(why));
    if arguments.len() > LONGEST_ARGUMENTS {
        let length = arguments.len();
        return wrong(format!("the arguments have {length} bytes; at most {LONGEST_ARGUMENTS} are allowed"));
    }
    if let Err(error) = serde_json::from_str::<IgnoredAny>(arguments) {
        return wrong(format!("the arguments are no JSON: {error}"));
    }
    match arguments.trim_start().starts_with('{') {
        true => Ok(()),
        false => wrong("the arguments are no JSON object; write {} for none".into()),
    }
}

fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a String>) -> String {
    /// More would be no help.
    const SHOWN: usize = 20;
    let name: String = name.chars().take(200).collect();
    let known: Vec<&str> = known.map(String::as_str).take(SHOWN).collect();
    match known.as_slice() {
        [] => format!("there is no tool {name:?}: this component may call none"),
        known => format!("there is no tool {name:?}; there are {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_an_object() {
        for good in ["{}", " { \"a\": [1, 2, {\"b\": null}] } "] {
            check_arguments(good).unwrap();
        }
        let long = format!("{{\"a\": \"{}\"}}", "x".repeat(1 << 20));
        assert!(matches!(check_arguments(&long), Err(Error::InvalidArguments(why)) if why.contains("at most")));
        let deep = format!("{{\"a\": {}}}", "[".repeat(100_000));
        for (wrong, said) in [
            ("", "no JSON"),
            ("{", "no JSON"),
            ("{\"a\": nul}", "no JSON"),
            ("{} {}", "no JSON"),
            ("[]", "no JSON object"),
            ("null", "no JSON object"),
            (deep.as_str(), "no JSON"),
        ] {
            let Err(Error::InvalidArguments(why)) = check_arguments(wrong) else { panic!("{wrong:.100}") };
            assert!(why.contains(said), "{why}");
        }
    }

    #[test]
    fn what_there_is_is_told_to_who_asks_for_something_else() {
        assert!(unknown("a\n", [].iter()).contains("\"a\\n\": this component may call none"));
        assert!(unknown("a", ["b".to_owned(), "c".to_owned()].iter()).contains("there are b, c"));
    }
}
