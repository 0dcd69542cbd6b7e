//! What the operator chooses.

/// The most bytes that a key may be allowed to have.
///
/// Neither `wasi:keyvalue` nor Spin names a limit; keys are what is compared at
/// every step through the tree, and are kept in memory with its inner nodes.
pub(crate) const MAX_KEY_BYTES: usize = 1024;
/// The most bytes that a value or a batch may be allowed to have: each is held in
/// memory several times while it is written.
pub(crate) const MAX_VALUE_BYTES: u64 = 64 << 20;

/// How the data is kept.
#[derive(Debug, Clone)]
pub struct Config {
    /// What one tenant may store and ask for.
    pub limits: Limits,
    /// How writes wait for their turn.
    pub queue: Queue,
    /// Memory for pages of the file, in bytes.
    pub cache_bytes: usize,
    /// Reads of one tenant that run at the same time through [`crate::AsyncStore`];
    /// each takes a thread of the runtime's pool for blocking work.
    pub tenant_reads: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { limits: Limits::default(), queue: Queue::default(), cache_bytes: 64 << 20, tenant_reads: 8 }
    }
}

/// What one tenant may store and ask for. Each limit ends in an error of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a key, at most 1024.
    pub key_bytes: usize,
    /// Bytes of a value, at most 64 MiB.
    pub value_bytes: u64,
    /// Bytes that all data of a tenant takes. An entry counts with its value, its
    /// key, the names it is stored under and a few bytes for their lengths and its
    /// version, so that empty values under short keys cannot fill the disk.
    pub tenant_bytes: u64,
    /// Keys of a store.
    pub store_keys: u64,
    /// Keys of one page of a listing.
    pub page_keys: usize,
    /// Bytes of the keys of one page, and of those that are listed at once.
    pub listing_bytes: u64,
    /// Keys of one batch.
    pub batch_keys: usize,
    /// Bytes of the keys and values of one batch, asked for or written, at most
    /// 64 MiB.
    pub batch_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            key_bytes: MAX_KEY_BYTES,
            value_bytes: 1 << 20,
            tenant_bytes: 1 << 30,
            store_keys: 1_000_000,
            page_keys: 1000,
            listing_bytes: 1 << 20,
            batch_keys: 1000,
            batch_bytes: 4 << 20,
        }
    }
}

/// How writes wait, and how many become one commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queue {
    /// Writes of one tenant that wait; more are refused as [`crate::Error::Busy`].
    pub tenant_writes: usize,
    /// Bytes of the writes of one tenant that wait.
    pub tenant_bytes: u64,
    /// Bytes of all writes that wait. Once they are reached, a tenant is refused when
    /// it has its share of them; one that has nothing waiting is always let in.
    pub bytes: u64,
    /// Writes that become one commit at most. A write waits for the commit that is
    /// being made when it comes, so this bounds how long.
    pub group_writes: usize,
    /// Bytes after which a commit takes in no more writes.
    pub group_bytes: u64,
}

impl Default for Queue {
    fn default() -> Self {
        Self { tenant_writes: 256, tenant_bytes: 16 << 20, bytes: 128 << 20, group_writes: 256, group_bytes: 4 << 20 }
    }
}

impl Config {
    /// What cannot be kept to, if anything.
    pub(crate) fn problem(&self) -> Option<String> {
        let limits = &self.limits;
        let queue = &self.queue;
        let least = [
            ("limits.key_bytes", limits.key_bytes as u64),
            ("limits.page_keys", limits.page_keys as u64),
            ("limits.batch_keys", limits.batch_keys as u64),
            ("queue.tenant_writes", queue.tenant_writes as u64),
            ("queue.group_writes", queue.group_writes as u64),
            ("tenant_reads", self.tenant_reads as u64),
        ];
        let most = [
            ("limits.key_bytes", limits.key_bytes as u64, MAX_KEY_BYTES as u64),
            ("limits.value_bytes", limits.value_bytes, MAX_VALUE_BYTES),
            ("limits.batch_bytes", limits.batch_bytes, MAX_VALUE_BYTES),
        ];
        let zero = least.iter().find(|(_, value)| *value == 0).map(|(name, _)| format!("{name} is 0: give at least 1"));
        let large = || {
            let (name, value, limit) = most.iter().find(|(_, value, limit)| value > limit)?;
            Some(format!("{name} is {value}: give at most {limit}"))
        };
        zero.or_else(large)
    }
}
