//! What a grammar may cost.

use std::time::Duration;

/// What a grammar may cost; past a limit the answer is
/// [`Error::Constraint`](crate::Error::Constraint).
///
/// The defaults let through the schemas of tool calls and structured outputs as
/// they are used, with an order of magnitude to spare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConstraintLimits {
    /// The longest source, in bytes. Default: 256 KiB.
    pub source_bytes: usize,
    /// The longest regular expression, in bytes; also for each `pattern` of a
    /// schema. The cost of compiling one grows with the square of its length.
    /// Default: 8 KiB.
    pub regex_bytes: usize,
    /// How deep brackets may be nested in a source of any kind. Default: 64.
    pub nesting: usize,
    /// Symbols in the rules of a compiled grammar. Default: 100,000.
    pub grammar_symbols: usize,
    /// Work to build the lexer of a grammar, in llguidance's unit of about 20 ns.
    /// Default: 1,000,000.
    pub compile_fuel: u64,
    /// Memory of a compiled grammar's lexer, in bytes; each [`Matcher`] has a copy
    /// of its own. Default: 24 MiB.
    ///
    /// [`Matcher`]: crate::Matcher
    pub compiled_bytes: usize,
    /// States that the lexer of one matcher may come to have, 1 to 2 kB each.
    /// Default: 16,384.
    pub lexer_states: usize,
    /// Lexer work for one mask, in llguidance's unit of about 70 ns. Default:
    /// 100,000.
    pub step_fuel: u64,
    /// Parser items made for one mask. Default: 50,000.
    pub step_items: usize,
    /// Parser items at one place of the text; how many ways a grammar can be
    /// understood at once. Default: 2,000.
    pub row_items: usize,
    /// The longest a call of a matcher may work, whatever its fuel; on a machine that
    /// has more to do than it can, it may take six times as long. Default: 250 ms.
    pub step_time: Duration,
    /// The longest a compilation may work before whoever waits for it gets an
    /// error. Default: 5 s.
    ///
    /// On a machine that has more to do than it can, it may take six times as long,
    /// after which the error is [`Error::Busy`](crate::Error::Busy).
    ///
    /// A compilation looks at no clock, so it goes on without its waiters until
    /// its fuel is spent; [`ConstraintLimits::stray_threads`] bounds how many do.
    pub compile_time: Duration,
    /// How many grammars are compiled at the same time. Default: 2.
    pub compile_threads: usize,
    /// How many compilations may be going on past their time before new ones are
    /// refused with [`Error::Busy`](crate::Error::Busy). Default: 2.
    pub stray_threads: usize,
    /// How many compilations may wait for a thread before new ones are refused
    /// with [`Error::Busy`](crate::Error::Busy). Default: 64.
    pub queue: usize,
    /// How many compiled grammars are kept. Default: 128.
    pub cache_grammars: usize,
    /// How many bytes of sources and compiled grammars are kept. Default: 128 MiB.
    pub cache_bytes: usize,
}

impl Default for ConstraintLimits {
    fn default() -> Self {
        Self {
            source_bytes: 256 << 10,
            regex_bytes: 8 << 10,
            nesting: 64,
            grammar_symbols: 100_000,
            compile_fuel: 1_000_000,
            compiled_bytes: 24 << 20,
            lexer_states: 16_384,
            step_fuel: 100_000,
            step_items: 50_000,
            row_items: 2_000,
            step_time: Duration::from_millis(250),
            compile_time: Duration::from_secs(5),
            compile_threads: 2,
            stray_threads: 2,
            queue: 64,
            cache_grammars: 128,
            cache_bytes: 128 << 20,
        }
    }
}

impl ConstraintLimits {
    /// The same in the terms of the grammar library.
    pub(super) fn parser(&self) -> llguidance::api::ParserLimits {
        llguidance::api::ParserLimits {
            max_items_in_row: self.row_items,
            initial_lexer_fuel: self.compile_fuel,
            step_lexer_fuel: self.step_fuel,
            step_max_items: self.step_items,
            max_lexer_states: self.lexer_states,
            max_grammar_size: self.grammar_symbols,
            precompute_large_lexemes: true,
            verbose_errors: false,
        }
    }
}
