//! The components on a model that says what a test wants it to.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use nala_e2e::{guests, paths};
use nala_engine::backend::{BackendLimits, BatchEntry, DecodeError};
use nala_engine::fake::{END, Fake};
use nala_engine::{EngineConfig, ModelPool, ModelSpec, PoolConfig, Residence, Token};
use nala_wasm::{App, CompileCache, Grant, Limits, ResponseBody, Runtime, RuntimeConfig, Source, Toolbox};
use tokio::runtime::Handle;

/// A template of the family that writes `<tool_call>` and `<think>`.
const HERMES: &str = "{% if tools %}<user><tools>{% for tool in tools %}{{ tool | tojson }}{% endfor %}</tools> \
    Answer with <tool_call>{\"name\": …, \"arguments\": …}</tool_call>.{% endif %}\
    {% for m in messages %}<user>{{ m.content }}{% endfor %}\
    {% if add_generation_prompt %}<end>{% endif %}{# <think> </think> reasoning_content #}";

/// Whether a component may call tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tools {
    None,
    Granted,
}

/// What a model computed.
pub(super) struct Batches(Arc<Mutex<Vec<Vec<BatchEntry>>>>);

impl Batches {
    /// The one sequence that there was, control tokens in `⟦⟧`.
    ///
    /// # Panics
    /// If there was another one, or if a token of it was computed twice.
    pub(super) fn sequence(&self) -> String {
        let batches = self.0.lock().unwrap();
        let mut bytes = Vec::new();
        for (position, entry) in batches.iter().flatten().enumerate() {
            assert_eq!(entry.seq, batches[0][0].seq, "all is one session");
            assert_eq!(entry.position as usize, position, "each token is computed once, one behind the other");
            match u8::try_from(entry.token) {
                Ok(byte) => bytes.push(byte),
                Err(_) if entry.token == END => bytes.extend("⟦end⟧".bytes()),
                Err(_) => bytes.extend("⟦control⟧".bytes()),
            }
        }
        String::from_utf8(bytes).unwrap()
    }
}

/// A component on a scripted model, with its prompts rendered as in the product.
pub(super) struct Scripted {
    runtime: Runtime,
    app: App,
}

impl Scripted {
    /// The model says `text` and ends its turn.
    pub(super) fn saying(text: &str) -> Self {
        Self::on(Fake::saying(text))
    }

    /// The model says `text`, but its backend fails from the `batches`th batch on.
    pub(super) fn failing(text: &str, batches: usize) -> Self {
        let count = AtomicUsize::new(0);
        let before_decode = Arc::new(move |_: &[_]| match count.fetch_add(1, Ordering::Relaxed) {
            n if n < batches => Ok(()),
            _ => Err(DecodeError::Failed("the backend is out of luck".into())),
        });
        Self::on(Fake { before_decode, ..Fake::saying(text) })
    }

    /// A component that may call the tools of `host/wasm/guests/tools`, on a model that says
    /// one of the texts a turn. Nothing is guessed ahead, so each batch is what was needed.
    pub(super) fn taking_turns(component: &'static str, turns: &[&'static str]) -> (Self, Batches) {
        let turns = turns.to_vec();
        let script = Arc::new(move |tokens: &[Token]| {
            // A turn begins behind the template's control token.
            let begun = tokens.iter().filter(|token| **token == END).count();
            let said = tokens.rsplit(|token| *token == END).next().unwrap_or_default();
            let turn: Vec<Token> =
                turns.get(begun.saturating_sub(1)).map_or(vec![], |text| text.bytes().map(Token::from).collect());
            if turn.starts_with(said) { turn.get(said.len()).copied().unwrap_or(END) } else { END }
        });
        let limits =
            BackendLimits { kv_cells: 32_768, sequence_tokens: 16_384, batch_tokens: 512, ..Fake::default().limits };
        let fake = Fake { script, limits, ..Fake::default() };
        let batches = Batches(Arc::clone(&fake.batches));
        let engine = EngineConfig { max_draft: 0, ..EngineConfig::default() };
        (Self::with(fake, engine, component, Tools::Granted), batches)
    }

    fn on(fake: Fake) -> Self {
        Self::with(fake, EngineConfig::default(), "openai", Tools::None)
    }

    fn with(fake: Fake, engine: EngineConfig, component: &'static str, tools: Tools) -> Self {
        let mut model = fake.load();
        model.info.chat_template = Some(HERMES.into());
        let model = Mutex::new(Some(model));
        let spec = ModelSpec {
            name: "scripted".to_owned(),
            bytes: 0,
            residence: Residence::Resident,
            engine,
            load: Box::new(move || Ok(model.lock().unwrap().take().expect("it stays loaded"))),
        };
        let pool = ModelPool::new(PoolConfig::default(), vec![spec], Handle::current()).unwrap();
        let model = pool.models().next().unwrap();
        model.preload().unwrap();
        let runtime =
            Runtime::new(RuntimeConfig { cache: CompileCache::Directory(paths::cache()), ..RuntimeConfig::default() })
                .unwrap();
        let compile =
            |name: &'static str| runtime.compile(name, Source::File(&guests::guest("components", name))).unwrap();
        let renderer = runtime.load_renderer(&compile("chat-template"), Limits::default()).unwrap();
        let tools = match tools {
            Tools::None => Toolbox::default(),
            Tools::Granted => {
                let tools =
                    runtime.compile("tools", Source::File(&guests::guest("host/wasm/guests", "tools"))).unwrap();
                let tools = runtime.load_tools(&tools, Grant::default(), None).unwrap();
                Toolbox::new(vec![Arc::new(tools)]).unwrap()
            }
        };
        let grant =
            Grant { models: vec![model], renderer: Some(renderer.into()), tools: Arc::new(tools), ..Grant::default() };
        let app = runtime.load(&compile(component), grant).unwrap();
        Self { runtime, app }
    }

    /// The answer to a POST.
    pub(super) async fn post(&self, path: &str, body: &serde_json::Value) -> Response<ResponseBody> {
        let request = Request::post(format!("http://localhost{path}"));
        self.app.handle(request.body(Full::new(Bytes::from(body.to_string()))).unwrap()).await.unwrap()
    }

    /// Status and body of the answer to a POST.
    pub(super) async fn text(&self, path: &str, body: &serde_json::Value) -> (u16, String) {
        let response = self.post(path, body).await;
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(bytes.to_vec()).unwrap())
    }

    /// Waits until no instance is alive.
    pub(super) async fn until_empty(&self) {
        for _ in 0..500 {
            if self.runtime.metrics().instances.get() == 0 {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("{} instances are still alive", self.runtime.metrics().instances.get());
    }
}
