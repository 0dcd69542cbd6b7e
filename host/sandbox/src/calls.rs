//! The system calls, by name: what a host that serves needs, and what nobody
//! who took it over may have.
//!
//! The lists follow what glibc, the standard library, tokio, wasmtime and
//! llama.cpp call, with the older and the newer form of each, and beyond that
//! systemd's `@system-service` and Docker's default profile, under which most
//! servers run. It is a job that is allowed, not one spelling of it.

/// A system call's name and number on the processor that this is built for.
pub(crate) type Call = (&'static str, i64);

/// Calls out of libc's table, so that a misspelt one does not compile. Without
/// commas, at which rustfmt would give each a line.
macro_rules! calls {
    ($($call:ident)*) => { &[$((stringify!($call), libc::$call)),*] };
}

/// What every plan allows. Anything that is in no list does not exist for the
/// process (`ENOSYS`), and a C library then does without.
///
/// `clone3` is left out on purpose: what it is asked for lies in memory, where
/// no filter can look, and everybody falls back on `clone`.
pub(crate) const SERVING: &[&[Call]] = &[
    calls! {
        // Memory. The guests' code is compiled into memory that becomes executable, their memories
        // are copies of a memfd, and models are mapped.
        SYS_brk SYS_mmap SYS_munmap SYS_mremap SYS_mprotect SYS_madvise SYS_mincore SYS_msync SYS_mlock
        SYS_mlock2 SYS_munlock SYS_mlockall SYS_munlockall SYS_membarrier SYS_memfd_create SYS_pkey_alloc
        SYS_pkey_free SYS_pkey_mprotect SYS_get_mempolicy
        // Threads and their signals.
        SYS_clone SYS_exit SYS_exit_group SYS_futex SYS_futex_waitv SYS_set_robust_list SYS_get_robust_list
        SYS_set_tid_address SYS_rseq SYS_restart_syscall SYS_gettid SYS_getpid SYS_getppid SYS_kill SYS_tgkill
        SYS_rt_sigaction SYS_rt_sigprocmask SYS_rt_sigreturn SYS_rt_sigpending SYS_rt_sigtimedwait
        SYS_rt_sigsuspend SYS_sigaltstack SYS_sched_yield SYS_sched_getaffinity SYS_sched_setaffinity
        SYS_sched_getparam SYS_sched_setparam SYS_sched_getscheduler SYS_sched_setscheduler
        SYS_sched_get_priority_max SYS_sched_get_priority_min SYS_getcpu SYS_getpriority SYS_setpriority
        SYS_prctl
        // What the process knows of itself and of the machine.
        SYS_getuid SYS_geteuid SYS_getgid SYS_getegid SYS_getresuid SYS_getresgid SYS_getgroups SYS_getpgid
        SYS_getsid SYS_capget SYS_getrlimit SYS_setrlimit SYS_prlimit64 SYS_getrusage SYS_times SYS_uname
        SYS_sysinfo SYS_getrandom
        // Time.
        SYS_clock_gettime SYS_clock_getres SYS_clock_nanosleep SYS_nanosleep SYS_gettimeofday SYS_timerfd_create
        SYS_timerfd_settime SYS_timerfd_gettime
        // Open files.
        SYS_read SYS_write SYS_readv SYS_writev SYS_pread64 SYS_pwrite64 SYS_preadv SYS_pwritev SYS_preadv2
        SYS_pwritev2 SYS_lseek SYS_close SYS_close_range SYS_dup SYS_dup3 SYS_fcntl SYS_flock SYS_ioctl
        SYS_fsync SYS_fdatasync SYS_ftruncate SYS_fallocate SYS_fadvise64 SYS_readahead SYS_copy_file_range
        SYS_sendfile SYS_pipe2
        // Names of files. Which ones is landlock's to say.
        SYS_openat SYS_openat2 SYS_fstat SYS_newfstatat SYS_statx SYS_statfs SYS_fstatfs SYS_faccessat
        SYS_faccessat2 SYS_readlinkat SYS_getdents64 SYS_getcwd SYS_chdir SYS_fchdir SYS_mkdirat SYS_unlinkat
        SYS_renameat2 SYS_truncate SYS_fchmod SYS_utimensat SYS_umask
        // Waiting.
        SYS_ppoll SYS_pselect6 SYS_epoll_create1 SYS_epoll_ctl SYS_epoll_pwait SYS_epoll_pwait2 SYS_eventfd2
        // Sockets. Which kinds is for `filter.rs` to say.
        SYS_socket SYS_socketpair SYS_bind SYS_connect SYS_listen SYS_accept SYS_accept4 SYS_getsockname
        SYS_getpeername SYS_getsockopt SYS_setsockopt SYS_sendto SYS_recvfrom SYS_sendmsg SYS_recvmsg
        SYS_sendmmsg SYS_recvmmsg SYS_shutdown
        // For the second of the two filters, which refuses it from then on.
        SYS_seccomp
    },
    #[cfg(target_arch = "x86_64")]
    calls! {
        // Older forms that this processor's table still has.
        SYS_open SYS_stat SYS_lstat SYS_access SYS_readlink SYS_mkdir SYS_rmdir SYS_unlink SYS_rename SYS_pipe
        SYS_dup2 SYS_getdents SYS_poll SYS_select SYS_epoll_create SYS_epoll_wait SYS_eventfd SYS_time
        SYS_getpgrp SYS_arch_prctl
    },
    #[cfg(target_arch = "aarch64")]
    calls! { SYS_renameat },
];

/// What a plan adds under which programs are started.
pub(crate) const SPAWNING: &[&[Call]] = &[
    // The last two are for whoever supervises a program: it gets a group of its own, and
    // is waited for with a limit.
    calls! { SYS_execve SYS_wait4 SYS_waitid SYS_setpgid SYS_pidfd_open },
    #[cfg(target_arch = "x86_64")]
    calls! { SYS_fork SYS_vfork },
];

/// What every plan refuses with `EPERM`: it is known, and somebody who asks for
/// it should read "not permitted" and not "this kernel is too old".
pub(crate) const REFUSED: &[&[Call]] = &[
    calls! {
        // Into other processes.
        SYS_ptrace SYS_process_vm_readv SYS_process_vm_writev SYS_process_madvise SYS_process_mrelease SYS_kcmp
        SYS_pidfd_getfd SYS_pidfd_send_signal SYS_rt_sigqueueinfo SYS_rt_tgsigqueueinfo SYS_tkill
        // Wide doors into the kernel, with a history.
        SYS_bpf SYS_perf_event_open SYS_userfaultfd SYS_io_uring_setup SYS_io_uring_enter SYS_io_uring_register
        SYS_add_key SYS_keyctl SYS_request_key SYS_seccomp
        // Around the checks of paths, and changes by path that landlock does not look at.
        SYS_fchmodat SYS_open_by_handle_at SYS_name_to_handle_at SYS_chroot SYS_pivot_root SYS_linkat
        SYS_symlinkat SYS_mknodat SYS_fchown SYS_fchownat
        // Other name spaces and mounts.
        SYS_setns SYS_unshare SYS_mount SYS_umount2 SYS_mount_setattr SYS_open_tree SYS_move_mount SYS_fsopen
        SYS_fsconfig SYS_fsmount SYS_fspick
        // Other rights.
        SYS_capset SYS_setuid SYS_setgid SYS_setreuid SYS_setregid SYS_setresuid SYS_setresgid SYS_setfsuid
        SYS_setfsgid SYS_setgroups SYS_personality
        // The machine.
        SYS_reboot SYS_kexec_load SYS_init_module SYS_finit_module SYS_delete_module SYS_swapon SYS_swapoff
        SYS_acct SYS_quotactl SYS_quotactl_fd SYS_sethostname SYS_setdomainname SYS_syslog SYS_vhangup
        SYS_settimeofday SYS_clock_settime SYS_adjtimex SYS_clock_adjtime SYS_fanotify_init SYS_fanotify_mark
        SYS_ioprio_set SYS_migrate_pages SYS_move_pages
        // Memory and queues shared by a name.
        SYS_shmget SYS_shmat SYS_shmctl SYS_shmdt SYS_semget SYS_semop SYS_semctl SYS_semtimedop SYS_msgget
        SYS_msgsnd SYS_msgrcv SYS_msgctl SYS_mq_open SYS_mq_unlink
        // Landlock, since the walls stand.
        SYS_landlock_create_ruleset SYS_landlock_add_rule SYS_landlock_restrict_self
    },
    #[cfg(target_arch = "x86_64")]
    calls! {
        SYS_link SYS_symlink SYS_mknod SYS_chown SYS_lchown SYS_iopl SYS_ioperm SYS_modify_ldt SYS_uselib
        SYS_kexec_file_load SYS_chmod SYS_utime SYS_utimes SYS_futimesat
    },
];

/// What a plan refuses under which no programs are started.
pub(crate) const NO_SPAWNING: &[&[Call]] = &[
    calls! { SYS_execve SYS_execveat SYS_pidfd_open },
    #[cfg(target_arch = "x86_64")]
    calls! { SYS_fork SYS_vfork },
];

/// What a plan refuses under which nobody is connected to.
pub(crate) const NO_CONNECTING: &[&[Call]] = &[calls! { SYS_connect }];

/// The calls of lists, one after another.
pub(crate) fn all<'a>(lists: &'a [&'a [Call]]) -> impl Iterator<Item = &'a Call> {
    lists.iter().copied().flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn names(lists: &[&[Call]]) -> Vec<&'static str> {
        all(lists).map(|call| call.0).collect()
    }

    #[test]
    fn no_call_is_both_allowed_and_refused() {
        let allowed: BTreeSet<_> = names(SERVING).into_iter().collect();
        let both: Vec<_> = names(REFUSED).into_iter().filter(|name| allowed.contains(name)).collect();
        assert_eq!(both, ["SYS_seccomp"], "which the first filter lets the second be set by");
        let spawning: BTreeSet<_> = names(SPAWNING).into_iter().collect();
        assert!(spawning.is_disjoint(&allowed) && names(REFUSED).iter().all(|name| !spawning.contains(name)));
    }

    #[test]
    fn each_call_stands_once() {
        for lists in [SERVING, SPAWNING, REFUSED, NO_SPAWNING] {
            let names = names(lists);
            let once: BTreeSet<_> = names.iter().collect();
            assert_eq!(once.len(), names.len(), "{names:?}");
        }
    }

    #[test]
    fn clone3_is_in_no_list_so_that_callers_fall_back() {
        for lists in [SERVING, SPAWNING, REFUSED, NO_SPAWNING] {
            assert!(all(lists).all(|call| call.1 != libc::SYS_clone3));
        }
    }
}
