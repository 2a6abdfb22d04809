//! The page size, and the kernel's setting of transparent huge pages.

use crate::{Root, SysError};

/// Bytes in a page: the running kernel's own answer, or for a captured tree the first
/// `KernelPageSize:` in its /proc/self/smaps.
///
/// Ensures: a power of two from 512 bytes to 1 GiB; `None` if a captured tree does not say.
pub fn page_bytes(root: &Root) -> Option<u64> {
    let bytes = if root.is_live() {
        u64::try_from(rustix::param::page_size()).ok()
    } else {
        let text = root.text("proc/self/smaps").ok()?;
        let line = text.lines().find(|line| line.starts_with("KernelPageSize:"))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()?.checked_mul(1024)
    };
    bytes.filter(|bytes| bytes.is_power_of_two() && (512..=1 << 30).contains(bytes))
}

/// Transparent huge pages: the choices that are in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HugePages {
    /// `always`, `madvise` or `never`.
    pub enabled: String,
    /// `always`, `defer`, `defer+madvise`, `madvise` or `never`; `None` if the kernel does not say.
    pub defrag: Option<String>,
}

/// Reads /sys/kernel/mm/transparent_hugepage.
pub fn huge_pages(root: &Root) -> Result<HugePages, SysError> {
    let at = |file: &str| format!("sys/kernel/mm/transparent_hugepage/{file}");
    let text = root.text(&at("enabled"))?;
    let enabled = chosen(&text)
        .ok_or_else(|| root.malformed(&at("enabled"), &text, "one choice in brackets, such as [madvise]"))?;
    Ok(HugePages {
        enabled,
        defrag: root.text(&at("defrag")).ok().and_then(|text| chosen(&text)),
    })
}

/// The word in brackets: `always [madvise] never`.
fn chosen(text: &str) -> Option<String> {
    let words = text.split_whitespace();
    words
        .filter_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
        .next()
        .map(ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices() {
        assert_eq!(chosen("always [madvise] never").as_deref(), Some("madvise"));
        assert_eq!(chosen("always madvise never"), None);
    }

    #[test]
    fn the_running_kernel_has_a_page_size() {
        assert!(page_bytes(&Root::default()).is_some());
    }
}
