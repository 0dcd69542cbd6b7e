//! Asking either side over HTTP, by the same code.

use std::io::{BufRead, BufReader};
use std::time::Instant;

use serde_json::{Value, json};

/// The tokens with which the default model ends its turn. They are forbidden, so
/// that answers have as many tokens as they were asked for; both sides know
/// `logit_bias`.
const ENDS: [&str; 2] = ["0", "2"];

/// A server, and connections to it that are kept.
#[derive(Clone)]
pub(crate) struct Client {
    base: String,
    agent: ureq::Agent,
}

/// A streamed answer. Times are in seconds since the request was begun.
pub(crate) struct Answer {
    /// When text came.
    pub(crate) times: Vec<f64>,
    /// When the answer had ended.
    pub(crate) end: f64,
    pub(crate) text: String,
    pub(crate) usage: Usage,
}

/// What the server says that a request had.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) prompt: u64,
    pub(crate) cached: u64,
    pub(crate) completion: u64,
}

impl Usage {
    fn of(body: &Value) -> Self {
        let usage = &body["usage"];
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        Self {
            prompt: number(&usage["prompt_tokens"]),
            cached: number(&usage["prompt_tokens_details"]["cached_tokens"]),
            completion: number(&usage["completion_tokens"]),
        }
    }

    /// Both together.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            prompt: self.prompt + other.prompt,
            cached: self.cached + other.cached,
            completion: self.completion + other.completion,
        }
    }
}

/// A greedy answer of exactly so many tokens.
pub(crate) fn request(messages: &Value, tokens: u32) -> Value {
    let bias: serde_json::Map<_, _> = ENDS.iter().map(|id| ((*id).to_owned(), json!(-100))).collect();
    let mut request = open_request(messages, tokens);
    request["logit_bias"] = Value::Object(bias);
    request
}

/// A greedy answer of at most so many tokens.
pub(crate) fn open_request(messages: &Value, tokens: u32) -> Value {
    json!({
        "model": crate::server::MODEL,
        "messages": messages,
        "temperature": 0,
        // Spares the peer the sorting of 40 candidates; ours takes the largest anyway.
        "top_k": 1,
        "max_tokens": tokens,
    })
}

impl Client {
    pub(crate) fn new(base: String) -> Self {
        // Refusals are answers too: the caller looks at the status.
        let config = ureq::Agent::config_builder().http_status_as_error(false).build();
        Self { base, agent: config.into() }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.agent.get(format!("{}/health", self.base)).call().is_ok_and(|response| response.status() == 200)
    }

    /// Status and body of a POST.
    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let response = self.send(path, body);
        let status = response.status().as_u16();
        let text = response.into_body().read_to_string().expect("the body is text");
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// The body of a POST that must succeed.
    pub(crate) fn ask(&self, path: &str, body: &Value) -> Value {
        let (status, answer) = self.post(path, body);
        assert_eq!(status, 200, "{}{path}: {answer}", self.base);
        answer
    }

    /// A chat completion that must succeed, in one piece: its text and usage.
    pub(crate) fn complete(&self, request: &Value) -> (String, Usage) {
        let body = self.ask("/v1/chat/completions", request);
        let text = body["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned();
        (text, Usage::of(&body))
    }

    /// A chat completion that must succeed, as it comes.
    pub(crate) fn stream(&self, request: &Value) -> Answer {
        let mut request = request.clone();
        request["stream"] = true.into();
        request["stream_options"] = json!({"include_usage": true});
        let begin = Instant::now();
        let response = self.send("/v1/chat/completions", &request);
        let status = response.status().as_u16();
        let reader = BufReader::new(response.into_body().into_reader());
        let (mut times, mut events) = (Vec::new(), Vec::new());
        for line in reader.lines() {
            let line = line.expect("the stream is text");
            assert_eq!(status, 200, "{}: {line}", self.base);
            // The first event of either side has a role and no text.
            if line.contains("\"content\":\"") && !line.contains("\"role\"") {
                times.push(begin.elapsed().as_secs_f64());
            }
            events.push(line);
        }
        let end = begin.elapsed().as_secs_f64();
        let events = events.iter().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok());
        let (mut text, mut usage) = (String::new(), Usage::default());
        for event in events.collect::<Vec<Value>>() {
            text.push_str(event["choices"][0]["delta"]["content"].as_str().unwrap_or_default());
            if event["usage"].is_object() {
                usage = Usage::of(&event);
            }
        }
        assert!(!times.is_empty(), "{}: an answer without text", self.base);
        Answer { times, end, text, usage }
    }

    fn send(&self, path: &str, body: &Value) -> ureq::http::Response<ureq::Body> {
        let request = self.agent.post(format!("{}{path}", self.base)).header("content-type", "application/json");
        request.send(body.to_string()).expect("the server answers")
    }
}

impl Answer {
    /// Tokens a second after the first one.
    pub(crate) fn decode_rate(&self) -> f64 {
        let took = self.times[self.times.len() - 1] - self.times[0];
        self.usage.completion.saturating_sub(1) as f64 / took
    }
}
