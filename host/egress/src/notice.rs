//! Tells the operator of denials, without letting a guest fill the log.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::error::{EgressError, Prohibited};
use crate::owner::Owner;
use crate::target::{Route, Target};

/// How long something that was told is not told again.
const QUIET: Duration = Duration::from_secs(600);

/// How many things are told in that time.
const MOST: usize = 100;

/// What was told lately.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    since: Option<Instant>,
    what: HashSet<(Arc<str>, Arc<str>, String)>,
}

/// Whether something is to be told.
#[derive(Debug, PartialEq, Eq)]
enum Telling {
    /// It is new.
    Tell,
    /// It is new, and the last one for a while.
    Last,
    /// It was told, or too much was.
    Quiet,
}

impl Notices {
    fn ask(&self, owner: &Owner, what: &str) -> Telling {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.since.is_none_or(|since| since.elapsed() >= QUIET) {
            *told = Told { since: Some(Instant::now()), what: HashSet::new() };
        }
        if told.what.len() >= MOST {
            return Telling::Quiet;
        }
        let key = (Arc::clone(&owner.tenant), Arc::clone(&owner.component), what.to_owned());
        match (told.what.insert(key), told.what.len()) {
            (false, _) => Telling::Quiet,
            (true, MOST) => Telling::Last,
            (true, _) => Telling::Tell,
        }
    }

    /// Tells that a credential cannot be used, once in a while for each component and
    /// origin: the guest learns no more than that.
    pub(crate) fn unusable(&self, owner: &Owner, target: &Target, error: &EgressError) {
        if self.ask(owner, &format!("the credential for {target}")) == Telling::Quiet {
            return;
        }
        let Owner { tenant, component } = owner;
        tracing::error!(target: "nala::outbound", %tenant, %component, "outgoing request not sent: {error}");
    }

    /// Tells of a denial, once for each component and host.
    pub(crate) fn denied(&self, owner: &Owner, route: &Route, error: &EgressError) {
        let fix = match (error, route) {
            (EgressError::Denied(denial), _) => denial.to_string(),
            (EgressError::AddressProhibited { why: Prohibited::ByOperator, .. }, _) => {
                format!("{error}, by `refused` of [egress] in the server's configuration")
            }
            (EgressError::AddressProhibited { address, .. }, Route::Outside(target)) => {
                let by_address = Target { host: crate::target::Host::Address(*address), ..target.clone() };
                format!(
                    "{error}; to allow it, add \"{by_address}\" to allowed_outbound_hosts of the component, or the \
                     network to `private` of [egress] in the server's configuration"
                )
            }
            _ => return,
        };
        let what = match route {
            Route::Outside(target) => target.to_string(),
            Route::Component(name) => name.to_string(),
            Route::Application => String::new(),
        };
        let telling = self.ask(owner, &what);
        if telling == Telling::Quiet {
            return;
        }
        let Owner { tenant, component } = owner;
        tracing::info!(target: "nala::outbound", %tenant, %component, "outgoing request denied: {fix}");
        if telling == Telling::Last {
            let minutes = QUIET.as_secs() / 60;
            tracing::info!(target: "nala::outbound", "further denials are not logged for up to {minutes} minutes");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_denial_is_told_once_for_each_component_and_host_and_all_are_bounded() {
        let notices = Notices::default();
        let (one, two) = (Owner::new("t", "one"), Owner::new("t", "two"));
        assert_eq!(notices.ask(&one, "http://a"), Telling::Tell);
        assert_eq!(notices.ask(&one, "http://a"), Telling::Quiet);
        assert_eq!(notices.ask(&two, "http://a"), Telling::Tell);
        for n in 2..MOST - 1 {
            assert_eq!(notices.ask(&one, &format!("http://{n}")), Telling::Tell);
        }
        assert_eq!(notices.ask(&one, "http://last"), Telling::Last);
        assert_eq!(notices.ask(&one, "http://more"), Telling::Quiet);
        tokio::time::advance(QUIET).await;
        assert_eq!(notices.ask(&one, "http://a"), Telling::Tell);
    }
}
