//! Calls that a model cannot help but make.

use crate::{Choice, Format, Parallel, Tool};

/// What makes a model call a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forced {
    /// Appended to the prompt as the template's own text: it may name control
    /// tokens. [`Parser::new`](crate::Parser::new) has to see it as the prompt's
    /// end.
    pub prefix: String,
    /// What comes after it: a grammar in llguidance's dialect of Lark.
    pub grammar: String,
}

/// Why a call cannot be forced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Impossible {
    /// There are no tools.
    #[error("there are no tools to call")]
    NoTools,
    /// The named tool is not among them.
    #[error("there is no tool named {0:?}")]
    UnknownTool(String),
}

/// What makes a model call one of the tools. None where `choice` forces nothing.
///
/// # Errors
/// [`Impossible`].
pub fn force(
    _format: Format,
    tools: &[Tool],
    choice: &Choice,
    _parallel: Parallel,
) -> Result<Option<Forced>, Impossible> {
    match choice {
        Choice::Auto | Choice::None => Ok(None),
        Choice::Required | Choice::Named(_) if tools.is_empty() => Err(Impossible::NoTools),
        Choice::Required | Choice::Named(_) => Ok(None),
    }
}
