//! The interface `constraint`.

use std::sync::Arc;
use std::time::Instant;

use nala_engine::{Grammar, GrammarSource, Lease};
use wasmtime::Result;
use wasmtime::component::Resource;

use super::bindings::nala::llm::constraint::{Host, HostGrammar, Source};
use super::bindings::nala::llm::types::Error;
use super::model::ModelHandle;
use super::share::GrammarBytes;
use super::{LlmView, convert};
use crate::account::Account;
use crate::turns::Place;

/// A grammar that a guest has compiled.
#[expect(unreachable_pub, reason = "the generated code re-exports it")]
pub struct GrammarHandle {
    // Before the lease: its vocabulary is the model's.
    pub(super) grammar: Grammar,
    _lease: Lease,
    /// Its part of what the store may hold.
    pub(super) bytes: GrammarBytes,
}

/// A grammar that is being compiled. The time is no CPU time of the request, which waits,
/// and that of its tenant all the same, also where the guest ends meanwhile.
struct Compiling {
    account: Arc<Account>,
    begin: Instant,
    _turn: Option<Place>,
}

impl Drop for Compiling {
    fn drop(&mut self) {
        self.account.used_cpu(self.begin.elapsed());
    }
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
        let account = Arc::clone(&self.state.account);
        let turn = self.state.models.turns.grammars.take(&account.tenant, self.cpu.used()).await;
        let compiling = Compiling { account, begin: Instant::now(), _turn: turn };
        // Done on the compiler's own threads; the guest waits.
        let compiled = lease.compile_grammar(source).await;
        drop(compiling);
        let grammar = match compiled {
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
