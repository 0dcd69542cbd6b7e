//! A call of a tool.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotificationParam, ClientRequest, InputRequest,
    InputRequiredResult, InputResponses, RequestId, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RoleClient};
use serde_json::{Map, Value};

use crate::ask::{Hear, Inquiry};
use crate::connect::Service;
use crate::error::ServerError;

/// What is asked of a tool.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The tool's name, as the server has it.
    pub tool: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// How long it may take.
    pub within: Duration,
}

/// How long it may take to tell a server that a call was given up.
const TELLING: Duration = Duration::from_secs(5);

/// How often a call may ask back: a server that asks for ever is ended.
const ROUNDS: usize = 16;

/// Calls a tool over a connection.
pub(crate) async fn call(service: &Service, asked: Asked, hear: Arc<dyn Hear>) -> Result<CallToolResult, ServerError> {
    let within = asked.within;
    tokio::time::timeout(within, talk(service, asked, hear)).await.unwrap_or(Err(ServerError::Late(within)))
}

async fn talk(service: &Service, asked: Asked, hear: Arc<dyn Hear>) -> Result<CallToolResult, ServerError> {
    let mut params = CallToolRequestParams::new(asked.tool).with_arguments(asked.arguments);
    for _ in 0..ROUNDS {
        match once(service, params.clone(), &hear).await? {
            ServerResult::CallToolResult(result) => return Ok(result),
            ServerResult::InputRequiredResult(required) => {
                // What the server knows of the call is in its state, which is sent back as
                // it came.
                params.request_state = required.request_state.clone();
                params.input_responses = replies(required, &*hear).await?;
            }
            ServerResult::EmptyResult(_) => return Ok(CallToolResult::success(Vec::new())),
            _ => return Err(ServerError::Wrong("a result of another request".to_owned())),
        }
    }
    Err(ServerError::Wrong(format!("it asks back more than {ROUNDS} times")))
}

async fn once(
    service: &Service,
    params: CallToolRequestParams,
    hear: &Arc<dyn Hear>,
) -> Result<ServerResult, ServerError> {
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let handle = service.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
    let handle = handle.map_err(ServerError::of_request)?;
    let _followed = service.service().follow(handle.progress_token.clone(), Arc::clone(hear));
    let mut unless = Abandoned { peer: service.peer().clone(), id: Some(handle.id.clone()) };
    let result = handle.await_response().await;
    unless.id = None;
    result.map_err(ServerError::of_request)
}

/// Tells the server when nobody waits any more.
struct Abandoned {
    peer: Peer<RoleClient>,
    /// None: it has answered.
    id: Option<RequestId>,
}

impl Drop for Abandoned {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let peer = self.peer.clone();
        tokio::spawn(async move {
            let params = CancelledNotificationParam::new(Some(id), Some("nobody waits for it".to_owned()));
            // A server that is gone need not be told, and one that does not listen cannot be.
            let _gone = tokio::time::timeout(TELLING, peer.notify_cancelled(params)).await;
        });
    }
}

/// Asks what a server wants to know before it goes on.
async fn replies(required: InputRequiredResult, hear: &dyn Hear) -> Result<Option<InputResponses>, ServerError> {
    let Some(requests) = required.input_requests else { return Ok(None) };
    let mut replies = InputResponses::new();
    for (key, request) in requests {
        let (inquiry, params) = match &request {
            InputRequest::CreateMessage(request) => (Inquiry::Sampling, serde_json::to_value(&request.params)),
            InputRequest::Elicitation(request) => (Inquiry::Elicitation, serde_json::to_value(&request.params)),
            InputRequest::ListRoots(_) => (Inquiry::Roots, Ok(serde_json::json!({}))),
            _ => return Err(ServerError::Wrong("a question of a kind that is not known".to_owned())),
        };
        let params = params.map_err(|error| ServerError::Wrong(error.to_string()))?;
        let reply = hear.ask(key.clone(), inquiry, params).await.map_err(ServerError::Unanswered)?;
        replies.insert(key, reply);
    }
    Ok(Some(replies))
}
