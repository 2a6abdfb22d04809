//! Slots of several programs that share a daemon's ledger: this test program plays all of them.
//!
//! They need root, as the daemon does.

use crate::slow::daemon::{house, machines};

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use house::{Daemon, Wish, eventually, privileged};
use live::PAGE_BYTES;
use live::slots::{Application, DataSet, Error, Kind, Others, Start, ThreadGroup, Through};
use sys::memory::{self, Area, Size, Span};

/// A program that obeys requests, line by line.
struct Program {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Program {
    fn new(daemon: &Daemon, before: &[&str]) -> Program {
        Program::with(daemon, before, &[])
    }

    /// With more in its environment.
    fn with(daemon: &Daemon, before: &[&str], environment: &[(&str, &str)]) -> Program {
        let mut words: Vec<&std::ffi::OsStr> = before.iter().map(std::ffi::OsStr::new).collect();
        words.push(house::program().as_os_str());
        let mut child = Command::new(words[0])
            .args(&words[1..])
            .args(["slots_served::program", "--exact", "--nocapture", "--test-threads=1"])
            .env("TEST_PROGRAM", "1")
            .env("DOMICILE_SOCKET", &daemon.socket)
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Program {
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    fn ask(&mut self, what: &str) -> String {
        writeln!(self.input, "{what}").unwrap();
        let mut line = String::new();
        loop {
            line.clear();
            assert!(
                self.output.read_line(&mut line).unwrap() > 0,
                "it said nothing to {what}"
            );
            if let Some(at) = line.find("said: ") {
                return line[at + 6..].trim().to_string();
            }
        }
    }

    /// The colors of a new data set in a private slot of so many colors.
    fn colors(&mut self, count: u32) -> Result<BTreeSet<u32>, String> {
        self.colors_of(&format!("private {count}"))
    }

    /// The colors that it says it has then.
    fn colors_of(&mut self, what: &str) -> Result<BTreeSet<u32>, String> {
        let said = self.ask(what);
        let colors = said.strip_prefix("colors ").ok_or(said.clone())?;
        Ok(colors.split(' ').map(|color| color.parse().unwrap()).collect())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

type Sets = Vec<(DataSet<'static>, Vec<u8>)>;

/// A data set in a private slot of so many bytes, or in none, and the outcome.
fn place(application: &Application, bytes: Option<u64>, sets: &mut Sets) -> String {
    let memory = vec![7u8; 64 * PAGE_BYTES];
    let placed = || -> Result<DataSet, Error> {
        let slot = bytes.map(|bytes| application.slot(bytes, Kind::Private)).transpose()?;
        let mut set = application.data_set(&ThreadGroup::all())?;
        // SAFETY: the memory is kept as long as the set, and nobody uses it but the thread that is busy here.
        unsafe {
            set.add_raw(memory.as_ptr() as usize, memory.len())?;
            set.allocate_among(slot.as_ref(), Others::Absent)?;
        }
        Ok(set)
    };
    match placed() {
        Ok(set) => sets.push((set, memory)),
        Err(error) => return format!("full {}: {error}", error.is_full()),
    }
    last(sets)
}

/// The last data set in another private slot of so many bytes: none of its pages is of the right color before.
fn again(application: &Application, bytes: u64, sets: &mut Sets) -> String {
    let (set, _) = sets.last_mut().unwrap();
    let slot = application.slot(bytes, Kind::Private).unwrap();
    // SAFETY: nobody uses the memory but the thread that is busy here.
    unsafe { set.allocate_among(Some(&slot), Others::Absent) }.unwrap();
    last(sets)
}

/// The colors of the last data set, which has its content and its place.
fn last(sets: &Sets) -> String {
    let (set, memory) = sets.last().unwrap();
    assert!(memory.iter().all(|&byte| byte == 7));
    assert!(set.done().unwrap().left.is_empty(), "{:?}", set.done());
    assert_eq!(set.census().unwrap().wrong, 0);
    let colors: Vec<String> = set
        .given()
        .unwrap()
        .colors
        .iter()
        .map(|color| color.to_string())
        .collect();
    format!("colors {}", colors.join(" "))
}

/// The census of all data sets: right, wrong, absent, unknown.
fn census(sets: &Sets) -> String {
    let mut sum = [0; 4];
    for (set, _) in sets {
        let one = set.census().unwrap();
        for (sum, one) in sum.iter_mut().zip([one.right, one.wrong, one.absent, one.unknown]) {
            *sum += one;
        }
    }
    sum.map(|sum| sum.to_string()).join(" ")
}

/// Pages that `spoil` spoils.
const SPOILED: usize = 16;

/// Has the kernel choose other frames for some pages of the last data set, as when it moves some.
fn spoil(sets: &mut Sets) -> String {
    let (_, memory) = sets.last_mut().unwrap();
    let start = (memory.as_ptr() as usize).next_multiple_of(PAGE_BYTES) + 8 * PAGE_BYTES;
    let pages = Span::new(start, SPOILED * PAGE_BYTES);
    let first = start - memory.as_ptr() as usize;
    // This area takes the frames that the discard frees, so that the pages get others.
    let elsewhere = Area::map(64 * PAGE_BYTES, Size::Small).unwrap();
    // SAFETY: the test's own bytes, written anew below.
    unsafe { memory::discard(pages) }.unwrap();
    memory::populate(elsewhere.span()).unwrap();
    memory[first..first + pages.bytes].fill(7);
    format!("spoiled {}", pages.bytes / PAGE_BYTES)
}

fn repair(sets: &mut Sets) -> String {
    let mut wrong = 0;
    for (set, memory) in sets {
        // SAFETY: nobody uses the memory but the thread that is busy here.
        let (found, done) = unsafe { set.repair_among(Others::Absent) }.unwrap();
        assert!(memory.iter().all(|&byte| byte == 7));
        // The kernel's frames may have an allowed color, but more of one than its share: these are exchanged as
        // well.
        assert!(done.kept + SPOILED >= done.pages.saturating_sub(found), "{done:?}");
        wrong += found;
    }
    wrong.to_string()
}

#[test]
fn program() {
    if std::env::var_os("TEST_PROGRAM").is_none() {
        return;
    }
    let start = Start {
        through: match std::env::var_os("TEST_ALONE") {
            Some(_) => Through::DaemonIfThere,
            None => Through::Daemon,
        },
        ..Start::default()
    };
    let application = Application::start(start).unwrap();
    assert!(application.means().ledger.contains("daemon"));
    let mut sets = Sets::new();
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let (what, number) = line.split_once(' ').unwrap_or((&line, "0"));
        let number: u64 = number.parse().unwrap();
        let said = match what {
            "private" => place(&application, Some(number << 16), &mut sets),
            "again" => again(&application, number << 16, &mut sets),
            "weak" => place(&application, None, &mut sets),
            "supplied" => sets
                .iter()
                .map(|(set, _)| set.done().unwrap().supplied)
                .sum::<usize>()
                .to_string(),
            "census" => census(&sets),
            "spoil" => spoil(&mut sets),
            "repair" => repair(&mut sets),
            "free" => {
                sets.clear();
                "freed".to_string()
            }
            "trouble" => application.trouble().unwrap_or("none".to_string()),
            "shortage" => application.shortage().unwrap_or("none".to_string()),
            "available" => application.available().unwrap().together.to_string(),
            other => other.to_string(),
        };
        println!("said: {said}");
    }
}

#[test]
fn private_colors_are_one_programs() {
    if !privileged() {
        return;
    }
    let daemon = Daemon::new(Wish::default());
    daemon.client_of_full();
    let mut one = Program::new(&daemon, &[]);
    let stranger = house::stranger();
    let mut other = Program::new(&daemon, &stranger.before());
    let mine = one.colors(6).unwrap();
    let theirs = other.colors(6).unwrap();
    assert_eq!((mine.len(), theirs.len()), (6, 6));
    assert!(mine.is_disjoint(&theirs), "{mine:?} {theirs:?}");
    // Frames come from the daemon; where others on this machine were faster, the next time.
    for program in [&mut one, &mut other] {
        eventually("frames come from the daemon", || {
            program.ask("weak");
            program.ask("supplied").parse::<usize>().unwrap() > 0
        });
    }
    let refused = other.colors(5).unwrap_err();
    assert!(
        refused.contains("full true") && refused.contains("the slot could have 3"),
        "{refused}"
    );
    assert_eq!(other.ask("available"), (3 << 16).to_string());
    // A program that is killed has nothing any more.
    one.child.kill().unwrap();
    one.child.wait().unwrap();
    eventually("the dead one's colors are free", || {
        other.ask("available") == (9 << 16).to_string()
    });
    assert_eq!(other.colors(9).unwrap().len(), 9);
    other.ask("free");
    assert_eq!(other.ask("available"), (16 << 16).to_string());
}

#[test]
fn who_may_not_see_frames_verifies_and_repairs_through_the_daemon() {
    if !privileged() {
        return;
    }
    let daemon = Daemon::new(Wish::default());
    daemon.client_of_full();
    let stranger = house::stranger();
    for before in [&stranger.before()[..], &[]] {
        let mut program = Program::new(&daemon, before);
        program.colors(6).unwrap();
        // Frames of the program's own, where the daemon's went elsewhere, are unknown to it: until all came from it.
        let right = |program: &mut Program| {
            eventually("every page is known to be right", || {
                program.ask("repair");
                let said = program.ask("census");
                let right: usize = said.split(' ').next().unwrap().parse().unwrap();
                right >= 63 && said.ends_with(" 0 0 0")
            });
        };
        right(&mut program);
        assert_eq!(program.ask("repair"), "0");
        eventually(
            "the kernel chose frames that are not the daemon's, or not of the slot",
            || {
                assert_eq!(program.ask("spoil"), "spoiled 16");
                !program.ask("census").ends_with(" 0 0 0")
            },
        );
        let found: usize = program.ask("repair").parse().unwrap();
        assert!((1..=16).contains(&found), "{found}");
        right(&mut program);
    }
}

/// 256 frames, 16 of a color, where 63 of one are wanted: the daemon gives the colors and the frames that it has, and
/// the program collects the rest.
///
/// The kernel hands out first the frames freed last, and these may all have the one color: new memory may need no
/// exchange at all. So the data set moves from one color to another.
#[test]
fn a_stock_that_is_too_small_for_a_program_is_helped_out() {
    if !privileged() {
        return;
    }
    let tree = tempfile::tempdir_in("/tmp").unwrap();
    machines::machine(tree.path(), 3000, "0.00");
    let daemon = Daemon::new(Wish {
        stock: house::MIB,
        root: Some(tree.path().into()),
        ..Wish::default()
    });
    let mut client = daemon.client_of_full();
    // In a round of collecting the daemon may have far more frames than it is to keep. None begins from here on: between
    // the marks (5 and 10 percent of memory) the stock neither grows nor is given up.
    machines::machine(tree.path(), 300, "0.00");
    machines::seen(&mut client, tree.path());
    let stock = client.stock().unwrap();
    assert!(stock.iter().all(|&frames| frames < 63), "{stock:?}");
    for environment in [&[][..], &[("TEST_ALONE", "1")]] {
        let mut program = Program::with(&daemon, &[], environment);
        let first = program.colors(1).unwrap();
        let second = program.colors_of("again 1").unwrap();
        assert_eq!((first.len(), second.len()), (1, 1));
        assert!(first.is_disjoint(&second), "{first:?} {second:?}");
        let said = program.ask("shortage");
        assert!(said.contains("--stock") && said.contains("for itself"), "{said}");
        assert_eq!(program.ask("census"), "63 0 0 0");
    }
}

#[test]
fn a_daemon_that_came_back_learns_what_programs_have() {
    if !privileged() {
        return;
    }
    let mut daemon = Daemon::new(Wish::default());
    daemon.client_of_full();
    let mut one = Program::new(&daemon, &[]);
    let before = one.colors(6).unwrap();
    daemon.kill_and_restart();
    daemon.client_of_full();
    // Its next request finds the new daemon, and reports the six colors to it first.
    let after = one.colors(4).unwrap();
    assert!(before.is_disjoint(&after), "{before:?} {after:?}");
    assert_eq!(one.ask("available"), (6 << 16).to_string());
    let mut other = Program::new(&daemon, &[]);
    let theirs = other.colors(6).unwrap();
    assert!(theirs.is_disjoint(&before) && theirs.is_disjoint(&after));
    // Without a daemon the placed data stays, and can be freed.
    daemon.kill();
    assert_eq!(one.ask("free"), "freed");
    let refused = one.colors(1).unwrap_err();
    assert!(
        refused.contains("no daemon answers") || refused.contains("daemon"),
        "{refused}"
    );
}

#[test]
fn while_the_daemon_is_away_a_program_keeps_the_ledger_itself() {
    if !privileged() {
        return;
    }
    let mut daemon = Daemon::new(Wish::default());
    daemon.client_of_full();
    let mut program = Program::with(&daemon, &[], &[("TEST_ALONE", "1")]);
    let mut had = program.colors(4).unwrap();
    for round in 0..3 {
        assert_eq!(program.ask("trouble"), "none");
        daemon.kill();
        // The pages that it has stay its own, and those that it takes are none of them.
        for count in [1, 2] {
            let more = program.colors(count).unwrap();
            assert!(
                more.len() == count as usize && more.is_disjoint(&had),
                "{more:?} {had:?}"
            );
            had.extend(more);
        }
        assert!(program.ask("trouble").contains("this process's own"));
        assert_eq!(program.ask("available"), ((16 - had.len() as u64) << 16).to_string());
        let refused = program.colors(16).unwrap_err();
        assert!(refused.starts_with("full true"), "{refused}");
        daemon.restart();
        daemon.client_of_full();
        // The next daemon hears of all of it with the first request.
        assert_eq!(program.ask("available"), ((16 - had.len() as u64) << 16).to_string());
        let mut other = Program::new(&daemon, &[]);
        let theirs = other.colors(16 - had.len() as u32).unwrap();
        assert!(theirs.is_disjoint(&had), "{theirs:?} {had:?}");
        drop(other);
        eventually("the other one's colors are free", || {
            program.ask("available") == ((16 - had.len() as u64) << 16).to_string()
        });
        let more = program.colors(1).unwrap();
        assert!(more.is_disjoint(&had), "{round}: {more:?} {had:?}");
        had.extend(more);
        if round == 1 {
            // Freed here and there: some while the daemon is away.
            daemon.kill();
            assert_eq!(program.ask("free"), "freed");
            assert_eq!(program.ask("available"), (16u64 << 16).to_string());
            had.clear();
            daemon.restart();
            assert_eq!(program.ask("available"), (16u64 << 16).to_string());
            had.extend(program.colors(2).unwrap());
        }
    }
}
