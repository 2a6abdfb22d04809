//! Huge pages that data loses by its colors: how many bytes, where the system would have given them.
//!
//! Only a profile tells the cost: the walks and faults that huge pages would have saved, and the misses that the slot
//! saves, both depend on the use of the data. So this is reported; `advise`, which has simulated both, refuses.

use machine::HugeData;
use policy::slots::on_huge_pages;
use results::allocators::{TUNABLES, asks_huge_pages};
use sys::Root;
use sys::memory::HUGE;

/// The data of this process that is on huge pages where nothing keeps it from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HugePages {
    given: HugeData,
    /// True if malloc asks for them.
    asked: bool,
}

impl HugePages {
    /// Reads the kernel's setting, and the process's environment.
    pub fn here() -> HugePages {
        let root = Root::default();
        let word = sys::pages::huge_pages(&root)
            .map(|pages| pages.enabled)
            .unwrap_or_default();
        // Some processes are kept from them as a whole (`PR_SET_THP_DISABLE`).
        let status = root.text("proc/self/status").unwrap_or_default();
        let off = status
            .lines()
            .any(|line| line.split_whitespace().eq(["THP_enabled:", "0"]));
        HugePages {
            given: if off { HugeData::Never } else { HugeData::of_word(&word) },
            asked: std::env::var(TUNABLES).is_ok_and(|text| asks_huge_pages(&text) == Some(true)),
        }
    }

    /// The part of so many bytes that huge pages would hold. `malloced`: malloc gave them.
    pub fn lost(self, bytes: u64, malloced: bool) -> u64 {
        match self.given.gives(self.asked && malloced) {
            true => on_huge_pages(bytes, HUGE as u64),
            false => 0,
        }
    }

    /// The message about so many lost bytes; `None` if none are lost.
    pub fn in_words(lost: u64) -> Option<String> {
        (lost > 0).then(|| {
            format!(
                "{} would be on huge pages without these colors (transparent_hugepage): the TLB has an entry for each 4 KiB now; \
                 `domicile advise` weighs that",
                results::bytes(lost)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_would_be_on_huge_pages_is_lost() {
        let lost = |given, asked, malloced| HugePages { given, asked }.lost(5 << 20, malloced);
        for (given, asked, malloced, expected) in [
            (HugeData::Never, true, true, 0),
            (HugeData::Madvise, false, true, 0),
            (HugeData::Madvise, true, false, 0),
            (HugeData::Madvise, true, true, 4 << 20),
            (HugeData::Always, false, false, 4 << 20),
        ] {
            assert_eq!(lost(given, asked, malloced), expected, "{given:?} {asked} {malloced}");
        }
    }
}
