//! From the command line and the operator's file to who is served.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use nala_class::Link;
use nala_egress::Networks;
use nala_manifest::operator::{self, Class, Operator};
use nala_tenant::{Books, ClassName, Directory, TenantName, Totals};
use tokio_util::sync::CancellationToken;

use super::reload::{self, AtStart, Reload};
use super::{AdminKeys, Tenancy, tokens};
use crate::args::ServeArgs;
use crate::classes::{self, Keepers};
use crate::console::{Console, Help};
use crate::credentials::{self, Credentials};
use crate::deploy::Registries;
use crate::services::Outside;
use crate::wall::Connect;

/// Where requests are taken where nothing is said.
const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 3000);
/// How long a period of the books is.
const PERIOD: Duration = Duration::from_secs(3600);

/// Where requests come from.
pub(crate) enum Doors {
    /// Listeners of this process.
    Listen {
        requests: SocketAddr,
        /// The operator's.
        admin: Option<SocketAddr>,
    },
    /// The host that has this class, and this process for it.
    Link { link: Link, class: Class },
}

/// What the operator has said, read before anything is bound.
pub(crate) struct Opened {
    pub(crate) tenancy: Tenancy,
    pub(crate) doors: Doors,
    /// The classes that have a process of their own, when this is not one.
    pub(crate) classes: Vec<Class>,
    /// Environment variables that those processes are not to have.
    pub(crate) withheld: BTreeMap<ClassName, BTreeSet<String>>,
    /// Those processes, once there are any.
    pub(crate) keepers: Keepers,
    /// Who may manage the host.
    pub(crate) admin_keys: AdminKeys,
    /// Out of which registries they may deploy.
    pub(crate) registries: Option<Registries>,
    /// Which addresses components may reach, and what is added to their requests.
    pub(crate) outside: Outside,
    /// Where things are kept between starts.
    pub(crate) state: Option<PathBuf>,
    /// The files that were read, and are read again.
    pub(crate) files: Vec<PathBuf>,
    /// Follows the file, and keeps the books.
    pub(crate) follow: Option<Follow>,
}

/// What is followed once the host serves.
pub(crate) struct Follow {
    directory: Arc<Directory>,
    reload: Reload,
    books: Option<Books>,
}

/// What goes on beside serving, to be ended with it.
pub(crate) struct Following {
    end: CancellationToken,
    reload: tokio::task::JoinHandle<()>,
    books: Option<tokio::task::JoinHandle<()>>,
}

impl Following {
    /// Ends it; what was used until now is written down.
    pub(crate) async fn stop(self) {
        self.reload.abort();
        self.end.cancel();
        if let Some(books) = self.books {
            let _ended = books.await;
        }
    }
}

impl Opened {
    /// Reads the operator's file, if there is one, and the books.
    ///
    /// # Errors
    /// The file is wrong, or the folder for what is kept cannot be used.
    pub(crate) fn read(args: &ServeArgs, console: Console) -> anyhow::Result<Self> {
        let operator = args.config.as_deref().map(Operator::read).transpose()?;
        let Some(operator) = operator else {
            if let Some(class) = &args.class {
                return Err(unknown_class(class));
            }
            return Ok(Self {
                tenancy: Tenancy::sole(),
                doors: Doors::Listen { requests: args.listen.unwrap_or(LISTEN), admin: args.admin_listen },
                classes: Vec::new(),
                withheld: BTreeMap::new(),
                keepers: Keepers::default(),
                admin_keys: AdminKeys::default(),
                registries: None,
                outside: Outside::default(),
                state: args.state_dir.clone(),
                files: Vec::new(),
                follow: None,
            });
        };
        let state = args.state_dir.clone().or_else(|| operator.state_dir.clone());
        match &args.class {
            None => {
                for warning in &operator.warnings {
                    console.warn(&warning.to_string());
                }
                let requests = args.listen.or(operator.listen.http).unwrap_or(LISTEN);
                let admin = args.admin_listen.or(operator.listen.admin);
                Self::declared(args, operator, Doors::Listen { requests, admin }, state)
            }
            Some(name) => {
                let class = operator.classes.iter().find(|class| class.name == *name).cloned();
                let class = class.ok_or_else(|| unknown_class(name))?;
                let state = state.map(|state| classes::folder(&state, name));
                Self::declared(args, operator, Doors::Link { link: Link::from_stdin()?, class }, state)
            }
        }
    }

    fn declared(args: &ServeArgs, operator: Operator, doors: Doors, state: Option<PathBuf>) -> anyhow::Result<Self> {
        let (books, totals) = state.as_deref().map(books).transpose()?.unzip();
        let files = operator.files().to_vec();
        let file = args.config.clone().unwrap_or_default();
        let networks = networks(&file, &operator.egress)?;
        let at_start = AtStart::of(&operator, networks.clone());
        let declared = &operator.egress.credentials;
        let withheld = operator.classes.iter().map(|class| {
            let roster = operator.roster.only(&class.name);
            let is_served = |name: &TenantName| roster.tenant(name.as_str()).is_some();
            (class.name.clone(), credentials::environment_of_others(declared, is_served))
        });
        let withheld = withheld.collect();
        let credentials = match &doors {
            Doors::Listen { .. } => {
                Credentials::open(&file, declared, credentials::is_served_in_front(&operator.roster))?
            }
            Doors::Link { class, .. } => {
                let roster = operator.roster.only(&class.name);
                Credentials::open(&file, declared, |name| roster.tenant(name.as_str()).is_some())?
            }
        };
        let (roster, classes, registries) = match &doors {
            Doors::Listen { .. } => (operator.roster, operator.classes, Registries::open(&operator.registries)?),
            // What is in a registry is fetched in front, and sent.
            Doors::Link { class, .. } => (operator.roster.only(&class.name), Vec::new(), None),
        };
        let directory = super::directory(roster, &totals.unwrap_or_default());
        let admin_keys = AdminKeys::new(operator.admin_keys);
        let reload = Reload {
            path: file,
            directory: Arc::clone(&directory),
            admin_keys: admin_keys.clone(),
            at_start,
            only: args.class.clone(),
            seen: reload::looks(&files),
        };
        Ok(Self {
            tenancy: Tenancy::Declared(Arc::clone(&directory), tokens::of(&operator.tokens)),
            doors,
            classes,
            keepers: Keepers::default(),
            admin_keys,
            registries,
            outside: Outside { networks, credentials },
            withheld,
            state,
            files,
            follow: Some(Follow { directory, reload, books }),
        })
    }

    /// Whom components may reach that are not known yet, and the host itself.
    pub(crate) fn reach(&self) -> Connect {
        // What is deployed later says what it reaches, and is held to that.
        if self.is_managed() || self.tenancy.asks_issuers() { Connect::Any } else { Connect::None }
    }

    /// Whether applications can be deployed while the host serves.
    pub(crate) fn is_managed(&self) -> bool {
        !self.admin_keys.is_empty() && self.state.is_some()
    }
}

impl Follow {
    /// Begins to follow the file and to keep the books.
    pub(crate) fn begin(self) -> Following {
        let Self { directory, reload, books } = self;
        let end = CancellationToken::new();
        let books = books.map(|books| tokio::spawn(reload::keep(books, directory, end.clone())));
        Following { end, reload: tokio::spawn(reload.run()), books }
    }
}

/// What `[egress]` of the operator's file says.
///
/// # Errors
/// An entry cannot be used.
pub(crate) fn networks(file: &Path, egress: &operator::Egress) -> Result<Networks, Help> {
    Networks::parse(&egress.private, &egress.refused).map_err(|error| Help {
        what: format!("[egress] of {}: {error}", file.display()),
        help: "write `private` and `refused` as lists of addresses and networks".to_owned(),
    })
}

fn unknown_class(name: &ClassName) -> anyhow::Error {
    let what = format!("the operator's file has no class {name}");
    Help { what, help: "leave --class out: a host starts the processes of its classes itself".to_owned() }.into()
}

fn books(state: &Path) -> anyhow::Result<(Books, Totals)> {
    let dir = state.join("usage");
    Books::open(&dir, PERIOD).with_context(|| format!("the books in {} cannot be opened", dir.display()))
}
