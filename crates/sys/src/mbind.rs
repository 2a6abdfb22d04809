//! The nodes for pages of this process that get their frame from now on: `mbind(2)`.

use std::io;

use crate::memory::Span;
use crate::numa_maps::Wish;

/// Sets the kernel's memory policy of whole pages. Pages that have a frame already keep it, and their content.
///
/// Errors: EINVAL if a node is none that this process may use (cpusets) or that there is, or the span is no whole pages; EFAULT
/// where nothing is mapped in a part of it; ENOMEM if the wish divides a mapping and there are too many
/// (`vm.max_map_count`); EPERM, ENOSYS if a container or the kernel has no `mbind`.
pub fn wish(span: Span, wish: &Wish) -> io::Result<()> {
    const WORD: usize = libc::c_ulong::BITS as usize;
    const LOCAL: libc::c_int = 4;
    let none = Vec::new();
    let (mode, nodes) = match wish {
        Wish::Default => (libc::MPOL_DEFAULT, &none),
        Wish::Local => (LOCAL, &none),
        Wish::Bind(nodes) => (libc::MPOL_BIND, nodes),
        Wish::Prefer(nodes) => (libc::MPOL_PREFERRED, nodes),
        Wish::Interleave(nodes) => (libc::MPOL_INTERLEAVE, nodes),
    };
    let last = nodes.iter().max().copied().unwrap_or(0) as usize;
    let mut mask = vec![0 as libc::c_ulong; last / WORD + 1];
    for &node in nodes {
        mask[node as usize / WORD] |= 1 << (node as usize % WORD);
    }
    // The kernel ignores the last of the bits that are passed.
    let bits = if nodes.is_empty() { 0 } else { mask.len() * WORD + 1 };
    // SAFETY: where pages will lie changes nothing that a program can see. The mask has as many bits as are read.
    let done = unsafe { libc::syscall(libc::SYS_mbind, span.start, span.bytes, mode, mask.as_ptr(), bits, 0) };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Area, PAGE, Size};
    use crate::{Root, nodes, numa_maps};

    #[test]
    fn what_was_wished_is_what_the_kernel_shows() {
        let area = Area::map(4 * PAGE, Size::Small).unwrap();
        let Ok(nodes) = nodes::nodes(&Root::default()) else {
            return harness::not_here("the kernel shows no nodes");
        };
        let node = nodes[0].number;
        let middle = Span::new(area.start() + PAGE, 2 * PAGE);
        for wanted in [
            Wish::Prefer(vec![node]),
            Wish::Bind(vec![node]),
            Wish::Interleave(vec![node]),
        ] {
            if let Err(error) = wish(middle, &wanted) {
                return harness::not_here(format_args!("no node may be asked for: {error}"));
            }
            let maps = numa_maps::of(&Root::default(), std::process::id()).unwrap();
            let of_it = maps.iter().find(|mapping| mapping.start == middle.start).unwrap();
            assert_eq!(of_it.wish, wanted);
        }
        let nowhere = wish(middle, &Wish::Prefer(vec![1000])).unwrap_err();
        assert_eq!(nowhere.raw_os_error(), Some(libc::EINVAL));
    }
}
