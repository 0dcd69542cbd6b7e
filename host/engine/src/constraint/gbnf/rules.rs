//! A grammar in GBNF, parsed.

use super::characters::Characters;

/// All rules; groups are rules without a name. The first one is where it begins.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) rules: Vec<Rule>,
    /// The rule `root`.
    pub(super) root: RuleId,
}

/// Which rule, by its place in [`Rules::rules`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct RuleId(pub(super) usize);

/// What a rule can be: one of these sequences.
#[derive(Debug, Default)]
pub(super) struct Rule {
    pub(super) alternatives: Vec<Vec<Element>>,
}

/// A part of a sequence, `min` to `max` times.
#[derive(Debug)]
pub(super) struct Element {
    pub(super) what: What,
    pub(super) min: u32,
    /// None: without end.
    pub(super) max: Option<u32>,
}

#[derive(Debug)]
pub(super) enum What {
    /// One character of a set.
    Class(Characters),
    /// One or more characters of a set, where the element itself stands once and
    /// the lexer may take as many as there are.
    Run {
        characters: Characters,
        min: u32,
        max: Option<u32>,
    },
    /// These characters, one after the other.
    Text(String),
    Rule(RuleId),
}

impl Element {
    pub(super) fn once(what: What) -> Self {
        Self { what, min: 1, max: Some(1) }
    }

    pub(super) fn is_once(&self) -> bool {
        self.min == 1 && self.max == Some(1)
    }
}

impl Rules {
    pub(super) fn get(&self, id: RuleId) -> &[Vec<Element>] {
        self.rules.get(id.0).map_or(&[], |rule| &rule.alternatives)
    }
}
