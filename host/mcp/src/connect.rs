//! How a connection to a server begins.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use nala_egress::Egress;
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientCacheConfig, ClientLifecycleMode, ClientServiceExt, RoleClient, RunningService};
use rmcp::transport::IntoTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::auth::AuthClient;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};

use crate::endpoint::{Access, Endpoint, Remote};
use crate::error::ServerError;
use crate::handler::Handler;
use crate::http::Http;
use crate::oauth;

/// A connection to a server.
pub(crate) type Service = RunningService<RoleClient, Handler>;

/// The longest that a connection may take to be made, whatever a server allows for calls.
const STARTING: Duration = Duration::from_secs(30);

/// What bounds what a server says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// The bytes of a message.
    pub(crate) message: usize,
}

/// Connects to a server.
pub(crate) async fn connect(
    endpoint: &Endpoint,
    egress: Option<&Egress>,
    bounds: Bounds,
    handler: Handler,
) -> Result<Service, ServerError> {
    let starting = async {
        match begin(endpoint, egress, bounds, handler.clone(), newest()).await {
            // It answers something else to what it does not know.
            Err(ServerError::Wrong(_)) => {
                begin(endpoint, egress, bounds, handler, ClientLifecycleMode::Initialize).await
            }
            connected => connected,
        }
    };
    tokio::time::timeout(STARTING, starting).await.unwrap_or(Err(ServerError::Late(STARTING)))
}

async fn begin(
    endpoint: &Endpoint,
    egress: Option<&Egress>,
    bounds: Bounds,
    handler: Handler,
    lifecycle: ClientLifecycleMode,
) -> Result<Service, ServerError> {
    match endpoint {
        Endpoint::Remote(remote) => {
            let no_way = || ServerError::Unreachable("this process has no way to servers outside".to_owned());
            over_http(remote, egress.ok_or_else(no_way)?, bounds, Client { handler, lifecycle }).await
        }
        Endpoint::Program(program) => {
            let pipe = program.keeper.start(program.index).await;
            let pipe = pipe.map_err(|error| ServerError::Unreachable(format!("it cannot be started: {error}")))?;
            let (read, write) = pipe.into_split(bounds.message);
            Client { handler, lifecycle }.serve(AsyncRwTransport::new_client(read, write)).await
        }
    }
}

async fn over_http(remote: &Remote, egress: &Egress, bounds: Bounds, client: Client) -> Result<Service, ServerError> {
    let http = Http::new(egress.clone());
    let config = StreamableHttpClientTransportConfig::with_uri(remote.url.as_str())
        .custom_headers(remote.headers.iter().cloned().collect::<HashMap<_, _>>())
        .max_sse_event_size(bounds.message)
        .max_json_response_size(bounds.message)
        .reinit_on_expired_session(true);
    let stream = http.clone();
    let connected = match &remote.access {
        Access::None => client.speak(http, config).await,
        Access::Token(token) => client.speak(http, config.auth_header(token.clone())).await,
        Access::Client(grant) => {
            let manager = oauth::by_credentials(&remote.url, grant, http.clone()).await?;
            client.speak(AuthClient::new(http, manager), config).await
        }
        Access::Login(tokens) => {
            let manager = oauth::by_tokens(&remote.url, tokens, http.clone()).await?;
            client.speak(AuthClient::new(http, manager), config).await
        }
    };
    let service = connected?;
    // In older versions questions come by a stream of their own. Beside what is asked first, it
    // could be taken for that being asked for again.
    let is_old = service.peer_info().is_some_and(|info| info.protocol_version < ProtocolVersion::V_2026_07_28);
    if is_old {
        let _none = tokio::time::timeout(LISTENING, stream.listening()).await;
    }
    Ok(service)
}

/// How long a server may take to say whether it has a stream of its own.
const LISTENING: Duration = Duration::from_millis(500);

/// The newest version without a handshake first; whoever says that it does not know it is
/// asked as before.
fn newest() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::V_2025_11_25),
    }
}

/// This side of a connection that is to begin.
struct Client {
    handler: Handler,
    lifecycle: ClientLifecycleMode,
}

impl Client {
    async fn speak<C>(self, http: C, config: StreamableHttpClientTransportConfig) -> Result<Service, ServerError>
    where
        C: StreamableHttpClient + Send + Sync,
    {
        self.serve(StreamableHttpClientTransport::with_client(http, config)).await
    }

    async fn serve<T, E, A>(self, transport: T) -> Result<Service, ServerError>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let serving = self.handler.serve_with_lifecycle(transport, self.lifecycle);
        let service = serving.await.map_err(|error| ServerError::of_start(&error))?;
        // What a server says is kept by whoever asks, within bounds; kept for as long as the
        // server likes it would grow, and hide that tools have changed.
        service.peer().set_response_cache_config(ClientCacheConfig::disabled()).await;
        Ok(service)
    }
}

/// Clones of what a connection is made with are the same.
#[derive(Debug, Clone)]
pub(crate) struct Way {
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) egress: Option<Egress>,
    pub(crate) bounds: Bounds,
}

impl Way {
    /// Connects.
    pub(crate) async fn connect(&self, handler: Handler) -> Result<Service, ServerError> {
        connect(&self.endpoint, self.egress.as_ref(), self.bounds, handler).await
    }
}
