//! The scenes: a plan, and what is tried behind its walls.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::process::{Command, ExitCode};
use std::sync::mpsc;
use std::time::Duration;

use nala_sandbox::{Connect, Plan, Policy, Spawn};
use seccompiler::{SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::attempts::{self, OUTSIDE, outcome};

/// What is printed at the end.
#[derive(Default)]
pub(crate) struct Diary(BTreeMap<String, Value>);

impl Diary {
    pub(crate) fn tried<T>(&mut self, name: &str, result: io::Result<T>) {
        self.note(name, &outcome(result));
    }

    pub(crate) fn note(&mut self, name: &str, text: &str) {
        self.0.insert(name.to_owned(), text.into());
    }

    fn enforce(&mut self, plan: &Plan, policy: Policy) {
        match plan.enforce(policy) {
            Ok(report) => {
                self.note("text", &report.to_string());
                self.0.insert("report".to_owned(), serde_json::to_value(report).unwrap());
                self.0.entry("error".to_owned()).or_insert_with(|| "".into());
            }
            Err(error) => self.note("error", &error.to_string()),
        }
    }
}

fn plan() -> Plan {
    Plan::new().read("models").read("/proc/self/status").write("cache").bind(0)
}

pub(crate) fn main(scene: &str) -> ExitCode {
    let mut diary = Diary::default();
    match scene {
        "strict" => strict(&mut diary),
        "serving" => serving(&mut diary),
        "outbound" => outbound(&mut diary),
        "threads" => threads(&mut diary),
        "threads, required" => threads_required(&mut diary),
        "spawning" => spawning(&mut diary),
        "no landlock" => no_landlock(&mut diary),
        "no seccomp" => no_seccomp(&mut diary),
        "machine" => machine(&mut diary),
        "off" => {
            diary.enforce(&plan(), Policy::Off);
            few(&mut diary);
            diary.tried("start /bin/true", attempts::start("/bin/true"));
        }
        "missing place" => diary.enforce(&plan().read("/nowhere"), Policy::Required),
        "optional place" => diary.enforce(&plan().read_if_there("/nowhere"), Policy::Required),
        other => panic!("there is no scene {other}"),
    }
    let text = serde_json::to_string(&diary.0).unwrap();
    io::stdout().write_all(text.as_bytes()).unwrap();
    ExitCode::SUCCESS
}

fn few(diary: &mut Diary) {
    diary.tried("read outside", attempts::read_outside());
    diary.tried("unix socket", attempts::unix_socket());
}

fn strict(diary: &mut Diary) {
    let open_before = File::open(OUTSIDE).unwrap();
    diary.enforce(&plan(), Policy::Required);
    attempts::files(diary, open_before);
    attempts::written(diary);
    attempts::paths(diary);
    attempts::programs(diary);
    attempts::processes(diary);
    attempts::sockets(diary);
    attempts::ports(diary);
    attempts::memory(diary);
    attempts::rights(diary);
    diary.note("enforce again", &plan().enforce(Policy::BestEffort).unwrap_err().to_string());
}

/// A runtime that starts behind the walls.
fn serving(diary: &mut Diary) {
    diary.enforce(&plan().connect(Connect::Any), Policy::Required);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let answer = async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
            let address = listener.local_addr()?;
            let client = tokio::spawn(async move {
                let mut client = tokio::net::TcpStream::connect(address).await?;
                client.write_all(b"ping").await
            });
            let (mut server, _) = listener.accept().await?;
            let mut bytes = [0; 4];
            server.read_exact(&mut bytes).await?;
            client.await.unwrap()
        };
        diary.tried("tokio serves itself", answer.await);
        let signal = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate());
        let heard = async {
            let mut signal = signal?;
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM)?;
            signal.recv().await;
            Ok(())
        };
        diary.tried("tokio hears of signals", heard.await);
        diary
            .tried("tokio blocks apart", tokio::task::spawn_blocking(|| std::fs::read(attempts::MODEL)).await.unwrap());
        let waited = tokio::time::timeout(Duration::from_millis(1), std::future::pending::<()>()).await;
        diary.tried("wait in time", waited.map_or(Ok(()), |()| Err(io::Error::other("it came"))));
    });
}

fn machine(diary: &mut Diary) {
    diary.enforce(&plan().read_machine(), Policy::Required);
    for name in ["smaps_rollup", "maps", "cgroup", "mem", "environ", "fd"] {
        let path = format!("/proc/self/{name}");
        diary.tried(&path, attempts::open(&path));
    }
    diary.tried("/proc/meminfo", attempts::open("/proc/meminfo"));
    diary.tried("/proc/loadavg", attempts::open("/proc/loadavg"));
    diary.tried("/proc/version", attempts::open("/proc/version"));
}

fn outbound(diary: &mut Diary) {
    let plan = plan().connect(Connect::Ports(vec![attempts::port("FIRST_PORT")]));
    diary.enforce(&plan, Policy::Required);
    attempts::ports(diary);
    attempts::sockets(diary);
}

fn threads(diary: &mut Diary) {
    let (go, waits) = mpsc::channel::<()>();
    let earlier = std::thread::spawn(move || {
        waits.recv().unwrap();
        (outcome(attempts::read_outside()), outcome(attempts::unix_socket()))
    });
    diary.enforce(&plan(), Policy::BestEffort);
    go.send(()).unwrap();
    let (read, socket) = earlier.join().unwrap();
    diary.note("earlier: read outside", &read);
    diary.note("earlier: unix socket", &socket);
    let later = std::thread::spawn(|| (outcome(attempts::read_outside()), outcome(attempts::unix_socket())));
    let (read, socket) = later.join().unwrap();
    diary.note("later: read outside", &read);
    diary.note("later: unix socket", &socket);
}

fn threads_required(diary: &mut Diary) {
    let (_go, waits) = mpsc::channel::<()>();
    let _earlier = std::thread::spawn(move || waits.recv());
    diary.enforce(&plan(), Policy::Required);
    few(diary);
}

fn spawning(diary: &mut Diary) {
    diary.enforce(&plan().spawn(Spawn::Only(vec!["/bin/cat".into()])), Policy::Required);
    let cat = |path: &str| {
        let output = Command::new("/bin/cat").arg(path).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    diary.note("cat a model", &cat(attempts::MODEL));
    diary.note("cat outside", &cat(OUTSIDE));
    diary.tried("start another program", attempts::start("/bin/ls"));
    diary.tried("new user name space", attempts::user_name_space());
}

/// An older kernel, as a filter plays it.
fn pretend(call: i64, rules: Vec<SeccompRule>, errno: Errno) {
    let filter = SeccompFilter::new(
        [(call, rules)].into_iter().collect(),
        SeccompAction::Allow,
        SeccompAction::Errno(errno.0),
        std::env::consts::ARCH.try_into().unwrap(),
    );
    let program: seccompiler::BpfProgram = filter.unwrap().try_into().unwrap();
    seccompiler::apply_filter(&program).unwrap();
}

struct Errno(u32);

fn no_landlock(diary: &mut Diary) {
    pretend(libc::SYS_landlock_create_ruleset, Vec::new(), Errno(libc::ENOSYS.unsigned_abs()));
    diary.enforce(&plan(), Policy::Required);
    diary.enforce(&plan(), Policy::BestEffort);
    few(diary);
}

fn no_seccomp(diary: &mut Diary) {
    let option = SeccompCondition::new(
        0,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::Eq,
        u64::from(libc::PR_GET_SECCOMP.unsigned_abs()),
    );
    let asks = SeccompRule::new(vec![option.unwrap()]).unwrap();
    pretend(libc::SYS_prctl, vec![asks], Errno(libc::EINVAL.unsigned_abs()));
    diary.enforce(&plan(), Policy::Required);
    diary.enforce(&plan(), Policy::BestEffort);
    few(diary);
}
