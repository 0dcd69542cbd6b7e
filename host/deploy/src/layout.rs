//! Where everything lies in a state folder.
//!
//! ```text
//! format                          what this folder is
//! lock                            held by the process that has it open
//! drafts/N                        being written; emptied when the folder is opened
//! blobs/sha256/DIGEST             components
//! claims/TENANT/DIGEST            an empty file: the tenant has put this component
//! apps/TENANT/APP/current         the record: which version runs, which are kept
//! apps/TENANT/APP/versions/N.json what a version is made of
//! ```
//!
//! A component is there once somebody's claim or version names it, a version
//! once the record names it, an application once its record is there.

use std::path::{Path, PathBuf};

use crate::digest::Digest;
use crate::name::{AppName, TenantName};
use crate::record::VersionNumber;

/// A state folder's paths.
#[derive(Debug)]
pub(crate) struct Layout {
    root: PathBuf,
}

impl Layout {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn format(&self) -> PathBuf {
        self.root.join("format")
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    pub(crate) fn drafts(&self) -> PathBuf {
        self.root.join("drafts")
    }

    /// The folder that `blobs` is in the one of.
    pub(crate) fn algorithms(&self) -> PathBuf {
        self.root.join("blobs")
    }

    pub(crate) fn blobs(&self) -> PathBuf {
        self.algorithms().join("sha256")
    }

    pub(crate) fn blob(&self, digest: &Digest) -> PathBuf {
        self.blobs().join(digest.hex())
    }

    pub(crate) fn all_claims(&self) -> PathBuf {
        self.root.join("claims")
    }

    pub(crate) fn claims(&self, tenant: &TenantName) -> PathBuf {
        self.all_claims().join(tenant.as_str())
    }

    pub(crate) fn claim(&self, tenant: &TenantName, digest: &Digest) -> PathBuf {
        self.claims(tenant).join(digest.hex())
    }

    pub(crate) fn tenants(&self) -> PathBuf {
        self.root.join("apps")
    }

    pub(crate) fn tenant(&self, tenant: &TenantName) -> PathBuf {
        self.tenants().join(tenant.as_str())
    }

    pub(crate) fn app(&self, tenant: &TenantName, app: &AppName) -> PathBuf {
        self.tenant(tenant).join(app.as_str())
    }

    pub(crate) fn current(&self, tenant: &TenantName, app: &AppName) -> PathBuf {
        self.app(tenant, app).join("current")
    }

    pub(crate) fn versions(&self, tenant: &TenantName, app: &AppName) -> PathBuf {
        self.app(tenant, app).join("versions")
    }

    pub(crate) fn version(&self, tenant: &TenantName, app: &AppName, number: VersionNumber) -> PathBuf {
        self.versions(tenant, app).join(format!("{number}.json"))
    }
}
