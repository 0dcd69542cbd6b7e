//! What a helper may take.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// What a helper may take. Written as four numbers with commas between them,
/// which is how the helper is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JailLimits {
    /// CPU time of all its threads, in whole seconds as the system counts it; a
    /// part of one counts as one.
    pub cpu: Duration,
    /// Time from its start to its end, in milliseconds.
    pub wall: Duration,
    /// Bytes of memory of its own that it may write to (`RLIMIT_DATA`, getrlimit(2)),
    /// whether they are touched or not.
    pub memory_bytes: u64,
    /// Bytes of its output.
    pub output_bytes: u64,
}

/// Text that is no limits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` are no limits: give milliseconds of CPU time, milliseconds of time, bytes of memory and bytes of output, with \
     commas between them",
    .0.escape_debug()
)]
pub struct InvalidLimits(String);

impl JailLimits {
    /// CPU time as the system counts it: at least one second, since with none a
    /// helper ends before it could say a word.
    pub(super) fn cpu_seconds(&self) -> u64 {
        let part = u64::from(self.cpu.subsec_nanos() > 0);
        self.cpu.as_secs().saturating_add(part).max(1)
    }
}

impl fmt::Display for JailLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu, wall, memory_bytes, output_bytes } = self;
        write!(f, "{},{},{memory_bytes},{output_bytes}", cpu.as_millis(), wall.as_millis())
    }
}

impl FromStr for JailLimits {
    type Err = InvalidLimits;

    fn from_str(text: &str) -> Result<Self, InvalidLimits> {
        let numbers: Option<Vec<u64>> = text.split(',').map(|number| number.parse().ok()).collect();
        match numbers.as_deref() {
            Some(&[cpu, wall, memory_bytes, output_bytes]) => Ok(Self {
                cpu: Duration::from_millis(cpu),
                wall: Duration::from_millis(wall),
                memory_bytes,
                output_bytes,
            }),
            _ => Err(InvalidLimits(text.chars().take(100).collect())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_read_back() {
        let limits = JailLimits {
            cpu: Duration::from_millis(1500),
            wall: Duration::from_secs(3),
            memory_bytes: 1 << 30,
            output_bytes: 7,
        };
        assert_eq!(limits.to_string(), "1500,3000,1073741824,7");
        assert_eq!(limits.to_string().parse(), Ok(limits));
        assert_eq!(limits.cpu_seconds(), 2);
    }

    #[test]
    fn other_text_is_refused() {
        for text in ["", "1,2,3", "1,2,3,4,5", "1,2,3,-4", "1,2,3,x"] {
            assert!(text.parse::<JailLimits>().is_err(), "{text}");
        }
    }
}
