//! All issuers, and whose a token is.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use jsonwebtoken::{Validation, decode, decode_header};
use nala_egress::Egress;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::claims::{self, Claims};
use crate::fetch;
use crate::issuer::{Issuer, Whose};
use crate::keys::SigningKey;
use crate::provider;

/// The longest token that is looked at, in bytes.
const LONGEST: usize = 16 << 10;
/// How often keys are fetched again: one that an issuer has withdrawn counts for so long.
const AGAIN: Duration = Duration::from_secs(300);
/// The same for a file.
const FILE_AGAIN: Duration = Duration::from_secs(10);
/// How soon they may be, when a token is signed by a key that is not known: anybody can
/// write one.
const SOONEST: Duration = Duration::from_secs(10);
/// How long it takes at first, and at most, until an issuer that gave none is asked again.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Why a token says nothing about whose a request is. None of the texts repeats it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// Nobody's tokens look like this.
    #[error("this is neither a key nor a token of an issuer that is known here")]
    Unknown,
    /// The keys of its issuer could not be fetched until now.
    #[error("the keys of the token's issuer are not there yet: try again shortly")]
    NoKeys,
    /// It names a key that its issuer has not published, or no longer.
    #[error("the token is signed by a key that its issuer has not published: get a new one")]
    UnknownKey,
    /// It was good until a while ago.
    #[error("the token has expired: get a new one")]
    Expired,
    /// Something else about it is wrong.
    #[error("the token is not right ({0}): get a new one")]
    Wrong(String),
    /// It says nothing of whose it is.
    #[error("the token has no claim `{0}`, which names whose it is: ask the operator")]
    NoClaim(String),
    /// It does not allow what this needs.
    #[error("the token does not allow this: get one with the scopes {}", .0.join(" "))]
    Scope(Vec<String>),
}

/// An issuer, with its keys as far as they are there.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) issuer: Issuer,
    keys: RwLock<Option<Arc<Vec<SigningKey>>>>,
    /// That a token has named a key which is not among them.
    wanted: Notify,
}

/// All issuers whose tokens are taken. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Tokens {
    pub(crate) all: Arc<[Known]>,
}

impl Tokens {
    /// Those of these issuers. Their keys are not there before [`Tokens::follow`].
    #[must_use]
    pub fn new(issuers: Vec<Issuer>) -> Self {
        provider::install();
        let known = |issuer| Known { issuer, keys: RwLock::default(), wanted: Notify::new() };
        Self { all: issuers.into_iter().map(known).collect() }
    }

    /// Whether none are taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whose they are.
    pub fn issuers(&self) -> impl Iterator<Item = &Issuer> {
        self.all.iter().map(|known| &known.issuer)
    }

    /// The name of the tenant whose a token is.
    ///
    /// # Errors
    /// It is nobody's.
    pub fn owner(&self, token: &str) -> Result<String, Refused> {
        if token.len() > LONGEST {
            return Err(Refused::Unknown);
        }
        let (issuer, audience) = claims::said(token).ok_or(Refused::Unknown)?;
        let is_from = |known: &&Known| known.issuer.issuer == issuer;
        let mut known = self.all.iter().filter(is_from).peekable();
        if known.peek().is_none() {
            return Err(Refused::Unknown);
        }
        let known = known.find(|known| known.issuer.audiences().iter().any(|own| audience.has(own)));
        known.ok_or_else(|| Refused::Wrong("it is for another server".to_owned()))?.owner(token)
    }

    /// Fetches the keys of all issuers, and again from time to time; it does not end.
    /// `egress` is the way to an issuer, if there is one.
    pub async fn follow(self, egress: impl Fn(&Issuer) -> Option<Egress>) {
        let mut all = JoinSet::new();
        for index in 0..self.all.len() {
            let Some(egress) = self.all.get(index).map(|known| egress(&known.issuer)) else { continue };
            let tokens = self.clone();
            all.spawn(async move {
                if let Some(known) = tokens.all.get(index) {
                    known.follow(egress.as_ref()).await;
                }
            });
        }
        while all.join_next().await.is_some() {}
    }
}

impl Known {
    fn owner(&self, token: &str) -> Result<String, Refused> {
        let header = decode_header(token).map_err(|error| Refused::Wrong(error.to_string()))?;
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner).clone().ok_or(Refused::NoKeys)?;
        let mut validation = Validation::new(header.alg);
        validation.validate_nbf = true;
        validation.set_issuer(&[&self.issuer.issuer]);
        validation.set_audience(&self.issuer.audiences());
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        let mut refused = Refused::UnknownKey;
        for key in keys.iter().filter(|key| key.fits(header.kid.as_deref(), header.alg)) {
            match decode::<Claims>(token, &key.key, &validation) {
                Ok(token) => return self.of(&token.claims),
                Err(error) => refused = why(&error),
            }
        }
        if refused == Refused::UnknownKey {
            self.wanted.notify_one();
        }
        Err(refused)
    }

    fn of(&self, claims: &Claims) -> Result<String, Refused> {
        if !claims::allows(claims, &self.issuer.scopes) {
            return Err(Refused::Scope(self.issuer.scopes.clone()));
        }
        match &self.issuer.whose {
            Whose::Tenant(name) => Ok(name.clone()),
            Whose::Claim(claim) => match claims.get(claim).and_then(serde_json::Value::as_str) {
                Some(name) => Ok(name.to_owned()),
                None => Err(Refused::NoClaim(claim.clone())),
            },
        }
    }

    async fn follow(&self, egress: Option<&Egress>) {
        let again = if self.issuer.keys.are_elsewhere() { AGAIN } else { FILE_AGAIN };
        let mut retry = RETRY.0;
        let mut told = None;
        loop {
            let begun = Instant::now();
            match fetch::keys(&self.issuer, egress).await {
                Ok(keys) => {
                    tracing::debug!(issuer = self.issuer.issuer, keys = keys.len(), "the keys of an issuer are there");
                    *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(keys));
                    (retry, told) = (RETRY.0, None);
                    // A token can ask for new ones, but not at once.
                    let _asked = timeout(again, self.wanted.notified()).await;
                    sleep_until(begun + SOONEST.min(again)).await;
                }
                Err(error) => {
                    let error = error.to_string();
                    if told.as_ref() != Some(&error) {
                        tracing::warn!(issuer = self.issuer.issuer, error, "the keys of an issuer cannot be fetched");
                        told = Some(error);
                    }
                    sleep(retry).await;
                    retry = (retry * 2).min(RETRY.1);
                }
            }
        }
    }
}

fn why(error: &jsonwebtoken::errors::Error) -> Refused {
    use jsonwebtoken::errors::ErrorKind;
    match error.kind() {
        ErrorKind::ExpiredSignature => Refused::Expired,
        _ => Refused::Wrong(error.to_string()),
    }
}

#[cfg(test)]
#[path = "tokens_tests.rs"]
mod tests;
