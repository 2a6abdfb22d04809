//! A control group for a program under test.

use std::sync::atomic::{AtomicU32, Ordering};

/// A control group of our own, with the controllers of nodes and of memory.
pub struct Group(std::path::PathBuf);

impl Group {
    pub fn new() -> Option<Group> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let all = std::path::Path::new("/sys/fs/cgroup");
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let group = all.join(format!("domicile-test-{}-{number}", std::process::id()));
        let made = std::fs::write(all.join("cgroup.subtree_control"), "+cpuset +memory")
            .and_then(|()| std::fs::create_dir(&group))
            .map(|()| group.join("cpuset.mems").exists() && group.join("memory.max").exists());
        match made {
            Ok(true) => Some(Group(group)),
            other => {
                let _ = std::fs::remove_dir(&group);
                harness::not_here(format_args!(
                    "no control group with a cpuset and a memory limit of its own: {other:?}"
                ));
                None
            }
        }
    }

    /// A group below this one.
    pub fn below(&self, name: &str) -> Group {
        let group = self.0.join(name);
        std::fs::create_dir(&group).unwrap();
        Group(group)
    }

    pub fn folder(&self) -> &std::path::Path {
        &self.0
    }

    pub fn write(&self, name: &str, text: &str) {
        self.try_write(name, text).unwrap();
    }

    pub fn try_write(&self, name: &str, text: &str) -> std::io::Result<()> {
        std::fs::write(self.0.join(name), text)
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap()
    }

    /// A number of a file, behind a word: of `oom_kill 0` in `memory.events`.
    pub fn number(&self, name: &str, word: &str) -> u64 {
        let text = self.read(name);
        let line = text.lines().find_map(|line| line.strip_prefix(word));
        line.unwrap_or_else(|| panic!("no {word} in {text}"))
            .trim()
            .parse()
            .unwrap()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}
