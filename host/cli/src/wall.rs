//! The second wall: what the process gives up before it serves.

use std::path::{Path, PathBuf};

use nala_models::Store;
pub(crate) use nala_sandbox::Connect;
use nala_sandbox::{Plan, Policy, Report, Spawn};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::args::{SandboxPolicy, ServeArgs};
use crate::console::{Console, Help};
use crate::credentials;
use crate::program;
use crate::serve;
use crate::tenancy::{Doors, Opened};

/// What an application needs of the machine.
pub(crate) struct Needs {
    /// What is read from now on, such as components.
    pub(crate) read: Vec<PathBuf>,
    /// Folders that are written to.
    pub(crate) write: Vec<PathBuf>,
    /// Whom components may reach.
    pub(crate) reach: Connect,
    /// Whether a component may be told what sensors show.
    pub(crate) sensors: Sensors,
}

/// What is kept of the right to read the machine's sensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sensors {
    /// All of it: a component is granted them, or may be.
    Read,
    /// Nothing.
    GivenUp,
}

/// Where distributions keep certificate authorities.
const CERTIFICATES: [&str; 6] = [
    "/etc/ssl",
    "/etc/pki",
    "/etc/ca-certificates",
    "/usr/lib/ssl",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
];

/// Gives up all rights but those that serving needs. To be called on the main thread,
/// before there is another: earlier threads would keep theirs.
///
/// # Errors
/// The walls are required and the kernel lacks something, or a folder cannot be made.
pub(crate) fn raise(args: &ServeArgs, opened: &Opened, needs: &Needs, console: Console) -> anyhow::Result<()> {
    let policy = match args.sandbox {
        SandboxPolicy::Required => Policy::Required,
        SandboxPolicy::BestEffort => Policy::BestEffort,
        SandboxPolicy::Off => Policy::Off,
    };
    nala_wasm::open_pagemap();
    take_file_descriptors();
    let mut plan = plan(args, opened, needs)?;
    if needs.sensors == Sensors::Read || opened.tenancy.reads_machine() {
        plan = plan.read_sensors();
    }
    if !matches!(needs.reach, Connect::None) {
        // Certificates to trust, wherever a distribution has them.
        for folder in CERTIFICATES {
            plan = plan.read_if_there(folder);
        }
    }
    let report = plan.connect(needs.reach.clone()).enforce(policy).map_err(|error| Help {
        what: format!("the process cannot be confined: {error}"),
        help: "use --sandbox best-effort to go on with what this kernel has".to_owned(),
    })?;
    tell(&report, console);
    Ok(())
}

/// Takes as many file descriptors as the process may have: most systems begin with 1,024,
/// and each connection is one.
fn take_file_descriptors() {
    let limits = getrlimit(Resource::Nofile);
    let most = Rlimit { current: limits.maximum, ..limits };
    if let Err(error) = setrlimit(Resource::Nofile, most) {
        tracing::debug!(%error, "there are no more file descriptors than at first");
    }
}

fn tell(report: &Report, console: Console) {
    tracing::debug!("{report}");
    for missing in &report.missing {
        tracing::info!("not confined on this kernel: {missing}");
    }
    if report.policy == Policy::Off {
        console.warn("The process is not confined (--sandbox off): whoever gets out of a component has its rights.");
    }
}

fn plan(args: &ServeArgs, opened: &Opened, needs: &Needs) -> anyhow::Result<Plan> {
    let store = Store::open_default()?;
    let mut plan = Plan::new().read_machine().read_if_there(store.dir());
    for file in links(store.dir()) {
        plan = plan.read_if_there(file);
    }
    let models = args.models.models.iter().map(|model| model.source.as_str()).chain(args.models.draft_model.as_deref());
    let adapters = args.models.adapter.iter().map(|adapter| adapter.path.as_path());
    for file in models.map(Path::new).chain(adapters).chain(needs.read.iter().map(PathBuf::as_path)) {
        plan = plan.read_if_there(file);
    }
    // With their folders: they are read again when they change, and may then be other files.
    for file in &opened.files {
        plan = plan.read_if_there(folder(file));
    }
    for place in opened.outside.credentials.files().chain(opened.tenancy.key_files()).flat_map(credentials::places) {
        plan = plan.read_if_there(place);
    }
    let cache = match serve::cache(&args.code) {
        nala_wasm::CompileCache::Directory(folder) => Some(folder),
        nala_wasm::CompileCache::Off => None,
    };
    for folder in cache.iter().chain(&opened.state).chain(&needs.write) {
        // What is wrong with it is said by whoever uses it.
        if std::fs::create_dir_all(folder).is_ok() {
            plan = plan.write(folder);
        }
    }
    if opened.is_managed() {
        // What is deployed is compiled by this program in a process of its own.
        plan = plan.spawn(Spawn::Only(vec![program::path()?]));
    }
    Ok(match &opened.doors {
        Doors::Listen { requests, admin } => {
            let ports = std::iter::once(requests).chain(admin).map(|address| address.port());
            ports.fold(plan, Plan::bind)
        }
        // What connects to this process is there already.
        Doors::Link { .. } => plan,
    })
}

/// What links in a folder lead to: it is followed here, and by nobody later.
fn links(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    links.filter_map(|entry| entry.path().canonicalize().ok()).collect()
}

/// Where a file lies.
pub(crate) fn folder(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
