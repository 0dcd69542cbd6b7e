//! On whose behalf a request is made.

use std::sync::Arc;

/// On whose behalf a request is made. The host gives it, never the guest.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    /// Whose connections and limits these are.
    pub tenant: Arc<str>,
    /// The component's name in the manifest, for messages to the operator.
    pub component: Arc<str>,
}

impl Owner {
    /// A component of a tenant.
    pub fn new(tenant: impl Into<Arc<str>>, component: impl Into<Arc<str>>) -> Self {
        Self { tenant: tenant.into(), component: component.into() }
    }
}
