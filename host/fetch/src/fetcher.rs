//! From what is wanted to a file.

use std::path::PathBuf;
use std::time::Duration;

use nala_manifest::dependencies::Provider;
use nala_manifest::source::{Download, Package, Source};
use nala_oci::{Client, Credentials, Digest, Progress, Reach, Reference, Transport, component_of};
use semver::{Version, VersionReq};
use url::Url;

use crate::cache::{Cache, Kind, Note};
use crate::error::Error;
use crate::package::{Metadata, WELL_KNOWN};

/// Versions that are listed where none fits.
const LISTED: usize = 10;

/// What is wanted.
#[derive(Debug, Clone)]
pub enum Wanted<'w> {
    /// What is at an address.
    Url(&'w Download),
    /// A version of a package.
    Package(&'w Package<Version>),
    /// The newest version of a package that fits. Where the network is not used, the one
    /// that was the newest when it was asked for last.
    Newest(&'w Package<VersionReq>),
    /// What is in a registry.
    Reference(Reference),
}

impl<'w> Wanted<'w> {
    /// What a component's source stands for; none is a file.
    ///
    /// # Errors
    /// [`Error::Reference`].
    pub fn of(source: &'w Source) -> Result<Option<Self>, Error> {
        Ok(match source {
            Source::Path(_) | Source::Builtin(_) => None,
            Source::Url(download) => Some(Self::Url(download)),
            Source::Registry(package) => Some(Self::Package(package)),
            Source::Oci(pinned) => Some(Self::Reference(Reference::parse(pinned.as_str())?)),
        })
    }

    /// What stands behind a dependency; none is a file, or a component of the application.
    #[must_use]
    pub fn behind(provider: &'w Provider) -> Option<Self> {
        match provider {
            Provider::Path(_) | Provider::Component(_) => None,
            Provider::Url(download) => Some(Self::Url(download)),
            Provider::Registry(package) => Some(Self::Newest(package)),
        }
    }
}

/// Whether the network is used for what is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Network {
    /// It is.
    #[default]
    Used,
    /// What is not kept is an error.
    Unused,
}

/// How things are fetched, and where they are kept.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where what was fetched is kept; it need not be there.
    pub folder: PathBuf,
    /// Bytes that a component may have.
    pub max_bytes: u64,
    /// The time that one may take.
    pub limit: Duration,
    /// Whether anything is fetched.
    pub network: Network,
    /// Registries that are spoken to in plain text, each a host with its port. Those of
    /// this machine are without being named.
    pub plain_text: Vec<String>,
}

/// A component that is on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The file, whose bytes have `component` now.
    pub path: PathBuf,
    /// The digest of the component.
    pub component: Digest,
    /// What names it in a registry for ever, where it is of one.
    pub pinned: Option<Reference>,
    /// Where it came from.
    pub was: Was,
}

/// Where something came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Was {
    /// It was kept, and the network was not asked for it.
    Kept,
    /// It was fetched, and is kept from now on.
    Elsewhere,
}

/// Has components fetched, and keeps them.
#[derive(Debug, Clone)]
pub struct Fetcher {
    settings: Settings,
    cache: Cache,
}

impl Fetcher {
    /// One with these settings. Nothing is looked at or asked yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let cache = Cache::new(settings.folder.clone());
        Self { settings, cache }
    }

    /// Keeps a component that the caller has, so that it is a file like all others.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn keep(&self, component: &[u8]) -> Result<PathBuf, Error> {
        let digest = Digest::of(component);
        match self.cache.find(Kind::Component, &digest)? {
            Some(path) => Ok(path),
            None => self.cache.keep(Kind::Component, &digest, component),
        }
    }

    /// The file of what is wanted, out of what is kept or fetched now. `progress` hears of
    /// what is fetched.
    ///
    /// It blocks, and no thread of it is left when it returns. It is not for threads on
    /// which futures run.
    ///
    /// # Errors
    /// [`Error`], which says what to do.
    pub fn fetch(&self, wanted: &Wanted<'_>, progress: &mut Progress<'_>) -> Result<Fetched, Error> {
        match wanted {
            Wanted::Url(download) => self.file(download, progress),
            Wanted::Reference(reference) => self.reference(reference, progress),
            Wanted::Package(package) => self.package(package, progress),
            Wanted::Newest(package) => self.newest(package, progress),
        }
    }

    /// What a reference stands for now, pinned. It blocks, as [`Fetcher::fetch`] does.
    ///
    /// # Errors
    /// [`Error`]; a tag is always looked up in its registry.
    pub fn pin(&self, reference: &Reference) -> Result<Reference, Error> {
        if reference.digest().is_some() {
            return Ok(reference.clone());
        }
        let credentials = self.credentials(reference)?;
        let digest = self.online(&reference.to_string(), Some(reference), async |client| {
            Ok(client.resolve(reference, &credentials).await?)
        })?;
        Ok(reference.pinned(&digest))
    }

    fn file(&self, download: &Download, progress: &mut Progress<'_>) -> Result<Fetched, Error> {
        let wrong = |why: String| Error::Address { url: download.url.clone(), why };
        let url = Url::parse(&download.url).map_err(|error| wrong(error.to_string()))?;
        let digest: Digest =
            download.digest.to_string().parse().map_err(|error: nala_oci::InvalidDigest| wrong(error.to_string()))?;
        if let Some(path) = self.cache.find(Kind::Component, &digest)? {
            return Ok(Fetched { path, component: digest, pinned: None, was: Was::Kept });
        }
        let place = format!("{}{}", url.host_str().unwrap_or_default(), url.path());
        let bytes = self.online(&place, None, async |client| {
            Ok(client.download(&url, &digest, self.settings.max_bytes, progress).await?)
        })?;
        let path = self.cache.keep(Kind::Component, &digest, &bytes)?;
        Ok(Fetched { path, component: digest, pinned: None, was: Was::Elsewhere })
    }

    fn reference(&self, reference: &Reference, progress: &mut Progress<'_>) -> Result<Fetched, Error> {
        let pinned = self.pin(reference)?;
        if let Some(kept) = self.kept(&pinned)? {
            return Ok(kept);
        }
        let credentials = self.credentials(&pinned)?;
        let pulled = self.online(&pinned.to_string(), Some(&pinned), async |client| {
            Ok(client.pull_showing(&pinned, self.settings.max_bytes, &credentials, progress).await?)
        })?;
        let path = self.cache.keep(Kind::Component, &pulled.component, &pulled.bytes)?;
        // Last: it says that the component is there.
        self.cache.keep(Kind::Manifest, &pulled.digest, &pulled.manifest)?;
        Ok(Fetched { path, component: pulled.component, pinned: Some(pinned), was: Was::Elsewhere })
    }

    /// What is kept for a digest that names a manifest.
    fn kept(&self, pinned: &Reference) -> Result<Option<Fetched>, Error> {
        let Some(digest) = pinned.digest() else { return Ok(None) };
        let Some(path) = self.cache.find(Kind::Manifest, digest)? else { return Ok(None) };
        let manifest = std::fs::read(&path).map_err(Error::kept(&path))?;
        let component = component_of(&manifest, pinned)?;
        let path = self.cache.find(Kind::Component, &component)?;
        Ok(path.map(|path| Fetched { path, component, pinned: Some(pinned.clone()), was: Was::Kept }))
    }

    fn package(&self, wanted: &Package<Version>, progress: &mut Progress<'_>) -> Result<Fetched, Error> {
        let Package { registry, package, version } = wanted;
        let registry = registry.as_deref().ok_or_else(|| Error::NoRegistry(package.clone()))?;
        let asked = format!("{registry} {package}@{version}");
        if let Some(pinned) = self.noted(&asked) {
            return self.reference(&pinned, progress);
        }
        let reference = self.metadata(registry, package)?.reference(registry, package, &version.to_string())?;
        self.first(asked, &reference, progress)
    }

    fn newest(&self, wanted: &Package<VersionReq>, progress: &mut Progress<'_>) -> Result<Fetched, Error> {
        let Package { registry, package, version } = wanted;
        let registry = registry.as_deref().ok_or_else(|| Error::NoRegistry(package.clone()))?;
        let asked = format!("{registry} {package}@{version}");
        let exact = match (self.newest_of(registry, package, version), self.noted(&asked)) {
            (Ok(exact), _) => exact,
            // A start must not depend on a registry that is not there for the moment.
            (Err(Error::Remote(_) | Error::Offline(_)), Some(pinned)) => return self.reference(&pinned, progress),
            (Err(error), _) => return Err(error),
        };
        let fetched = self.package(&exact, progress)?;
        self.note(asked, &fetched)?;
        Ok(fetched)
    }

    /// The newest version that fits, as the registry tells.
    fn newest_of(&self, registry: &str, package: &str, version: &VersionReq) -> Result<Package<Version>, Error> {
        let repository = self.metadata(registry, package)?.reference(registry, package, "latest")?;
        let credentials = self.credentials(&repository)?;
        let tags =
            self.online(package, Some(&repository), async |client| Ok(client.tags(&repository, &credentials).await?))?;
        // Other tags than versions are no versions.
        let mut known: Vec<Version> = tags.iter().filter_map(|tag| tag.parse().ok()).collect();
        known.sort_by(|one, other| other.cmp(one));
        let Some(newest) = known.iter().find(|known| version.matches(known)) else {
            let known: Vec<String> = known.iter().take(LISTED).map(ToString::to_string).collect();
            return Err(Error::NoneFits {
                package: format!("{package} of {registry}"),
                wanted: version.to_string(),
                known: if known.is_empty() { "none".to_owned() } else { known.join(", ") },
            });
        };
        Ok(Package { registry: Some(registry.to_owned()), package: package.to_owned(), version: newest.clone() })
    }

    /// Fetches what is asked for the first time, and notes what it is.
    fn first(&self, asked: String, reference: &Reference, progress: &mut Progress<'_>) -> Result<Fetched, Error> {
        let fetched = self.reference(reference, progress)?;
        self.note(asked, &fetched)?;
        Ok(fetched)
    }

    /// Notes what something that was asked for is.
    fn note(&self, asked: String, fetched: &Fetched) -> Result<(), Error> {
        match &fetched.pinned {
            Some(pinned) => self.cache.keep_note(&Note { asked, reference: pinned.to_string() }),
            None => Ok(()),
        }
    }

    fn noted(&self, asked: &str) -> Option<Reference> {
        let note = self.cache.note(asked)?;
        Reference::parse(&note.reference).ok().filter(|reference| reference.digest().is_some())
    }

    /// What a registry says of itself; nothing where it has no such document.
    fn metadata(&self, registry: &str, package: &str) -> Result<Metadata, Error> {
        // Only to know how it is spoken to.
        let plain = Metadata::default().reference(registry, package, "latest")?;
        let scheme = match self.transport(&plain) {
            Transport::PlainText if plain.is_loopback() => "http",
            // In plain text anybody on the way could say that it is elsewhere.
            Transport::PlainText => return Ok(Metadata::default()),
            _ if plain.is_loopback() => "http",
            _ => "https",
        };
        let address = format!("{scheme}://{registry}{WELL_KNOWN}");
        let url =
            Url::parse(&address).map_err(|error| Error::Address { url: address.clone(), why: error.to_string() })?;
        match self.online(package, None, async |client| Ok(client.document(&url).await?))? {
            Some(document) => Metadata::read(registry, &document),
            None => Ok(Metadata::default()),
        }
    }

    fn credentials(&self, reference: &Reference) -> Result<Credentials, Error> {
        match self.settings.network {
            Network::Used => Ok(Credentials::of_this_process(reference)?),
            Network::Unused => Ok(Credentials::Anonymous),
        }
    }

    fn transport(&self, reference: &Reference) -> Transport {
        match self.settings.plain_text.iter().any(|registry| registry == reference.registry()) {
            true => Transport::PlainText,
            false => Transport::Automatic,
        }
    }

    /// Asks the network, on this thread and in a runtime that ends with it: whoever gives
    /// rights up afterwards must have no other threads.
    fn online<T>(
        &self,
        what: &str,
        reference: Option<&Reference>,
        ask: impl AsyncFnOnce(&Client) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.settings.network == Network::Unused {
            return Err(Error::Offline(what.to_owned()));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Begin)?;
        let transport = reference.map_or(Transport::Automatic, |reference| self.transport(reference));
        let client = Client::new(transport, self.settings.limit, Reach::Anybody)?;
        runtime.block_on(ask(&client))
    }
}
