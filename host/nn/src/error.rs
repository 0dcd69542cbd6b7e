//! Why a call failed, in the codes of `wasi:nn/errors`.

use nala_engine as engine;

/// The longest text of an error, in bytes: it may quote what a guest wrote, and
/// waits in the host's memory until the guest takes it.
const MAX_TEXT: usize = 1024;

/// A code of `wasi:nn/errors@0.2.0-rc-2024-10-28`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// An argument is wrong.
    InvalidArgument,
    /// Bytes are not what they have to be: UTF-8, or JSON.
    InvalidEncoding,
    /// The host had no room in time; trying again later can succeed.
    Timeout,
    /// The backend failed.
    RuntimeError,
    /// The model or this host cannot do what was asked.
    UnsupportedOperation,
    /// A limit was reached: of the context, of tensors, of sessions.
    TooLarge,
    /// There is no model of this name.
    NotFound,
    /// It exists, and this guest may not have it.
    Security,
}

/// Why a call failed. The text is for people: what was wrong and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Error {
    code: Code,
    text: String,
}

impl Error {
    /// An error of this kind. A text of more than 1,024 bytes is cut.
    #[must_use]
    pub fn new(code: Code, text: impl Into<String>) -> Self {
        let mut text = text.into();
        if text.len() > MAX_TEXT {
            text.truncate(text.floor_char_boundary(MAX_TEXT));
            text.push('…');
        }
        Self { code, text }
    }

    /// An argument is wrong.
    #[must_use]
    pub fn invalid(text: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, text)
    }

    /// Its kind.
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }
}

impl From<engine::Error> for Error {
    fn from(error: engine::Error) -> Self {
        let code = match &error {
            engine::Error::InvalidArgument(_) | engine::Error::Constraint(_) => Code::InvalidArgument,
            engine::Error::ContextFull { .. } => Code::TooLarge,
            engine::Error::Busy => Code::Timeout,
            engine::Error::Unsupported(_) => Code::UnsupportedOperation,
            // The engine's errors may grow in number.
            _ => Code::RuntimeError,
        };
        Self::new(code, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_guest_wrote_is_quoted_in_part_only() {
        let error = Error::invalid("ä".repeat(10_000));
        assert!(error.to_string().len() <= MAX_TEXT + '…'.len_utf8(), "{}", error.to_string().len());
        assert!(error.to_string().ends_with("ä…"));
        assert_eq!(Error::invalid("short").to_string(), "short");
    }

    #[test]
    fn errors_of_the_engine_keep_their_kind() {
        assert_eq!(Error::from(engine::Error::Busy).code(), Code::Timeout);
        let full = Error::from(engine::Error::ContextFull { free: 7 });
        assert_eq!(full.code(), Code::TooLarge);
        assert!(full.to_string().contains('7'));
    }
}
