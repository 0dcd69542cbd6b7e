//! Where a server is, and how it is asked.

use std::fmt;
use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use url::Url;

use crate::keeper::Keeper;
use crate::oauth::Tokens;

/// Where a server is.
#[derive(Debug)]
pub enum Endpoint {
    /// At a URL, by Streamable HTTP.
    Remote(Remote),
    /// A program of this machine, by its standard input and output.
    Program(Program),
}

/// A server at a URL.
#[derive(Debug)]
pub struct Remote {
    /// Its endpoint.
    pub url: Url,
    /// Fields that each request has. Their values are not shown in logs.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// How it is told who asks.
    pub access: Access,
}

/// How a server is told who asks.
pub enum Access {
    /// It is not, or by [`Remote::headers`].
    None,
    /// By a token, which stays the same.
    Token(String),
    /// By tokens that its authorization server gives to this client itself (OAuth 2.1's
    /// grant of client credentials).
    Client(Grant),
    /// By tokens that somebody has got by [`login`](crate::login).
    Login(Arc<Tokens>),
}

/// What a client is known by at an authorization server.
#[derive(Clone)]
pub struct Grant {
    /// Its identifier.
    pub client_id: String,
    /// Its secret.
    pub client_secret: String,
    /// What it asks for. None: what the server demands.
    pub scopes: Vec<String>,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Token(_) => "Token(..)",
            Self::Client(_) => "Client(..)",
            Self::Login(_) => "Login(..)",
        })
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant").field("client_id", &self.client_id).finish_non_exhaustive()
    }
}

/// A program that is a server.
#[derive(Debug)]
pub struct Program {
    /// Who starts it.
    pub keeper: Arc<Keeper>,
    /// Which of those that the keeper knows.
    pub index: u8,
}
