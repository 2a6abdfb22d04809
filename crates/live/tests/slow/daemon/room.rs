//! A daemon in a control group that has less memory than its stock.

use std::path::PathBuf;
use std::time::Duration;

use crate::slow::daemon::house::*;

const LIMIT: u64 = 128 * MIB;

/// A control group with a limit, of version 1 or 2.
struct Group(PathBuf);

impl Group {
    fn new() -> Option<Group> {
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap();
        let path = |mark: &str| own.lines().find_map(|line| Some(line.split_once(mark)?.1.to_string()));
        let places = [
            ("/sys/fs/cgroup/memory", path(":memory:"), "memory.limit_in_bytes"),
            ("/sys/fs/cgroup/memory", Some(String::new()), "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", path("0::"), "memory.max"),
            ("/sys/fs/cgroup", Some(String::new()), "memory.max"),
        ];
        for (mount, path, limit) in places {
            let Some(path) = path else { continue };
            let folder = PathBuf::from(format!("{mount}{path}/domicile-test-{}", std::process::id()));
            if std::fs::create_dir(&folder).is_err() {
                continue;
            }
            let group = Group(folder);
            if std::fs::write(group.0.join(limit), LIMIT.to_string()).is_ok() {
                return Some(group);
            }
        }
        None
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..100 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn the_stock_is_what_the_control_group_has_room_for() {
    if !privileged() {
        return;
    }
    let Some(group) = Group::new() else {
        return harness::not_here("no control group with a limit of memory can be made");
    };
    let daemon = Daemon::new(Wish {
        stock: 512 * MIB,
        group: Some(group.0.join("cgroup.procs")),
        ..Wish::default()
    });
    let mut client = daemon.client();
    eventually("it collects", || client.status().unwrap().own > LIMIT / 2);
    let mut within = || {
        let status = client.status().unwrap();
        assert_eq!((status.limit, status.target), (LIMIT, 512 * 256));
        assert!(status.own < LIMIT && status.stock * 4096 < LIMIT, "{status:?}");
        status.stock
    };
    for _ in 0..60 {
        within();
        std::thread::sleep(Duration::from_millis(50));
    }
    // A tenth is left, and the available part is of use.
    eventually("most of the room is used", || within() * 4096 > LIMIT / 2);
    assert_eq!(client.connections(), 1);
    drop(daemon);
}
