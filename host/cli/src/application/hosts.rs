//! `allowed_outbound_hosts` with the values of variables in their places.

use nala_egress::AllowList;
use nala_manifest::variables::Values;
use nala_manifest::{AllowedHost, Component};

/// What a component may reach.
///
/// # Errors
/// An entry that cannot be read, with its place.
pub(super) fn allowed(component: &Component, values: &Values) -> anyhow::Result<AllowList> {
    let (mut hosts, mut texts) = (Vec::new(), Vec::new());
    for host in &component.allowed_outbound_hosts {
        let resolved = values.resolve(&host.template)?;
        if !is_left_out(host, resolved.expose()) {
            hosts.push(host);
            texts.push(resolved.expose().to_owned());
        }
    }
    AllowList::parse(&texts).map_err(|error| match hosts.get(error.index) {
        // The value may be a secret.
        Some(host) => host
            .place
            .error(format!("`{}` cannot be allowed: {}", host.template, error.fault), "see docs/egress.md")
            .into(),
        None => anyhow::Error::new(error),
    })
}

/// Whether an entry stands only for what its variables may name, and they name nothing:
/// it is left out then, as Spin does.
pub(crate) fn is_left_out(host: &AllowedHost, text: &str) -> bool {
    host.template.literal().is_none() && (text.trim().is_empty() || text.ends_with("://"))
}
