//! The processes there are, and whose they are.

use std::fs;
use std::io;

/// The processes of a user, by any of the user numbers that a process has; those that come or go meanwhile may be
/// among them or not.
pub fn of_user(user: u32) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Some(process) = entry.ok().and_then(|entry| entry.file_name().to_str()?.parse().ok()) else {
            continue;
        };
        // One that is gone has none.
        let Ok(status) = fs::read_to_string(format!("/proc/{process}/status")) else {
            continue;
        };
        let users = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        let mut users = users.into_iter().flat_map(str::split_whitespace);
        if users.any(|one| one.parse() == Ok(user)) {
            found.push(process);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_among_them() {
        let mine = rustix::process::getuid().as_raw();
        assert!(of_user(mine).unwrap().contains(&std::process::id()));
        // A number that nobody is given.
        assert!(of_user(u32::MAX).unwrap().is_empty());
    }
}
