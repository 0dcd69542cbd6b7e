//! Texts with places for the values of variables: `https://{{ host }}/api`.
//!
//! `{{` begins a place and `}}` ends it; between them stands the name of a
//! variable. A `}}` without a place before it is itself. There is no escape
//! for `{{`, in Spin neither.
//!
//! Source: <https://spinframework.dev/variables>.

use std::fmt;

use crate::names::{self, Style};

/// A text with places for variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Variable(String),
}

/// Why a text is no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTemplate {
    /// The `{{` of this number, from 0, has no `}}`.
    #[error("`{{{{` begins the name of a variable that no `}}}}` ends")]
    Unclosed {
        /// How many places are before it.
        nth: usize,
    },
    /// Between the braces stands what cannot be the name of a variable.
    #[error("`{name}` cannot be the name of a variable: {why}")]
    Name {
        /// How many places are before it.
        nth: usize,
        /// What stands there.
        name: String,
        /// What is wrong with it.
        why: String,
    },
}

/// A variable that has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no variable `{0}`")]
pub struct UnknownVariable(pub String);

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// A place that is not closed, and one with something else than a name.
    pub fn parse(text: &str) -> Result<Self, InvalidTemplate> {
        let mut parts = Vec::new();
        let mut rest = text;
        let mut nth = 0;
        while let Some((before, behind)) = rest.split_once("{{") {
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            let (name, behind) = behind.split_once("}}").ok_or(InvalidTemplate::Unclosed { nth })?;
            let name = name.trim().to_owned();
            if let Err(why) = names::check_lower(&name, Style::Snake) {
                return Err(InvalidTemplate::Name { nth, name, why });
            }
            parts.push(Part::Variable(name));
            rest = behind;
            nth += 1;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Self { parts })
    }

    /// The names of its variables in order, as often as they stand in it.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Variable(name) => Some(name.as_str()),
        })
    }

    /// Its text, if it has no variables.
    #[must_use]
    pub fn literal(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The text with the values in their places. Values are no templates: what
    /// stands in them is not looked at.
    ///
    /// # Errors
    /// The first variable that `value` has none for.
    pub fn resolve(&self, value: &impl Fn(&str) -> Option<String>) -> Result<String, UnknownVariable> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Text(part) => text.push_str(part),
                Part::Variable(name) => {
                    text.push_str(&value(name).ok_or_else(|| UnknownVariable(name.clone()))?);
                }
            }
        }
        Ok(text)
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| match part {
            Part::Text(text) => f.write_str(text),
            Part::Variable(name) => write!(f, "{{{{ {name} }}}}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn resolved(text: &str) -> String {
        Template::parse(text).unwrap().resolve(&|name| Some(name.to_uppercase())).unwrap()
    }

    #[test]
    fn values_come_into_their_places() {
        for (text, expected) in
            [("", ""), ("a", "a"), ("{{a}}", "A"), ("x{{  a_b }}{{c}}}y", "xA_BC}y"), ("a }} b { c", "a }} b { c")]
        {
            assert_eq!(resolved(text), expected, "{text}");
        }
        let unknown = Template::parse("{{ a }}{{ b }}").unwrap().resolve(&|name| (name == "a").then(String::new));
        assert_eq!(unknown, Err(UnknownVariable("b".to_owned())));
        // A value is no template.
        let twice = Template::parse("{{ a }}").unwrap().resolve(&|_| Some("{{ b }}".to_owned()));
        assert_eq!(twice.unwrap(), "{{ b }}");
    }

    #[test]
    fn what_is_no_template_is_told_by_its_number() {
        assert_eq!(Template::parse("{{ a }} {{ b"), Err(InvalidTemplate::Unclosed { nth: 1 }));
        for text in ["{{}}", "{{ }}", "{{ A }}", "{{ a-b }}", "{{ a b }}", "{{ {{ a }} }}", "{{{ a }}}"] {
            assert!(matches!(Template::parse(text), Err(InvalidTemplate::Name { nth: 0, .. })), "{text}");
        }
    }

    fn part() -> impl Strategy<Value = (String, Option<String>)> {
        ("[^{}]{0,6}", prop::option::of("[a-z][a-z0-9]{0,3}(_[a-z][0-9a-z]{0,2}){0,2}"))
    }

    proptest! {
        #[test]
        fn a_template_is_read_as_it_was_written(parts in prop::collection::vec(part(), 0..6), space in " {0,3}") {
            let mut text = String::new();
            let mut expected = String::new();
            for (before, name) in &parts {
                text.push_str(before);
                expected.push_str(before);
                if let Some(name) = name {
                    text.push_str(&format!("{{{{{space}{name}{space}}}}}"));
                    expected.push_str(&name.to_uppercase());
                }
            }
            let template = Template::parse(&text).unwrap();
            prop_assert_eq!(template.variables().count(), parts.iter().filter(|(_, name)| name.is_some()).count());
            prop_assert_eq!(resolved(&text), expected);
            // Its own text is a way to write it.
            prop_assert_eq!(Template::parse(&template.to_string()).unwrap(), template);
        }

        #[test]
        fn no_text_causes_a_panic(text in "[{} a-z_é]{0,24}") {
            match Template::parse(&text) {
                Ok(template) => prop_assert_eq!(template.literal().is_some(), template.variables().count() == 0),
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }
}
