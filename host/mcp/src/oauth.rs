//! Authorization at servers: tokens that this client gets by itself, and those that
//! somebody gets for it in a browser. The protocol is OAuth 2.1 as the Model Context
//! Protocol has it; all of it is rmcp's, and all requests go through egress.

mod tokens;

use std::sync::Arc;

use nala_egress::Egress;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationRequest, AuthorizationSession, ClientCredentialsConfig,
    CredentialStore, OAuthState,
};
use thiserror::Error;
use url::Url;

use crate::ask::Abilities;
use crate::connect::{Bounds, connect};
use crate::endpoint::{Access, Endpoint, Grant, Remote};
use crate::error::ServerError;
use crate::handler::Handler;
use crate::http::Http;

pub use tokens::Tokens;

/// An authorization that knows its tokens, by the client's own credentials.
pub(crate) async fn by_credentials(url: &Url, grant: &Grant, http: Http) -> Result<AuthorizationManager, ServerError> {
    let config = ClientCredentialsConfig::ClientSecret {
        client_id: grant.client_id.clone(),
        client_secret: grant.client_secret.clone(),
        scopes: grant.scopes.clone(),
        resource: Some(url.to_string()),
    };
    let mut state = OAuthState::new_with_oauth_http_client(url.as_str(), Arc::new(http)).await.map_err(refused)?;
    state.authenticate_client_credentials(config).await.map_err(refused_elsewhere)?;
    state.into_authorization_manager().ok_or_else(|| ServerError::Wrong("no token came of it".to_owned()))
}

/// An authorization that knows its tokens, because somebody has logged in.
pub(crate) async fn by_tokens(
    url: &Url,
    tokens: &Arc<Tokens>,
    http: Http,
) -> Result<AuthorizationManager, ServerError> {
    let mut manager =
        AuthorizationManager::new_with_oauth_http_client(url.as_str(), Arc::new(http)).await.map_err(refused)?;
    manager.set_credential_store(Tokens::clone(tokens));
    match manager.initialize_from_store().await {
        Ok(true) => Ok(manager),
        Ok(false) => Err(ServerError::Unauthorized { scope: None, challenge: None }),
        Err(error) => Err(refused(error)),
    }
}

/// The same, where the secret is sent to nobody whom the manifest does not name.
fn refused_elsewhere(error: AuthError) -> ServerError {
    match crate::error::denied(&error) {
        Some(origin) => ServerError::Unreachable(format!(
            "the client's secret would be sent to {origin}: add \"{origin}\" to `hosts` of its `oauth` if it may be"
        )),
        None => refused(error),
    }
}

fn refused(error: AuthError) -> ServerError {
    match error {
        AuthError::AuthorizationRequired | AuthError::TokenExpired | AuthError::TokenRefreshRejected(_) => {
            ServerError::Unauthorized { scope: None, challenge: None }
        }
        other => ServerError::Unreachable(format!("its authorization: {}", crate::error::deepest(&other))),
    }
}

/// How somebody is to log in.
#[derive(Debug, Clone, Default)]
pub struct Login {
    /// Where the browser is sent when it is done.
    pub redirect: String,
    /// What this client is called where it registers itself.
    pub client_name: String,
    /// The client's identifier and secret, where it was registered before.
    pub registered: Option<(String, Option<String>)>,
    /// The address of a document that describes the client (Client ID Metadata Document),
    /// for servers that take one.
    pub metadata_url: Option<String>,
    /// What is asked for. None: what the server names.
    pub scopes: Vec<String>,
    /// What the server said when it refused a request, if it has.
    pub challenge: Option<String>,
}

/// Why nobody is logged in.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoginError {
    /// The server or its authorization server refuses, or cannot be reached.
    #[error(transparent)]
    Authorization(#[from] AuthError),
    /// The browser did not come back with a code.
    #[error("no answer came back from the browser: {0}")]
    Browser(String),
    /// The server cannot be asked how it wants to be authorized with.
    #[error(transparent)]
    Server(#[from] ServerError),
}

/// Has somebody log in at a server, and keeps the tokens. `visit` has a person go to an
/// address, and gives back the address that the browser is sent to in the end.
///
/// # Errors
/// See [`LoginError`].
pub async fn login<V, F>(url: &Url, egress: &Egress, login: Login, tokens: &Tokens, visit: V) -> Result<(), LoginError>
where
    V: FnOnce(Url) -> F,
    F: Future<Output = Result<String, String>>,
{
    let challenge = match login.challenge {
        Some(challenge) => Some(challenge),
        None => challenge(url, egress).await?,
    };
    let http = Arc::new(Http::new(egress.clone()));
    let mut manager = AuthorizationManager::new_with_oauth_http_client(url.as_str(), http).await?;
    manager.set_credential_store(tokens.clone());
    let scopes = match (login.scopes.is_empty(), &challenge) {
        (true, Some(challenge)) => with_those_before(challenge, tokens).await?,
        _ => login.scopes,
    };
    // What was registered at another authorization server is of no use at this one.
    let resolution = match &challenge {
        Some(_) => manager.resolve_metadata_from_challenge(challenge.as_deref()).await?,
        None => manager.resolve_metadata().await?,
    };
    manager.set_metadata(resolution.metadata);
    let mut request = AuthorizationRequest::new(login.redirect).with_client_name(login.client_name);
    request.scopes = scopes;
    request.client_metadata_url = login.metadata_url;
    if let Some((id, secret)) = login.registered {
        (request.client_id, request.client_secret) = (Some(id), secret);
    }
    let session = AuthorizationSession::new(manager, request).await.map_err(|(_, error)| error)?;
    let page = Url::parse(session.get_authorization_url()).map_err(AuthError::from)?;
    let back = visit(page).await.map_err(LoginError::Browser)?;
    session.handle_callback_url(&back).await?;
    Ok(())
}

/// What a challenge names, with what was granted before: a server that wants more would
/// take back the rest otherwise. Nothing, where it names nothing or nothing was granted:
/// what is asked for follows from the server's metadata then.
async fn with_those_before(challenge: &str, tokens: &Tokens) -> Result<Vec<String>, AuthError> {
    let before = tokens.load().await?.map(|before| before.granted_scopes).unwrap_or_default();
    let Some(wanted) = crate::error::wanted(challenge).filter(|_| !before.is_empty()) else { return Ok(Vec::new()) };
    let mut all = before;
    for scope in wanted.split(' ').map(str::to_owned) {
        if !all.contains(&scope) {
            all.push(scope);
        }
    }
    Ok(all)
}

/// What a server says to a request without authorization. None: it takes it.
async fn challenge(url: &Url, egress: &Egress) -> Result<Option<String>, ServerError> {
    let endpoint = Endpoint::Remote(Remote { url: url.clone(), headers: Vec::new(), access: Access::None });
    let bounds = Bounds { message: 1 << 20 };
    match connect(&endpoint, Some(egress), bounds, Handler::new(Abilities::default())).await {
        Ok(service) => {
            let _ended = service.cancel().await;
            Ok(None)
        }
        Err(ServerError::Unauthorized { challenge, .. }) => Ok(challenge.filter(|challenge| !challenge.is_empty())),
        Err(error) => Err(error),
    }
}
