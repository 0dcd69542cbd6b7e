//! The protocol's requests, sent the way that guests' requests go.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use nala_egress::{Egress, EgressError, ResponseBody, Timeouts};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRedirectPolicy, OAuthHttpRequest};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    StreamableHttpResponseLimits,
};
use sse_stream::{Sse, SseStream};
use thiserror::Error;
use tokio::sync::watch;

/// A session's identifier.
const SESSION: &str = "mcp-session-id";
/// The last event that was read of a stream.
const LAST_EVENT: &str = "last-event-id";
/// What an answer may be.
const STREAM: &str = "text/event-stream";
const JSON: &str = "application/json";

/// What is shown of an answer that is no message, in bytes.
const SHOWN: usize = 1024;

/// Redirects that are followed where an authorization server is looked for.
const REDIRECTS: usize = 5;

/// The longest answer of an authorization server, in bytes.
const LONGEST_OAUTH: usize = 1 << 20;

/// Why a request was not answered.
#[derive(Debug, Error)]
pub(crate) enum HttpError {
    /// It did not get there, or no answer came back.
    #[error(transparent)]
    Egress(#[from] EgressError),
    /// It cannot be written.
    #[error("the request cannot be written: {0}")]
    Request(#[from] http::Error),
    /// The answer is too long, or broke off.
    #[error("the answer cannot be read: {0}")]
    Body(String),
}

type Failed = StreamableHttpError<HttpError>;

fn failed(error: impl Into<HttpError>) -> Failed {
    StreamableHttpError::Client(error.into())
}

/// The way to a server. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Http {
    egress: Egress,
    /// Whether the server has said whether it has a stream of its own.
    listened: Arc<watch::Sender<bool>>,
    /// How soon a stream may be asked for again.
    pace: Arc<Mutex<Pace>>,
}

/// How often a server can have its streams asked for: it says when they end, and how soon
/// they are to be asked for after that.
#[derive(Debug, Default)]
struct Pace {
    last: Option<Instant>,
    /// Those in a row that came soon after another.
    soon: u32,
}

/// So many may come soon after another.
const AT_ONCE: u32 = 8;
/// How long after another one comes no more soon, and how long it is waited at most.
const SOON: Duration = Duration::from_secs(60);

impl Pace {
    /// How long to wait before one is asked for at a time.
    fn next(&mut self, now: Instant) -> Duration {
        let is_soon = self.last.is_some_and(|last| now.saturating_duration_since(last) < SOON);
        self.soon = if is_soon { self.soon.saturating_add(1) } else { 0 };
        let wait = match self.soon.checked_sub(AT_ONCE) {
            None => Duration::ZERO,
            Some(over) => Duration::from_secs(1 << over.min(6)).min(SOON),
        };
        self.last = Some(now + wait);
        wait
    }
}

impl Http {
    pub(crate) fn new(egress: Egress) -> Self {
        Self { egress, listened: Arc::new(watch::Sender::new(false)), pace: Arc::default() }
    }

    /// Waits until there is a stream for what the server says by itself, or there is to be
    /// none. What it says before is lost at many servers.
    pub(crate) async fn listening(&self) {
        let mut listened = self.listened.subscribe();
        // It does not end: the sender is this one's own.
        let _there = listened.wait_for(|listened| *listened).await;
    }

    async fn send(
        &self,
        request: Request<Full<Bytes>>,
        timeouts: Timeouts,
    ) -> Result<Response<ResponseBody>, HttpError> {
        Ok(self.egress.send(request, timeouts).await?)
    }
}

/// A request that is not written yet.
struct Writing(http::request::Builder);

impl Writing {
    fn new(
        method: Method,
        uri: &str,
        session: Option<&str>,
        token: Option<&str>,
        fields: HashMap<HeaderName, HeaderValue>,
    ) -> Self {
        let mut builder = Request::builder().method(method).uri(uri);
        for (name, value) in fields {
            builder = builder.header(name, value);
        }
        if let Some(session) = session {
            builder = builder.header(SESSION, session);
        }
        if let Some(token) = token {
            builder = builder.header(AUTHORIZATION, secret(token));
        }
        Self(builder)
    }

    fn with(self, body: Vec<u8>) -> Result<Request<Full<Bytes>>, HttpError> {
        Ok(self.0.body(Full::new(Bytes::from(body)))?)
    }
}

/// A token as a field's value, which is not shown. What cannot be one is left out, and
/// refused by the server.
fn secret(token: &str) -> HeaderValue {
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).unwrap_or(HeaderValue::from_static("Bearer"));
    value.set_sensitive(true);
    value
}

/// As long as the operator's own for all that goes out; a call has a limit of its own.
fn patient() -> Timeouts {
    Timeouts::UNSET
}

impl StreamableHttpClient for Http {
    type Error = HttpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(uri, message, session_id, auth_header, custom_headers, limits).await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let mut writing =
            Writing::new(Method::POST, &uri, session_id.as_deref(), auth_header.as_deref(), custom_headers);
        writing.0 = writing.0.header(CONTENT_TYPE, JSON).header(ACCEPT, "application/json, text/event-stream");
        let request = writing.with(serde_json::to_vec(&message)?).map_err(failed)?;
        let response = self.send(request, patient()).await.map_err(failed)?;
        let asked = Posted { message: &message, is_in_session: session_id.is_some() };
        asked.answered(response, limits).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failed> {
        let writing = Writing::new(Method::DELETE, &uri, Some(&session_id), auth_header.as_deref(), custom_headers);
        let response = self.send(writing.with(Vec::new()).map_err(failed)?, patient()).await.map_err(failed)?;
        match response.status() {
            status if status.is_success() => Ok(()),
            StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_FOUND => {
                Err(StreamableHttpError::ServerDoesNotSupportDeleteSession)
            }
            status => Err(unexpected(status, "")),
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, sse_stream::Error>>, Failed> {
        let most = StreamableHttpResponseLimits::default().max_sse_event_size;
        self.get_stream_with_max_sse_event_size(uri, session_id, last_event_id, auth_header, custom_headers, most).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<BoxStream<'static, Result<Sse, sse_stream::Error>>, Failed> {
        let mut writing =
            Writing::new(Method::GET, &uri, session_id.as_deref(), auth_header.as_deref(), custom_headers);
        writing.0 = writing.0.header(ACCEPT, STREAM);
        if let Some(last) = last_event_id {
            writing.0 = writing.0.header(LAST_EVENT, last);
        }
        let wait = self.pace.lock().unwrap_or_else(PoisonError::into_inner).next(Instant::now());
        tokio::time::sleep(wait).await;
        let response = self.send(writing.with(Vec::new()).map_err(failed)?, patient()).await;
        self.listened.send_replace(true);
        let response = response.map_err(failed)?;
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(StreamableHttpError::ServerDoesNotSupportSse),
            StatusCode::NOT_FOUND if session_id.is_some() => Err(StreamableHttpError::SessionExpired),
            status if !status.is_success() => {
                Err(challenged(status, response.headers()).unwrap_or_else(|| unexpected(status, "")))
            }
            _ if is(response.headers(), STREAM) => Ok(events(response.into_body(), max_sse_event_size)),
            _ => Err(StreamableHttpError::UnexpectedContentType(kind(response.headers()))),
        }
    }
}

/// A message that was sent.
struct Posted<'m> {
    message: &'m ClientJsonRpcMessage,
    is_in_session: bool,
}

impl Posted<'_> {
    async fn answered(
        self,
        response: Response<ResponseBody>,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let (status, headers) = (response.status(), response.headers().clone());
        if let Some(error) = challenged(status, &headers) {
            return Err(error);
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && self.is_in_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let session = headers.get(SESSION).and_then(|value| value.to_str().ok()).map(str::to_owned);
        if !status.is_success() {
            return self.refused(status, &headers, session, response.into_body(), limits).await;
        }
        // Nothing in an answer to what is no request matters.
        let waits = matches!(self.message, ClientJsonRpcMessage::Request(_));
        if !waits && !is(&headers, STREAM) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if is(&headers, STREAM) {
            let events = events(response.into_body(), limits.max_sse_event_size);
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        if !is(&headers, JSON) {
            return Err(StreamableHttpError::UnexpectedContentType(kind(&headers)));
        }
        let body = whole(response.into_body(), limits.max_json_response_size).await?;
        match serde_json::from_slice(&body) {
            Ok(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
            Err(error) => Err(StreamableHttpError::UnexpectedServerResponse(Cow::Owned(format!(
                "an answer that is no message: {error}: {}",
                shown(&body)
            )))),
        }
    }

    /// A status that is no success: an error of the protocol, if the body is one.
    async fn refused(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        session: Option<String>,
        body: ResponseBody,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let most = if is(headers, JSON) { limits.max_json_response_size } else { limits.max_error_response_size };
        let body = whole(body, most).await.unwrap_or_default();
        let error = match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            Ok(JsonRpcMessage::Error(error)) => Some(error),
            _ => None,
        };
        if let Some(answer) = self.no_discovery(status, error.as_ref().map(|error| &error.error), &body) {
            return Ok(answer);
        }
        match error {
            Some(error) => Ok(StreamableHttpPostResponse::Json(JsonRpcMessage::Error(error), session)),
            None => Err(unexpected(status, &shown(&body))),
        }
    }

    /// What a server without `server/discover` says, as an error of that request: whoever
    /// asks goes on with a handshake then. Such servers do not repeat the request's
    /// identifier.
    fn no_discovery(
        &self,
        status: StatusCode,
        error: Option<&ErrorData>,
        body: &[u8],
    ) -> Option<StreamableHttpPostResponse> {
        let ClientJsonRpcMessage::Request(request) = self.message else { return None };
        let is_discovery = matches!(request.request, ClientRequest::DiscoverRequest(_));
        if !is_discovery || self.is_in_session || !status.is_client_error() {
            return None;
        }
        let error = error.cloned().unwrap_or_else(|| {
            ErrorData::invalid_request(format!("server/discover was answered with {status}: {}", shown(body)), None)
        });
        let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
        Some(StreamableHttpPostResponse::Json(answer, None))
    }
}

/// That a server demands authorization, if it does.
fn challenged(status: StatusCode, headers: &HeaderMap) -> Option<Failed> {
    let challenge = headers.get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok()).map(str::to_owned);
    match status {
        StatusCode::UNAUTHORIZED => {
            Some(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge.unwrap_or_default())))
        }
        // Without a challenge it is no question of what was asked for.
        StatusCode::FORBIDDEN => {
            let challenge = challenge?;
            Some(StreamableHttpError::InsufficientScope(InsufficientScopeError::new(challenge, None)))
        }
        _ => None,
    }
}

fn unexpected(status: StatusCode, body: &str) -> Failed {
    let between = if body.is_empty() { "" } else { ": " };
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(format!("{status}{between}{body}")))
}

fn kind(headers: &HeaderMap) -> Option<String> {
    headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

fn is(headers: &HeaderMap, wanted: &str) -> bool {
    let kind = kind(headers).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case(wanted))
}

fn shown(body: &[u8]) -> String {
    let begin = String::from_utf8_lossy(body.get(..SHOWN).unwrap_or(body));
    begin.chars().map(|sign| if sign.is_control() { ' ' } else { sign }).collect()
}

async fn whole(body: ResponseBody, most: usize) -> Result<Bytes, Failed> {
    match Limited::new(body, most).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            Err(StreamableHttpError::ResponseBodyTooLarge { max_size: most })
        }
        Err(error) => Err(failed(HttpError::Body(error.to_string()))),
    }
}

/// The events of a body, none of which is longer than allowed.
fn events(body: ResponseBody, most: usize) -> BoxStream<'static, Result<Sse, sse_stream::Error>> {
    let mut length = EventLength { most, ..EventLength::default() };
    let bytes = body.into_data_stream().map(move |part| {
        let part = part.map_err(HttpError::from)?;
        match length.add(&part) {
            true => Ok(part),
            false => Err(HttpError::Body(format!("an event is longer than {most} bytes"))),
        }
    });
    SseStream::from_bytes_stream(bytes).boxed()
}

/// How long an event is so far. It ends with an empty line; comments, which begin with a
/// colon, are none of it. A line ends with LF, CR or both (HTML standard, "Parsing an event
/// stream").
#[derive(Default)]
struct EventLength {
    most: usize,
    now: usize,
    /// Of its last line.
    line: usize,
    is_comment: bool,
    is_after_cr: bool,
}

impl EventLength {
    /// Whether it is not too long.
    fn add(&mut self, part: &[u8]) -> bool {
        for byte in part {
            let is_second_half = std::mem::replace(&mut self.is_after_cr, *byte == b'\r') && *byte == b'\n';
            match byte {
                b'\n' if is_second_half => {}
                b'\n' | b'\r' => {
                    let of_event = if self.is_comment { 0 } else { self.line };
                    self.now = if self.line == 0 { 0 } else { self.now + of_event + 1 };
                    self.line = 0;
                }
                _ => {
                    self.is_comment = if self.line == 0 { *byte == b':' } else { self.is_comment };
                    self.line += 1;
                }
            }
            if self.now + self.line > self.most {
                return false;
            }
        }
        true
    }
}

impl OAuthHttpClient for Http {
    fn execute(&self, asked: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        let this = self.clone();
        Box::pin(async move {
            let within = asked.timeout.unwrap_or(Duration::from_secs(30));
            let follow = match asked.redirect_policy {
                OAuthHttpRedirectPolicy::Follow => REDIRECTS,
                _ => 0,
            };
            tokio::time::timeout(within, this.fetch(asked.request, follow)).await?
        })
    }
}

type Unfetched = Box<dyn std::error::Error + Send + Sync>;

impl Http {
    /// Sends a request of an authorization, and follows so many redirects within its
    /// origin: those of others could send a secret elsewhere.
    async fn fetch(&self, request: Request<Vec<u8>>, redirects: usize) -> Result<Response<Vec<u8>>, Unfetched> {
        let (mut head, body) = request.into_parts();
        for _ in 0..=redirects {
            let request = Request::from_parts(head.clone(), Full::new(Bytes::from(body.clone())));
            let response = self.send(request, patient()).await?;
            let next = response.headers().get(http::header::LOCATION).and_then(|value| value.to_str().ok());
            if let (true, true, Some(next)) = (redirects > 0, response.status().is_redirection(), next) {
                let from = url::Url::parse(&head.uri.to_string())?;
                let to = from.join(next)?;
                if to.origin() != from.origin() {
                    return Err(format!("it is sent on to {to}, which is another origin").into());
                }
                head.uri = to.as_str().parse()?;
                continue;
            }
            let (head, body) = response.into_parts();
            let body = Limited::new(body, LONGEST_OAUTH).collect().await?.to_bytes();
            return Ok(Response::from_parts(head, body.to_vec()));
        }
        Err("it is sent on too often".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_events_are_noticed_and_many_short_ones_are_not() {
        let mut length = EventLength { most: 16, ..EventLength::default() };
        for _ in 0..1000 {
            assert!(length.add(b"data: aaaa\r\n\r\n") && length.add(b"data: b\n\n"));
        }
        assert!(length.add(b"data: aaaa\ndata") && !length.add(b": aaaaaaaaaaaa"));
    }

    #[test]
    fn a_media_type_is_known_by_its_essence() {
        let of = |value: &'static str| HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(value))]);
        assert!(is(&of("Application/JSON; charset=utf-8"), JSON) && is(&of("text/event-stream"), STREAM));
        assert!(!is(&of("application/jsonx"), JSON) && !is(&HeaderMap::new(), JSON));
    }
}
