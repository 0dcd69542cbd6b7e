//! Reads the operator's file again when it changes, and keeps the books.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use nala_egress::Networks;
use nala_manifest::operator::{Class, Credential, Listen, Operator, TokenIssuer};
use nala_tenant::{Books, ClassName, Directory};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::{AdminKeys, networks};

/// How often it is looked whether a file has changed: a key that was taken out is of use
/// for so long.
const LOOK: Duration = Duration::from_secs(1);
/// How often the counters are written down.
const WRITE: Duration = Duration::from_secs(5);

/// Follows the files behind a directory of tenants.
pub(super) struct Reload {
    pub(super) path: PathBuf,
    pub(super) directory: Arc<Directory>,
    pub(super) admin_keys: AdminKeys,
    pub(super) at_start: AtStart,
    /// The class whose process this is.
    pub(super) only: Option<ClassName>,
    /// What is watched, and what it looked like.
    pub(super) seen: Vec<(PathBuf, Option<Look>)>,
}

/// What the operator's file has said that is decided when the host starts: by then it is
/// bound, started and confined by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AtStart {
    listen: Listen,
    /// Whether anybody may manage the host, which takes rights of its own.
    is_managed: bool,
    registries: Vec<String>,
    networks: Networks,
    credentials: Vec<Credential>,
    tokens: Vec<TokenIssuer>,
    state_dir: Option<PathBuf>,
    /// Those that have a process.
    classes: Vec<Class>,
}

impl AtStart {
    pub(super) fn of(operator: &Operator, networks: Networks) -> Self {
        Self {
            listen: operator.listen,
            is_managed: !operator.admin_keys.is_empty(),
            registries: operator.registries.clone(),
            networks,
            credentials: operator.egress.credentials.clone(),
            tokens: operator.tokens.clone(),
            state_dir: operator.state_dir.clone(),
            classes: operator.classes.clone(),
        }
    }

    /// What is said otherwise now, and is not the case until the next start.
    fn waiting(&self, now: &Self) -> Vec<&'static str> {
        // All keys can be taken out at any time.
        let is_new = now.is_managed && !self.is_managed;
        let changed = |class: &Class| now.classes.iter().any(|other| other.name == class.name && other != class);
        let all = [
            ("[listen]", self.listen != now.listen),
            ("`keys` of [admin], of which there were none", is_new),
            ("`registries` of [admin]", self.registries != now.registries),
            ("[egress]", self.networks != now.networks || self.credentials != now.credentials),
            ("[[tokens]]", self.tokens != now.tokens),
            ("[state]", self.state_dir != now.state_dir),
            ("what a [class] is given", self.classes.iter().any(changed)),
        ];
        all.into_iter().filter(|(_, differs)| *differs).map(|(what, _)| what).collect()
    }

    /// The classes that have no process.
    fn without_process<'a>(&self, now: &'a Self) -> impl Iterator<Item = &'a ClassName> {
        now.classes.iter().map(|class| &class.name).filter(|name| self.classes.iter().all(|class| class.name != **name))
    }
}

/// What tells that a file is another one. The number of the file changes where it is
/// replaced by renaming, as editors and configuration maps do.
pub(super) type Look = (SystemTime, u64, u64);

fn look(path: &Path) -> Option<Look> {
    use std::os::unix::fs::MetadataExt;
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len(), meta.ino()))
}

pub(super) fn looks(files: &[PathBuf]) -> Vec<(PathBuf, Option<Look>)> {
    files.iter().map(|file| (file.clone(), look(file))).collect()
}

impl Reload {
    /// Looks for as long as the host serves.
    pub(super) async fn run(mut self) {
        let mut ticks = interval(LOOK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let work = tokio::task::spawn_blocking(move || {
                self.look();
                self
            });
            match work.await {
                Ok(reload) => self = reload,
                Err(_ending) => return,
            }
        }
    }

    /// Serves what the files say, if they say something else. A file that is wrong
    /// changes nothing.
    fn look(&mut self) {
        if self.seen.iter().all(|(file, seen)| look(file) == *seen) {
            return;
        }
        // Before it is read: what changes meanwhile is seen the next time.
        let files: Vec<PathBuf> = self.seen.iter().map(|(file, _)| file.clone()).collect();
        self.seen = looks(&files);
        let (operator, networks) = match self.read() {
            Ok(read) => read,
            Err(error) => {
                let error = format!("{error:#}");
                tracing::error!(file = %self.path.display(), error, "the tenants stay as they were: the file is wrong");
                return;
            }
        };
        for warning in &operator.warnings {
            tracing::warn!(file = %self.path.display(), "{warning}");
        }
        if operator.files() != files {
            self.seen = looks(operator.files());
        }
        match &self.only {
            Some(class) => self.directory.reload(operator.roster.only(class)),
            None => {
                self.warn_of_waiting(&AtStart::of(&operator, networks));
                if self.at_start.is_managed {
                    self.admin_keys.replace(operator.admin_keys);
                }
                self.directory.reload(operator.roster);
            }
        }
        tracing::info!(file = %self.path.display(), "the tenants were read again");
    }

    /// Reads all that the files say, used at once or not.
    fn read(&self) -> anyhow::Result<(Operator, Networks)> {
        let operator = Operator::read(&self.path)?;
        let networks = networks(&self.path, &operator.egress)?;
        Ok((operator, networks))
    }

    /// Tells what is new and cannot be had now: the right to start processes and to listen
    /// is given up, and components have their way out.
    fn warn_of_waiting(&self, now: &AtStart) {
        for class in self.at_start.without_process(now) {
            tracing::warn!(
                class = class.as_str(),
                "the class is new and has no process until the host is started again; its tenants are told 503"
            );
        }
        for what in self.at_start.waiting(now) {
            tracing::warn!(file = %self.path.display(), "{what} has changed, which takes effect at the next start");
        }
    }
}

/// Writes the counters down, now and then, and once more when the host ends.
pub(crate) async fn keep(mut books: Books, directory: Arc<Directory>, end: CancellationToken) {
    let mut ticks = interval(WRITE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let last = tokio::select! {
            _tick = ticks.tick() => false,
            () = end.cancelled() => true,
        };
        let directory = Arc::clone(&directory);
        let work = tokio::task::spawn_blocking(move || {
            if let Err(error) = books.write(&directory.totals(), SystemTime::now()) {
                tracing::error!(%error, "what tenants have used cannot be written down");
            }
            books
        });
        match work.await {
            Ok(back) if !last => books = back,
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        [listen]
        http = "127.0.0.1:1"
        [admin]
        registries = ["a.example"]
        [egress]
        private = ["10.1.0.0/16"]
        [state]
        dir = "state"
        [class.one]
        process = "own"
        threads = 1
        [tenant.acme]
        class = "one"
    "#;

    const CREDENTIAL: &str = "
        [[egress.credentials]]
        origin = 'https://a.example'
        components = ['a']
        bearer_file = 'token'
        [egress]";

    fn at_start(text: &str) -> AtStart {
        let operator = Operator::parse(text, None, Path::new("")).unwrap();
        let networks = networks(Path::new(""), &operator.egress).unwrap();
        AtStart::of(&operator, networks)
    }

    #[test]
    fn what_waits_for_the_next_start_is_told() {
        let (_, stored) = nala_tenant::Key::generate().unwrap();
        let keys = format!("[admin]\nkeys = [\"{stored}\"]");
        let before = at_start(FILE);
        assert_eq!(before.waiting(&at_start(&FILE.replace("[tenant.acme]", "[tenant.acme]\nweight = 2"))), [""; 0]);
        for (from, to, told) in [
            ("127.0.0.1:1", "127.0.0.1:2", "[listen]"),
            ("[admin]", &keys, "`keys` of [admin], of which there were none"),
            ("a.example", "b.example", "`registries` of [admin]"),
            ("private = [\"10.1.0.0/16\"]", "refused = [\"10.1.0.0/16\"]", "[egress]"),
            ("[egress]\n        private = [\"10.1.0.0/16\"]", "", "[egress]"),
            ("[egress]", CREDENTIAL, "[egress]"),
            ("\"state\"", "\"other\"", "[state]"),
            ("threads = 1", "threads = 2", "what a [class] is given"),
        ] {
            let after = FILE.replacen(from, to, 1);
            assert_ne!(after, FILE, "{from}");
            assert_eq!(before.waiting(&at_start(&after)), [told], "{to}");
        }
        // Who may manage the host is changed at once.
        let managed = at_start(&FILE.replacen("[admin]", &keys, 1));
        assert_eq!(managed.waiting(&before), [""; 0]);
        let more = at_start(&format!("{FILE}\n[class.two]\nprocess = \"own\"\n[tenant.b]\nclass = \"two\"\n"));
        let new: Vec<&str> = before.without_process(&more).map(ClassName::as_str).collect();
        assert_eq!((new, before.waiting(&more)), (vec!["two"], vec![]));
    }

    #[test]
    fn files_are_followed_and_a_wrong_one_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("nala.toml");
        let ((_, first), (second, second_stored)) =
            (nala_tenant::Key::generate().unwrap(), nala_tenant::Key::generate().unwrap());
        let write = |key: &nala_tenant::StoredKey, rest: &str| {
            std::fs::write(&path, format!("[admin]\nkeys = [\"{key}\"]\n{rest}")).unwrap();
        };
        write(&first, "[tenant.acme]\n");
        let operator = Operator::read(&path).unwrap();
        let mut reload = Reload {
            path: path.clone(),
            at_start: AtStart::of(&operator, Networks::default()),
            directory: super::super::directory(operator.roster, &nala_tenant::Totals::default()),
            admin_keys: AdminKeys::new(operator.admin_keys),
            only: None,
            seen: Vec::new(),
        };
        let knows = |reload: &Reload| {
            let admin = reload.admin_keys.check(second.expose(), SystemTime::now()).is_ok();
            (admin, reload.directory.tenant("other").is_some())
        };
        // What is wrong with [egress] is wrong with the file.
        write(&second_stored, "[egress]\nprivate = [\"8.8.8.8\"]\n[tenant.acme]\n[tenant.other]\n");
        reload.seen = vec![(path.clone(), None)];
        reload.look();
        assert_eq!(knows(&reload), (false, false));
        write(&second_stored, "[egress]\nprivate = [\"10.0.0.0/8\"]\n[tenant.acme]\n[tenant.other]\n");
        reload.seen = vec![(path.clone(), None)];
        reload.look();
        assert_eq!(knows(&reload), (true, true));
        // Without any from the start, the host has no rights for those who would manage it.
        reload.at_start.is_managed = false;
        write(&first, "[tenant.acme]\n");
        reload.seen = vec![(path.clone(), None)];
        reload.look();
        assert_eq!(knows(&reload), (true, false));
    }
}
