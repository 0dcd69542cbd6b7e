//! Pages of a model file that are in RAM for nothing.
//!
//! Where llama.cpp rearranges weights for its kernels while loading, it reads
//! them out of the mapped file into memory of its own, and the pages that it read
//! stay mapped: two copies of the weights. Letting go of all pages of the file
//! afterwards costs little: those of weights that are used as they are in the
//! file come back when they are first used, out of the system's cache.

use std::path::Path;

/// Lets go of the pages of a file that this process has mapped. They are read
/// again where they are needed, so that nothing changes but the memory in use.
#[cfg(target_os = "linux")]
pub(crate) fn let_go(path: &Path) {
    let Ok(path) = path.canonicalize() else { return };
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return };
    for (begin, end) in maps.lines().filter_map(|line| range_of(line, &path)) {
        // SAFETY: the range is a mapping of the model file that this process has
        // just made: llama.cpp maps it shared and for reading only, and keeps it
        // while the model lives, which the caller owns. Pages that are let go of
        // are read from the file again, which has the same bytes: whoever maps a
        // model relies on that already.
        let done = unsafe { rustix::mm::madvise(begin as *mut _, end - begin, rustix::mm::Advice::LinuxDontNeed) };
        if let Err(error) = done {
            tracing::debug!(%error, "pages of the model file stay in RAM");
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn let_go(_path: &Path) {}

/// The addresses of a line of `/proc/self/maps` (`proc_pid_maps(5)`), if it is a
/// mapping of the file that is only read: `begin-end perms offset dev inode path`.
#[cfg(any(target_os = "linux", test))]
fn range_of(line: &str, path: &Path) -> Option<(usize, usize)> {
    let mut rest = line;
    let mut fields = [""; 5];
    for field in &mut fields {
        (*field, rest) = rest.trim_start().split_once(' ')?;
    }
    let [addresses, permissions, ..] = fields;
    if !permissions.starts_with("r--") || Path::new(rest.trim_start()) != path {
        return None;
    }
    let (begin, end) = addresses.split_once('-')?;
    let (begin, end) = (usize::from_str_radix(begin, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
    (begin < end).then_some((begin, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_of_the_file_are_found() {
        let path = Path::new("/models/a model.gguf");
        let line = |permissions, path| format!("7f00-9f00 {permissions} 00000000 fe:01 42    {path}");
        assert_eq!(range_of(&line("r--s", "/models/a model.gguf"), path), Some((0x7f00, 0x9f00)));
        assert_eq!(range_of(&line("rw-p", "/models/a model.gguf"), path), None, "written to");
        assert_eq!(range_of(&line("r--s", "/models/another.gguf"), path), None);
        assert_eq!(range_of(&line("r--s", "/models/a model.gguf (deleted)"), path), None);
        for nonsense in ["", "7f00-9f00", "7f00-9f00 r--s 0 0 0 ", "x-y r--s 0 0 0 /models/a model.gguf"] {
            assert_eq!(range_of(nonsense, path), None);
        }
    }
}
