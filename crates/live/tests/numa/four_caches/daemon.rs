//! A process that pairs others: this test program once more, which does the same as the command and can be ended by
//! signals.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use live::regions::{Config, Undo, Whom, prepare};
use sys::signals::{self, Caught};

use super::config;

const STATE: &str = "DOMICILE_TEST_REGIONS";
const WHOM: &str = "DOMICILE_TEST_WHOM";
const ACTS: &str = "DOMICILE_TEST_ACTS";
/// The report comes behind this.
const SAYS: &str = "report: ";

pub struct Daemon(Child);

impl Daemon {
    pub fn start(state: &Path, whom: &Whom, acts: bool) -> Daemon {
        let whom = match whom {
            Whom::Processes(processes) => {
                let numbers: Vec<String> = processes.iter().map(u32::to_string).collect();
                numbers.join(",")
            }
            Whom::Group(folder) => folder.to_str().unwrap().to_string(),
            _ => unreachable!("no test watches those"),
        };
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args([
                "--exact",
                "four_caches::daemon::inside",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(STATE, state)
            .env(WHOM, whom)
            .env(ACTS, acts.to_string())
            .stdout(Stdio::piped());
        Daemon(command.spawn().unwrap())
    }

    /// Asks it to end; the report.
    pub fn terminate(self) -> serde_json::Value {
        signals::send(self.0.id(), libc::SIGTERM).unwrap();
        self.end()
    }

    /// The report, when it has come to its end.
    pub fn end(mut self) -> serde_json::Value {
        let mut text = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        assert!(self.0.wait().unwrap().success(), "{text}");
        let line = text.lines().find_map(|line| line.split_once(SAYS));
        serde_json::from_str(line.unwrap_or_else(|| panic!("no report: {text}")).1).unwrap()
    }

    pub fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // One that was waited for has no number any more.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The process's part; in the parent this test does nothing.
#[test]
fn inside() {
    let (Some(state), Ok(whom), Ok(acts)) = (std::env::var_os(STATE), std::env::var(WHOM), std::env::var(ACTS)) else {
        return;
    };
    let mut signals = Caught::begin().unwrap();
    let whom = match whom.starts_with('/') {
        true => Whom::Group(whom.into()),
        false => Whom::Processes(whom.split(',').map(|number| number.parse().unwrap()).collect()),
    };
    let config = Config {
        acts: acts == "true",
        ..config()
    };
    let prepared = prepare(config, None, Some("referenced")).unwrap();
    let mut host = prepared.watch(whom, Undo::open(state.as_ref()).unwrap(), None).unwrap();
    host.run(|| signals.take().is_some()).unwrap();
    println!("{SAYS}{}", serde_json::to_string(&host.end().unwrap()).unwrap());
}
