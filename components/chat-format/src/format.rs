//! The notations there are.

/// A notation for tool calls and thoughts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// For models whose template knows no tools: the notation of Hermes, of which
    /// the model is told in words.
    Generic,
}

impl Format {
    /// The notation of the model that a chat template belongs to.
    #[must_use]
    pub fn of_template(_source: &str) -> Self {
        Self::Generic
    }

    /// The texts that tell the notation's parts apart. Where such a text is a
    /// control token of the model, [`Parser`] has to see it.
    #[must_use]
    pub fn markers(self) -> &'static [&'static str] {
        &[]
    }
}
