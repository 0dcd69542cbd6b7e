//! Embeddings, computed between the batches of sessions.

use std::collections::VecDeque;

use super::Scheduler;
use crate::Token;
use crate::backend::{DecodeError, Pooling};
use crate::clock::Clock;
use crate::command::{EmbedCommand, Reply};
use crate::error::Error;

/// A request in progress.
struct Request {
    /// Those that are left.
    inputs: VecDeque<Vec<Token>>,
    pooling: Pooling,
    vectors: Vec<Vec<f32>>,
    reply: Reply<Vec<Vec<f32>>>,
}

/// Requests in the order of service: each gets one call of the backend in turn.
#[derive(Default)]
pub(super) struct Embeddings {
    requests: VecDeque<Request>,
}

impl<C: Clock> Scheduler<C> {
    pub(super) fn begin_embedding(&mut self, command: EmbedCommand) {
        let EmbedCommand { inputs, pooling, reply } = command;
        // A handle that no longer listens wants nothing.
        if self.embeddings.requests.len() >= self.config.max_queued as usize {
            let _ = reply.send(Err(Error::Busy));
        } else if inputs.is_empty() {
            let _ = reply.send(Ok(Vec::new()));
        } else {
            let request = Request { inputs: inputs.into(), pooling, vectors: Vec::new(), reply };
            self.embeddings.requests.push_back(request);
        }
    }

    /// Computes as many inputs of the next request as a step may take, and at least
    /// one. False: there are none.
    pub(super) fn embed_some(&mut self) -> bool {
        let Some(mut request) = self.embeddings.requests.pop_front() else { return false };
        if request.reply.is_closed() {
            self.metrics.cancelled.inc();
            return true;
        }
        let most = self.pace.tokens_in(self.config.step_time) as usize;
        let mut tokens = 0;
        let count = request.inputs.iter().take_while(|input| {
            let first = tokens == 0;
            tokens += input.len();
            first || tokens <= most
        });
        let count = count.count();
        let inputs: Vec<Vec<Token>> = request.inputs.drain(..count).collect();
        self.metrics.embedded_tokens.inc_by(inputs.iter().map(|input| input.len() as u64).sum());
        match self.backend.embed(&inputs, request.pooling) {
            Ok(vectors) => request.vectors.extend(vectors),
            Err(error) => {
                let error = match error {
                    DecodeError::InvalidBatch(text) => Error::InvalidArgument(text),
                    DecodeError::Unsupported(text) => Error::Unsupported(text),
                    other => Error::Backend(other.to_string()),
                };
                let _ = request.reply.send(Err(error));
                return true;
            }
        }
        if request.inputs.is_empty() {
            let _ = request.reply.send(Ok(request.vectors));
        } else {
            self.embeddings.requests.push_back(request);
        }
        true
    }

    /// Ends all requests.
    pub(super) fn end_embeddings(&mut self) {
        for request in self.embeddings.requests.drain(..) {
            let _ = request.reply.send(Err(Error::Cancelled));
        }
    }
}
