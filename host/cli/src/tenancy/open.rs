//! From the command line and the operator's file to who is served.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use nala_manifest::operator::Operator;
use nala_tenant::{Books, Directory, StoredKey, Totals};
use tokio_util::sync::CancellationToken;

use super::Tenancy;
use super::reload::{self, Reload};
use crate::args::ServeArgs;
use crate::console::Console;
use crate::deploy::Registries;
use crate::wall::Connect;

/// Where requests are taken where nothing is said.
const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 3000);
/// How long a period of the books is.
const PERIOD: Duration = Duration::from_secs(3600);

/// What the operator has said, read before anything is bound.
pub(crate) struct Opened {
    pub(crate) tenancy: Tenancy,
    pub(crate) listen: SocketAddr,
    pub(crate) admin: Option<SocketAddr>,
    /// Who may manage the host.
    pub(crate) admin_keys: Vec<StoredKey>,
    /// Out of which registries they may deploy.
    pub(crate) registries: Option<Registries>,
    /// Where things are kept between starts.
    pub(crate) state: Option<PathBuf>,
    /// The files that were read, and are read again.
    pub(crate) files: Vec<PathBuf>,
    /// Follows the file, and keeps the books.
    follow: Option<Follow>,
}

struct Follow {
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
            return Ok(Self {
                tenancy: Tenancy::sole(),
                listen: args.listen.unwrap_or(LISTEN),
                admin: args.admin_listen,
                admin_keys: Vec::new(),
                registries: None,
                state: args.state_dir.clone(),
                files: Vec::new(),
                follow: None,
            });
        };
        for warning in &operator.warnings {
            console.warn(&warning.to_string());
        }
        let state = args.state_dir.clone().or_else(|| operator.state_dir.clone());
        let (books, totals) = state.as_deref().map(books).transpose()?.unzip();
        let listen = args.listen.or(operator.listen.http).unwrap_or(LISTEN);
        let admin = args.admin_listen.or(operator.listen.admin);
        let files = operator.files().to_vec();
        let admin_keys = operator.admin_keys;
        let registries = Registries::open(&operator.registries)?;
        let directory = super::directory(operator.roster, &totals.unwrap_or_default());
        let file = args.config.clone().unwrap_or_default();
        let reload = Reload::new(&file, &files, Arc::clone(&directory));
        let tenancy = Tenancy::Declared(Arc::clone(&directory));
        let follow = Some(Follow { directory, reload, books });
        Ok(Self { tenancy, listen, admin, admin_keys, registries, state, files, follow })
    }

    /// Whom components may reach that are not known yet.
    pub(crate) fn reach(&self) -> Connect {
        // What is deployed later says what it reaches, and is held to that.
        if self.is_managed() { Connect::Any } else { Connect::None }
    }

    /// Whether applications can be deployed while the host serves.
    pub(crate) fn is_managed(&self) -> bool {
        !self.admin_keys.is_empty() && self.state.is_some()
    }

    /// Begins to follow the file and to keep the books.
    pub(crate) fn follow(&mut self) -> Option<Following> {
        let Follow { directory, reload, books } = self.follow.take()?;
        let end = CancellationToken::new();
        let books = books.map(|books| tokio::spawn(reload::keep(books, directory, end.clone())));
        Some(Following { end, reload: tokio::spawn(reload.run()), books })
    }
}

fn books(state: &Path) -> anyhow::Result<(Books, Totals)> {
    let dir = state.join("usage");
    Books::open(&dir, PERIOD).with_context(|| format!("the books in {} cannot be opened", dir.display()))
}
