//! What is not as it should be, each with the way out.

use nala_machine::{Architecture, Machine};
use nala_models::gguf::Header;
use nala_models::{DEFAULT_MODEL, Store};

use super::Problem;
use crate::models::mebibytes;

/// Looks for problems of the machine.
pub(super) fn of_machine(machine: &Machine) -> Vec<Problem> {
    let mut problems = Vec::new();
    if let Some(quota) = machine.grant.quota.as_ref().filter(|quota| quota.cpus() < 1.0) {
        problems.push(Problem {
            what: format!("this process may use {:.2} of one CPU only: every step will be throttled", quota.cpus()),
            fix: format!("raise the CPU limit of the container to 1 or more ({})", quota.group),
        });
    }
    let wanted = match machine.cpu.architecture {
        Architecture::X86_64 => Some(("avx2", "a CPU with AVX2 (any of the last ten years)")),
        Architecture::Aarch64 => Some(("asimddp", "a core with the dot product instructions (Armv8.2 and later)")),
        Architecture::Other => None,
    };
    if let Some((feature, fix)) = wanted.filter(|(feature, _)| !machine.cpu.has(feature)) {
        problems.push(Problem {
            what: format!("this CPU has no {feature}: generation is slow, or ends with an illegal instruction"),
            fix: format!("use {fix}"),
        });
    }
    problems
}

/// Looks for what keeps a model from being served on the machine.
pub(super) fn of_model(machine: &Machine, store: &Store, model: &str) -> Option<Problem> {
    let path = match store.resolve(model) {
        Ok(path) => path,
        Err(error) => return Some(unresolved(model, &error)),
    };
    let header = match Header::read(&path) {
        Ok(header) => header,
        Err(error) => return Some(unusable(model, &error)),
    };
    let usable = machine.memory.usable_bytes()?;
    (header.file_size > usable).then(|| Problem {
        what: format!(
            "{model} has {} but only {} of memory can be used",
            mebibytes(header.file_size),
            mebibytes(usable)
        ),
        fix: "use a smaller model or quantisation, or raise the memory limit".to_owned(),
    })
}

fn unresolved(model: &str, error: &nala_models::Error) -> Problem {
    let mut problem = unusable(model, error);
    // A file of one's own cannot be pulled.
    if matches!(error, nala_models::Error::NoSuchFile { .. }) {
        problem.fix = "check the path, or choose a name from `nala-host model list`".to_owned();
    }
    problem
}

/// The errors of the models crate say what to do in their own text.
fn unusable(model: &str, error: &dyn std::error::Error) -> Problem {
    Problem {
        what: format!("the model {model} cannot be served: {error}"),
        fix: format!("nala-host model pull {DEFAULT_MODEL}, or --model with the path of a GGUF file"),
    }
}

#[cfg(test)]
mod tests {
    use nala_machine::{Affinity, MemoryTree};

    use super::*;

    #[test]
    fn a_fraction_of_a_cpu_is_a_problem_with_its_fix() {
        let fs = MemoryTree::new()
            .with("/proc/cpuinfo", "processor : 0\nflags : avx2 asimddp\n")
            .with("/proc/self/cgroup", "0::/pod\n")
            .with("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
            .with("/sys/fs/cgroup/pod/cpu.max", "50000 100000\n");
        let machine = Machine::probe_of(&fs, &(0..4).collect::<Affinity>());
        let problems = of_machine(&machine);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].what.contains("0.50 of one CPU"), "{problems:?}");
    }

    #[test]
    fn a_missing_model_is_a_problem_that_names_the_pull() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let machine = Machine::probe_of(&MemoryTree::new(), &(0..4).collect::<Affinity>());
        let problem = of_model(&machine, &store, DEFAULT_MODEL).unwrap();
        assert!(problem.fix.contains("nala-host model pull smollm2-135m-instruct-q4_1"), "{problem:?}");
        let problem = of_model(&machine, &store, "/nope.gguf").unwrap();
        assert!(problem.fix.contains("check the path") && !problem.fix.contains("pull"), "{problem:?}");
    }
}
