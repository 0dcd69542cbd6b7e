//! The walls, as somebody in the process finds them.
//!
//! What is given up is given up for good, so each test starts this program anew
//! as a prisoner: it enforces a plan on its main thread, tries things, and
//! prints what came of each. The tests read that.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "these are tests")]

mod attempts;
mod prisoner;
mod yard;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

use crate::yard::Yard;

fn main() -> ExitCode {
    if let Some(scene) = std::env::var_os(yard::SCENE) {
        return prisoner::main(&scene.into_string().unwrap());
    }
    let trial = |name: &str, test: fn()| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    let trials = vec![
        trial("only_places_of_the_plan_can_be_opened", only_places_of_the_plan_can_be_opened),
        trial("what_may_be_written_may_not_be_run_or_lead_elsewhere", what_may_be_written),
        trial("paths_cannot_be_changed_where_landlock_does_not_look", paths_cannot_be_changed),
        trial("no_other_program_can_be_started", no_other_program_can_be_started),
        trial("no_other_process_can_be_touched", no_other_process_can_be_touched),
        trial("only_tcp_sockets_are_left", only_tcp_sockets_are_left),
        trial("nobody_is_connected_to_and_only_ports_of_the_plan_are_bound", ports),
        trial("only_ports_of_the_plan_are_connected_to", only_ports_of_the_plan_are_connected_to),
        trial("what_was_given_up_stays_given_up", what_was_given_up_stays_given_up),
        trial("what_serving_needs_still_works", what_serving_needs_still_works),
        trial("threads_before_and_after_are_confined_as_reported", threads_before_and_after),
        trial("earlier_threads_are_an_error_where_all_is_required", earlier_threads_are_an_error),
        trial("a_granted_program_runs_behind_the_same_walls", a_granted_program_runs),
        trial("a_kernel_without_landlock_is_reported_or_refused", a_kernel_without_landlock),
        trial("a_kernel_without_seccomp_is_reported_or_refused", a_kernel_without_seccomp),
        trial("the_machine_can_be_read_and_no_memory", the_machine_can_be_read),
        trial("off_changes_nothing", off_changes_nothing),
        trial("a_missing_place_is_an_error_or_reported", a_missing_place),
        trial("the_report_is_for_people_and_machines", the_report),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn only_places_of_the_plan_can_be_opened() {
    let found = Yard::new().prisoner("strict");
    found.worked(&["read inside", "list inside", "read /proc/self/status", "read what was open"]);
    found.refused_by_landlock(&[
        "read outside",
        "read by ..",
        "read by a link inside",
        "list outside",
        "list /",
        "read /etc/passwd",
        "read /proc/self/mem",
        "read /proc/self/environ",
        "read /proc/1/environ",
        "read /proc/1/mem",
        "truncate outside",
        "write inside",
        "make inside",
        "remove inside",
        "open /dev/kmsg",
    ]);
}

fn what_may_be_written() {
    let found = Yard::new().prisoner("strict");
    found.worked(&["write in the cache", "make a folder in the cache", "rename in the cache", "remove in the cache"]);
    assert_eq!(found.get("mode of what was written"), "600");
    found.refused(&["run from the cache", "make a link in the cache", "make a hard link in the cache"], "EPERM");
    found.refused(&["make a socket in the cache", "make a pipe in the cache"], "EPERM");
}

fn paths_cannot_be_changed() {
    let found = Yard::new().prisoner("strict");
    found.refused(&["change the mode outside", "change times outside", "change the owner outside"], "EPERM");
    found.worked(&["change times of an open file"]);
}

fn no_other_program_can_be_started() {
    let found = Yard::new().prisoner("strict");
    found.refused(&["start /bin/true", "become /bin/true"], "EPERM");
}

fn no_other_process_can_be_touched() {
    let found = Yard::new().prisoner("strict");
    found.refused(&["ptrace", "process_vm_readv", "signal the parent", "limits of the parent"], "EPERM");
    found.worked(&["signal oneself"]);
}

fn only_tcp_sockets_are_left() {
    let found = Yard::new().prisoner("strict");
    found.refused(&["raw socket", "packet socket", "netlink socket", "unix socket", "vsock socket"], "EPERM");
    found.refused(&["multipath socket", "udp socket"], "EPERM");
    found.worked(&["tcp socket", "pair of unix sockets"]);
}

fn ports() {
    let found = Yard::new().prisoner("strict");
    found.refused(&["connect to the first port"], "EPERM");
    found.worked(&["listen on a port of the kernel's choice"]);
    found.refused_by_landlock(&["listen on another port"]);
}

fn only_ports_of_the_plan_are_connected_to() {
    let found = Yard::new().prisoner("outbound");
    found.worked(&["connect to the first port", "look up localhost", "udp socket"]);
    found.refused_by_landlock(&["connect to the second port"]);
    // Sending that connects goes past nobody.
    found.refused(&["send and connect at once"], "EPERM");
}

fn what_was_given_up_stays_given_up() {
    let found = Yard::new().prisoner("strict");
    found.refused(&["become dumpable", "new user name space", "mount", "take capabilities"], "EPERM");
    found.refused(&["a call that is in no list"], "ENOSYS");
    assert_eq!(found.get("size of core files"), "0");
    assert_eq!(found.get("status of NoNewPrivs"), "1");
    assert_eq!(found.get("status of Seccomp"), "2");
    // DAC_OVERRIDE and IPC_LOCK, where there were any.
    let kept = u64::from_str_radix(&found.get("status of CapPrm"), 16).unwrap();
    assert_eq!(kept & !((1 << 1) | (1 << 14)), 0, "{kept:x}");
    assert!(found.get("enforce again").contains("already"), "{}", found.get("enforce again"));
}

fn what_serving_needs_still_works() {
    let found = Yard::new().prisoner("strict");
    found.worked(&["executable memory", "memory of a memfd", "map a model", "a thread", "lock memory"]);
    let found = Yard::new().prisoner("serving");
    found.worked(&["tokio serves itself", "tokio hears of signals", "tokio blocks apart", "wait in time"]);
}

fn threads_before_and_after() {
    let found = Yard::new().prisoner("threads");
    found.refused(&["earlier: unix socket", "later: unix socket"], "EPERM");
    found.refused_by_landlock(&["later: read outside"]);
    let held = found.report()["enforced"].as_array().unwrap().iter().any(|feature| feature == "earlier_threads");
    // What is said is what is, on a kernel of either kind.
    match held {
        true => found.refused_by_landlock(&["earlier: read outside"]),
        false => {
            found.worked(&["earlier: read outside"]);
            assert!(found.missing("earlier_threads").contains("1 other threads run already"));
        }
    }
}

fn earlier_threads_are_an_error() {
    let found = Yard::new().prisoner("threads, required");
    if !found.get("error").is_empty() {
        assert!(found.get("error").contains("Linux 7.0"), "{}", found.get("error"));
        // Nothing was changed yet.
        found.worked(&["read outside", "unix socket"]);
    } else {
        found.refused_by_landlock(&["read outside"]);
    }
}

fn a_granted_program_runs() {
    let found = Yard::new().prisoner("spawning");
    assert_eq!(found.get("cat a model"), "weights");
    assert!(found.get("cat outside").contains("Permission denied"), "{}", found.get("cat outside"));
    found.refused_by_landlock(&["start another program"]);
    found.refused(&["new user name space"], "EPERM");
}

fn a_kernel_without_landlock() {
    let found = Yard::new().prisoner("no landlock");
    assert!(found.get("error").contains("files: this kernel has no landlock"), "{}", found.get("error"));
    assert!(found.get("error").contains("Linux 5.13"), "{}", found.get("error"));
    assert_eq!(found.report()["enforced"], serde_json::json!(["system_calls"]));
    found.worked(&["read outside"]);
    found.refused(&["unix socket"], "EPERM");
}

fn a_kernel_without_seccomp() {
    let found = Yard::new().prisoner("no seccomp");
    assert!(found.get("error").contains("CONFIG_SECCOMP"), "{}", found.get("error"));
    assert!(found.missing("system_calls").contains("CONFIG_SECCOMP"));
    assert!(found.report()["calls"].is_null());
    found.refused_by_landlock(&["read outside"]);
    found.worked(&["unix socket"]);
}

fn the_machine_can_be_read() {
    let found = Yard::new().prisoner("machine");
    found.worked(&[
        "/proc/self/smaps_rollup",
        "/proc/self/maps",
        "/proc/self/cgroup",
        "/proc/meminfo",
        "/proc/loadavg",
    ]);
    found.refused_by_landlock(&["/proc/self/mem", "/proc/self/environ", "/proc/self/fd", "/proc/version"]);
}

fn off_changes_nothing() {
    let found = Yard::new().prisoner("off");
    found.worked(&["read outside", "unix socket", "start /bin/true"]);
    assert_eq!(found.report()["enforced"], serde_json::json!([]));
    assert_eq!(found.get("text"), "sandbox: off");
}

fn a_missing_place() {
    let found = Yard::new().prisoner("missing place");
    assert!(found.get("error").contains("/nowhere"), "{}", found.get("error"));
    assert!(found.get("error").contains("Create it first"), "{}", found.get("error"));
    let found = Yard::new().prisoner("optional place");
    assert_eq!(found.report()["absent"], serde_json::json!(["/nowhere"]));
}

fn the_report() {
    let found = Yard::new().prisoner("strict");
    let report = found.report();
    assert_eq!(report["policy"], "required");
    assert_eq!(report["enforced"].as_array().unwrap().len(), 7);
    assert_eq!(report["missing"], serde_json::json!([]));
    assert!(report["calls"]["allowed"].as_u64().unwrap() > 100);
    assert_eq!(report["process"]["no_new_privileges"], true);
    assert_eq!(report["process"]["not_dumpable"], true);
    let text = found.get("text");
    assert!(text.starts_with("sandbox: files, truncation of files, TCP ports,"), "{text}");
    assert_eq!(text.contains("runs as root"), rustix::process::geteuid().is_root(), "{text}");
}
