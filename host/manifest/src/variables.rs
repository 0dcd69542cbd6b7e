//! `[variables]` of the application, and the values that a start gives them.
//!
//! A component sees only what its own `variables` make of them.
//!
//! Source: <https://spinframework.dev/variables>.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;

use crate::component::Component;
use crate::diagnostic::Place;
use crate::names::{self, Style};
use crate::reader::{Node, likeliest, listed};
use crate::template::{InvalidTemplate, Template, UnknownVariable};

/// `[variables]`: one of the application's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// One line about it.
    pub description: Option<String>,
    /// Its value where a start gives none. One without must be given.
    pub default: Option<Value>,
    /// Whether its value must not be shown.
    pub secret: bool,
    /// Where it is described.
    pub place: Place,
}

/// The value of a variable. A secret one is shown neither by `Debug` nor by
/// `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct Value {
    text: String,
    secret: bool,
}

impl Value {
    /// A value, secret or not as the variable is that it is for.
    fn of(variable_is: Secrecy, text: String) -> Self {
        Self { text, secret: variable_is == Secrecy::Secret }
    }

    /// The value itself, for the component that it is for.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// Whether it must not be shown.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        self.secret
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Secrecy {
    Open,
    Secret,
}

impl Variable {
    fn secrecy(&self) -> Secrecy {
        if self.secret { Secrecy::Secret } else { Secrecy::Open }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.secret { f.write_str("[secret]") } else { write!(f, "{:?}", self.text) }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.secret { "[secret]" } else { &self.text })
    }
}

/// The variables of an application that a start gives no usable value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingVariables(pub Vec<MissingVariable>);

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingVariable {
    /// Its name.
    pub name: String,
    /// Where it is described.
    pub place: Place,
    /// Why it has no value.
    pub why: Missing,
}

/// Why a variable has no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// It is required and not given.
    NotGiven,
    /// What is given is no Unicode.
    NotUnicode,
}

impl fmt::Display for MissingVariables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, MissingVariable { name, place, why }) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            let why = match why {
                Missing::NotGiven => "has no value",
                Missing::NotUnicode => "has a value that is no Unicode",
            };
            let variable = environment_name(name);
            write!(f, "{place}: the variable `{name}` {why}: give --variable {name}=VALUE, or set {variable}")?;
        }
        Ok(())
    }
}

impl std::error::Error for MissingVariables {}

/// The values of all variables of an application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Values(BTreeMap<String, Value>);

impl Values {
    /// Takes the value of each variable from `provider`, or else its default.
    ///
    /// # Errors
    /// Every variable that has neither, used or not, as Spin has it.
    pub(crate) fn of(
        variables: &BTreeMap<String, Variable>,
        provider: &impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, MissingVariables> {
        let mut values = BTreeMap::new();
        let mut missing = Vec::new();
        for (name, variable) in variables {
            let given = provider(name).map(OsString::into_string).transpose();
            let value = match given {
                Ok(Some(text)) => Ok(Value::of(variable.secrecy(), text)),
                Ok(None) => variable.default.clone().ok_or(Missing::NotGiven),
                Err(_) => Err(Missing::NotUnicode),
            };
            match value {
                Ok(value) => {
                    values.insert(name.clone(), value);
                }
                Err(why) => missing.push(MissingVariable { name: name.clone(), place: variable.place.clone(), why }),
            }
        }
        if missing.is_empty() { Ok(Self(values)) } else { Err(MissingVariables(missing)) }
    }

    /// What a component of the same application sees of them, by the name that it asks
    /// for.
    #[must_use]
    pub fn seen_by(&self, component: &Component) -> BTreeMap<String, Value> {
        // Templates name declared variables only: that was checked.
        let known = component.variables.iter();
        known.filter_map(|(name, template)| Some((name.clone(), self.resolve(template).ok()?))).collect()
    }

    /// What a template becomes; secret if a value in it is.
    ///
    /// # Errors
    /// It names a variable that the application does not have, so it is not of
    /// this application's manifest.
    pub fn resolve(&self, template: &Template) -> Result<Value, UnknownVariable> {
        let text = template.resolve(&|name| Some(self.0.get(name)?.text.clone()))?;
        let secret = template.variables().any(|name| self.0.get(name).is_some_and(Value::is_secret));
        Ok(Value { text, secret })
    }
}

/// The name of the environment variable that gives the value of `variable`, as
/// with Spin: `SPIN_VARIABLE_API_KEY` for `api_key`.
#[must_use]
pub fn environment_name(variable: &str) -> String {
    format!("SPIN_VARIABLE_{}", variable.to_ascii_uppercase())
}

/// The value that the environment of this process gives a variable: a provider
/// for [`Application::values`](crate::Application::values).
#[must_use]
pub fn from_environment(variable: &str) -> Option<OsString> {
    std::env::var_os(environment_name(variable))
}

/// What templates in a manifest may name.
pub(crate) struct Declared<'d>(BTreeSet<&'d str>);

/// Reads `[variables]`; what may be named is told apart from what was read, so
/// that a mistake in a variable is not one of each template that names it.
pub(crate) fn read(node: Option<Node<'_>>) -> (BTreeMap<String, Variable>, Declared<'_>) {
    let entries = node.map(Node::entries).unwrap_or_default();
    let declared = Declared(entries.iter().map(|(name, _)| name.text()).collect());
    entries.iter().for_each(|(_, node)| hide_secret(*node));
    let mut variables = BTreeMap::new();
    for (name, node) in entries {
        if let Err(why) = names::check_lower(name.text(), Style::Snake) {
            let help = "write it in lower case with `_` between words, such as `api_key`";
            name.fail::<()>(format!("`{}` cannot be the name of a variable: {why}", name.text()), help);
        } else if let Some(variable) = variable(name.text(), name.place(), node) {
            variables.insert(name.text().to_owned(), variable);
        }
    }
    (variables, declared)
}

/// Whatever else is wrong with a secret, its default is not shown with it.
fn hide_secret(node: Node<'_>) {
    if !node.is_table() {
        return;
    }
    let entries = node.entries();
    let value = |key| entries.iter().find(|(name, _)| name.text() == key).map(|(_, node)| *node);
    // Only what is clearly no secret is shown.
    let is_secret = value("secret").is_some_and(|secret| !secret.says_nothing());
    if let (true, Some(default)) = (is_secret, value("default")) {
        node.document.hide(default.span());
    }
}

fn variable(name: &str, place: Place, node: Node<'_>) -> Option<Variable> {
    let help = "write `default = \"…\"`, or `required = true` where each start must give a value";
    let table = node.table(format!("the variable `{name}`"))?;
    let secret = table.get("secret").map_or(Some(false), Node::boolean);
    let required = table.get("required").map_or(Some(false), Node::boolean);
    let description = table.get("description").and_then(Node::text).map(str::to_owned);
    let default = table.get("default").map(Node::text);
    let (required, secret, default) = match (required, secret, default) {
        (Some(required), Some(secret), None) => (required, secret, None),
        (Some(required), Some(secret), Some(Some(text))) => (required, secret, Some(text.to_owned())),
        _ => {
            table.close();
            return None;
        }
    };
    if required == default.is_some() {
        let message = match required {
            true => format!("the variable `{name}` is required, so its default would never be taken"),
            false => format!("the variable `{name}` is neither required nor has it a default"),
        };
        table.close();
        return node.fail(message, help);
    }
    table.close();
    let secrecy = if secret { Secrecy::Secret } else { Secrecy::Open };
    Some(Variable { description, default: default.map(|text| Value::of(secrecy, text)), secret, place })
}

/// Reads a template, all variables of which must be declared.
pub(crate) fn template(node: Node<'_>, declared: &Declared<'_>) -> Option<Template> {
    let text = node.text()?;
    let fail = |nth, message: String, help: String| {
        node.document.error(node.document.within(node.span(), "{{", nth), message, help);
        None
    };
    let template = match Template::parse(text) {
        Ok(template) => template,
        Err(error) => {
            let (InvalidTemplate::Unclosed { nth } | InvalidTemplate::Name { nth, .. }) = error;
            return fail(nth, error.to_string(), "write `{{ name }}` with the name of a variable".to_owned());
        }
    };
    for (nth, name) in template.variables().enumerate() {
        if !declared.0.contains(name) {
            let help = match likeliest(name, declared.0.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None if declared.0.is_empty() => format!("add {name} = {{ required = true }} under [variables]"),
                None => format!(
                    "add {name} = {{ required = true }} under [variables], or name one of {}",
                    listed(declared.0.iter().copied())
                ),
            };
            return fail(nth, format!("there is no variable `{name}`"), help);
        }
    }
    Some(template)
}

/// Reads `variables` of a component.
pub(crate) fn of_component(node: Option<Node<'_>>, declared: &Declared<'_>) -> BTreeMap<String, Template> {
    let mut variables = BTreeMap::new();
    for (name, node) in node.map(Node::entries).unwrap_or_default() {
        if let Err(why) = names::check_lower(name.text(), Style::Snake) {
            let help = "write it in lower case with `_` between words, such as `api_key`";
            name.fail::<()>(format!("`{}` cannot be the name of a variable: {why}", name.text()), help);
        }
        if let Some(template) = template(node, declared) {
            variables.insert(name.text().to_owned(), template);
        }
    }
    variables
}

#[cfg(test)]
#[path = "variables_tests.rs"]
mod tests;
