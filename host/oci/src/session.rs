//! Asking a registry about one repository, as whoever has its credentials.
//!
//! Source: <https://github.com/opencontainers/distribution-spec/blob/main/spec.md>.

use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::Deserialize;
use url::Url;

use crate::challenge::{self, Challenge};
use crate::client::Client;
use crate::credentials::Credentials;
use crate::error::{Error, shown};
use crate::reference::Reference;
use crate::web::{self, Broken};

/// Bytes of a token with what stands around it.
const LONGEST_TOKEN: usize = 256 * 1024;
/// Bytes of an error's text that are read; what is shown of them is less.
const LONGEST_WORDS: usize = 16 * 1024;

/// What is done with a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Pull,
    Push,
}

/// A conversation with a registry about one repository.
pub(crate) struct Session<'s> {
    client: &'s Client,
    reference: &'s Reference,
    credentials: &'s Credentials,
    action: Action,
    /// What all addresses of the repository begin with.
    base: Url,
    /// What the registry wants to be shown, once it has said so.
    shown: Option<HeaderValue>,
}

impl<'s> Session<'s> {
    pub(crate) fn new(
        client: &'s Client,
        reference: &'s Reference,
        credentials: &'s Credentials,
        action: Action,
    ) -> Result<Self, Error> {
        let (scheme, authority) = (client.scheme(reference), reference.authority());
        let base = Url::parse(&format!("{scheme}://{authority}/v2/{}/", reference.repository()))
            .map_err(|error| Error::Client(format!("{reference} makes no address: {error}")))?;
        client.web.admit(&base, &base).map_err(|refusal| Error::refused(reference, &refusal))?;
        let shown = match credentials {
            Credentials::Bearer(token) => challenge::header(token),
            _ => None,
        };
        Ok(Self { client, reference, credentials, action, base, shown })
    }

    /// The address of a part of the repository.
    pub(crate) fn url(&self, path: &str) -> Result<Url, Error> {
        self.base.join(path).map_err(|error| self.wrong(format!("`{}` is no address: {error}", shown(path))))
    }

    /// An address that the registry has named, which may be elsewhere.
    pub(crate) fn named(&self, address: &str) -> Result<Url, Error> {
        let url = self.url(address)?;
        self.client.web.admit(&self.base, &url).map_err(|refusal| Error::refused(self.reference, &refusal))?;
        Ok(url)
    }

    /// Sends a request, once more if the registry wants to know who asks. `finish` makes
    /// of a request with its method and address what is to be sent.
    pub(crate) async fn send(
        &mut self,
        method: Method,
        url: &Url,
        finish: impl Fn(RequestBuilder) -> RequestBuilder,
    ) -> Result<Response, Error> {
        let response = self.send_once(method.clone(), url, &finish).await?;
        let unknown = response.status() == StatusCode::UNAUTHORIZED && self.shown.is_none();
        // Elsewhere nothing of ours is shown, and where a redirect has led is elsewhere.
        if !unknown || !self.is_registry(url) || !self.is_registry(response.url()) {
            return Ok(response);
        }
        self.authenticate(response).await?;
        self.send_once(method, url, &finish).await
    }

    async fn send_once(
        &self,
        method: Method,
        url: &Url,
        finish: impl Fn(RequestBuilder) -> RequestBuilder,
    ) -> Result<Response, Error> {
        let mut request = finish(self.client.web.request(method, url.clone()));
        if let Some(shown) = self.shown.as_ref().filter(|_| self.is_registry(url)) {
            request = request.header(AUTHORIZATION, shown.clone());
        }
        request.send().await.map_err(|error| Error::from_request(&error, self.reference))
    }

    fn is_registry(&self, url: &Url) -> bool {
        url.origin() == self.base.origin()
    }

    /// Finds out what to show to whoever has answered so.
    async fn authenticate(&mut self, response: Response) -> Result<(), Error> {
        let shown = match Challenge::of(response.headers()) {
            Some(Challenge::Bearer { realm, service, scope }) => self.token(&realm, service, scope).await?,
            Some(Challenge::Basic) => self.password().ok_or_else(|| self.unauthorized())?,
            None => return Err(self.unauthorized()),
        };
        self.shown = Some(shown);
        Ok(())
    }

    fn password(&self) -> Option<HeaderValue> {
        let Credentials::Password { user, password } = self.credentials else { return None };
        let request = self.client.web.request(Method::GET, self.base.clone()).basic_auth(user, Some(password));
        let mut value = request.build().ok()?.headers().get(AUTHORIZATION)?.clone();
        value.set_sensitive(true);
        Some(value)
    }

    /// Asks whoever gives tokens for the registry.
    async fn token(&self, realm: &str, service: Option<String>, scope: Option<String>) -> Result<HeaderValue, Error> {
        let mut url =
            Url::parse(realm).map_err(|error| self.wrong(format!("`{}` is no address: {error}", shown(realm))))?;
        self.client.web.admit(&self.base, &url).map_err(|refusal| Error::refused(self.reference, &refusal))?;
        let action = match self.action {
            Action::Pull => "pull",
            Action::Push => "pull,push",
        };
        let scope = scope.unwrap_or_else(|| format!("repository:{}:{action}", self.reference.repository()));
        url.query_pairs_mut().append_pair("scope", &scope);
        if let Some(service) = service {
            url.query_pairs_mut().append_pair("service", &service);
        }
        let mut request = self.client.web.request(Method::GET, url);
        if let Some(password) = self.password() {
            request = request.header(AUTHORIZATION, password);
        }
        let response = request.send().await.map_err(|error| Error::from_request(&error, self.reference))?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Err(self.unauthorized()),
            _ => return Err(self.refusal(response).await),
        }
        let answer = self.whole(response, LONGEST_TOKEN, "a token").await?;
        challenge::bearer(&answer).map_err(|why| self.wrong(why.to_owned()))
    }

    /// Reads an answer of at most `limit` bytes.
    pub(crate) async fn whole(&self, response: Response, limit: usize, what: &str) -> Result<Vec<u8>, Error> {
        web::whole(response, limit).await.map_err(|broken| match broken {
            Broken::TooLong => self.wrong(format!("{what} of more than {limit} bytes")),
            Broken::Cut(error) => Error::from_request(&error, self.reference),
        })
    }

    /// Why an answer is not what was asked for.
    pub(crate) async fn refusal(&self, response: Response) -> Error {
        let status = response.status();
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return self.unauthorized(),
            StatusCode::NOT_FOUND => return Error::NotFound(self.reference.to_string()),
            _ => {}
        }
        // Without its words the status is told alone.
        let words = web::whole(response, LONGEST_WORDS).await.unwrap_or_default();
        let words = shown(&words_of(&words));
        self.wrong(if words.is_empty() { status.to_string() } else { format!("{status}: {words}") })
    }

    pub(crate) fn wrong(&self, why: String) -> Error {
        Error::Registry { registry: self.reference.registry().to_owned(), why }
    }

    fn unauthorized(&self) -> Error {
        Error::Unauthorized { registry: self.reference.registry().to_owned(), reference: self.reference.to_string() }
    }
}

/// The errors of a registry.
///
/// Source: <https://github.com/opencontainers/distribution-spec/blob/main/spec.md#error-codes>.
#[derive(Deserialize)]
struct Envelope {
    errors: Vec<OneError>,
}

#[derive(Deserialize)]
struct OneError {
    code: String,
    #[serde(default)]
    message: String,
}

fn words_of(body: &[u8]) -> String {
    match serde_json::from_slice::<Envelope>(body) {
        Ok(Envelope { errors }) => {
            let texts = errors.iter().map(|error| format!("{} {}", error.code, error.message).trim().to_owned());
            texts.collect::<Vec<_>>().join(", ")
        }
        Err(_) => String::from_utf8_lossy(body).trim().to_owned(),
    }
}
