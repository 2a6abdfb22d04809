//! The version of the kernel.

use crate::{Root, SysError};

/// `6.8.0-45-generic`, as numbers to compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The text that the kernel writes.
    pub text: String,
    pub major: u32,
    pub minor: u32,
}

impl Kernel {
    /// Reads /proc/sys/kernel/osrelease.
    pub fn read(root: &Root) -> Result<Kernel, SysError> {
        const PATH: &str = "proc/sys/kernel/osrelease";
        let text = root.text(PATH)?;
        let mut numbers = text.split(|c: char| !c.is_ascii_digit());
        let mut number = || numbers.next()?.parse().ok();
        let (Some(major), Some(minor)) = (number(), number()) else {
            return Err(root.malformed(PATH, &text, "a version such as 6.8.0"));
        };
        Ok(Kernel { text, major, minor })
    }

    pub fn at_least(&self, major: u32, minor: u32) -> bool {
        (self.major, self.minor) >= (major, minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version_of(text: &str) -> Result<Kernel, SysError> {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("proc/sys/kernel");
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.join("osrelease"), text).unwrap();
        Kernel::read(&Root::new(folder.path()))
    }

    #[test]
    fn versions_compare_as_numbers() {
        let kernel = version_of("6.18.5-custom\n").unwrap();
        assert_eq!(
            (kernel.major, kernel.minor, kernel.text.as_str()),
            (6, 18, "6.18.5-custom")
        );
        assert!(kernel.at_least(6, 8) && kernel.at_least(5, 99) && !kernel.at_least(6, 19) && !kernel.at_least(7, 0));
        assert_eq!(version_of("7.0-rc1").unwrap().minor, 0);
        for bad in ["", "linux", "6", "6.x", "99999999999.1"] {
            assert!(version_of(bad).is_err(), "{bad}");
        }
    }
}
