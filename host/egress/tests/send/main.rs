//! Requests to real servers on the loopback interface, which literal grants
//! allow.

mod bench;
mod bounds;
mod denied;
mod hostile;
mod plain;
mod pool;
mod servers;
mod tls;
