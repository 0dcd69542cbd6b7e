//! Regular expressions.

use llguidance::api::TopLevelGrammar;

use super::limits::ConstraintLimits;
use super::refused;
use crate::error::Error;

/// The grammar of what one regular expression matches.
pub(super) fn grammar(text: &str, limits: &ConstraintLimits) -> Result<TopLevelGrammar, Error> {
    check(text, limits)?;
    // `//` begins a comment.
    if text.is_empty() {
        return Ok(TopLevelGrammar::from_lark("start: \"\"".to_owned()));
    }
    Ok(TopLevelGrammar::from_regex(text))
}

/// Refuses what is too long, nested too deep, malformed, or would be taken to
/// mean something else.
pub(super) fn check(text: &str, limits: &ConstraintLimits) -> Result<(), Error> {
    if text.len() > limits.regex_bytes {
        return Err(Error::Constraint(format!(
            "a regular expression is {} bytes long, and at most {} are allowed; split it into the rules of a grammar",
            text.len(),
            limits.regex_bytes
        )));
    }
    let depth = u32::try_from(limits.nesting).unwrap_or(u32::MAX);
    let mut parser = regex_syntax::ast::parse::ParserBuilder::new().nest_limit(depth).build();
    let ast = parser.parse(text).map_err(|error| refused(format!("the regular expression is refused: {error}")))?;
    regex_syntax::ast::visit(&ast, Unsupported)
}

/// Finds what the grammar library would take to mean something else.
struct Unsupported;

impl regex_syntax::ast::Visitor for Unsupported {
    type Output = ();
    type Err = Error;

    fn finish(self) -> Result<(), Error> {
        Ok(())
    }

    fn visit_pre(&mut self, ast: &regex_syntax::ast::Ast) -> Result<(), Error> {
        use regex_syntax::ast::{Ast, Flag, FlagsItemKind, GroupKind};
        let flags = match ast {
            Ast::Flags(set) => Some(&set.flags),
            Ast::Group(group) => match &group.kind {
                GroupKind::NonCapturing(flags) => Some(flags),
                // The library's way of writing a look-ahead.
                GroupKind::CaptureName { name, .. } if name.name == "stop" => {
                    return Err(Error::Constraint(
                        "no group of a regular expression may be named \"stop\"; choose another name".to_owned(),
                    ));
                }
                GroupKind::CaptureName { .. } | GroupKind::CaptureIndex(_) => None,
            },
            _ => None,
        };
        let extended = |item: &regex_syntax::ast::FlagsItem| item.kind == FlagsItemKind::Flag(Flag::IgnoreWhitespace);
        // Line ends are escaped on the way, which would undo comments.
        if flags.is_some_and(|flags| flags.items.iter().any(extended)) {
            return Err(Error::Constraint(
                "the flag x (ignore whitespace) of regular expressions is not supported; leave out the whitespace"
                    .to_owned(),
            ));
        }
        Ok(())
    }
}
