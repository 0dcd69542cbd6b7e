//! One prompt and one answer, for interfaces that know no sessions: what
//! `wasi:nn` and `fermyon:spin/llm` ask for. Each call is a session of its own, of
//! the guest's scope and tenant, with the limits of all others.

use std::sync::atomic::Ordering;

use nala_engine::{self as engine, Finish, GenerateOptions, Grammar, GrammarSource, MAX_EMBEDDING_INPUTS};
use nala_nn::Prompt;
use wasmtime::Result;

use super::bindings::nala::llm::session::{Priority, SessionOptions};
use super::bindings::nala::llm::types::{Error, QuotaKind};
use super::model::ModelHandle;
use super::share::GrammarBytes;
use super::{LlmView, convert};

/// What is wanted of a model.
pub(crate) struct Ask {
    /// What it goes on from.
    pub(crate) prompt: Prompt,
    /// How. More tokens than fit may be asked for.
    pub(crate) options: GenerateOptions,
    /// The most tokens of prompt and answer together. None: as the context has.
    pub(crate) max_tokens: Option<u32>,
    /// What the answer follows.
    pub(crate) grammar: Option<GrammarSource>,
}

/// What came of it.
pub(crate) struct Completion {
    pub(crate) text: String,
    pub(crate) prompt_tokens: u32,
    pub(crate) cached_tokens: u32,
    pub(crate) new_tokens: u32,
    pub(crate) finish: Finish,
    /// Whether it ended at [`Finish::Length`] because the guest may have no more
    /// KV cells, and not because it was asked to.
    pub(crate) cut_short: bool,
}

/// What became of texts.
pub(crate) struct Vectors {
    pub(crate) vectors: Vec<Vec<f32>>,
    pub(crate) prompt_tokens: u32,
}

impl LlmView<'_> {
    /// Goes on from a prompt to the end. Whether there is room for another session
    /// is for the caller to say.
    ///
    /// The outer error ends the guest, the inner one is told it.
    pub(crate) async fn complete(&mut self, model: &ModelHandle, ask: Ask) -> Result<Result<Completion, Error>> {
        let Ask { prompt, options, max_tokens, grammar } = ask;
        let bytes = prompt.bytes();
        if let Err(error) = model.refuse_longer(bytes) {
            return Ok(Err(error));
        }
        let lease = model.lease().clone();
        let tokens = self.tokenise(bytes, move || prompt.tokens(&**lease.tokenizer())).await?;
        Ok(match tokens {
            Ok(tokens) => self.run(model, tokens, options, max_tokens, grammar).await,
            Err(error) => Err(convert::error(error)),
        })
    }

    async fn run(
        &mut self,
        model: &ModelHandle,
        tokens: Vec<u32>,
        mut options: GenerateOptions,
        max_tokens: Option<u32>,
        grammar: Option<GrammarSource>,
    ) -> Result<Completion, Error> {
        let lease = model.lease();
        let length = tokens.len() as u64;
        let context = lease.limits().sequence_tokens.min(max_tokens.unwrap_or(u32::MAX));
        // Before the guest's cells are looked at, of which more would not help.
        if length > context.into() {
            return Err(Error::ContextFull(context));
        }
        self.state.may_read()?;
        let _turn = self.state.may_write()?;
        let mut cells = self.cells(length)?;
        let fits = u64::from(context).saturating_sub(length);
        let allowed = cells.most(self.state.max_kv_cells).saturating_sub(length);
        if allowed == 0 {
            return Err(Error::Quota(QuotaKind::Kv));
        }
        let asked = options.max_new;
        // Where nothing fits, the run says so itself.
        options.max_new = u32::try_from(fits.max(1).min(allowed)).unwrap_or(u32::MAX).min(asked);
        let shortened = options.max_new < asked;
        cells.set(length.saturating_add(options.max_new.into()), self.state.max_kv_cells)?;
        let of_session = SessionOptions { max_tokens, priority: Priority::Normal, adapter: None };
        let mut session = lease.open_session(self.options(of_session)).map_err(convert::error)?;
        // Compiled first: one that is wrong costs no prompt.
        let grammar = match grammar {
            Some(source) => Some(self.compile(model, source).await?),
            None => None,
        };
        let prefilled = session.prefill(tokens).await.map_err(convert::error)?;
        // A grammar's text begins where the session stands, behind the prompt. What it
        // takes is counted to the end.
        let _counted = match grammar {
            Some((grammar, bytes)) => {
                session.constrain(Some(grammar)).map_err(convert::error)?;
                Some(bytes)
            }
            None => None,
        };
        let usage = &self.state.usage;
        usage.prompt_tokens.fetch_add(length, Ordering::Relaxed);
        usage.cached_tokens.fetch_add(prefilled.cached.into(), Ordering::Relaxed);
        usage.queued(prefilled.queued);
        self.state.account.read(prefilled.computed.into(), prefilled.cached.into());

        let mut run = session.generate(options).map_err(convert::error)?;
        let (mut text, mut new_tokens, mut finish) = (String::new(), 0_u32, Finish::Cancelled);
        while let Some(chunk) = run.next().await.map_err(convert::error)? {
            let count = u32::try_from(chunk.tokens.len()).unwrap_or(u32::MAX);
            new_tokens = new_tokens.saturating_add(count);
            self.state.usage.new_tokens.fetch_add(count.into(), Ordering::Relaxed);
            self.state.account.wrote(count.into());
            text.push_str(&chunk.text);
            finish = chunk.finish.unwrap_or(finish);
        }
        if let Some(queued) = run.queued() {
            self.state.usage.queued(queued);
        }
        if finish == Finish::Length && shortened && fits <= allowed {
            finish = Finish::ContextFull;
        }
        Ok(Completion {
            text,
            prompt_tokens: u32::try_from(length).unwrap_or(u32::MAX),
            cached_tokens: prefilled.cached,
            new_tokens,
            finish,
            cut_short: finish == Finish::Length && shortened,
        })
    }

    /// A grammar, and its part of what the store may hold.
    async fn compile(&mut self, model: &ModelHandle, source: GrammarSource) -> Result<(Grammar, GrammarBytes), Error> {
        // Done on the compiler's own threads; the guest waits.
        let grammar = model.lease().compile_grammar(source).await.map_err(convert::error)?;
        let bytes = GrammarBytes::take(
            &self.state.usage,
            &self.state.account,
            grammar.bytes() as u64,
            self.limits.grammar_bytes,
        )?;
        Ok((grammar, bytes))
    }

    /// One vector for each text.
    ///
    /// The outer error ends the guest, the inner one is told it.
    pub(crate) async fn vectors_of(
        &mut self,
        model: &ModelHandle,
        texts: Vec<String>,
    ) -> Result<Result<Vectors, Error>> {
        let lease = model.lease().clone();
        if let Err(error) = refuse_texts(model, &texts) {
            return Ok(Err(error));
        }
        let (bytes, engine) = (texts.iter().map(String::len).sum(), lease.clone());
        let encode = move || texts.iter().map(|text| nala_nn::embedding_tokens(&engine, text)).collect();
        let inputs: Result<Vec<Vec<u32>>, engine::Error> = self.tokenise(bytes, encode).await?;
        let inputs = match inputs {
            Ok(inputs) => inputs,
            Err(error) => return Ok(Err(convert::error(error))),
        };
        let tokens: usize = inputs.iter().map(Vec::len).sum();
        let prompt_tokens = u32::try_from(tokens).unwrap_or(u32::MAX);
        Ok(self.vectors(&lease, inputs, None).await.map(|vectors| Vectors { vectors, prompt_tokens }))
    }
}

/// Refuses before any text is looked at.
fn refuse_texts(model: &ModelHandle, texts: &[String]) -> Result<(), Error> {
    let info = model.lease().info();
    if info.embeddings.is_none() {
        return Err(Error::Unsupported(format!("the model {} gives no vectors of texts", model.lease().name())));
    }
    if texts.len() > MAX_EMBEDDING_INPUTS {
        let count = texts.len();
        return Err(Error::InvalidArgument(format!(
            "at most {MAX_EMBEDDING_INPUTS} texts can be given at once, and these are {count}"
        )));
    }
    texts.iter().try_for_each(|text| model.refuse_longer(text.len()))
}
