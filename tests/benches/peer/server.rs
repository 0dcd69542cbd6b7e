//! The two servers, started alike.

use std::ffi::OsString;
use std::fs::File;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nala_e2e::host::Host;
use nala_e2e::paths;

use crate::client::Client;
use crate::settings::Settings;

/// How long a server may take to load the model.
const PATIENCE: Duration = Duration::from_secs(120);

/// What our side serves.
pub(crate) enum Serve<'a> {
    /// The OpenAI API.
    Api,
    /// A handler of its own.
    Handler(&'a Path),
}

/// What requests call the model, whatever its file is.
pub(crate) const MODEL: &str = "model";

/// Our side. It ends when dropped.
pub(crate) struct Ours {
    _host: Host,
    pub(crate) client: Client,
}

impl Ours {
    pub(crate) fn start(settings: &Settings, what: Serve<'_>) -> Self {
        let mut args: Vec<OsString> = match what {
            Serve::Api => vec!["up".into()],
            Serve::Handler(wasm) => vec!["run".into(), wasm.into()],
        };
        args.push("--model".into());
        let mut named: OsString = format!("{MODEL}=").into();
        named.push(paths::model());
        args.push(named);
        for (option, value) in [
            ("--threads", settings.threads),
            ("--kv-cells", settings.kv_cells),
            ("--max-sequences", settings.slots),
            ("--batch-tokens", settings.batch),
        ] {
            args.push(option.into());
            args.push(value.to_string().into());
        }
        let host = Host::start(args.iter().map(OsString::as_os_str));
        let client = Client::new(format!("http://{}", host.address));
        Self { _host: host, client }
    }
}

/// The peer. It ends when dropped.
pub(crate) struct Peer {
    child: Child,
    pub(crate) client: Client,
}

impl Peer {
    /// Starts it with options of the scenario's own; those that this build does
    /// not know are left out, and said to be.
    pub(crate) fn start(settings: &Settings, options: &[&[&str]]) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free.expect("a free port").port();
        let log = tempfile::NamedTempFile::new().expect("a file for the peer's log");
        let mut command = settings.peer();
        command.arg("-m").arg(paths::model()).args(["--host", "127.0.0.1", "--port", &port.to_string()]);
        let number = |n: u32| n.to_string();
        for (option, value) in [
            ("-t", number(settings.threads)),
            ("-tb", number(settings.threads)),
            ("-c", number(settings.kv_cells)),
            ("-np", number(settings.slots)),
            ("-b", number(settings.batch)),
            // Ours computes so many at once, too (`LoadOptions::micro_batch_tokens`).
            ("-ub", number(settings.batch.min(512))),
            ("-fa", "auto".to_owned()),
            ("-ctk", "f16".to_owned()),
            ("-ctv", "f16".to_owned()),
        ] {
            command.args([option, &value]);
        }
        for option in [&["--kv-unified"][..], &["--no-webui"][..]].iter().chain(options) {
            if settings.peer_knows(option[0]) {
                command.args(*option);
            } else {
                println!("(the peer has no {})", option[0]);
            }
        }
        command.args(settings.peer_args());
        let child = spawn(&mut command, log.as_file());
        let mut peer = Self { child, client: Client::new(format!("http://127.0.0.1:{port}")) };
        peer.wait(log.path());
        peer
    }

    fn wait(&mut self, log: &Path) {
        let end = Instant::now() + PATIENCE;
        while !self.client.is_ready() {
            let ended = self.child.try_wait().expect("a child can be asked");
            if ended.is_some() || Instant::now() > end {
                let text = std::fs::read_to_string(log).unwrap_or_default();
                panic!("the peer does not serve ({ended:?}):\n{text}");
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(command: &mut Command, log: &File) -> Child {
    let clone = || log.try_clone().expect("a file has more than one handle");
    command.stdin(Stdio::null()).stdout(clone()).stderr(clone()).spawn().expect("the peer starts")
}
