//! The control groups this process is in, of both versions.
//!
//! Sources: `cgroups(7)`; for version 2 the kernel's
//! `Documentation/admin-guide/cgroup-v2.rst`, for version 1
//! `Documentation/scheduler/sched-bwc.rst`.

use crate::filesystem::Filesystem;

/// The folders to look into for one controller, from this process's group up
/// to the root: a limit on any of them binds.
pub(crate) struct Groups {
    pub(crate) version: Version,
    pub(crate) folders: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    V1,
    V2,
}

/// Where `controller` governs this process: every hierarchy that may, since on
/// hybrid machines some controllers are of version 1 and some of version 2.
pub(crate) fn groups(fs: &dyn Filesystem, controller: &str) -> Vec<Groups> {
    let memberships = fs.read("/proc/self/cgroup").unwrap_or_default();
    let mounts = fs.read("/proc/self/mountinfo").unwrap_or_default();
    let mut found = Vec::new();
    for line in memberships.lines() {
        // `4:cpu,cpuacct:/path`, and `0::/path` for version 2.
        let mut fields = line.splitn(3, ':');
        let (Some(number), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let version = if number == "0" && controllers.is_empty() {
            Version::V2
        } else if controllers.split(',').any(|name| name == controller) {
            Version::V1
        } else {
            continue;
        };
        for mount in mounts.lines().filter_map(Mount::parse) {
            if mount.carries(version, controller) {
                found.push(Groups { version, folders: mount.folders(path) });
            }
        }
    }
    found
}

/// A line of `/proc/self/mountinfo` (`proc_pid_mountinfo(5)`).
struct Mount<'a> {
    root: &'a str,
    point: &'a str,
    kind: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    /// `36 35 98:0 /root /point rw,noatime master:1 - kind source options`
    fn parse(line: &'a str) -> Option<Self> {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(3);
        let mut right = right.split(' ');
        Some(Self { root: left.next()?, point: left.next()?, kind: right.next()?, options: right.nth(1)? })
    }

    fn carries(&self, version: Version, controller: &str) -> bool {
        match version {
            Version::V2 => self.kind == "cgroup2",
            Version::V1 => self.kind == "cgroup" && self.options.split(',').any(|name| name == controller),
        }
    }

    fn folders(&self, path: &str) -> Vec<String> {
        // Inside a container the mount shows a subtree whose root is named in
        // mountinfo, while the membership may be told from the outside.
        let inner = path
            .strip_prefix(self.root.trim_end_matches('/'))
            .filter(|rest| rest.is_empty() || rest.starts_with('/'))
            // `/..` says the group lies outside of what is shown.
            .filter(|rest| !rest.split('/').any(|part| part == ".."))
            .unwrap_or("");
        let mut folder = format!("{}{}", self.point.trim_end_matches('/'), inner);
        folder.truncate(folder.trim_end_matches('/').len());
        let mut folders = vec![folder.clone()];
        while folder.len() > self.point.len() {
            let Some(end) = folder.rfind('/') else { break };
            folder.truncate(end);
            folders.push(folder.clone());
        }
        folders
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filesystem::MemoryTree;

    fn folders(cgroup: &str, mountinfo: &str) -> Vec<Vec<String>> {
        let fs = MemoryTree::new().with("/proc/self/cgroup", cgroup).with("/proc/self/mountinfo", mountinfo);
        groups(&fs, "cpu").into_iter().map(|g| g.folders).collect()
    }

    const V2: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn every_group_up_to_the_root_is_looked_at() {
        assert_eq!(
            folders("0::/a.slice/b.scope\n", V2),
            [["/sys/fs/cgroup/a.slice/b.scope", "/sys/fs/cgroup/a.slice", "/sys/fs/cgroup"]]
        );
        assert_eq!(folders("0::/\n", V2), [["/sys/fs/cgroup"]]);
    }

    #[test]
    fn a_container_sees_its_group_at_the_mount() {
        let mount = "1 2 0:3 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n";
        assert_eq!(
            folders("4:cpu,cpuacct:/docker/abc\n3:memory:/docker/abc\n", mount),
            [["/sys/fs/cgroup/cpu,cpuacct"]]
        );
        assert_eq!(
            folders("4:cpu,cpuacct:/docker/abc/deep\n", mount),
            [["/sys/fs/cgroup/cpu,cpuacct/deep", "/sys/fs/cgroup/cpu,cpuacct"]]
        );
        // The membership as seen from a group beside the shown subtree.
        assert_eq!(folders("4:cpu,cpuacct:/docker/abcdef\n", mount), [["/sys/fs/cgroup/cpu,cpuacct"]]);
        assert_eq!(folders("0::/../x\n", V2), [["/sys/fs/cgroup"]]);
    }

    #[test]
    fn nonsense_is_no_group() {
        assert!(folders("", V2).is_empty());
        assert!(folders("0::/\n", "").is_empty());
        assert!(folders("nonsense\n1\n1:2\n", "nonsense\n - \n1 2 3 - cgroup2\n").is_empty());
    }
}
