//! The two sides without HTTP and components.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

use nala_e2e::paths;
use nala_engine::{Engine, EngineConfig, GenerateOptions, SessionOptions, Token};
use nala_llama::LoadOptions;

use crate::report::common_rate;

pub(crate) struct Bench {
    model: PathBuf,
    options: LoadOptions,
    tokens: u32,
    prompt: Vec<Token>,
    engine: Engine,
    runtime: tokio::runtime::Runtime,
}

impl Bench {
    pub(crate) fn new(tokens: u32) -> Self {
        let model = paths::model();
        let threads = NonZeroUsize::new(nala_machine::granted_cpus().threads);
        let options = LoadOptions { threads, batch_threads: threads, ..LoadOptions::default() };
        let loaded = nala_llama::load(&model, &options, |_| {}).expect("the model loads");
        let engine = Engine::start("bench", loaded, EngineConfig::default()).expect("the engine starts");
        let text = format!(
            "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n\
             <|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n",
            crate::QUESTION
        );
        let prompt = engine.tokenizer().encode(&text, true).expect("the prompt can be tokenised");
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        Self { model, options, tokens, prompt, engine, runtime }
    }

    pub(crate) fn prompt_len(&self) -> usize {
        self.prompt.len()
    }

    /// Nothing but `llama_decode` and a search for the largest logit.
    pub(crate) fn bare(&self, streams: u32) -> f64 {
        nala_llama::bare::decode_loop(&self.model, &self.options, streams, &self.prompt, self.tokens)
            .expect("the bare loop runs")
            .decode_rate()
    }

    /// Sessions of the engine, read by one task each.
    pub(crate) fn engine(&self, streams: u32) -> f64 {
        let started = Instant::now();
        let options = GenerateOptions { ignore_end: true, ..GenerateOptions::greedy(self.tokens) };
        let times = self.runtime.block_on(async {
            let tasks: Vec<_> = (0..streams)
                .map(|_| {
                    let (engine, prompt, options) = (self.engine.clone(), self.prompt.clone(), options.clone());
                    async move {
                        let mut session = engine.open_session(SessionOptions::default()).expect("a session");
                        session.prefill(prompt).await.expect("a prefill");
                        let mut run = session.generate(options).expect("a run");
                        let mut times = Vec::new();
                        while let Some(chunk) = run.next().await.expect("tokens") {
                            let now = started.elapsed().as_secs_f64();
                            times.extend(chunk.tokens.iter().map(|_| now));
                        }
                        times
                    }
                })
                .map(|task| Box::pin(task) as std::pin::Pin<Box<dyn Future<Output = Vec<f64>>>>)
                .collect();
            join_all(tasks).await
        });
        common_rate(&times)
    }

    pub(crate) fn end(self) {
        self.runtime.block_on(self.engine.shutdown());
    }
}

async fn join_all(mut tasks: Vec<std::pin::Pin<Box<dyn Future<Output = Vec<f64>>>>>) -> Vec<Vec<f64>> {
    let mut done: Vec<Option<Vec<f64>>> = tasks.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        for (task, slot) in tasks.iter_mut().zip(&mut done) {
            if slot.is_none()
                && let std::task::Poll::Ready(value) = task.as_mut().poll(cx)
            {
                *slot = Some(value);
            }
        }
        if done.iter().all(Option::is_some) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}
