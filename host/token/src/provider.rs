//! The signatures of tokens, checked by ring, which the host has for TLS already.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind, Result};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512,
    RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use signature::Verifier;

/// Nothing is signed here, and keys are read as their issuers publish them.
static RING: CryptoProvider = CryptoProvider {
    signer_factory: no_signer,
    verifier_factory: verifier,
    key_utils: KeyUtils {
        rsa_pub_components_from_private_key: |_| unsupported(),
        rsa_pub_components_from_public_key: |_| unsupported(),
        ec_pub_components_from_private_key: |_, _| unsupported(),
        ed_pub_components_from_private_key: |_, _| unsupported(),
        compute_digest: |_, _| unsupported(),
    },
};

/// Has this process check signatures by ring. It can be called any number of times.
pub(crate) fn install() {
    // Who was first has installed the same.
    let _there = RING.install_default();
}

fn unsupported<T>() -> Result<T> {
    Err(Error::from(ErrorKind::InvalidAlgorithm))
}

fn no_signer(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    unsupported()
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    let rsa = |parameters: &'static RsaParameters| match key.kind() {
        DecodingKeyKind::RsaModulusExponent { n, e } => {
            let key = RsaPublicKeyComponents { n: n.clone(), e: e.clone() };
            Ok(Box::new(Checked { algorithm: *algorithm, key: Key::Rsa { parameters, key } }) as Box<dyn JwtVerifier>)
        }
        DecodingKeyKind::SecretOrDer(_) => unsupported(),
    };
    let curve = |scheme: &'static dyn VerificationAlgorithm| match key.kind() {
        DecodingKeyKind::SecretOrDer(point) => {
            let key = UnparsedPublicKey::new(scheme, point.clone());
            Ok(Box::new(Checked { algorithm: *algorithm, key: Key::Curve(key) }) as Box<dyn JwtVerifier>)
        }
        DecodingKeyKind::RsaModulusExponent { .. } => unsupported(),
    };
    match algorithm {
        Algorithm::RS256 => rsa(&RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => rsa(&RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => rsa(&RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => rsa(&RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => rsa(&RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => rsa(&RSA_PSS_2048_8192_SHA512),
        Algorithm::ES256 => curve(&ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => curve(&ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => curve(&ED25519),
        // A secret that both sides know is none that an issuer publishes.
        _ => unsupported(),
    }
}

/// A key, and what its signatures are.
struct Checked {
    algorithm: Algorithm,
    key: Key,
}

enum Key {
    Rsa { parameters: &'static RsaParameters, key: RsaPublicKeyComponents<Vec<u8>> },
    Curve(UnparsedPublicKey<Vec<u8>>),
}

impl Verifier<Vec<u8>> for Checked {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), signature::Error> {
        let checked = match &self.key {
            Key::Rsa { parameters, key } => key.verify(parameters, message, signature),
            Key::Curve(key) => key.verify(message, signature),
        };
        checked.map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for Checked {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
