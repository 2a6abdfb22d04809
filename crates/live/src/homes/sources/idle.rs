//! Idle page tracking: which frames were accessed (`/sys/kernel/mm/page_idle/bitmap`).
//!
//! **What a count would be.** A look that found that the page was accessed since the look before. Reading it is not
//! implemented; [`probe`] tells if the kernel has it.

use sys::Root;

use super::Probed;

pub const NAME: &str = "idle-pages";

pub fn probe(root: &Root) -> Probed {
    const BITMAP: &str = "sys/kernel/mm/page_idle/bitmap";
    Err(if root.path(BITMAP).exists() {
        format!("/{BITMAP} is there; reading it is not implemented")
    } else {
        "the kernel does not track idle pages (CONFIG_IDLE_PAGE_TRACKING)".to_string()
    })
}
