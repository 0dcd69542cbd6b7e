//! The interface `constraint`.

use nala_engine::{Grammar, GrammarSource, Lease};
use wasmtime::Result;
use wasmtime::component::Resource;

use super::bindings::nala::llm::constraint::{Host, HostGrammar, Source};
use super::bindings::nala::llm::types::Error;
use super::model::ModelHandle;
use super::share::GrammarBytes;
use super::{LlmView, convert};

/// A grammar that a guest has compiled.
#[expect(unreachable_pub, reason = "the generated code re-exports it")]
pub struct GrammarHandle {
    // Before the lease: its vocabulary is the model's.
    pub(super) grammar: Grammar,
    _lease: Lease,
    /// Its part of what the store may hold.
    pub(super) bytes: GrammarBytes,
}

impl Host for LlmView<'_> {}

impl HostGrammar for LlmView<'_> {
    async fn compile(
        &mut self,
        model: Resource<ModelHandle>,
        text: Source,
    ) -> Result<Result<Resource<GrammarHandle>, Error>> {
        let lease = self.table.get(&model)?.lease().clone();
        let source = match text {
            Source::JsonSchema(text) => GrammarSource::JsonSchema(text),
            Source::AnyJson => GrammarSource::AnyJson,
            Source::Regex(text) => GrammarSource::Regex(text),
            Source::Lark(text) => GrammarSource::Lark(text),
            Source::Gbnf(text) => GrammarSource::Gbnf(text),
        };
        // Done on the compiler's own threads; the guest waits.
        let grammar = match lease.compile_grammar(source).await {
            Ok(grammar) => grammar,
            Err(error) => return Ok(Err(convert::error(error))),
        };
        match GrammarBytes::take(
            &self.state.usage,
            &self.state.account,
            grammar.bytes() as u64,
            self.limits.grammar_bytes,
        ) {
            Ok(bytes) => Ok(Ok(self.table.push(GrammarHandle { grammar, _lease: lease, bytes })?)),
            Err(error) => Ok(Err(error)),
        }
    }

    fn warnings(&mut self, grammar: Resource<GrammarHandle>) -> Result<Vec<String>> {
        Ok(self.table.get(&grammar)?.grammar.warnings().to_vec())
    }

    fn drop(&mut self, grammar: Resource<GrammarHandle>) -> Result<()> {
        self.table.delete(grammar)?;
        Ok(())
    }
}
