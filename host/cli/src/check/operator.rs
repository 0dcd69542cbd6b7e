//! What is wrong with the operator's file.

use std::path::Path;

use nala_manifest::operator::{Error, Operator};

use super::Finding;
use crate::credentials::Credentials;
use crate::tenancy;

/// Reads it, and its file of keys.
pub(super) fn check(path: &Path) -> Vec<Finding> {
    match Operator::read(path) {
        Ok(operator) => {
            let warnings = operator.warnings.iter().map(|warning| Finding::warning(path, warning.to_string(), ""));
            let networks = tenancy::networks(path, &operator.egress).err();
            let credentials = Credentials::open(path, &operator.egress.credentials, |_| true).err();
            let wrong = networks.into_iter().chain(credentials);
            warnings.chain(wrong.map(|wrong| Finding::error(path, wrong.what, &wrong.help))).collect()
        }
        Err(Error::Invalid(diagnostic)) => vec![(*diagnostic).into()],
        Err(Error::Read { path, source }) => {
            let help = "give the path of a nala.toml, and in it that of its file of keys";
            vec![Finding::error(&path, source.to_string(), help)]
        }
        Err(Error::Writable(path)) => {
            let help = "run `chmod o-w` on it";
            vec![Finding::error(&path, "everybody may write to this file of keys", help)]
        }
        Err(other) => vec![Finding::error(path, other.to_string(), "")],
    }
}
