//! Tokens that are kept in a file.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use rmcp::transport::auth::{AuthError, CredentialRefreshGuard, CredentialStore, StoredCredentials};
use tokio::sync::Mutex;

/// The tokens of one server, in a file that only its owner reads. Clones are the same.
#[derive(Debug, Clone)]
pub struct Tokens {
    path: Arc<Path>,
    /// Held while they are exchanged for new ones: a refresh token can often be used once.
    refreshing: Arc<Mutex<()>>,
}

impl Tokens {
    /// Those in a file, which need not be there yet.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into().into(), refreshing: Arc::default() }
    }

    /// Whether somebody has logged in.
    #[must_use]
    pub fn are_there(&self) -> bool {
        self.path.exists()
    }

    fn read(&self) -> io::Result<Option<StoredCredentials>> {
        match std::fs::read(&self.path) {
            Ok(json) => Ok(Some(serde_json::from_slice(&json)?)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whole or not at all, and for nobody else to read from the first byte on.
    fn write(&self, credentials: &StoredCredentials) -> io::Result<()> {
        use std::io::Write;
        use std::os::unix::fs::OpenOptionsExt;

        let folder = self.path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        let new = self.path.with_extension("new");
        let _left_over = std::fs::remove_file(&new);
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(&serde_json::to_vec_pretty(credentials)?)?;
        file.sync_all()?;
        std::fs::rename(&new, &self.path)
    }

    fn remove(&self) -> io::Result<()> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    async fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> io::Result<T> + Send + 'static,
    ) -> Result<T, AuthError> {
        let this = self.clone();
        let failed = |error: &dyn std::fmt::Display| {
            AuthError::CredentialStoreError(format!("{}: {error}", self.path.display()))
        };
        let done = tokio::task::spawn_blocking(move || work(&this)).await.map_err(|error| failed(&error))?;
        done.map_err(|error| failed(&error))
    }
}

#[async_trait]
impl CredentialStore for Tokens {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        self.apart(Self::read).await
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        self.apart(move |this| this.write(&credentials)).await
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.apart(Self::remove).await
    }

    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        Ok(Some(CredentialRefreshGuard::new(Arc::clone(&self.refreshing).lock_owned().await)))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[tokio::test]
    async fn tokens_are_kept_and_are_nobody_elses_to_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/server.json");
        let tokens = Tokens::new(&path);
        assert!(!tokens.are_there() && tokens.load().await.unwrap().is_none());
        tokens.save(StoredCredentials::new("me".into(), None, vec!["read".into()], Some(7))).await.unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let read = Tokens::new(&path).load().await.unwrap().unwrap();
        assert_eq!((read.client_id.as_str(), read.granted_scopes), ("me", vec!["read".to_owned()]));
        std::fs::write(&path, "{").unwrap();
        let error = tokens.load().await.unwrap_err().to_string();
        assert!(error.contains("server.json"), "{error}");
        tokens.clear().await.unwrap();
        tokens.clear().await.unwrap();
        assert!(!tokens.are_there());
    }
}
