//! A component for Spin, by Spin's own SDK, that asks its models as its path says.

use spin_sdk::http::{IntoResponse, Request};
use spin_sdk::http_service;
use spin_sdk::llm::{
    EmbeddingModel, InferencingModel, InferencingParams, generate_embeddings, infer, infer_with_options,
};

const GREEDY: InferencingParams = InferencingParams {
    max_tokens: 5,
    repeat_penalty: 1.0,
    repeat_penalty_last_n_token_count: 0,
    temperature: 0.0,
    top_k: 0,
    top_p: 1.0,
};

#[http_service]
async fn answer(request: Request) -> impl IntoResponse {
    let query = request.uri().query().unwrap_or_default();
    match request.uri().path() {
        "/infer" => said(query, "abc", GREEDY),
        "/defaults" => format!("{:?}", infer(InferencingModel::Other(query), "abc").map(|result| result.usage)),
        "/control" => said(query, "<user>", GREEDY),
        "/long" => said("alphabet", &"a".repeat(query.parse().unwrap_or(0)), GREEDY),
        "/as-many-as-fit" => said("alphabet", "a", InferencingParams { max_tokens: u32::MAX, ..GREEDY }),
        "/wrong" => [
            InferencingParams { max_tokens: 0, ..GREEDY },
            InferencingParams { temperature: -1.0, ..GREEDY },
            InferencingParams { top_p: f32::NAN, ..GREEDY },
            InferencingParams { repeat_penalty: 0.0, ..GREEDY },
        ]
        .map(|params| said("alphabet", "a", params))
        .join("\n"),
        "/embed" => embed(query, vec!["ab".into(), "abc".into()]),
        "/embed-many" => embed("alphabet", vec![String::new(); query.parse().unwrap_or(0)]),
        _ => "no such path".to_owned(),
    }
}

fn said(model: &str, prompt: &str, params: InferencingParams) -> String {
    match infer_with_options(InferencingModel::Other(model), prompt, params) {
        Ok(result) => {
            format!("{} {} {}", result.text, result.usage.prompt_token_count, result.usage.generated_token_count)
        }
        Err(error) => format!("{error:?}"),
    }
}

fn embed(model: &str, texts: Vec<String>) -> String {
    match generate_embeddings(EmbeddingModel::Other(model), &texts) {
        Ok(result) => {
            let widths: Vec<usize> = result.embeddings.iter().map(Vec::len).collect();
            format!("{widths:?} {}", result.usage.prompt_token_count)
        }
        Err(error) => format!("{error:?}"),
    }
}
