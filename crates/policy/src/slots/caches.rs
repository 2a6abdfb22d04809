//! The shared caches whose colors are given out.

/// The purpose of a slot (Ding11 section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// For data with strong locality: its colors are its own.
    Private,
    /// For data with weak locality: its colors may be those of any other shared slot.
    Shared,
}

/// The use of a color of a cache (Ding11 section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Not given to any slot.
    Unspecified,
    Shared,
    Private,
}

/// The shared caches of a machine; all have the same colors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caches {
    /// Colors of each cache, from 1 to 65536.
    pub colors: u32,
    /// Bytes of cache that one color stands for; more than 0.
    pub color_bytes: u64,
    /// Bytes of a page and of a frame; a power of two.
    pub page_bytes: u64,
    /// The cpus of each cache; no cpu has two.
    pub cpus: Vec<Vec<u32>>,
}

/// Highest number of a cpu, plus 1.
const CPU_LIMIT: u32 = 1 << 16;

impl Caches {
    /// The first rule that does not hold.
    pub fn check(&self) -> Result<(), InvalidCaches> {
        if !(1..=1 << 16).contains(&self.colors) {
            return Err(InvalidCaches::Colors(self.colors));
        }
        if self.color_bytes == 0 || self.color_bytes > u64::from(u32::MAX) {
            return Err(InvalidCaches::ColorBytes(self.color_bytes));
        }
        if !self.page_bytes.is_power_of_two() {
            return Err(InvalidCaches::PageBytes(self.page_bytes));
        }
        if self.cpus.is_empty() || self.cpus.iter().any(Vec::is_empty) {
            return Err(InvalidCaches::NoCpus);
        }
        let mut cpus: Vec<u32> = self.cpus.concat();
        cpus.sort_unstable();
        if let Some(pair) = cpus.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(InvalidCaches::Twice(pair[0]));
        }
        match cpus.last().filter(|&&cpu| cpu >= CPU_LIMIT) {
            Some(&cpu) => Err(InvalidCaches::Cpu(cpu)),
            None => Ok(()),
        }
    }
}

/// Why there can be no such caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCaches {
    #[error("a cache of {0} colors; allowed: 1 to 65536")]
    Colors(u32),
    #[error("colors of {0} bytes; allowed: 1 to 4294967295")]
    ColorBytes(u64),
    #[error("pages of {0} bytes; allowed: a power of two")]
    PageBytes(u64),
    #[error("no shared caches, or one without cpus; each needs at least one")]
    NoCpus,
    #[error("cpu {0} is in two caches; each has one")]
    Twice(u32),
    #[error("cpu {0}; allowed: numbers below {CPU_LIMIT}")]
    Cpu(u32),
}
