//! The frames of the pages that a cpu referenced last, so that QEMU need not be queried for each reference; and the
//! instructions that invalidate them.
//!
//! A processor may forget a translation at any time, and must when instructed: by writes to its control registers, by
//! `invlpg`, `invpcid`. A kernel that moves a page instructs each cpu. So this table may keep whatever a processor may
//! keep.

/// Entries: one for each page of a row this long.
const ENTRIES: usize = 64;
const PAGE_BITS: u32 = 12;
/// No page has this number.
const NOBODY: u64 = u64::MAX;

#[derive(Clone, Copy)]
struct Entry {
    page: u64,
    /// The difference from virtual to physical address.
    beyond: u64,
}

const NOTHING: Entry = Entry {
    page: NOBODY,
    beyond: 0,
};

pub struct Frames {
    entries: [Entry; ENTRIES],
}

impl Default for Frames {
    fn default() -> Frames {
        Frames {
            entries: [NOTHING; ENTRIES],
        }
    }
}

impl Frames {
    /// The physical address.
    #[inline(always)]
    pub fn get(&self, address: u64) -> Option<u64> {
        let page = address >> PAGE_BITS;
        let entry = &self.entries[page as usize % ENTRIES];
        (entry.page == page).then(|| address.wrapping_add(entry.beyond))
    }

    pub fn put(&mut self, address: u64, physical: u64) {
        let page = address >> PAGE_BITS;
        self.entries[page as usize % ENTRIES] = Entry {
            page,
            beyond: physical.wrapping_sub(address),
        };
    }

    pub fn forget(&mut self) {
        self.entries = [NOTHING; ENTRIES];
    }
}

/// Returns true if an instruction may change the frames of addresses: it writes a control register, is `invlpg`,
/// `invlpga`, `invpcid`, or leaves system management mode (`rsm`).
pub fn may_change(instruction: &[u8]) -> bool {
    let prefix = |byte: &u8| matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x40..=0x4f | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3);
    let from = instruction.iter().position(|byte| !prefix(byte)).unwrap_or(0);
    match &instruction[from..] {
        // mov to cr; rsm.
        [0x0f, 0x22 | 0xaa, ..] => true,
        // invlpga; of 0f 01 with memory: 6 is lmsw, 7 invlpg; lmsw has a register, too.
        [0x0f, 0x01, 0xdf, ..] => true,
        [0x0f, 0x01, form, ..] => {
            let (of_memory, which) = (form >> 6 != 3, form >> 3 & 7);
            which == 6 || which == 7 && of_memory
        }
        // invept, invvpid, invpcid.
        [0x0f, 0x38, 0x80..=0x82, ..] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_known_until_another_takes_its_place_or_all_is_forgotten() {
        let mut frames = Frames::default();
        assert_eq!(frames.get(0xffff_8880_0000_1234), None);
        frames.put(0xffff_8880_0000_1234, 0x5234);
        assert_eq!(frames.get(0xffff_8880_0000_1ff8), Some(0x5ff8));
        assert_eq!(frames.get(0xffff_8880_0000_2000), None);
        frames.put(0x40_1010, 0x7010);
        assert_eq!(frames.get(0x40_1000), Some(0x7000));
        // The same entry: 64 pages further on.
        assert_eq!(frames.get(0x44_1000), None);
        frames.put(0x44_1000, 0x9000);
        assert_eq!((frames.get(0x40_1000), frames.get(0x44_1008)), (None, Some(0x9008)));
        frames.forget();
        assert_eq!(frames.get(0x44_1000), None);
        assert_eq!(frames.get(u64::MAX), None);
    }

    #[test]
    fn what_changes_translations_is_known() {
        let changing: [&[u8]; 8] = [
            &[0x0f, 0x22, 0xd8],             // mov %rax,%cr3
            &[0x41, 0x0f, 0x22, 0xdc],       // mov %r12,%cr3
            &[0x0f, 0x01, 0x3f],             // invlpg (%rdi)
            &[0x65, 0x0f, 0x01, 0x7c, 0x24], // invlpg %gs:...(%rsp)
            &[0x66, 0x0f, 0x38, 0x82, 0x07], // invpcid (%rdi),%rax
            &[0x0f, 0x01, 0xdf],             // invlpga
            &[0x0f, 0x01, 0xf0],             // lmsw %ax
            &[0x0f, 0xaa],                   // rsm
        ];
        for bytes in changing {
            assert!(may_change(bytes), "{bytes:02x?}");
        }
        let others: [&[u8]; 8] = [
            &[0x0f, 0x20, 0xd8],       // mov %cr3,%rax
            &[0x0f, 0x01, 0xf8],       // swapgs
            &[0x0f, 0x01, 0xcb],       // stac
            &[0x0f, 0x01, 0x17],       // lgdt (%rdi)
            &[0x48, 0x8b, 0x0f],       // mov (%rdi),%rcx
            &[0x0f, 0x1f, 0x84, 0x00], // nop
            &[0x0f, 0x38, 0xf0, 0x07], // movbe
            &[],
        ];
        for bytes in others {
            assert!(!may_change(bytes), "{bytes:02x?}");
        }
    }
}
