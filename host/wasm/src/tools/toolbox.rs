//! The tools that a component may call.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::de::IgnoredAny;
use thiserror::Error;

use super::bindings::nala::tools::types::{Abilities, Catalogue, Error, Pattern, Subject, Tool};
use super::call::Running;
use super::elsewhere::{self, Elsewhere};
use super::job::Job;
use super::library;
use super::provider::{By, Provider};
use crate::store::StoreData;

/// The tools of several components, and what they have for reading, for one that may
/// call them.
#[derive(Clone, Default)]
pub struct Toolbox {
    providers: Vec<Arc<Provider>>,
    /// Tools that are no component's, which come and go.
    elsewhere: Vec<Arc<dyn Elsewhere>>,
    /// Which one has the tool,
    tools: BTreeMap<String, usize>,
    /// the resource,
    assets: BTreeMap<String, usize>,
    /// or the prompt of a name.
    prompts: BTreeMap<String, usize>,
}

/// Two components have something of the same name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{first}` and `{second}` both have a {kind} named `{name}`; whoever may call both could not tell them apart")]
pub struct NameTaken {
    /// What both have: `tool`, `resource`, `URI template` or `prompt`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Who has it,
    pub first: String,
    /// and who else.
    pub second: String,
}

impl Toolbox {
    /// The tools of these components, and their resources and prompts.
    ///
    /// # Errors
    /// Two of them have the same name.
    pub fn new(providers: Vec<Arc<Provider>>) -> Result<Self, NameTaken> {
        let tools = |provider: &Provider| provider.tools().iter().map(|tool| tool.name.clone()).collect();
        let assets = |provider: &Provider| provider.catalogue().assets.iter().map(|asset| asset.uri.clone()).collect();
        let prompts =
            |provider: &Provider| provider.catalogue().prompts.iter().map(|prompt| prompt.name.clone()).collect();
        let patterns =
            |provider: &Provider| provider.catalogue().patterns.iter().map(|one| one.uri_template.clone()).collect();
        by_name("URI template", &providers, patterns)?;
        Ok(Self {
            tools: by_name("tool", &providers, tools)?,
            assets: by_name("resource", &providers, assets)?,
            prompts: by_name("prompt", &providers, prompts)?,
            providers,
            elsewhere: Vec::new(),
        })
    }

    /// The same with tools that are no component's. Where one has the name of a component's,
    /// or of one before it, that is called.
    #[must_use]
    pub fn with_elsewhere(self, elsewhere: Vec<Arc<dyn Elsewhere>>) -> Self {
        Self { elsewhere, ..self }
    }

    /// All tools, in the order of the components, and then those that are no component's.
    pub(super) fn list(&self) -> Vec<Tool> {
        let mut all: Vec<Tool> = self.providers.iter().flat_map(|provider| provider.tools()).cloned().collect();
        let mut names: BTreeSet<String> = self.tools.keys().cloned().collect();
        for tool in self.elsewhere.iter().flat_map(|elsewhere| elsewhere.tools()) {
            if names.insert(tool.name.clone()) {
                all.push(tool);
            }
        }
        all
    }

    /// All that can be read, in the same order.
    pub(super) fn catalogue(&self) -> Catalogue {
        let all = || self.providers.iter().map(|provider| provider.catalogue());
        Catalogue {
            assets: all().flat_map(|one| &one.assets).cloned().collect(),
            patterns: all().flat_map(|one| &one.patterns).cloned().collect(),
            prompts: all().flat_map(|one| &one.prompts).cloned().collect(),
        }
    }

    /// Begins what is asked for the request that a guest answers.
    pub(super) fn start(&self, job: Job, abilities: Abilities, caller: &StoreData) -> Result<Running, Error> {
        let of_component = self.provider(&job);
        if let Job::Call { arguments, .. } = &job {
            check_arguments(arguments)?;
        }
        // A guest that is still being made calls nobody: its end would be nobody's.
        let Some(request) = &caller.request else {
            return Err(Error::Failed("tools are called while a request is answered, and not before".into()));
        };
        let Some(origin) = request.origin.deeper() else {
            return Err(Error::Failed("too many calls lie in each other".into()));
        };
        let by = By { origin, deadline: request.deadline, calls: Arc::clone(&request.calls) };
        let unknown = match of_component {
            Ok(provider) => return provider.start(job, abilities, by, &caller.account.tenant),
            Err(error) => error,
        };
        let Job::Call { tool, arguments } = job else { return Err(unknown) };
        let found = self.elsewhere.iter().find_map(|elsewhere| Some((elsewhere, elsewhere.tool(&tool)?)));
        let Some((elsewhere, tool)) = found else {
            let listed: Vec<String> = self.list().into_iter().map(|tool| tool.name).collect();
            return Err(Error::UnknownTool(self::unknown("tool", &tool, listed.iter())));
        };
        let call_bytes = caller.limits.call_bytes;
        elsewhere::start(elsewhere, (tool, arguments), abilities, by, &caller.account, call_bytes)
    }

    /// Who is asked.
    fn provider(&self, job: &Job) -> Result<&Arc<Provider>, Error> {
        let find = |kind: &str, all: &BTreeMap<String, usize>, name: &str| {
            let found = all.get(name).and_then(|at| self.providers.get(*at));
            found.ok_or_else(|| Error::UnknownTool(unknown(kind, name, all.keys())))
        };
        match job {
            Job::Call { tool, .. } => find("tool", &self.tools, tool),
            Job::Fill { prompt, .. } => find("prompt", &self.prompts, prompt),
            Job::Complete { subject: Subject::Prompt(prompt), .. } => find("prompt", &self.prompts, prompt),
            Job::Complete { subject: Subject::Pattern(template), .. } => self
                .with_pattern(|pattern| pattern.uri_template == *template)
                .ok_or_else(|| Error::UnknownTool(format!("there is no URI template {:?}", shortened(template)))),
            Job::Read { uri } => find("resource", &self.assets, uri).or_else(|error| {
                // Patterns are only asked where no name is it.
                self.with_pattern(|pattern| library::fits(&pattern.uri_template, uri)).ok_or(error)
            }),
        }
    }

    fn with_pattern(&self, is_it: impl Fn(&Pattern) -> bool) -> Option<&Arc<Provider>> {
        self.providers.iter().find(|provider| provider.catalogue().patterns.iter().any(&is_it))
    }
}

/// Which component has what.
fn by_name(
    kind: &'static str,
    providers: &[Arc<Provider>],
    names: impl Fn(&Provider) -> Vec<String>,
) -> Result<BTreeMap<String, usize>, NameTaken> {
    let mut by_name: BTreeMap<String, usize> = BTreeMap::new();
    for (at, provider) in providers.iter().enumerate() {
        for name in names(provider) {
            let Some(first) = by_name.insert(name.clone(), at).and_then(|first| providers.get(first)) else {
                continue;
            };
            let (first, second) = (first.name().to_owned(), provider.name().to_owned());
            return Err(NameTaken { kind, name, first, second });
        }
    }
    Ok(by_name)
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

fn unknown<'a>(kind: &str, name: &str, known: impl Iterator<Item = &'a String>) -> String {
    /// More would be no help.
    const SHOWN: usize = 20;
    let name = shortened(name);
    let known: Vec<&str> = known.map(String::as_str).take(SHOWN).collect();
    match known.as_slice() {
        [] => format!("there is no {kind} {name:?}: this component may use none"),
        known => format!("there is no {kind} {name:?}; there are {}", known.join(", ")),
    }
}

pub(super) fn shortened(name: &str) -> String {
    name.chars().take(200).collect()
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
        assert!(unknown("tool", "a\n", [].iter()).contains("\"a\\n\": this component may use none"));
        assert!(unknown("tool", "a", ["b".to_owned(), "c".to_owned()].iter()).contains("there are b, c"));
    }
}
