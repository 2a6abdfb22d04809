//! A process on each node, which all read the same address: the kernel is asked on which node the page is that each finds.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use replicas::{Mode, SharedReplicas};
use sys::memory::PAGE;
use sys::nodes::NodeReading;
use sys::shared_pages::SharedPages;

use super::{WORDS, machine, numbers};

/// A process that is kept on a node and says what it reads.
struct On {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl On {
    fn start(node: &NodeReading, data: &SharedReplicas, words: &SharedPages) -> On {
        let descriptors = [data.descriptor(), words.descriptor()].map(|one| one.as_raw_fd().to_string());
        let mut child = Command::new(env!("CARGO_BIN_EXE_replicas-sharer"))
            .arg(std::process::id().to_string())
            .args(descriptors)
            .args(["node", &node.cpus[0].to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let from = BufReader::new(from);
        On { child, to, from }
    }

    /// The nodes of the pages that it finds, and the number.
    fn reads(&mut self) -> String {
        writeln!(self.to).unwrap();
        let mut line = String::new();
        assert!(self.from.read_line(&mut line).unwrap() > 0, "it has ended");
        line.trim_end().to_owned()
    }
}

fn all(processes: &mut [On]) -> Vec<String> {
    processes.iter_mut().map(On::reads).collect()
}

/// As [`all`], once everybody has turned to the copy of its node, which is not waited for.
fn all_at_home(processes: &mut [On], expected: &[String]) {
    while all(processes) != expected {
        std::thread::yield_now();
    }
}

#[track_caller]
fn each_process_reads_its_own_nodes_copy() {
    let Some((nodes, _alone)) = machine() else { return };
    let words = SharedPages::create("domicile-test", PAGE).unwrap();
    let data = SharedReplicas::create(&[0; WORDS * 8]).unwrap();
    let state = data.state().unwrap();
    let on: Vec<u32> = state.copies.iter().map(|copy| copy.node.unwrap()).collect();
    assert_eq!((state.mode, on), (Mode::CopyOnEachNode, numbers(&nodes)), "{state}");
    assert_eq!(state.extra(), (11 * PAGE * (nodes.len() - 1)) as u64);
    let mut processes: Vec<On> = nodes.iter().map(|node| On::start(node, &data, &words)).collect();
    let own = |number: u64| {
        numbers(&nodes)
            .iter()
            .map(|node| format!("[{node}] {number}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(all(&mut processes), own(0), "each has followed its thread");
    for number in 1..4u64 {
        data.write(0, &number.to_ne_bytes()).unwrap();
        // All at once: when the write has returned.
        let collapsed = vec![format!("[{}] {number}", nodes[0].number); nodes.len()];
        assert_eq!(all(&mut processes), collapsed);
        assert_eq!(data.state().unwrap().extra(), 0);
        data.replicate().unwrap();
        all_at_home(&mut processes, &own(number));
    }
    for one in &mut processes {
        one.child.kill().unwrap();
        one.child.wait().unwrap();
    }
    data.write(0, &[1]).unwrap();
}

#[test]
fn each_reads_its_own_and_the_master_when_a_write_returned() {
    each_process_reads_its_own_nodes_copy();
}

mod eight_nodes {
    #[test]
    fn each_reads_its_own_and_the_master_when_a_write_returned() {
        super::each_process_reads_its_own_nodes_copy();
    }
}
