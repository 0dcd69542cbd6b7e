//! What many sessions that do nothing cost one that runs: our own engine alone.

use std::num::NonZeroUsize;
use std::time::Instant;

use nala_e2e::paths;
use nala_engine::{Engine, EngineConfig, GenerateOptions, Session, SessionOptions, Token};
use nala_llama::LoadOptions;

use crate::report::{Spread, pause};
use crate::settings::Settings;

/// Tokens of each session that waits: more than the 16 of a block that the
/// engine keeps beginnings by.
const SESSION_TOKENS: usize = 24;
/// Cells that kept beginnings fill: all but what a run needs.
const FREE_CELLS: u32 = 1024;

/// What there is beside the session that is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    Nothing,
    Parked,
    Saved,
    Beginnings,
}

impl Beside {
    const ALL: [Self; 4] = [Self::Nothing, Self::Parked, Self::Saved, Self::Beginnings];

    fn name(self, sessions: u32) -> String {
        match self {
            Self::Nothing => "nothing else".to_owned(),
            Self::Parked => format!("{sessions} parked sessions"),
            Self::Saved => format!("{sessions} saved sessions"),
            Self::Beginnings => "KV cells full of beginnings".to_owned(),
        }
    }
}

pub(crate) fn run(settings: &Settings) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let benches: Vec<Bench> = Beside::ALL.iter().map(|beside| Bench::new(settings, *beside, &runtime)).collect();
    // The last column is the first engine again.
    let mut rounds: Vec<Vec<f64>> = Vec::new();
    for round in 0..=settings.rounds {
        let rates = benches.iter().chain(benches.first()).map(|bench| {
            pause();
            runtime.block_on(bench.rate(settings.tokens))
        });
        let rates = rates.collect();
        // The first round warms caches and code.
        if round > 0 {
            rounds.push(rates);
        }
    }
    println!("\nDecoding beside what waits, one stream of the engine, without HTTP");
    println!("{:<34} {:>22} {:>30}", "", "tokens/s: best, median", "ratio to nothing: best, median (range)");
    let names = Beside::ALL.iter().map(|beside| beside.name(settings.sessions));
    for (index, name) in names.chain(["nothing else again (control)".to_owned()]).enumerate() {
        let best = |at: usize| rounds.iter().map(|round| round[at]).fold(f64::MIN, f64::max);
        let median = Spread::of(rounds.iter().map(|round| round[index])).median;
        let last = Beside::ALL.len();
        let ratios = Spread::of(rounds.iter().map(|round| round[index] / f64::midpoint(round[0], round[last])));
        let bests = best(index) / best(0).max(best(last));
        println!(
            "{name:<34} {:>22} {:>38}",
            format!("{:.1}, {median:.1}", best(index)),
            format!("{bests:.3}, {ratios:.3}")
        );
    }
    for bench in benches {
        runtime.block_on(bench.end());
    }
}

struct Bench {
    engine: Engine,
    prompt: Vec<Token>,
    /// Held so that they are not freed.
    parked: Vec<Session>,
}

impl Bench {
    fn new(settings: &Settings, beside: Beside, runtime: &tokio::runtime::Runtime) -> Self {
        let threads = NonZeroUsize::new(settings.threads as usize);
        let options = LoadOptions {
            threads,
            batch_threads: threads,
            kv_cells: settings.kv_cells,
            batch_tokens: settings.batch,
            max_sequences: settings.slots,
            ..LoadOptions::default()
        };
        let config = EngineConfig {
            max_sessions: settings.sessions + 8,
            max_saved: settings.sessions,
            // The state of a token of the default model is 23 kB.
            snapshot_bytes: 16 << 30,
            ..EngineConfig::default()
        };
        let loaded = nala_llama::load(&paths::model(), &options, |_| {}).expect("the model loads");
        let engine = Engine::start("bench", loaded, config).expect("the engine starts");
        let text = "<|im_start|>user\nWrite a long story about a fox.<|im_end|>\n<|im_start|>assistant\n";
        let prompt = engine.tokenizer().encode(text, true).expect("the prompt can be tokenised");
        let mut bench = Self { engine, prompt, parked: Vec::new() };
        runtime.block_on(bench.fill(settings, beside));
        bench
    }

    async fn fill(&mut self, settings: &Settings, beside: Beside) {
        match beside {
            Beside::Nothing => {}
            Beside::Parked => {
                for n in 0..settings.sessions {
                    let mut session = self.session(n, SESSION_TOKENS).await;
                    session.park().await.expect("room to park");
                    self.parked.push(session);
                }
            }
            Beside::Saved => {
                for n in 0..settings.sessions {
                    let mut session = self.session(n, SESSION_TOKENS).await;
                    session.save(&n.to_string()).await.expect("room to save");
                }
            }
            Beside::Beginnings => {
                // A sequence is left to the run.
                let sequences = settings.slots - 1;
                let each = settings.kv_cells.saturating_sub(FREE_CELLS) / sequences;
                for n in 0..sequences {
                    self.session(n, each as usize).await;
                }
            }
        }
    }

    /// A session of so many tokens that are those of no other.
    async fn session(&self, n: u32, tokens: usize) -> Session {
        let words = "The fox went to the town and saw the sea and the ships. ".repeat(tokens.div_ceil(10));
        let text = format!("{:05} {words}", n);
        // Each digit is a token, and those that differ stand first.
        let text: String =
            text.chars().take(5).collect::<Vec<_>>().into_iter().rev().chain(text.chars().skip(5)).collect();
        let mut all = self.engine.tokenizer().encode(&text, false).expect("text can be tokenised");
        all.truncate(tokens);
        assert_eq!(all.len(), tokens, "the text is long enough");
        let mut session = self.engine.open_session(SessionOptions::default()).expect("a session");
        session.prefill(all).await.expect("a prefill");
        session
    }

    /// Tokens a second after the first one.
    async fn rate(&self, tokens: u32) -> f64 {
        let options = GenerateOptions { ignore_end: true, ..GenerateOptions::greedy(tokens) };
        let mut session = self.engine.open_session(SessionOptions::default()).expect("a session");
        session.prefill(self.prompt.clone()).await.expect("a prefill");
        let mut run = session.generate(options).expect("a run");
        let mut first = None;
        let mut count = 0;
        let mut last = Instant::now();
        while let Some(chunk) = run.next().await.expect("tokens") {
            last = Instant::now();
            first.get_or_insert(last);
            count += chunk.tokens.len();
        }
        assert_eq!(count, tokens as usize, "an answer of another length");
        (count - 1) as f64 / last.duration_since(first.expect("a token")).as_secs_f64()
    }

    async fn end(self) {
        drop(self.parked);
        self.engine.shutdown().await;
    }
}
