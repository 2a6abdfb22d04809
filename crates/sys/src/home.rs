//! The node of a page (`move_pages(2)`, asked without moving anything).

use std::io;

use crate::memory::{Area, PAGE, Size};
use crate::move_pages::nodes_of;

/// The node of a page of our own that is touched now.
///
/// Errors: ENOSYS without NUMA in the kernel; EPERM if a container forbids the call.
pub fn of_a_new_page() -> io::Result<u32> {
    let area = Area::map(PAGE, Size::Small)?;
    area.set_word(0, 0, 1);
    let node = nodes_of(None, &[area.start()])?.into_iter().next();
    node.unwrap_or(Ok(0)).map_err(|error| match error.errno() {
        Some(number) => io::Error::from_raw_os_error(number),
        None => io::ErrorKind::Other.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_lies_on_a_node_that_there_is() {
        let Ok(nodes) = crate::nodes::nodes(&crate::Root::default()) else {
            return harness::not_here("the kernel shows no nodes");
        };
        match of_a_new_page() {
            Ok(home) => assert!(nodes.iter().any(|node| node.number == home), "{home}"),
            // A container may refuse this.
            Err(error) => harness::not_here(format_args!("where a page lies may not be asked: {error}")),
        }
    }
}
