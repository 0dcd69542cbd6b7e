//! What the host will still need once it serves.

use std::path::{Path, PathBuf};

use serde::Serialize;

/// The rights that the process keeps. A new plan keeps none: no file, no port,
/// no other host, no other program.
///
/// What is open already stays usable, and is not asked about: standard streams,
/// listening sockets, mapped models, files that are being written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Plan {
    pub(crate) read: Vec<Place>,
    pub(crate) write: Vec<Place>,
    pub(crate) bind: Vec<u16>,
    pub(crate) connect: Connect,
    pub(crate) spawn: Spawn,
}

/// A file, or a folder with all that is in it and will be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    pub(crate) absence: Absence,
}

/// What it means that a place is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Absence {
    /// The plan is wrong.
    Error,
    /// The place is left out, and reported.
    Reported,
}

/// Whom the process may connect to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Connect {
    /// Nobody. Without `connect(2)` and without datagrams, so not even a name
    /// server is asked.
    #[default]
    None,
    /// These TCP ports of any host. Names can be looked up: datagrams are free.
    Ports(Vec<u16>),
    /// Anybody.
    Any,
}

/// Which programs the process may start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Spawn {
    /// None: no other program and no copy of itself.
    #[default]
    Forbidden,
    /// These files, or what is in these folders. A child lives behind the same
    /// walls, and needs a right of the plan for all it reads. What the dynamic
    /// loader needs to start one is added by itself; with a loader that may be
    /// run, and files that it may read, "only these" is a rule for the careless
    /// and no wall.
    Only(Vec<PathBuf>),
}

impl Plan {
    /// A plan that keeps nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps reading a file, or a folder with all below it. Symbolic links are
    /// followed now; one inside that leads out is refused later.
    #[must_use]
    pub fn read(mut self, path: impl Into<PathBuf>) -> Self {
        self.read.push(Place { path: path.into(), absence: Absence::Error });
        self
    }

    /// Like [`Plan::read`], for what not every machine has.
    #[must_use]
    pub fn read_if_there(mut self, path: impl Into<PathBuf>) -> Self {
        self.read.push(Place { path: path.into(), absence: Absence::Reported });
        self
    }

    /// Keeps reading what the kernel says of the machine and of this process:
    /// processors, memory, load, control groups, and the process's own sizes and maps.
    /// Not its environment, its open files or its memory, and of no other
    /// process anything, children included. C libraries read some of it, and so do metrics.
    #[must_use]
    pub fn read_machine(mut self) -> Self {
        let places = MACHINE.iter().filter(|path| Path::new(path).exists());
        self.read.extend(places.map(|path| Place { path: path.into(), absence: Absence::Reported }));
        self
    }

    /// Keeps reading how warm the machine is and what energy it uses: the folders of each
    /// sensor that is there now. Not by itself a part of [`Plan::read_machine`], because
    /// energy that is measured often tells what a processor computes.
    #[must_use]
    pub fn read_sensors(mut self) -> Self {
        for class in SENSORS {
            let all = devices(Path::new(class));
            self.read.extend(all.into_iter().map(|path| Place { path, absence: Absence::Reported }));
        }
        self
    }

    /// Keeps reading and writing a file, or reading, writing, making, renaming
    /// and removing files and folders below one. Never device files, sockets,
    /// pipes or symbolic links, and never running what was written.
    #[must_use]
    pub fn write(mut self, path: impl Into<PathBuf>) -> Self {
        self.write.push(Place { path: path.into(), absence: Absence::Error });
        self
    }

    /// Keeps listening on a TCP port that is not bound yet. 0 stands for one
    /// that the kernel chooses.
    #[must_use]
    pub fn bind(mut self, port: u16) -> Self {
        self.bind.push(port);
        self
    }

    /// Says whom the process may connect to. Unless that is nobody, what a
    /// resolver reads is kept too (`/etc/resolv.conf` and the like).
    #[must_use]
    pub fn connect(mut self, connect: Connect) -> Self {
        self.connect = connect;
        self
    }

    /// Says which programs the process may start.
    #[must_use]
    pub fn spawn(mut self, spawn: Spawn) -> Self {
        self.spawn = spawn;
        self
    }
}

/// A class of devices, and the folders that its links lead to now.
fn devices(class: &Path) -> Vec<PathBuf> {
    let Ok(entries) = class.read_dir() else { return Vec::new() };
    let folders = entries.filter_map(|entry| entry.ok()?.path().canonicalize().ok());
    let folders = folders.filter(|folder| folder.is_dir());
    folders.chain([class.to_owned()]).collect()
}

/// What [`Plan::read_machine`] stands for. Only files of `/proc`, and never a
/// folder of it: `mem` and `environ` would be in there.
const MACHINE: &[&str] = &[
    "/sys/devices/system/cpu",
    "/sys/devices/system/node",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
    "/sys/kernel/mm/hugepages",
    "/proc/cpuinfo",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/pressure/cpu",
    "/proc/pressure/io",
    "/proc/pressure/memory",
    "/proc/stat",
    "/proc/sys/abi/sme_default_vector_length",
    "/proc/sys/abi/sve_default_vector_length",
    "/proc/sys/vm/overcommit_memory",
    "/proc/self/cgroup",
    "/proc/self/maps",
    "/proc/self/mountinfo",
    "/proc/self/smaps_rollup",
    "/proc/self/stat",
    "/proc/self/statm",
    "/proc/self/status",
];

/// What [`Plan::read_sensors`] stands for: classes of devices, each a folder of links.
const SENSORS: &[&str] = &["/sys/class/hwmon", "/sys/class/powercap", "/sys/class/thermal"];

/// What name resolution and TLS read, on one distribution or another.
pub(crate) const NAMES: &[&str] = &[
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/nsswitch.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/etc/ssl",
    "/etc/pki",
    "/etc/ca-certificates",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
];

/// What the kernel opens to start a dynamically linked program: its loader.
pub(crate) const LOADERS: &[&str] = &[
    "/lib64/ld-linux-x86-64.so.2",
    "/lib/ld-linux-aarch64.so.1",
    "/lib/ld-musl-x86_64.so.1",
    "/lib/ld-musl-aarch64.so.1",
];

/// What a loader reads.
pub(crate) const LIBRARIES: &[&str] =
    &["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/etc/ld.so.preload"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_of_devices_is_where_its_links_lead() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (class, device) = (root.join("class"), root.join("devices/hwmon0"));
        std::fs::create_dir_all(&class).unwrap();
        std::fs::create_dir_all(&device).unwrap();
        std::os::unix::fs::symlink("../devices/hwmon0", class.join("hwmon0")).unwrap();
        std::os::unix::fs::symlink("../devices/gone", class.join("hwmon1")).unwrap();
        assert_eq!(devices(&class), [device, class.clone()]);
        assert!(devices(&root.join("nowhere")).is_empty());
    }
}
