//! The filters of system calls: two, one behind the other.
//!
//! # Why a list of what is allowed
//! Somebody who runs code in this process, out of a guest or a damaged model
//! file, next attacks the kernel, and does so through calls that the host never
//! makes. A list of refused calls has to be extended with each release of Linux;
//! a list of allowed ones only when the host learns something new, and then a
//! test fails here and not a customer's wall.
//!
//! What speaks against such lists is that a C library may call something that
//! was not seen while measuring, and dies of the answer. So
//! - the list is of jobs (see `calls.rs`) and wider than any measurement,
//! - what is not in it is answered with `ENOSYS`, as by an older kernel, which
//!   libraries are written to survive; nothing is killed,
//! - and only what is known to be dangerous gets `EPERM`.
//!
//! `strace -f -c nala-host up`, over loading a model, a chat, a stream, an
//! embedding, metrics and draining, counts 63 different calls (x86_64, glibc).
//! All but `clone3` are in the list, which is close to three times as long.
//!
//! # Why two
//! A filter of seccompiler has one answer for all that does not match. The first
//! filter knows numbers only and answers `ENOSYS`. The second answers `EPERM` to
//! refused calls and to refused *forms* of allowed ones. Where both refuse, the
//! kernel takes the answer of the one that was set last (`seccomp(2)`).
//!
//! # What it costs
//! Since Linux 5.11 the kernel finds out once which calls are allowed whatever
//! their arguments, and no longer runs the filters for those. Before Linux 5.16 a
//! filter also turns on the mitigation of speculative store bypass for the
//! process, which costs compute; seccompiler has no way to decline that.

use std::collections::BTreeMap;

use seccompiler::SeccompCmpOp::{Eq, MaskedEq, Ne};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use crate::calls::{self, Call};
use crate::plan::{Connect, Plan, Spawn};

/// Calls by number, each with the forms of it that match; none for all forms.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The filters of a plan, ready to be set.
pub(crate) struct Filters {
    existing: BpfProgram,
    refusing: BpfProgram,
    /// How many calls exist at all.
    pub(crate) allowed: usize,
    /// How many of them exist in some forms only.
    pub(crate) limited: usize,
}

/// The processor's name for seccompiler, or why there is none.
pub(crate) fn architecture() -> Result<TargetArch, String> {
    let name = std::env::consts::ARCH;
    let known = matches!(name, "x86_64" | "aarch64").then(|| TargetArch::try_from(name).ok()).flatten();
    known.ok_or_else(|| format!("there is no list of system calls for {name} yet, only for x86_64 and aarch64"))
}

impl Filters {
    /// Compiles the filters of `plan` for this process.
    pub(crate) fn of(plan: &Plan, architecture: TargetArch) -> Result<Self, seccompiler::Error> {
        let mut existing = Rules::new();
        add(&mut existing, calls::SERVING);
        if plan.spawn != Spawn::Forbidden {
            add(&mut existing, calls::SPAWNING);
        }
        let refused = refused(plan)?;
        let taken = |call: &i64| refused.get(call).is_some_and(Vec::is_empty);
        let allowed = existing.keys().filter(|call| !taken(call)).count();
        let limited = refused.iter().filter(|(call, forms)| !forms.is_empty() && existing.contains_key(call)).count();
        Ok(Self {
            existing: compile(existing, answer(libc::ENOSYS), SeccompAction::Allow, architecture)?,
            refusing: compile(refused, SeccompAction::Allow, answer(libc::EPERM), architecture)?,
            allowed,
            limited,
        })
    }

    /// Sets them for all threads of the process.
    ///
    /// # Errors
    /// The kernel refuses them, or a thread has filters of its own.
    pub(crate) fn set(&self) -> Result<(), seccompiler::Error> {
        seccompiler::apply_filter_all_threads(&self.existing)?;
        seccompiler::apply_filter_all_threads(&self.refusing)
    }
}

fn add(rules: &mut Rules, lists: &[&[Call]]) {
    rules.extend(calls::all(lists).map(|call| (call.1, Vec::new())));
}

fn compile(
    rules: Rules,
    otherwise: SeccompAction,
    matching: SeccompAction,
    architecture: TargetArch,
) -> Result<BpfProgram, BackendError> {
    SeccompFilter::new(rules, otherwise, matching, architecture)?.try_into()
}

fn answer(errno: i32) -> SeccompAction {
    SeccompAction::Errno(errno.unsigned_abs())
}

/// The second filter: what is refused, and in which forms.
fn refused(plan: &Plan) -> Result<Rules, BackendError> {
    let mut forms = Forms(Rules::new());
    sockets(&mut forms)?;
    threads(&mut forms)?;
    settings(&mut forms)?;
    if plan.connect == Connect::None {
        // A datagram needs no connection to leave.
        for domain in [libc::AF_INET, libc::AF_INET6] {
            forms.refuse(libc::SYS_socket, &[(0, Eq, int(domain)), kind(libc::SOCK_DGRAM)])?;
        }
    }
    if plan.spawn == Spawn::Forbidden {
        forms.refuse(libc::SYS_clone, &[without(libc::CLONE_THREAD)])?;
        // A child would have to be ended, and to end itself, under another number.
        let own = u64::from(std::process::id());
        forms.refuse(libc::SYS_kill, &[(0, Ne, own)])?;
        forms.refuse(libc::SYS_tgkill, &[(0, Ne, own)])?;
    }
    let Forms(mut rules) = forms;
    // Whole calls last: they take the place of single forms.
    add(&mut rules, calls::REFUSED);
    if plan.connect == Connect::None {
        add(&mut rules, calls::NO_CONNECTING);
    }
    if plan.spawn == Spawn::Forbidden {
        add(&mut rules, calls::NO_SPAWNING);
    }
    Ok(rules)
}

/// Landlock looks at TCP alone, so TCP is all that listens and connects: not
/// MPTCP or SCTP, which would go past it, not Unix sockets, behind which other
/// services of the machine wait (Docker's, for one), not netlink, not raw ones.
/// Datagrams are for name servers. Pairs of Unix sockets within the process stay:
/// that is how tokio hears of signals.
fn sockets(forms: &mut Forms) -> Result<(), BackendError> {
    forms.refuse(libc::SYS_socket, &[(0, Ne, int(libc::AF_INET)), (0, Ne, int(libc::AF_INET6))])?;
    /// An older way to packets than `AF_PACKET`, which libc deprecates.
    const SOCK_PACKET: i32 = 10;
    for other in [libc::SOCK_RAW, libc::SOCK_RDM, libc::SOCK_SEQPACKET, libc::SOCK_DCCP, SOCK_PACKET] {
        forms.refuse(libc::SYS_socket, &[kind(other)])?;
    }
    let known = [0, libc::IPPROTO_TCP, libc::IPPROTO_UDP];
    forms.refuse(libc::SYS_socket, &known.map(|protocol| (2, Ne, int(protocol))))?;
    forms.refuse(libc::SYS_socketpair, &[(0, Ne, int(libc::AF_UNIX))])?;
    // With this flag, sending connects, and landlock's rules for ports do not see it (Linux 6.18,
    // as our test shows when this is left out).
    for (call, flags) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
        forms.refuse(call, &[with(flags, libc::MSG_FASTOPEN)])?;
    }
    Ok(())
}

/// No other name spaces: most attacks of the last years on Linux began in a user
/// name space, where everybody is root.
fn threads(forms: &mut Forms) -> Result<(), BackendError> {
    let spaces = [
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWCGROUP,
    ];
    for space in spaces {
        forms.refuse(libc::SYS_clone, &[with(0, space)])?;
    }
    Ok(())
}

/// What was given up cannot be taken back, other processes' limits are theirs,
/// and nobody types into the operator's terminal.
fn settings(forms: &mut Forms) -> Result<(), BackendError> {
    let given_up = [
        libc::PR_SET_DUMPABLE,
        libc::PR_SET_PTRACER,
        libc::PR_SET_MM,
        libc::PR_SET_SECCOMP,
        libc::PR_SET_KEEPCAPS,
        libc::PR_SET_SECUREBITS,
        libc::PR_CAP_AMBIENT,
    ];
    for option in given_up {
        forms.refuse(libc::SYS_prctl, &[(0, Eq, int(option))])?;
    }
    // Landlock does not look at times; of an open file they may be set.
    forms.refuse_path(libc::SYS_utimensat, 1)?;
    forms.refuse(libc::SYS_prlimit64, &[(0, Ne, 0), (0, Ne, u64::from(std::process::id()))])?;
    /// `TIOCLINUX` of `ioctl_console(2)`, which libc has no name for.
    const TIOCLINUX: u64 = 0x541C;
    for request in [libc::TIOCSTI & u64::from(u32::MAX), TIOCLINUX] {
        forms.refuse(libc::SYS_ioctl, &[(1, Eq, request)])?;
    }
    Ok(())
}

/// Which argument, how compared, with what. These arguments are of 32 bits, or
/// have their flags in the lower ones; see [`Forms::refuse_path`] for the others.
type Condition = (u8, SeccompCmpOp, u64);

struct Forms(Rules);

impl Forms {
    /// Refuses the form of a call for which all conditions hold.
    fn refuse(&mut self, call: i64, conditions: &[Condition]) -> Result<(), BackendError> {
        let conditions = conditions.iter().map(|(argument, operation, value)| {
            SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, operation.clone(), *value)
        });
        self.push(call, conditions.collect::<Result<_, _>>()?)
    }

    /// Refuses the form of a call that has a path in `argument`, and not null.
    fn refuse_path(&mut self, call: i64, argument: u8) -> Result<(), BackendError> {
        self.push(call, vec![SeccompCondition::new(argument, SeccompCmpArgLen::Qword, Ne, 0)?])
    }

    fn push(&mut self, call: i64, conditions: Vec<SeccompCondition>) -> Result<(), BackendError> {
        self.0.entry(call).or_default().push(SeccompRule::new(conditions)?);
        Ok(())
    }
}

/// A constant of the C headers as the kernel sees it in a register's lower half.
fn int(value: i32) -> u64 {
    u64::from(value.cast_unsigned())
}

/// The kind of a socket, whatever flags stand beside it.
fn kind(kind: i32) -> Condition {
    /// `SOCK_TYPE_MASK` of `linux/net.h`.
    const KINDS: u64 = 0xF;
    (1, MaskedEq(KINDS), int(kind))
}

fn with(argument: u8, flag: i32) -> Condition {
    (argument, MaskedEq(int(flag)), int(flag))
}

fn without(flag: i32) -> Condition {
    (0, MaskedEq(int(flag)), 0)
}
