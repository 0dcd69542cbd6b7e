//! Certificate authorities of one origin.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::{CredentialError, file};
use crate::tls::{Tls, TrustRoots};

/// The authorities in a file, which are made use of once for as long as they stay the
/// same.
#[derive(Debug)]
pub(super) struct Trust {
    path: PathBuf,
    made: Mutex<Option<Made>>,
}

/// What was made of a file.
#[derive(Debug)]
struct Made {
    bytes: Vec<u8>,
    tls: Arc<Tls>,
}

impl Trust {
    /// What is in a file, which is read later.
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), made: Mutex::default() }
    }

    /// The file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// TLS by what is in the file now.
    ///
    /// # Errors
    /// It cannot be read, or has no certificates.
    pub(super) fn tls(&self) -> Result<Arc<Tls>, CredentialError> {
        let bytes = file::read(&self.path)?;
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = made.as_ref().filter(|made| made.bytes == bytes) {
            return Ok(Arc::clone(&made.tls));
        }
        let wrong = |why: String| CredentialError::Certificates { path: self.path.clone(), why };
        let certificates = CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>();
        let certificates = certificates.map_err(|error| wrong(error.to_string()))?;
        if certificates.is_empty() {
            return Err(wrong("there are none".to_owned()));
        }
        let tls = Tls::new(&TrustRoots::Only(certificates)).map_err(|error| wrong(error.to_string()))?;
        let tls = Arc::new(tls);
        *made = Some(Made { bytes, tls: Arc::clone(&tls) });
        Ok(tls)
    }
}
