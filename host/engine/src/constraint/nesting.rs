//! How deep the brackets of a source are nested.

use super::limits::ConstraintLimits;
use crate::error::Error;

/// Refuses brackets that are nested too deep.
pub(super) fn check(text: &str, limits: &ConstraintLimits) -> Result<(), Error> {
    let mut depth = 0_usize;
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > limits.nesting {
            return Err(Error::Constraint(format!(
                "brackets are nested deeper than {}; use named rules",
                limits.nesting
            )));
        }
    }
    Ok(())
}
