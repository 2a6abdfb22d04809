//! On which node a page lies (`move_pages(2)`, asked without moving anything).

use std::io;

use crate::memory::{Area, PAGE, Size};

/// The node of a page of our own that is touched now.
///
/// Errors: ENOSYS without NUMA in the kernel; EPERM where a container forbids the call.
pub fn of_a_new_page() -> io::Result<u32> {
    let area = Area::map(PAGE, Size::Small)?;
    area.set_word(0, 0, 1);
    let pages = [area.start() as *const libc::c_void];
    let mut nodes = [libc::c_int::MIN];
    let none = std::ptr::null::<libc::c_int>();
    // SAFETY: one page and room for one answer; with no nodes given nothing is moved.
    let code = unsafe { libc::syscall(libc::SYS_move_pages, 0, 1, pages.as_ptr(), none, nodes.as_mut_ptr(), 0) };
    if code < 0 {
        return Err(io::Error::last_os_error());
    }
    // A negative answer is an error of this page alone.
    u32::try_from(nodes[0]).map_err(|_| io::Error::from_raw_os_error(-nodes[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_lies_on_a_node_that_there_is() {
        let Ok(nodes) = crate::nodes::nodes(&crate::Root::default()) else {
            return skips::not_here("the kernel shows no nodes");
        };
        match of_a_new_page() {
            Ok(home) => assert!(nodes.iter().any(|node| node.number == home), "{home}"),
            // As a container may.
            Err(error) => skips::not_here(format_args!("where a page lies may not be asked: {error}")),
        }
    }
}
