//! What the store sees of the value of a key.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use crate::error::ConfigError;

/// Half of an HMAC-SHA256: no two values ever share it by chance.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Hash([u8; 16]);

/// Hashes values with a key, so that who reads the store does not read them.
#[derive(Clone)]
pub(crate) struct Hasher(Hmac<Sha256>);

impl Hasher {
    /// A key that all replicas agree on without being told. It hides values, but not from who guesses them: short
    /// ones can be tried.
    pub(crate) fn of(provider: &str) -> Self {
        Self::derive(b"tollgate scope v1", provider)
    }

    /// A key that only those who have the secret can use for trying; all replicas need the same one. At least
    /// 16 bytes.
    pub(crate) fn with_secret(secret: &[u8], provider: &str) -> Result<Self, ConfigError> {
        // Most of all an empty one: a variable that nobody has set.
        if secret.len() < 16 {
            return Err(ConfigError(format!(
                "provider \"{provider}\": the secret for its keys has {} bytes: use at least 16 random ones, the \
                 same in all replicas",
                secret.len()
            )));
        }
        Ok(Self::derive(secret, provider))
    }

    fn derive(secret: &[u8], provider: &str) -> Self {
        let mut hmac = keyed(Sha256::digest(secret).into());
        hmac.update(provider.as_bytes());
        Self(keyed(hmac.finalize().into_bytes().into()))
    }

    /// Of one value under two keys there are two hashes.
    pub(super) fn hash(&self, key: &str, value: &[u8]) -> Hash {
        let mut hmac = self.0.clone();
        // Its length first: otherwise ("ab", "c") were ("a", "bc").
        hmac.update(&(key.len() as u64).to_le_bytes());
        hmac.update(key.as_bytes());
        hmac.update(value);
        let mut half = [0; 16];
        half.copy_from_slice(&hmac.finalize().into_bytes()[..16]);
        Hash(half)
    }
}

fn keyed(key: [u8; 32]) -> Hmac<Sha256> {
    // A short key means the same as one filled up with zeros.
    let mut block = hmac::digest::Key::<Hmac<Sha256>>::default();
    block[..32].copy_from_slice(&key);
    Hmac::new(&block)
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hasher")
    }
}

/// 32 lower-case hexadecimal digits.
impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
