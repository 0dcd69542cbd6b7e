//! Outgoing HTTP for guests: by allow-list, and never to where the list does
//! not lead.
//!
//! A process has one [`Gate`], which holds what all share: how names are
//! resolved, what certificates are trusted, the limits and the idle
//! connections. [`Gate::egress`] makes an [`Egress`] of it for one component,
//! with that component's [`AllowList`]; [`Egress::send`] sends a request.
//!
//! What it promises, whatever a guest asks for and a server answers:
//! - A request goes only to an origin that the list names, and a connection
//!   only to an address that was judged. Loopback, private and other
//!   special-purpose addresses ([`Special`]) are refused unless they are
//!   granted as addresses, so what DNS says can never widen a grant.
//! - A name is resolved once a connection, and what was judged is what is
//!   connected to. TLS and the `Host` header keep the name.
//! - Redirects are not followed and no proxy is taken from the environment.
//! - The guest has no say in how the message is framed: see [`FORBIDDEN`].
//! - Everything is bounded: connections ([`Admit`]), bytes of heads, and times
//!   ([`Timeouts`]), whose sum is bounded too.
//! - A connection belongs to one tenant and is never used for another.
//! - What the host adds to requests ([`Credential`]) goes to its one origin, and
//!   is in nothing that a guest can read.
//!
//! Each [`EgressError`] is one `error-code` of wasi:http. The crate does not
//! know how guests run.

mod admit;
mod allow;
mod body;
mod config;
mod connect;
mod credential;
mod error;
mod gate;
mod head;
mod judge;
mod metrics;
mod networks;
mod notice;
mod owner;
mod pool;
mod range;
mod resolve;
mod target;
mod tls;
mod wire;

pub use admit::{Admit, ConnectionLimit, Permit};
pub use allow::{AllowError, AllowFault, AllowList, Chained};
pub use body::{BoxError, ResponseBody};
pub use config::{GateConfig, Idle, Sizes, Timeouts, Whole};
pub use credential::{Credential, CredentialError, Form, Held, Plain, Unusable};
pub use error::{Denial, EgressError, Prohibited};
pub use gate::{Egress, Gate, StartError};
pub use head::FORBIDDEN;
pub use metrics::EgressMetrics;
pub use networks::{NetworkError, Networks};
pub use owner::Owner;
pub use range::{Special, special};
pub use resolve::{Resolve, Resolved, SystemResolver};
pub use target::{Host, Route, Scheme, Target};
pub use tls::TrustRoots;
