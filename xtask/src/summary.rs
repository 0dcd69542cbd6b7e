//! Steps one after the other, each with its time.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::process::say;

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All is well.
    Passed,
    /// Nothing was found wrong, but not all could be looked at.
    Incomplete(String),
    /// Something is wrong.
    Failed(String),
}

/// What was done, how it ended and how long it took.
#[derive(Default)]
pub(crate) struct Summary {
    steps: Vec<(String, Outcome, Duration)>,
}

impl Summary {
    /// Runs a step. One that fails does not stop the others: a person wants to
    /// see all that is wrong at once.
    pub(crate) fn step(&mut self, name: &str, work: impl FnOnce() -> Result<Outcome>) {
        say(&format!("---- {name}"));
        let began = Instant::now();
        let outcome = work().unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")));
        let took = began.elapsed();
        let line = format!("---- {}", describe(name, &outcome, took));
        say(&line);
        self.steps.push((name.to_owned(), outcome, took));
    }

    /// Whether no step failed.
    pub(crate) fn passed(&self) -> bool {
        !self.steps.iter().any(|(_, outcome, _)| matches!(outcome, Outcome::Failed(_)))
    }

    /// A line for each step and one for all.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let mut total = Duration::ZERO;
        for (name, outcome, took) in &self.steps {
            total += *took;
            text.push_str(&describe(name, outcome, *took));
            text.push('\n');
        }
        let verdict = if self.passed() { "passed" } else { "FAILED" };
        text.push_str(&format!("{:>7.1} s  all: {verdict}", total.as_secs_f64()));
        text
    }
}

fn describe(name: &str, outcome: &Outcome, took: Duration) -> String {
    let verdict = match outcome {
        Outcome::Passed => "passed".to_owned(),
        Outcome::Incomplete(why) => format!("passed in part: {why}"),
        Outcome::Failed(why) => format!("FAILED: {why}"),
    };
    format!("{:>7.1} s  {name}: {verdict}", took.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_is_told_and_does_not_stop_the_next() {
        let mut summary = Summary::default();
        summary.step("one", || anyhow::bail!("broken"));
        summary.step("two", || Ok(Outcome::Incomplete("no network".to_owned())));
        assert!(!summary.passed());
        let text = summary.text();
        assert!(text.contains("one: FAILED: broken"), "{text}");
        assert!(text.contains("two: passed in part: no network"), "{text}");
        assert!(text.ends_with("all: FAILED"), "{text}");
    }

    #[test]
    fn a_step_that_was_incomplete_is_no_failure() {
        let mut summary = Summary::default();
        summary.step("two", || Ok(Outcome::Incomplete("no network".to_owned())));
        assert!(summary.passed());
    }
}
