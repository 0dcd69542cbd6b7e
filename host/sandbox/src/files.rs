//! Landlock: files, ports, signals.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, NetPort, PathBeneath, RestrictSelfAttr,
    RestrictionStatus, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope, make_bitflags,
};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::error::SandboxError;
use crate::plan::{Absence, Connect, LIBRARIES, LOADERS, NAMES, Place, Plan, Spawn};

/// The interface whose rights are asked for, and what our tests have seen held.
/// A newer kernel's rights come with a newer number here, and not by themselves:
/// what is not known to be asked for would be refused.
const KNOWN: ABI = ABI::V6;

const READ: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | ReadDir});

const WRITE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{
    ReadFile | ReadDir | WriteFile | Truncate | MakeReg | MakeDir | RemoveFile | RemoveDir | Refer
});

const EXECUTE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | ReadDir | Execute});

/// The rights among these that a single file can have.
const OF_A_FILE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | WriteFile | Truncate | Execute});

/// The plan's places, open for as long as the process lives, without a right to
/// read them.
///
/// A rule belongs to the kernel's object for a file. In `/proc`, and in some
/// network file systems, those are made anew after memory was short, and have no
/// rule then: `/proc/self/status` could be read until `drop_caches`, and not
/// after it. What is open stays.
static KEPT: Mutex<Vec<OwnedFd>> = Mutex::new(Vec::new());

/// What came of it.
pub(crate) struct Confined {
    pub(crate) status: RestrictionStatus,
    /// Places that are not there, and were left out.
    pub(crate) absent: Vec<PathBuf>,
}

/// Opens all places of `plan` and confines the calling thread, its later
/// children and, where the kernel can, all other threads.
pub(crate) fn confine(plan: &Plan) -> Result<Confined, SandboxError> {
    let mut rules = ruleset(plan).map_err(landlock)?;
    let mut absent = Vec::new();
    for (rights, places) in places(plan) {
        for place in places {
            match open(&place)? {
                Some(opened) => rules = allow(rules, &place.path, opened, rights)?,
                None => absent.push(place.path),
            }
        }
    }
    rules = ports(rules, plan).map_err(landlock)?;
    let status = rules.all_threads(true).and_then(RulesetCreated::restrict_self).map_err(landlock)?;
    Ok(Confined { status, absent })
}

/// Whether landlock is there at all.
pub(crate) fn is_there(status: &LandlockStatus) -> bool {
    matches!(status, LandlockStatus::Available { .. })
}

fn landlock(error: RulesetError) -> SandboxError {
    SandboxError::Landlock(Box::new(error))
}

/// All that is refused unless a rule allows it.
fn ruleset(plan: &Plan) -> Result<RulesetCreated, RulesetError> {
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(KNOWN))?
        .handle_access(AccessNet::BindTcp)?
        .scope(Scope::from_all(KNOWN))?;
    if plan.connect != Connect::Any {
        rules = rules.handle_access(AccessNet::ConnectTcp)?;
    }
    rules.create()
}

/// The places of `plan`, and what goes with them, by right.
fn places(plan: &Plan) -> Vec<(BitFlags<AccessFs>, Vec<Place>)> {
    let optional = |paths: &[&str]| -> Vec<Place> {
        paths.iter().map(|path| Place { path: path.into(), absence: Absence::Reported }).filter(is_present).collect()
    };
    let mut all = vec![(READ, plan.read.clone()), (WRITE, plan.write.clone())];
    if plan.connect != Connect::None {
        all.push((READ, optional(NAMES)));
    }
    if let Spawn::Only(programs) = &plan.spawn {
        let programs = programs.iter().map(|path| Place { path: path.clone(), absence: Absence::Error });
        all.push((EXECUTE, programs.chain(optional(LOADERS)).collect()));
        all.push((READ, optional(LIBRARIES)));
        // Children without standard streams get this one.
        all.push((WRITE, optional(&["/dev/null"])));
    }
    all
}

/// Of our own lists, only what is there is of interest.
fn is_present(place: &Place) -> bool {
    place.path.exists()
}

fn open(place: &Place) -> Result<Option<OwnedFd>, SandboxError> {
    // Not for reading: a rule may be made for what cannot be opened.
    match rustix::fs::open(&place.path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        Ok(opened) => Ok(Some(opened)),
        Err(Errno::NOENT) if place.absence == Absence::Reported => Ok(None),
        Err(error) => Err(SandboxError::Place { path: place.path.clone(), source: error.into() }),
    }
}

fn allow(
    rules: RulesetCreated,
    path: &Path,
    opened: OwnedFd,
    rights: BitFlags<AccessFs>,
) -> Result<RulesetCreated, SandboxError> {
    let failed = |error: Errno| SandboxError::Place { path: path.to_owned(), source: error.into() };
    let status = rustix::fs::fstat(&opened).map_err(failed)?;
    let rights = match FileType::from_raw_mode(status.st_mode) {
        FileType::Directory => rights,
        _ => rights & OF_A_FILE,
    };
    let rules = rules
        .add_rule(PathBeneath::new(opened.as_fd(), rights))
        .map_err(|source| SandboxError::Rule { path: path.to_owned(), source: Box::new(source) })?;
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(opened);
    Ok(rules)
}

fn ports(mut rules: RulesetCreated, plan: &Plan) -> Result<RulesetCreated, RulesetError> {
    for port in &plan.bind {
        rules = rules.add_rule(NetPort::new(*port, AccessNet::BindTcp))?;
    }
    if let Connect::Ports(ports) = &plan.connect {
        for port in ports {
            rules = rules.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
        }
    }
    Ok(rules)
}
