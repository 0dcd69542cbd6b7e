//! Writes rules as Lark.

use std::fmt::Write;

use super::characters::Characters;
use super::rules::{Element, RuleId, Rules, What};

pub(super) fn write(rules: &Rules) -> String {
    let mut out = String::new();
    // Writing into a String cannot fail.
    let _ = writeln!(out, "start: r{}", rules.root.0);
    for (n, _) in rules.rules.iter().enumerate() {
        let _ = write!(out, "r{n}:");
        for (place, sequence) in rules.get(RuleId(n)).iter().enumerate() {
            if place > 0 {
                out.push_str(" |");
            }
            let length = out.len();
            sequence.iter().for_each(|part| element(part, &mut out));
            if out.len() == length {
                out.push_str(" \"\"");
            }
        }
        out.push('\n');
    }
    out
}

/// Writes nothing for what is always empty.
fn element(element: &Element, out: &mut String) {
    if element.max == Some(0) {
        return;
    }
    match &element.what {
        What::Class(characters) => class(characters, 1, Some(1), out),
        What::Run { characters, min, max } => class(characters, *min, *max, out),
        What::Text(text) if text.is_empty() => return,
        What::Text(text) => {
            let one = text.chars().nth(1).is_none();
            if !one {
                out.push_str(" (");
            }
            text.chars().for_each(|c| class(&Characters::of(&[(c, c)]), 1, Some(1), out));
            if !one {
                out.push_str(" )");
            }
        }
        What::Rule(RuleId(n)) => {
            let _ = write!(out, " r{n}");
        }
    }
    repetition(element.min, element.max, out);
}

fn repetition(min: u32, max: Option<u32>, out: &mut String) {
    let _ = match (min, max) {
        (1, Some(1)) => Ok(()),
        (0, None) => write!(out, "*"),
        (1, None) => write!(out, "+"),
        (0, Some(1)) => write!(out, "?"),
        (min, None) => write!(out, "{{{min},}}"),
        (min, Some(max)) => write!(out, "{{{min},{max}}}"),
    };
}

/// Code points by number, so that nothing needs another escape.
fn class(characters: &Characters, min: u32, max: Option<u32>, out: &mut String) {
    out.push_str(" /[");
    for &(from, to) in characters.ranges() {
        let _ = if from == to { write!(out, "\\x{{{from:x}}}") } else { write!(out, "\\x{{{from:x}}}-\\x{{{to:x}}}") };
    }
    out.push(']');
    repetition(min, max, out);
    out.push('/');
}
