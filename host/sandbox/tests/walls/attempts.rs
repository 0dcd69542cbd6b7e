//! What somebody in the process tries. Each attempt works where nothing is
//! confined, so that a refusal comes from the walls.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::SystemTime;

use nix::errno::Errno;
use rustix::fs::{FileType, Mode};
use rustix::net::{AddressFamily, Protocol, SocketType};
use rustix::process::{DumpableBehavior, Resource};
use rustix::thread::CapabilitySets;

use crate::prisoner::Diary;

pub(crate) const OUTSIDE: &str = "outside/secret";
pub(crate) const MODEL: &str = "models/model.gguf";

/// `ok`, or the name of the system's error.
pub(crate) fn outcome<T>(result: io::Result<T>) -> String {
    match result {
        Ok(_) => "ok".to_owned(),
        Err(error) => match error.raw_os_error() {
            Some(number) => format!("{:?}", Errno::from_raw(number)),
            None => error.to_string(),
        },
    }
}

pub(crate) fn port(name: &str) -> u16 {
    std::env::var(name).unwrap().parse().unwrap()
}

pub(crate) fn read_outside() -> io::Result<Vec<u8>> {
    fs::read(OUTSIDE)
}

pub(crate) fn unix_socket() -> io::Result<()> {
    Ok(rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).map(drop)?)
}

pub(crate) fn user_name_space() -> io::Result<()> {
    #[allow(deprecated, reason = "the one that is not is not safe")]
    Ok(rustix::thread::unshare(rustix::thread::UnshareFlags::NEWUSER)?)
}

pub(crate) fn start(program: &str) -> io::Result<()> {
    Command::new(program).status().map(drop)
}

/// Reads the first byte: opening is what landlock refuses, and `mem` cannot be
/// read at its beginning.
pub(crate) fn open(path: &str) -> io::Result<()> {
    File::open(path).map(drop)
}

pub(crate) fn files(diary: &mut Diary, mut open_before: File) {
    diary.tried("read inside", fs::read(MODEL));
    diary.tried("list inside", fs::read_dir("models"));
    diary.tried("read /proc/self/status", fs::read("/proc/self/status"));
    diary.tried("read what was open", open_before.read(&mut [0; 6]));
    diary.tried("read outside", read_outside());
    diary.tried("read by ..", fs::read("models/../outside/secret"));
    diary.tried("read by a link inside", fs::read("models/link"));
    diary.tried("list outside", fs::read_dir("outside"));
    diary.tried("list /", fs::read_dir("/"));
    for path in ["/etc/passwd", "/proc/self/mem", "/proc/self/environ", "/proc/1/environ", "/proc/1/mem"] {
        diary.tried(&format!("read {path}"), open(path));
    }
    diary.tried("open /dev/kmsg", open("/dev/kmsg"));
    diary.tried("truncate outside", Ok(()).and_then(|()| truncate(OUTSIDE)));
    diary.tried("write inside", File::options().append(true).open(MODEL));
    diary.tried("make inside", File::create("models/new"));
    diary.tried("remove inside", fs::remove_file(MODEL));
}

fn truncate(path: &str) -> io::Result<()> {
    Ok(nix::unistd::truncate(path, 0)?)
}

pub(crate) fn written(diary: &mut Diary) {
    diary.tried("write in the cache", fs::write("cache/one", "#!/bin/sh\n"));
    let mode = fs::metadata("cache/one").unwrap().permissions().mode();
    diary.note("mode of what was written", &format!("{:o}", mode & 0o777));
    diary.tried("make a folder in the cache", fs::create_dir("cache/folder"));
    diary.tried("rename in the cache", fs::rename("cache/one", "cache/folder/two"));
    diary.tried("run from the cache", start("cache/folder/two"));
    diary.tried("make a link in the cache", std::os::unix::fs::symlink("/etc", "cache/link"));
    diary.tried("make a hard link in the cache", fs::hard_link("cache/folder/two", "cache/three"));
    let node = |name, kind| rustix::fs::mknodat(rustix::fs::CWD, name, kind, Mode::RUSR, 0);
    diary.tried("make a socket in the cache", node("cache/socket", FileType::Socket).map_err(io::Error::from));
    diary.tried("make a pipe in the cache", node("cache/pipe", FileType::Fifo).map_err(io::Error::from));
    diary.tried("remove in the cache", fs::remove_dir_all("cache/folder"));
}

pub(crate) fn paths(diary: &mut Diary) {
    diary.tried("change the mode outside", fs::set_permissions(OUTSIDE, fs::Permissions::from_mode(0o600)));
    let now = rustix::fs::Timestamps {
        last_access: rustix::fs::Timespec { tv_sec: 0, tv_nsec: 0 },
        last_modification: rustix::fs::Timespec { tv_sec: 0, tv_nsec: 0 },
    };
    let times = rustix::fs::utimensat(rustix::fs::CWD, OUTSIDE, &now, rustix::fs::AtFlags::empty());
    diary.tried("change times outside", times.map_err(io::Error::from));
    let (uid, gid) = (rustix::process::getuid(), rustix::process::getgid());
    let owner = rustix::fs::chown(OUTSIDE, Some(uid), Some(gid));
    diary.tried("change the owner outside", owner.map_err(io::Error::from));
    let own = File::create("cache/times").unwrap();
    diary.tried("change times of an open file", own.set_modified(SystemTime::UNIX_EPOCH));
}

pub(crate) fn programs(diary: &mut Diary) {
    diary.tried("start /bin/true", start("/bin/true"));
    // Comes back only if it fails.
    diary.tried::<()>("become /bin/true", Err(Command::new("/bin/true").exec()));
}

pub(crate) fn processes(diary: &mut Diary) {
    let own = nix::unistd::Pid::this();
    let parent = rustix::process::getppid().unwrap();
    diary.tried("ptrace", nix::sys::ptrace::traceme().map_err(io::Error::from));
    let mut copy = [0; 1];
    let here = [0_u8; 1];
    let there = nix::sys::uio::RemoteIoVec { base: here.as_ptr() as usize, len: 1 };
    let read = nix::sys::uio::process_vm_readv(own, &mut [io::IoSliceMut::new(&mut copy)], &[there]);
    diary.tried("process_vm_readv", read.map_err(io::Error::from));
    diary.tried("signal the parent", rustix::process::test_kill_process(parent).map_err(io::Error::from));
    diary.tried(
        "signal oneself",
        rustix::process::test_kill_process(rustix::process::getpid()).map_err(io::Error::from),
    );
    let limits = rustix::process::getrlimit(Resource::Nofile);
    let set = rustix::process::prlimit(Some(parent), Resource::Nofile, limits);
    diary.tried("limits of the parent", set.map_err(io::Error::from));
}

pub(crate) fn sockets(diary: &mut Diary) {
    let socket =
        |family, kind, protocol: Option<Protocol>| rustix::net::socket(family, kind, protocol).map_err(io::Error::from);
    diary.tried("raw socket", socket(AddressFamily::INET, SocketType::RAW, Some(rustix::net::ipproto::ICMP)));
    diary.tried("packet socket", socket(AddressFamily::PACKET, SocketType::DGRAM, None));
    diary.tried("netlink socket", socket(AddressFamily::NETLINK, SocketType::DGRAM, None));
    diary.tried("vsock socket", socket(AddressFamily::VSOCK, SocketType::STREAM, None));
    diary.tried("multipath socket", socket(AddressFamily::INET, SocketType::STREAM, Some(rustix::net::ipproto::MPTCP)));
    diary.tried("unix socket", unix_socket());
    diary.tried("udp socket", UdpSocket::bind("127.0.0.1:0"));
    diary.tried("tcp socket", socket(AddressFamily::INET6, SocketType::STREAM, Some(rustix::net::ipproto::TCP)));
    diary.tried("pair of unix sockets", UnixStream::pair());
}

pub(crate) fn ports(diary: &mut Diary) {
    diary.tried("listen on a port of the kernel's choice", TcpListener::bind("127.0.0.1:0"));
    // Nobody has it on this address, so it is free here.
    diary.tried("listen on another port", TcpListener::bind(("127.0.0.2", port("FIRST_PORT"))));
    diary.tried("connect to the first port", TcpStream::connect(("127.0.0.1", port("FIRST_PORT"))));
    diary.tried("connect to the second port", TcpStream::connect(("127.0.0.1", port("SECOND_PORT"))));
    diary.tried("look up localhost", ("localhost", 80).to_socket_addrs());
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], port("SECOND_PORT")));
    /// `MSG_FASTOPEN` of `sendto(2)`.
    const FAST_OPEN: i32 = 0x2000_0000;
    diary.tried("send and connect at once", socket.send_to_with_flags(b"x", &address.into(), FAST_OPEN));
}

pub(crate) fn rights(diary: &mut Diary) {
    let dumpable = rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable);
    diary.tried("become dumpable", dumpable.map_err(io::Error::from));
    diary.tried("new user name space", user_name_space());
    let mount = rustix::mount::mount("none", "cache", "tmpfs", rustix::mount::MountFlags::empty(), None);
    diary.tried("mount", mount.map_err(io::Error::from));
    let sets: CapabilitySets = rustix::thread::capabilities(None).unwrap();
    let watch = rustix::fs::inotify::init(rustix::fs::inotify::CreateFlags::empty());
    diary.tried("a call that is in no list", watch.map_err(io::Error::from));
    diary.tried("take capabilities", rustix::thread::set_capabilities(None, sets).map_err(io::Error::from));
    let core =
        rustix::process::getrlimit(Resource::Core).maximum.map_or_else(|| "none".to_owned(), |max| max.to_string());
    diary.note("size of core files", &core);
    let status = fs::read_to_string("/proc/self/status").unwrap();
    for line in status.lines() {
        if let Some((name @ ("NoNewPrivs" | "Seccomp" | "CapPrm"), value)) = line.split_once(':') {
            diary.note(&format!("status of {name}"), value.trim());
        }
    }
}

/// What wasmtime and llama.cpp do all day.
pub(crate) fn memory(diary: &mut Diary) {
    let executable = || {
        let mut map = memmap2::MmapMut::map_anon(4096)?;
        // A return instruction of either processor would begin so.
        map.fill(0xC3);
        map.make_exec()?.make_mut().map(drop)
    };
    diary.tried("executable memory", executable());
    let memfd = || {
        let file = rustix::fs::memfd_create("image", rustix::fs::MemfdFlags::CLOEXEC)?;
        rustix::fs::ftruncate(&file, 4096)?;
        let mut file = File::from(file);
        file.write_all(b"image")?;
        memmap2::MmapOptions::new().map_raw(&file).map(drop)
    };
    diary.tried("memory of a memfd", memfd());
    diary.tried("map a model", File::open(MODEL).and_then(|file| memmap2::MmapOptions::new().map_raw_read_only(&file)));
    diary.tried("lock memory", memmap2::MmapMut::map_anon(4096).and_then(|map| map.lock()));
    let thread = std::thread::Builder::new().spawn(|| 1).map(|thread| thread.join().unwrap());
    diary.tried("a thread", thread);
}
