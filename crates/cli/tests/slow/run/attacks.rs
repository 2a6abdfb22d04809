//! Programs do things that few expect of a program with a run-time inside: they cancel threads, give up system calls,
//! ask for memory that there is not, and close descriptors that they did not open. They end as they do without the
//! run-time.

use std::path::{Path, PathBuf};

use crate::slow::run::workshop::{Run, Workshop, plainly};

const SLOT: &str = "[[slot]]\nname = \"a\"\nbytes = \"256 KiB\"\nkind = \"private\"\n";
const GRAB: &str = "[[data]]\nsite = \"heap: grab\"\nslot = \"a\"\n";
const FLAGS: [&str; 3] = ["-O1", "-fno-inline", "-fno-optimize-sibling-calls"];

fn plan() -> String {
    SLOT.to_string() + GRAB
}

fn blocks(run: &Run) -> u64 {
    run.data("heap: grab")["names"][0]["blocks"].as_u64().unwrap()
}

fn notes(run: &Run) -> String {
    run.report["processes"][0]["notes"].to_string()
}

#[test]
fn threads_are_cancelled_while_they_allocate() {
    let shop = Workshop::new();
    let Some(program) = shop.program("cancelled.c", &FLAGS) else {
        return;
    };
    let program = program.to_str().unwrap();
    let run = shop.run(&plan(), &[], &[program]);
    run.is_as(&plainly(&[program]));
    assert_eq!(run.printed(), "150 of 150 were cancelled\n");
    assert!(blocks(&run) > 100, "{:#}", run.report);
}

#[test]
fn threads_are_cancelled_while_they_call_for_slots() {
    let shop = Workshop::new();
    let Some(program) = shop.linked("cancelled_slots.c", &["-O1"]) else {
        return;
    };
    let mut command = std::process::Command::new(program);
    command
        .env("DOMICILE_COLORS", "force:12:4:65536")
        .env("DOMICILE_SOCKET", "/nonexistent/socket");
    let ran = command.output().unwrap();
    let printed = String::from_utf8_lossy(&ran.stdout);
    assert_eq!(
        (&*printed, ran.status.code()),
        ("80 of 80 were cancelled\n", Some(6)),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

#[test]
fn a_program_that_forbids_itself_system_calls_goes_on() {
    let shop = Workshop::new();
    let Some(program) = shop.program("sealed.c", &FLAGS) else {
        return;
    };
    let program = program.to_str().unwrap();
    for how in ["strict", "filter", "call"] {
        let plain = plainly(&[program, how]);
        assert_eq!(
            (plain.status.code(), &plain.stdout[..]),
            (Some(7), &b"good\n"[..]),
            "{how}"
        );
        let run = shop.run(&plan(), &[], &[program, how]);
        run.is_as(&plain);
        assert_eq!(blocks(&run), 3, "{how}: {:#}", run.report);
        assert!(notes(&run).contains("seccomp"), "{how}: {}", notes(&run));
        // Descriptions of loops are ignored from then on, too.
        let run = shop.directed("cdpc", &["--align", "no"], &[program, how]);
        run.is_as(&plain);
    }
}

#[test]
fn what_cannot_be_had_is_refused_as_without_us() {
    let shop = Workshop::new();
    let Some(program) = shop.program("sparse.c", &FLAGS) else {
        return;
    };
    let program = program.to_str().unwrap();
    let total = sys::pressure::Memory::read(&sys::Root::default()).unwrap().total >> 20;
    let more = (8 * total).to_string();
    for mebibytes in [more.as_str(), "1"] {
        run_as_plainly(&shop, &["sh", "-c", "exec \"$@\"", "sh", program, mebibytes], program);
        // The limit is on addresses, and the program's own libraries use a part of it.
        run_as_plainly(
            &shop,
            &["sh", "-c", "ulimit -v 600000; exec \"$@\"", "sh", program, "700"],
            program,
        );
        run_as_plainly(
            &shop,
            &["sh", "-c", "ulimit -v 1000000; exec \"$@\"", "sh", program, "500"],
            program,
        );
    }
}

fn run_as_plainly(shop: &Workshop, command: &[&str], program: &str) {
    let plain = plainly(command);
    assert!(matches!(plain.status.code(), Some(4 | 5)), "{command:?}");
    // The plan is of the program, which the shell becomes.
    let (limit, inner) = (command[2], &command[4..]);
    let run = shop.run_by(&["sh", "-c", limit, "sh"], &plan(), &[], inner);
    assert_eq!(inner[0], program);
    run.is_as(&plain);
}

/// A memory group of the kernel that processes can be put into; none if this user may not make one.
struct Group(PathBuf);

impl Group {
    fn with(limit: u64) -> Option<Group> {
        let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        let line = |start: &str| {
            let found = own.lines().find_map(|line| line.split_once(start));
            found.map(|(_, path)| path.trim_start_matches('/').to_string())
        };
        let name = format!("domicile-test-{}", std::process::id());
        let made = |above: PathBuf, file: &str| {
            let group = Group(above.join(&name));
            std::fs::create_dir(&group.0).ok()?;
            std::fs::write(group.0.join(file), limit.to_string()).ok()?;
            Some(group)
        };
        let first = Path::new("/sys/fs/cgroup/memory").join(line(":memory:").unwrap_or_default());
        if first.join("memory.limit_in_bytes").exists() {
            return made(first, "memory.limit_in_bytes");
        }
        let second = Path::new("/sys/fs/cgroup").join(line("0::").unwrap_or_default());
        made(second.parent().unwrap_or(&second).to_path_buf(), "memory.max")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn a_sparse_block_stays_sparse_where_memory_is_short() {
    let shop = Workshop::new();
    let Some(program) = shop.program("sparse.c", &FLAGS) else {
        return;
    };
    let program = program.to_str().unwrap();
    let Some(group) = Group::with(512 << 20) else {
        return harness::not_here("no memory group can be made");
    };
    let enter = format!("echo $$ > {}/cgroup.procs; exec \"$@\"", group.0.display());
    for arguments in [&["4000"][..], &["4000", "again"]] {
        let inner: Vec<&str> = [&[program][..], arguments].concat();
        let plain = plainly(&[&["sh", "-c", &enter, "sh"][..], &inner].concat());
        assert_eq!(plain.status.code(), Some(5), "{arguments:?}");
        let run = shop.run_by(&["sh", "-c", &enter, "sh"], &plan(), &[], &inner);
        run.is_as(&plain);
        let said = run.said();
        let resident = said.lines().find_map(|line| line.strip_prefix("resident "));
        let resident: u64 = resident.unwrap().parse().unwrap();
        assert!(resident < 256, "{resident} MiB: {said}");
        let notes = run.data("heap: grab")["notes"].to_string();
        assert!(
            notes.contains("4000 MiB that hold nothing yet"),
            "{said}\n{:#}",
            run.report
        );
    }
}
