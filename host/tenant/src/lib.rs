//! Who a request belongs to, what its owner may use, and what was used.
//!
//! A [`Directory`] serves a [`Roster`] of tenants and says by a key, a host name
//! and a path whose a request is. The [`Tenant`] that it gives has a guard for
//! everything that is held ([`Held`]), a [`Bucket`] for everything that comes
//! again with each minute, and a [`Meter`] for each component. What there is to
//! limit stands in one table, [`Limit`]; all of it fails with one error,
//! [`Exceeded`]. [`Books`] keeps what was counted on disk.
//!
//! Nothing here waits but [`Admitting`], which needs no runtime, and nothing
//! knows of HTTP or Wasm: names and amounts come from those rooms.
//!
//! ```
//! use std::sync::Arc;
//! use nala_tenant::{Declared, Directory, Key, Presented, Roster, Shown, Stock, SystemClock, Totals};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (secret, stored) = Key::generate()?;
//! let mut roster = Roster::new();
//! roster.add(Declared { keys: vec![stored], ..Declared::new("acme".parse()?) })?;
//! let directory = Directory::new(roster, &Totals::default(), Arc::new(SystemClock::new()));
//!
//! let presented = Presented { by: Shown::Key(secret.expose()), host: Some("127.0.0.1"), path: "/v1/models" };
//! let tenant = directory.identify(&presented)?.tenant;
//! let _admission = tenant.admit()?;
//! let mut memory = tenant.hold(Stock::Memory, 0)?;
//! memory.grow(65_536)?;
//! assert_eq!(tenant.quota(Stock::Memory).used(), 65_536);
//! # Ok(())
//! # }
//! ```

mod admission;
mod books;
mod bucket;
mod class;
mod clock;
mod directory;
mod host_name;
mod key;
mod ledger;
mod limit;
mod meter;
mod prefix;
mod quota;
mod roster;
mod tenant;
mod waiting;

pub use admission::{Admission, Admitting};
pub use books::{Books, BooksError, json_lines, read_json_lines};
pub use bucket::Bucket;
pub use class::{ClassName, InvalidClass};
pub use clock::{Clock, ManualClock, SystemClock};
pub use directory::{Directory, Identity, Presented, Refusal, Shown};
pub use host_name::{HostName, InvalidHost};
pub use key::{InvalidKey, Key, KeyId, KeyRing, NoRandomness, Rejected, Secret, StoredKey};
pub use limit::{Ceiling, Exceeded, Limit, Limits, Rate, Row, Scope, Stock, UNLIMITED, Unit, markdown};
pub use meter::{Cells, Counter, Meter, Sample, Totals, Usage};
pub use prefix::{InvalidPrefix, Prefix};
pub use quota::{Held, Quota};
pub use roster::{Conflict, Declared, InvalidName, NoSuchTenant, Roster, TenantName};
pub use tenant::Tenant;
