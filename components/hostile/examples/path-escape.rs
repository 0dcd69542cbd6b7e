//! Tries to reach files, of which it is given none: by all spellings that have ever led out
//! of a folder, for reading, writing, listing and linking.

use std::fs;

use hostile::wasi::filesystem::preopens::get_directories;
use hostile::wasi::http::types::ResponseOutparam;
use hostile::{Asked, answer};

const PATHS: [&str; 16] = [
    "/etc/passwd",
    "etc/passwd",
    "../../../../../../etc/passwd",
    "/../../etc/passwd",
    "./../etc/passwd",
    "/proc/self/environ",
    "/proc/self/fd/0",
    "/proc/self/root/etc/passwd",
    "/proc/self/cwd",
    "/dev/zero",
    "/sys/kernel",
    "//etc//passwd",
    "/etc/./passwd",
    "..\\..\\etc\\passwd",
    "/tmp",
    ".",
];

fn handle(_asked: Asked, out: ResponseOutparam) {
    let mut reached = Vec::new();
    for path in PATHS {
        let tries = [
            ("read", fs::read(path).is_ok()),
            ("list", fs::read_dir(path).is_ok()),
            ("stat", fs::metadata(path).is_ok()),
            ("write", fs::write(path, "harm").is_ok()),
            ("make", fs::create_dir(format!("{path}/harm")).is_ok()),
            ("link", fs::hard_link(path, "harm").is_ok()),
            ("rename", fs::rename(path, "harm").is_ok()),
            ("remove", fs::remove_file(path).is_ok()),
        ];
        reached.extend(tries.into_iter().filter(|(_, done)| *done).map(|(what, _)| format!("{what} {path}")));
    }
    let folders: Vec<_> = get_directories().into_iter().map(|(_, name)| name).collect();
    answer(out, &format!("folders {folders:?} reached {reached:?}"));
}

hostile::guest!(handle);
