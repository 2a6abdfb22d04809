//! Stall by call stack: a function that is called by one that waits and by one that does not.

use results::{Profile, ProfileStack};
use sim::{Config, Detail, PolicySpec};
use trace::{Event, Frame, Inlined, Location, Op, Process, Ref, Site, Stack, Thread, Trace, Writer};

const FIND: u64 = 0x1010;
const HOT: u64 = 0x2000;
const COLD: u64 = 0x3000;
const OTHER: u64 = 0x4000;
const MAIN: u64 = 0x5000;
const CALLS: u64 = 1000;

fn reads(pc: u64) -> Site {
    Site {
        pc,
        op: Op::Read,
        size: 8,
    }
}

fn read_of(site: u32, addr: u64) -> Ref {
    Ref {
        addr,
        site,
        insns: 1,
        op: Op::Read,
        size: 8,
    }
}

fn location(process: u32, pc: u64, function: &str, line: u32) -> Location {
    Location {
        process,
        pc,
        function: function.to_string(),
        file: Some("find.c".to_string()),
        line: Some(line),
        inlined_into: Vec::new(),
    }
}

/// `find`, which is inlined into `lookup`, is called by `hot` with the same line each time, and by `cold` with another
/// one. Every seventh call is sampled. `other` waits, too, and is in no sample. The data that `hot` reads lies in
/// another set than the rest.
fn trace(sampled: bool) -> Trace {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut writer = Writer::create(file.path(), &trace::Header::default()).unwrap();
    let process = writer.process(Process::default());
    let thread = writer.thread(Thread {
        process,
        ..Thread::default()
    });
    let location = |pc, function, line| location(process, pc, function, line);
    let find = Location {
        inlined_into: vec![Inlined {
            function: "lookup".to_string(),
            file: Some("find.c".to_string()),
            line: Some(12),
        }],
        ..location(FIND, "find", 3)
    };
    let called = Location {
        pc: FIND - 4,
        ..find.clone()
    };
    writer.locations([
        find,
        called,
        location(HOT, "hot", 20),
        location(COLD, "cold", 30),
        location(OTHER, "other", 40),
        location(MAIN, "main", 50),
    ]);
    let [of_hot, of_cold] = [HOT, COLD].map(|caller| {
        let frames = [FIND - 4, caller, MAIN].map(|pc| Frame { pc });
        writer.stack(Stack {
            process,
            frames: frames.to_vec(),
        })
    });
    let [find, hot, cold, other] = [FIND, HOT, COLD, OTHER].map(|pc| writer.site(reads(pc)));
    let read = |writer: &mut Writer, site, addr| {
        writer.push(thread, read_of(site, addr)).unwrap();
    };
    for call in 0..CALLS {
        let (caller, stack, data) = match call % 2 {
            0 => (hot, of_hot, 0x10_0800),
            _ => (cold, of_cold, 0x100_0000 + call * 4096),
        };
        read(&mut writer, caller, 0x8100);
        if sampled && call % 7 == 0 {
            writer.event(thread, Event::Called { stack }).unwrap();
        }
        read(&mut writer, find, data);
        read(&mut writer, find, data + 8);
        read(&mut writer, caller, 0x8100);
        read(&mut writer, other, 0x4000_0000 + call * 4096);
    }
    writer.finish().unwrap();
    Trace::open(file.path()).unwrap()
}

fn profile(sampled: bool) -> Profile {
    profile_of(&trace(sampled))
}

fn profile_of(trace: &Trace) -> Profile {
    let preset = machine::presets()
        .iter()
        .find(|preset| preset.name == "simos-r4400")
        .unwrap();
    let machine = machine::from_toml(preset.text, preset.name)
        .unwrap()
        .with_cpus(1)
        .unwrap();
    let config = Config {
        detail: Detail {
            profile: true,
            ..Detail::default()
        },
        ..Config::new(machine, vec![PolicySpec::new("page-coloring".parse().unwrap())])
    };
    let mut runs = sim::simulate(trace, &config, &|_| {}).unwrap();
    runs[0].outcome.profile.take().unwrap()
}

fn names(profile: &Profile, stack: &ProfileStack) -> String {
    let frames = stack.frames.iter().map(|&frame| &profile.frames[frame as usize]);
    let frames: Vec<String> = frames
        .map(|of| match of.line {
            Some(line) => format!("{}:{line}", of.function),
            None => of.function.clone(),
        })
        .collect();
    frames.join(" < ")
}

#[test]
fn waiting_goes_to_the_caller_who_waits() {
    let profile = profile(true);
    assert_eq!(profile.samples, CALLS.div_ceil(7));
    let stall = |wanted: &str| -> u64 {
        let of = profile.stacks.iter().filter(|stack| names(&profile, stack) == wanted);
        of.map(|stack| stack.stall_ns).sum()
    };
    let [hot, cold] = ["hot:20", "cold:30"].map(|caller| stall(&format!("find:3 < lookup:12 < {caller} < main:50")));
    let other = stall("other:40");
    assert!(cold > 0 && other > 0, "{profile:?}");
    // `hot` waits the first time, when it brings its line. With samples that count alike it would have half.
    assert!(hot * 20 < cold, "{hot} and {cold} ns");
    // Both miss a line of a page of their own each time.
    assert!(
        (hot + cold) * 2 > other * 9 / 10 && hot + cold < other * 2,
        "{hot}, {cold}, {other} ns"
    );
}

#[test]
fn without_samples_lines_have_no_callers() {
    let (with, without) = (profile(true), profile(false));
    assert_eq!(without.samples, 0);
    let depths: Vec<usize> = without.stacks.iter().map(|stack| stack.frames.len()).collect();
    // Inlined functions are known all the same.
    assert!(depths.iter().all(|depth| *depth <= 2), "{depths:?}");
    let total = |profile: &Profile| -> [u64; 2] {
        let of = |of: fn(&ProfileStack) -> u64| profile.stacks.iter().map(of).sum();
        [of(|stack| stack.stall_ns), of(|stack| stack.misses)]
    };
    let ([stall, misses], [same, as_many]) = (total(&with), total(&without));
    assert_eq!(misses, as_many);
    assert!(
        stall.abs_diff(same) <= with.stacks.len() as u64,
        "{stall} and {same} ns"
    );
}

/// Two programs whose code lies at the same addresses. Both read another page each time, and only the first is sampled.
fn of_two_programs() -> Profile {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut writer = Writer::create(file.path(), &trace::Header::default()).unwrap();
    let processes = ["/usr/bin/first", "/usr/bin/second"].map(|program| {
        writer.process(Process {
            program: program.to_string(),
            ..Process::default()
        })
    });
    let threads = processes.map(|process| {
        writer.thread(Thread {
            process,
            ..Thread::default()
        })
    });
    let names = [["find", "hot", "main"], ["seek", "cold", "start"]];
    for (process, names) in processes.into_iter().zip(names) {
        let location = |(pc, function)| location(process, pc, function, 1);
        writer.locations([FIND, HOT, MAIN].into_iter().zip(names).map(location));
    }
    let stack = writer.stack(Stack {
        process: processes[0],
        frames: [FIND, HOT, MAIN].map(|pc| Frame { pc }).to_vec(),
    });
    let site = writer.site(reads(FIND));
    for call in 0..CALLS {
        for (at, thread) in threads.into_iter().enumerate() {
            if at == 0 && call == 0 {
                writer.event(thread, Event::Called { stack }).unwrap();
            }
            writer.push(thread, read_of(site, 0x4000_0000 + call * 4096)).unwrap();
        }
    }
    writer.finish().unwrap();
    profile_of(&Trace::open(file.path()).unwrap())
}

#[test]
fn each_program_has_its_own_functions_and_callers() {
    let profile = of_two_programs();
    let seen: Vec<String> = profile.stacks.iter().map(|stack| names(&profile, stack)).collect();
    assert!(
        seen.contains(&"find:1 < hot:1 < main:1 < process first".to_string()),
        "{seen:?}"
    );
    assert!(seen.contains(&"seek:1".to_string()), "{seen:?}");
    assert_eq!(seen.len(), 2, "{seen:?}");
}

/// `find` is called by `hot` once with 1000 reads, and by `cold` a hundred times with ten: as many reads of a page of their own each.
fn of_long_and_short_calls() -> Profile {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut writer = Writer::create(file.path(), &trace::Header::default()).unwrap();
    let process = writer.process(Process::default());
    let thread = writer.thread(Thread {
        process,
        ..Thread::default()
    });
    let location = |(pc, function)| location(process, pc, function, 1);
    writer.locations([(FIND, "find"), (HOT, "hot"), (COLD, "cold")].map(location));
    let stacks = [HOT, COLD].map(|caller| {
        writer.stack(Stack {
            process,
            frames: [FIND, caller].map(|pc| Frame { pc }).to_vec(),
        })
    });
    let [find, hot, cold] = [FIND, HOT, COLD].map(|pc| writer.site(reads(pc)));
    let mut reads = 0u64;
    let mut call = |writer: &mut Writer, caller, stack, length| {
        let mut read = |writer: &mut Writer, site, addr, is_sampled| {
            reads += 1;
            // At intervals that vary, as a recorder samples.
            if is_sampled && reads * reads % 61 == 3 {
                writer.event(thread, Event::Called { stack }).unwrap();
            }
            writer.push(thread, read_of(site, addr)).unwrap();
            reads
        };
        let mut page = read(writer, caller, 0x8100, false);
        for _ in 0..length {
            page = read(writer, find, 0x4000_0000 + page * 4096, true);
        }
    };
    for _ in 0..20 {
        call(&mut writer, hot, stacks[0], 1000);
        (0..100).for_each(|_| call(&mut writer, cold, stacks[1], 10));
    }
    writer.finish().unwrap();
    profile_of(&Trace::open(file.path()).unwrap())
}

#[test]
fn short_calls_have_their_part() {
    let profile = of_long_and_short_calls();
    let of = |wanted: &str| -> f64 {
        let of = profile.stacks.iter().filter(|stack| names(&profile, stack) == wanted);
        of.map(|stack| stack.stall_ns as f64).sum()
    };
    let (hot, cold) = (of("find:1 < hot:1"), of("find:1 < cold:1"));
    assert!((hot / cold - 1.0).abs() < 0.15, "{hot} and {cold} ns: {profile:?}");
}

#[test]
fn a_profile_is_the_same_each_time() {
    assert_eq!(profile(true), profile(true));
}
