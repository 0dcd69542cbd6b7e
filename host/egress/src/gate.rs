//! How a request gets out.

mod dial;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, Uri};
use http_body::Body;
use hyper::body::Incoming;
use tokio::time::{Instant, timeout_at};

use crate::admit::Admit;
use crate::allow::AllowList;
use crate::body::{BodyLimits, BoxError, OutgoingBody, ResponseBody};
use crate::config::{GateConfig, Timeouts};
use crate::credential::{Credential, Ready};
use crate::error::{Denial, EgressError};
use crate::head;
use crate::judge::{Standing, judge};
use crate::metrics::EgressMetrics;
use crate::notice::Notices;
use crate::owner::Owner;
use crate::pool::{Connection, Key, Pool};
use crate::resolve::Resolve;
use crate::target::{Route, Target};
use crate::tls::Tls;
use crate::wire::{Unanswered, Wire};

/// How often a request is given to a connection that turns out to have ended.
const STALE: usize = 3;

/// A time that never comes, for timeouts that an operator has set beyond it.
const NEVER: Duration = Duration::from_secs(30 * 365 * 86_400);

/// The gate cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// What certificates are judged by cannot be read.
    #[error("outgoing TLS cannot be set up: {0}; is the system's list of certificate authorities installed?")]
    Tls(String),
}

/// What all outgoing requests of a process share.
#[derive(Clone)]
pub struct Gate {
    shared: Arc<Shared>,
}

struct Shared {
    config: GateConfig,
    resolver: Arc<dyn Resolve>,
    admit: Arc<dyn Admit>,
    metrics: EgressMetrics,
    tls: Arc<Tls>,
    pool: Arc<Pool>,
    notices: Notices,
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("config", &self.shared.config).finish_non_exhaustive()
    }
}

impl Gate {
    /// Reads what is trusted, and begins without connections.
    ///
    /// # Errors
    /// The certificates that are trusted cannot be read.
    pub fn new(
        config: GateConfig,
        resolver: Arc<dyn Resolve>,
        admit: Arc<dyn Admit>,
        metrics: EgressMetrics,
    ) -> Result<Self, StartError> {
        let tls = Arc::new(Tls::new(&config.roots).map_err(|error| StartError::Tls(error.to_string()))?);
        let pool = Pool::new(config.idle);
        let notices = Notices::default();
        Ok(Self { shared: Arc::new(Shared { config, resolver, admit, metrics, tls, pool, notices }) })
    }

    /// The way out for one component.
    pub fn egress(&self, owner: Owner, allow: AllowList) -> Egress {
        Egress { shared: Arc::clone(&self.shared), owner, allow, credentials: Arc::default() }
    }
}

/// The way out for one component. Clones are the same.
#[derive(Clone)]
pub struct Egress {
    shared: Arc<Shared>,
    owner: Owner,
    allow: AllowList,
    credentials: Arc<[Arc<Credential>]>,
}

impl fmt::Debug for Egress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Egress").field("owner", &self.owner).field("allow", &self.allow).finish_non_exhaustive()
    }
}

/// Where a request goes, and what is known of who is there.
struct Errand {
    target: Target,
    address: head::Address,
    /// By whose word it is found out who is there.
    tls: Arc<Tls>,
    standing: Standing,
}

/// What a request is bounded by.
#[derive(Clone, Copy)]
struct Bounds {
    timeouts: Timeouts,
    /// When the exchange must have ended.
    deadline: Instant,
}

impl Egress {
    /// The same, with what the host adds to requests of this component. Of two for
    /// one origin the first counts.
    #[must_use]
    pub fn with_credentials(self, credentials: impl IntoIterator<Item = Arc<Credential>>) -> Self {
        Self { credentials: credentials.into_iter().collect(), ..self }
    }

    /// Who is to answer a request for a URL, if the component may ask. Those
    /// within the application are for the caller to answer; the others are for
    /// [`Egress::send`], which asks this again.
    ///
    /// # Errors
    /// The URL cannot be used, or nothing in the list allows it. A denial is
    /// logged and counted.
    pub fn route(&self, uri: &Uri) -> Result<Route, EgressError> {
        let route = self.allowed(uri);
        if let Err(error) = &route {
            self.shared.metrics.ended(Some(error));
        }
        route
    }

    fn allowed(&self, uri: &Uri) -> Result<Route, EgressError> {
        let route = Route::of(uri)?;
        let denial = match &route {
            Route::Outside(target) if self.allow.allows(target) => return Ok(route),
            Route::Component(name) if self.allow.allows_component(name) => return Ok(route),
            Route::Application if self.allow.allows_application() => return Ok(route),
            Route::Outside(target) => Denial::Host { origin: target.to_string() },
            Route::Component(name) => Denial::Component { name: name.to_string() },
            Route::Application => Denial::Application,
        };
        let error = EgressError::from(denial);
        self.shared.notices.denied(&self.owner, &route, &error);
        Err(error)
    }

    /// Sends a request to the server that its URL names, and waits for the
    /// head of the response. A redirect is a response like any other.
    ///
    /// Of a body without a known length, nothing is sent with `GET` and `HEAD`.
    /// Dropping the future or the response's body ends the exchange.
    ///
    /// # Errors
    /// See [`EgressError`].
    pub fn send<B>(
        &self,
        request: Request<B>,
        timeouts: Timeouts,
    ) -> impl Future<Output = Result<Response<ResponseBody>, EgressError>> + Send + 'static
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let this = self.clone();
        async move {
            let result = this.exchange(request, timeouts).await;
            this.shared.metrics.ended(result.as_ref().err());
            result
        }
    }

    async fn exchange<B>(&self, mut request: Request<B>, asked: Timeouts) -> Result<Response<ResponseBody>, EgressError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let Route::Outside(target) = self.allowed(request.uri())? else {
            return Err(Denial::NotOutside.into());
        };
        let config = &self.shared.config;
        let bounds = Bounds { timeouts: asked.within(config.timeouts), deadline: after(config.whole.0) };
        let checked = head::check(&mut request, &target, &config.sizes)?;
        // What the caller noted about a request is not for the wire.
        request.extensions_mut().clear();
        let shown = self.shown(&target, request.method(), bounds).await?;
        let guarded = shown.as_ref().map(|(ready, _)| ready.name.clone());
        let (tls, standing) = match shown {
            None => (None, Standing::Unknown),
            Some((Ready { name, value, tls }, standing)) => {
                // In place of whatever the guest has there: many clients do not go
                // without some key.
                request.headers_mut().insert(name, value);
                (tls, standing)
            }
        };
        let tls = tls.unwrap_or_else(|| Arc::clone(&self.shared.tls));
        let errand = Errand { target, address: checked.address, tls, standing };
        let sent = self.shared.metrics.sent.clone();
        let request =
            request.map(|body| OutgoingBody::new(body, checked.length, bounds.deadline, sent).guarding(guarded));
        let result = self.deliver(request, &errand, bounds).await;
        if let Err(error @ EgressError::AddressProhibited { .. }) = &result {
            self.shared.notices.denied(&self.owner, &Route::Outside(errand.target), error);
        }
        result
    }

    /// What the host shows to a server on behalf of this component, if anything, and
    /// what is known of the server thereby.
    async fn shown(
        &self,
        target: &Target,
        method: &Method,
        bounds: Bounds,
    ) -> Result<Option<(Ready, Standing)>, EgressError> {
        let Some(credential) = self.credentials.iter().find(|one| one.origin() == target) else { return Ok(None) };
        Credential::check(method)?;
        let by = after(bounds.timeouts.connect).min(bounds.deadline);
        let ready = timeout_at(by, credential.ready()).await.map_err(|_| EgressError::ConnectionTimeout)?;
        let ready = ready.map_err(|why| {
            let error = EgressError::Credential { target: target.to_string(), why };
            self.shared.notices.unusable(&self.owner, target, &error);
            error
        })?;
        Ok(Some((ready, credential.standing())))
    }

    /// Sends a request that was checked, on a connection that is there or on a
    /// new one.
    async fn deliver(
        &self,
        mut request: Request<OutgoingBody>,
        errand: &Errand,
        bounds: Bounds,
    ) -> Result<Response<ResponseBody>, EgressError> {
        let Shared { config, pool, metrics, .. } = &*self.shared;
        let Errand { target, address, tls, standing } = errand;
        let key = Key { tenant: Arc::clone(&self.owner.tenant), target: target.clone(), trust: tls.number() };
        let good = |address: IpAddr| judge(address, target, *standing, &self.allow, &config.networks).is_ok();
        for _ in 0..STALE {
            // Judged again: another component of the tenant may have made it.
            let Some(mut connection) = pool.take(&key, good) else { break };
            match self.ask(&mut connection, request, address, bounds).await {
                Ok(response) => {
                    metrics.connections_reused.inc();
                    return self.answered(key, connection, response, bounds);
                }
                Err(Unanswered::Unsent(back)) => request = *back,
                Err(Unanswered::Failed(error)) => return Err(error),
            }
        }
        let mut connection = self.connect(errand, bounds).await?;
        if let Wire::Two(sender) = &connection.wire {
            let Connection { address, opened, .. } = connection;
            pool.put(key.clone(), Connection { wire: Wire::Two(sender.clone()), address, opened });
        }
        match self.ask(&mut connection, request, address, bounds).await {
            Ok(response) => self.answered(key, connection, response, bounds),
            Err(Unanswered::Unsent(_)) => Err(EgressError::ConnectionTerminated("it ended before the request".into())),
            Err(Unanswered::Failed(error)) => Err(error),
        }
    }

    /// Sends a request on a connection and waits for the response's head.
    async fn ask(
        &self,
        connection: &mut Connection,
        request: Request<OutgoingBody>,
        address: &head::Address,
        bounds: Bounds,
    ) -> Result<Response<Incoming>, Unanswered> {
        let by = after(bounds.timeouts.first_byte).min(bounds.deadline);
        let head = self.shared.config.sizes.response_headers;
        match timeout_at(by, connection.wire.send(request, address, head)).await {
            Ok(result) => result,
            Err(_) if by == bounds.deadline => Err(Unanswered::Failed(EgressError::ResponseTimeout)),
            Err(_) => Err(Unanswered::Failed(EgressError::ConnectionReadTimeout)),
        }
    }

    /// Makes the guest's response of a server's, and keeps the connection for
    /// when it is free.
    fn answered(
        &self,
        key: Key,
        mut connection: Connection,
        mut response: Response<Incoming>,
        bounds: Bounds,
    ) -> Result<Response<ResponseBody>, EgressError> {
        head::clean(&mut response)?;
        if let Wire::One(..) = connection.wire {
            let pool = Arc::clone(&self.shared.pool);
            tokio::spawn(async move {
                if connection.wire.free(bounds.deadline).await {
                    pool.put(key, connection);
                }
            });
        }
        let limits = BodyLimits {
            between_bytes: bounds.timeouts.between_bytes,
            deadline: bounds.deadline,
            head: self.shared.config.sizes.response_headers,
        };
        let received = self.shared.metrics.received.clone();
        Ok(response.map(|body| ResponseBody::new(body, limits, received)))
    }
}

/// The time after a while.
fn after(time: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(time.min(NEVER)).unwrap_or(now)
}
