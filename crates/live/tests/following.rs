//! Programs whose thread follows its data behave as without, whatever they do meanwhile.
#![cfg(target_arch = "x86_64")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use live::following::{self, Asked, Closing, FollowingError};
use policy::Bounds;
use results::{LiveClosing, LiveFollowing};
use sys::cache_domains::CacheDomain;
use tempfile::TempDir;

/// Two caches of `kilobytes`, of the first two cpus that may be used. `None`, said: the machine has one cpu.
fn two_caches(kilobytes: u64) -> Option<Vec<CacheDomain>> {
    let cpus = sys::affinity::allowed(None).unwrap();
    if cpus.len() < 2 {
        harness::not_here("one cpu");
        return None;
    }
    let domain = |cpu: &u32| CacheDomain {
        cpus: vec![*cpu],
        level: Some(2),
        bytes: Some(kilobytes << 10),
    };
    Some(cpus[..2].iter().map(domain).collect())
}

/// How pages can be closed here.
fn closings() -> Vec<Closing> {
    match sys::protection_keys::try_key() {
        Ok(_) => vec![Closing::Keys, Closing::Protection],
        Err(_) => vec![Closing::Protection],
    }
}

/// The search for regions never rests, and spreads them whatever the gain.
fn eager(domains: Vec<CacheDomain>, closing: Closing) -> Asked {
    let set = [
        "period=5000",
        "share=500",
        "cost=0",
        "scan=2500",
        "stay-least=1",
        "eager=0",
        "rate=1000000",
        "idle=100",
        // Phases are so short that a touch must count as little.
        "fault=100",
        "alone=2",
        "steady=0",
    ];
    Asked {
        policy: "regions".parse().unwrap(),
        settings: set.iter().map(|set| format!("regions.{set}")).collect(),
        domains,
        closing: Some(closing),
        awake: false,
        bounds: Some(Bounds {
            stay_least_ns: 1000,
            stay_most_ns: u64::MAX,
            one_cache: 1,
            all_caches: 1_000_000,
        }),
    }
}

/// Emulated, a stop takes so long that no thread is moved, and pages are closed in few calls.
fn is_guest() -> bool {
    std::env::var_os("DOMICILE_GUEST").is_some()
}

/// A program of `tests/following`; a guest, which has no compiler, brings it along.
fn built(folder: &TempDir, source: &Path) -> PathBuf {
    let brought = Path::new("/guest/programs").join(source.file_stem().unwrap());
    if brought.is_file() {
        return brought;
    }
    let program = folder.path().join("program");
    let status = Command::new("cc")
        .args(["-O1", "-o"])
        .args([&program, source])
        .status()
        .unwrap();
    assert!(status.success());
    program
}

/// The program's output when its thread follows its data, and the report.
fn followed(program: &Path, arguments: &[&str], folder: &TempDir, asked: &Asked) -> (String, LiveFollowing) {
    let out = folder.path().join("out");
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&out).unwrap());
    let report = following::run(command, asked, |_| ()).unwrap();
    (std::fs::read_to_string(out).unwrap(), report)
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/following")
}

#[test]
fn random_changes_of_mappings_signals_and_children_end_as_without() {
    let Some(domains) = two_caches(256) else { return };
    for closing in closings() {
        random_changes(&eager(domains.clone(), closing));
    }
}

/// Cpus are kept awake once pages are closed, and not before.
#[test]
fn cpus_are_kept_awake_for_closed_pages_alone() {
    let Some(domains) = two_caches(256) else { return };
    let folder = TempDir::new().unwrap();
    let program = built(&folder, &sources().join("changes.c"));
    for closing in closings() {
        let mut asked = eager(domains.clone(), closing);
        asked.awake = true;
        // The number of times that pages are closed depends on the ends of the intervals.
        let closed = (0..20).any(|seed: u32| {
            let (_, report) = followed(&program, &[&seed.to_string(), "1000"], &folder, &asked);
            assert_eq!((report.exit_code, report.kept_awake), (Some(0), 2));
            assert_eq!(report.stepped_aside, None);
            assert!(report.touches == 0 || report.awake_ns > 0, "{report:?}");
            report.touches > 0
        });
        assert!(closed, "nothing was tried");
        // No interval ends while this runs.
        asked.settings.push("regions.period=3600000".to_string());
        let (_, report) = followed(Path::new("/bin/sh"), &["-c", "exit 3"], &folder, &asked);
        assert_eq!((report.exit_code, report.touches, report.awake_ns), (Some(3), 0, 0));
    }
}

fn random_changes(asked: &Asked) {
    let folder = TempDir::new().unwrap();
    let program = built(&folder, &sources().join("changes.c"));
    let (mut moves, mut touches, mut calls) = (0, 0, 0);
    let seeds = if is_guest() { 1 } else { harness::cases(10) };
    let enough = |moves, touches, calls| match is_guest() {
        true => touches > 500 && calls > 50,
        false => moves > 100 && touches > 1000 && calls > 1000,
    };
    // The amount that a seed tries depends on the ends of the intervals: further seeds follow until
    // enough was tried.
    for seed in 0..4 * seeds {
        if seed >= seeds && enough(moves, touches, calls) {
            break;
        }
        let arguments = [seed.to_string(), "1000".to_string()];
        let alone = Command::new(&program).args(&arguments).output().unwrap();
        assert!(alone.status.success(), "{alone:?}");
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let (text, report) = followed(&program, &arguments, &folder, asked);
        assert_eq!(text, String::from_utf8_lossy(&alone.stdout), "seed {seed}: {report:?}");
        let by = match asked.closing {
            Some(Closing::Protection) => LiveClosing::Mprotect,
            _ => LiveClosing::Keys,
        };
        assert_eq!(report.closed_by, by);
        assert_eq!((report.exit_code, &report.stepped_aside), (Some(0), &None));
        moves += report.moves;
        touches += report.touches;
        calls += report.calls;
    }
    assert!(
        enough(moves, touches, calls),
        "nothing was tried: {moves} {touches} {calls}"
    );
}

#[test]
fn a_program_that_begins_a_thread_is_left_alone_and_ends_as_without() {
    let Some(domains) = two_caches(256) else { return };
    let folder = TempDir::new().unwrap();
    let program = built(&folder, &sources().join("threads.c"));
    for closing in closings() {
        let (text, report) = followed(&program, &[], &folder, &eager(domains.clone(), closing));
        assert_eq!((text.as_str(), report.exit_code), ("200000 6\n", Some(0)), "{report:?}");
        assert!(report.stepped_aside.unwrap().contains("second thread"));
    }
}

/// The kernel writes where a thread registered for restartable sequences, by the thread's own rights.
#[test]
fn pages_that_the_kernel_writes_to_are_opened_when_they_are_registered() {
    let Some(domains) = two_caches(256) else { return };
    let folder = TempDir::new().unwrap();
    let program = built(&folder, &sources().join("restartable.c"));
    let alone = Command::new(&program).output().unwrap();
    assert!(alone.status.success(), "{alone:?}");
    if alone.stdout == b"not registered\n" {
        harness::not_here("the C library does not say where it registered for restartable sequences");
        return;
    }
    for closing in closings() {
        let asked = eager(domains.clone(), closing);
        let (mut touches, mut calls) = (0, 0);
        // Calls that come while pages are closed hang on when the intervals end: there are some in every few runs.
        for _ in 0..200 {
            let (text, report) = followed(&program, &[], &folder, &asked);
            assert_eq!(text, String::from_utf8_lossy(&alone.stdout), "{report:?}");
            assert_eq!((report.exit_code, &report.stepped_aside), (Some(0), &None));
            touches += report.touches;
            calls += report.calls;
            if touches > 100 && calls > 0 {
                break;
            }
        }
        assert!(touches > 100 && calls > 0, "nothing was tried: {touches} {calls}");
    }
}

/// The loader uses memory before the thread has local storage, which the kernel writes to from then on.
#[test]
fn programs_are_followed_while_they_are_loaded() {
    let Some(domains) = two_caches(256) else { return };
    if !harness::tool("sqlite3") {
        return;
    }
    let folder = TempDir::new().unwrap();
    let (program, arguments) = (Path::new("sqlite3"), [":memory:", "select 6 * 7;"]);
    for closing in closings() {
        let mut asked = eager(domains.clone(), closing);
        asked
            .settings
            .extend(["period=1000", "scan=1000"].map(|set| format!("regions.{set}")));
        let mut touches = 0;
        // Emulated, a start takes ten seconds. The number of times that pages are closed depends on the
        // ends of the intervals.
        let least = if is_guest() { 2 } else { 10 };
        for run in 0..10 * least {
            if run >= least && touches > 20 {
                break;
            }
            let (text, report) = followed(program, &arguments, &folder, &asked);
            assert_eq!((text.as_str(), report.exit_code), ("42\n", Some(0)), "{report:?}");
            touches += report.touches;
        }
        assert!(touches > 20, "nothing was tried: {touches}");
    }
}

#[test]
fn a_program_that_dies_is_reported_to_have_died() {
    let Some(domains) = two_caches(256) else { return };
    let folder = TempDir::new().unwrap();
    for closing in closings() {
        let asked = eager(domains.clone(), closing);
        let (_, report) = followed(Path::new("/bin/sh"), &["-c", "kill -9 $$"], &folder, &asked);
        assert_eq!(report.exit_code, Some(137));
        let (text, report) = followed(
            Path::new("/bin/sh"),
            &["-c", "echo $((6 * 7)); exit 3"],
            &folder,
            &asked,
        );
        assert_eq!((text.as_str(), report.exit_code), ("42\n", Some(3)));
        let missing = following::run(Command::new("/no/such/program"), &asked, |_| ());
        assert!(matches!(missing, Err(FollowingError::Start(_))), "{missing:?}");
    }
}

/// Tables with indexes, joins, aggregates, text, a file with transactions that are rolled back, and the dump of it all. ITEMS and SOLD
/// are the rows of the two tables.
const STATEMENTS: &str = "
create table items(id integer primary key, name text, price real, kind integer);
with recursive n(i) as (select 1 union all select i + 1 from n where i < ITEMS)
  insert into items select i, 'item ' || (i * 7919 % 40009), (i * 31 % 1000) / 7.0, i % 97 from n;
create index by_kind on items(kind, price);
create table sold(item integer, day integer, many integer);
with recursive n(i) as (select 1 union all select i + 1 from n where i < SOLD)
  insert into sold select i * 613 % ITEMS + 1, i % 365, i % 9 from n;
select kind, count(*), round(sum(price * many), 3) from items join sold on item = id group by kind order by 3 desc limit 20;
begin; delete from sold where day > 100; select count(*) from sold; rollback;
select day, group_concat(name, ';') from (select day, name from sold join items on item = id where kind = 5 order by day, name limit 300) group by day;
update items set name = upper(name) where id % 3 = 0;
select sum(length(name)), max(name) from items;
pragma integrity_check;
.dump sold
";

#[test]
fn sqlite_prints_the_same() {
    let Some(domains) = two_caches(512) else { return };
    if !harness::tool("sqlite3") {
        return;
    }
    let folder = TempDir::new().unwrap();
    let script = folder.path().join("script.sql");
    // Emulated, the larger tables take seven minutes.
    let (items, sold) = if is_guest() { (6_000, 9_000) } else { (40_000, 60_000) };
    let statements = STATEMENTS.replace("ITEMS", &items.to_string());
    std::fs::write(&script, statements.replace("SOLD", &sold.to_string())).unwrap();
    let command = |database: &str| {
        let mut command = Command::new("sqlite3");
        command
            .arg(folder.path().join(database))
            .stdin(std::fs::File::open(&script).unwrap());
        command
    };
    let alone = command("alone.db").output().unwrap();
    assert!(alone.status.success() && alone.stdout.len() > 20 * sold, "{alone:?}");
    for closing in closings() {
        let asked = eager(domains.clone(), closing);
        let followed = || {
            let mut followed = command("followed.db");
            let out = folder.path().join("out");
            followed.stdout(std::fs::File::create(&out).unwrap());
            let report = following::run(followed, &asked, |_| ()).unwrap();
            std::fs::remove_file(folder.path().join("followed.db")).unwrap();
            (std::fs::read(out).unwrap(), report)
        };
        let (mut touches, mut calls) = (0, 0);
        // The number of times that pages are closed depends on the ends of the intervals.
        for _ in 0..20 {
            let (text, report) = followed();
            let differs = text.iter().zip(&alone.stdout).position(|(one, other)| one != other);
            let lengths = (text.len(), alone.stdout.len());
            let ended = (report.exit_code, &report.stepped_aside);
            assert!(
                text == alone.stdout,
                "{ended:?}, bytes {lengths:?}, the first that differs: {differs:?}; {report:?}"
            );
            assert_eq!(ended, (Some(0), &None));
            touches += report.touches;
            calls += report.calls;
            if touches > 1000 && calls >= 10 {
                break;
            }
        }
        assert!(touches > 1000 && calls >= 10, "nothing was tried: {touches} {calls}");
    }
}
