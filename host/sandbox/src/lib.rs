//! The second wall around the host process.
//!
//! The first wall is wasmtime: guests are WebAssembly, and hold what the host
//! gives them. This crate is for the day on which that wall has a hole, or on
//! which a model file makes llama.cpp run somebody else's code. From then on
//! there is a stranger in the process, and all that stands between them and the
//! machine is what the kernel lets the process do. So the process gives up, once
//! it knows what it serves, every right that serving does not need:
//!
//! - **files**, by landlock: only the places of the [`Plan`] can be opened;
//! - **ports**, by landlock: only the plan's can be bound and connected to;
//! - **system calls**, by seccomp: only those that a host makes reach the
//!   kernel's code at all; no other programs, no other kinds of sockets, no name
//!   spaces, no debugging;
//! - **the rest**: no core files, memory that other processes of the user cannot
//!   read, no capabilities, no way to gain rights by running something.
//!
//! ```no_run
//! use nala_sandbox::{Connect, Plan, Policy};
//!
//! let plan = Plan::new()
//!     .read("/srv/models")
//!     .read_machine()
//!     .write("/var/cache/nala")
//!     .bind(3000)
//!     .connect(Connect::None);
//! let report = plan.enforce(Policy::Required)?;
//! eprintln!("{report}");
//! # Ok::<(), nala_sandbox::SandboxError>(())
//! ```
//!
//! # When to call it
//! In `main`, on the main thread, after arguments and manifest were read, and
//! before the first other thread: before tokio's runtime, before an engine, and
//! before a logger that has a thread. Landlock and capabilities belong to threads
//! and are inherited, so threads that start later are confined, and those that
//! run already are not. (Seccomp can be given to all threads at once on every
//! kernel. Landlock can since Linux 7.0, and is then; capabilities cannot.) With
//! [`Policy::Required`], threads that landlock would miss are an error.
//!
//! At that moment nothing need be open yet: what a plan names can be opened as
//! often as one likes later. Models are loaded by path from a folder in
//! `read`, components are compiled into a cache in `write`, listeners are bound
//! on the ports in `bind`. Folders of the plan have to be there, so an empty
//! cache is made before.
//!
//! What the host reads of itself while it serves is in [`Plan::read_machine`].
//! Never give `/proc` or `/proc/self` as a folder: `mem` is in there.
//!
//! For `nala-host up` on a model of the store that is: the models folder in
//! `read`, [`Plan::read_machine`], the cache of components in `write`, the ports of
//! `--listen` and `--admin-listen` in `bind`, nobody to connect to, and no program.
//!
//! What happened before is not undone: files that are open stay open, and what
//! was read stays in memory. So secrets are read after the walls stand, from
//! places of the plan, or not kept longer than needed.
//!
//! # What it does not do
//! It limits no memory and no CPU (control groups do), hides no process and no
//! network (name spaces and containers do), and does not keep a stranger in the
//! process from what the process itself has: its models, its keys in memory, its
//! open connections. Code can still be made executable, since wasmtime compiles.
//! Without a limit on [`Connect`] they can call home.
//!
//! Everything here is safe Rust over `landlock`, `seccompiler` and `rustix`.

mod calls;
mod enforce;
mod error;
mod feature;
mod files;
mod filter;
mod plan;
mod process;
mod report;
mod support;

pub use error::SandboxError;
pub use feature::{Feature, Missing};
pub use plan::{Connect, Plan, Spawn};
pub use process::Process;
pub use report::{CallsReport, Policy, Report};
pub use support::Support;
