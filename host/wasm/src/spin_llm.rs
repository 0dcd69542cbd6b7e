//! `fermyon:spin/llm`: inferencing for components that were written for Spin.
//!
//! A call is answered as Spin answers it, from the checks of `ai_models` to the
//! variants of its errors. What differs is behind it: calls are not done one after
//! another but in one batch with everybody else's, `text` is the generated text
//! alone, as the interface says, and the prompt names no control tokens: all of it
//! may come from outside.

use nala_engine::{GenerateOptions, Sampling};
use nala_nn::Prompt;
use wasmtime::Result;
use wasmtime::component::{HasData, Linker};

use crate::llm::{self, Ask, LlmView, ModelHandle, words};
use crate::store::StoreData;
use bindings::fermyon::spin::llm::{
    self as wit, EmbeddingsResult, EmbeddingsUsage, Error, Host, InferencingParams, InferencingResult, InferencingUsage,
};

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit/fermyon-spin",
        inline: "
            package nala:spin-llm;

            world user {
                import fermyon:spin/llm@2.0.0;
            }
        ",
        world: "nala:spin-llm/user",
        imports: { default: async | trappable },
        require_store_data_send: true,
    });
}

/// What is meant where no parameters are given; from `crates/factor-llm` of Spin 4.
const USUAL: InferencingParams = InferencingParams {
    max_tokens: 100,
    repeat_penalty: 1.1,
    repeat_penalty_last_n_token_count: 64,
    temperature: 0.8,
    top_k: 40,
    top_p: 0.9,
};

struct HasSpinLlm;

impl HasData for HasSpinLlm {
    type Data<'a> = SpinLlm<'a>;
}

/// What the calls of this interface work on.
struct SpinLlm<'a>(LlmView<'a>);

pub(crate) fn add_to_linker(linker: &mut Linker<StoreData>) -> Result<()> {
    wit::add_to_linker::<_, HasSpinLlm>(linker, view)
}

fn view(data: &mut StoreData) -> SpinLlm<'_> {
    SpinLlm(llm::view(data))
}

impl Host for SpinLlm<'_> {
    async fn infer(
        &mut self,
        model: String,
        prompt: String,
        params: Option<InferencingParams>,
    ) -> Result<Result<InferencingResult, Error>> {
        let model = match self.open(&model).await {
            Ok(model) => model,
            Err(error) => return Ok(Err(error)),
        };
        if let Err(error) = self.0.room_for_session() {
            return Ok(Err(told(&error)));
        }
        let params = params.unwrap_or(USUAL);
        if params.max_tokens == 0 {
            return Ok(Err(Error::InvalidInput("max-tokens must be at least 1, and is 0".into())));
        }
        let options = options(&params);
        let ask = Ask { prompt: Prompt::text(prompt), options, max_tokens: None, grammar: None };
        Ok(self.0.complete(&model, ask).await?.map_err(|error| told(&error)).map(|completion| InferencingResult {
            text: completion.text,
            usage: InferencingUsage {
                prompt_token_count: completion.prompt_tokens,
                generated_token_count: completion.new_tokens,
            },
        }))
    }

    async fn generate_embeddings(
        &mut self,
        model: String,
        text: Vec<String>,
    ) -> Result<Result<EmbeddingsResult, Error>> {
        let model = match self.open(&model).await {
            Ok(model) => model,
            Err(error) => return Ok(Err(error)),
        };
        let computed = self.0.vectors_of(&model, text).await?;
        Ok(computed.map_err(|error| told(&error)).map(|computed| EmbeddingsResult {
            embeddings: computed.vectors,
            usage: EmbeddingsUsage { prompt_token_count: computed.prompt_tokens },
        }))
    }
}

impl SpinLlm<'_> {
    /// A model that the component's `ai_models` name.
    async fn open(&mut self, name: &str) -> Result<ModelHandle, Error> {
        if self.0.state.models.get(name).is_none() {
            let granted: Vec<&str> = self.0.state.models.names().collect();
            let shown = name.get(..name.floor_char_boundary(256)).unwrap_or_default();
            // Spin's words, and what would work.
            return Err(Error::InvalidInput(format!(
                "The component does not have access to use '{shown}'. To give the component access, add '{shown}' to \
                 the 'ai_models' key for the component in your spin.toml manifest. It has access to: {}",
                granted.join(", ")
            )));
        }
        self.0.open_model(name).await.map_err(|error| told(&error))
    }
}

fn options(params: &InferencingParams) -> GenerateOptions {
    let sampling = Sampling {
        repeat_penalty: params.repeat_penalty,
        penalty_window: params.repeat_penalty_last_n_token_count,
        temperature: params.temperature,
        top_k: params.top_k,
        top_p: params.top_p,
        ..Sampling::GREEDY
    };
    GenerateOptions { sampling, max_new: params.max_tokens, ..nala_nn::Options::default().generate }
}

/// An error of a model in this interface's variants.
fn told(error: &llm::Error) -> Error {
    match error {
        // It may be used, and is not one that can do it.
        llm::Error::Unsupported(_) | llm::Error::NotFound(_) => Error::ModelNotSupported,
        llm::Error::InvalidArgument(_) | llm::Error::ContextFull(_) => Error::InvalidInput(words(error)),
        _ => Error::RuntimeError(words(error)),
    }
}
