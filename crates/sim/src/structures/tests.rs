//! Names and owners of addresses, on tables small enough to read.

use proptest::prelude::*;
use trace::Frame;

use super::*;

const HEAP: u64 = 0x5000_0000;

fn symbol(name: &str, addr: u64, bytes: u64) -> Symbol {
    Symbol {
        name: name.to_string(),
        addr,
        bytes,
        ..Symbol::default()
    }
}

fn location(pc: u64, function: &str, place: Option<(&str, u32)>) -> Location {
    Location {
        pc,
        function: function.to_string(),
        file: place.map(|(file, _)| file.to_string()),
        line: place.map(|(_, line)| line),
        ..Location::default()
    }
}

fn module(path: &str, start: u64, bytes: u64) -> Module {
    Module {
        path: path.to_string(),
        start,
        bytes,
        bias: start,
        ..Module::default()
    }
}

fn stack(pcs: &[u64]) -> Stack {
    Stack {
        process: 0,
        frames: pcs.iter().map(|&pc| Frame { pc }).collect(),
    }
}

fn alloc(addr: u64, bytes: u64, stack: u32) -> Event {
    Event::Alloc {
        addr,
        bytes,
        stack,
        kind: Allocation::Heap,
    }
}

/// The name of the site of each stack.
fn site_names(modules: &[Module], locations: &[Location], stacks: &[Stack]) -> Vec<String> {
    let mut structures = Structures::new(&Tables {
        modules,
        locations,
        stacks,
        ..Tables::default()
    });
    (0..stacks.len())
        .map(|number| {
            structures.apply(0, 0, &alloc(HEAP, 64, number as u32));
            let structure = structures.lookup(0, HEAP + 63);
            structures.describe(structure).name
        })
        .collect()
}

#[test]
fn each_kind_of_structure_is_found_and_named() {
    let mut table = symbol("table", 0x1000, 0x100);
    table.file = Some("/src/join.c".to_string());
    table.line = Some(12);
    table.fields = vec![(0, 0x40, ".rows[0]".to_string()), (8, 4, ".rows[0].count".to_string())];
    let arrays = [Array {
        process: 0,
        name: "grid".to_string(),
        addr: 0x1080,
        bytes: 0x40,
    }];
    let threads = [Thread {
        number: 7,
        stack: Some((0x9000, 0xa000)),
        ..Thread::default()
    }];
    let mut structures = Structures::new(&Tables {
        threads: &threads,
        modules: &[module("/usr/bin/join", 0x800, 0x2000)],
        symbols: &[table],
        arrays: &arrays,
        ..Tables::default()
    });
    let mut name = |addr| {
        let structure = structures.lookup(0, addr);
        structures.describe(structure).name
    };
    assert_eq!(name(0x1000), "table");
    assert_eq!(name(0x107f), "table");
    assert_eq!(name(0x1080), "grid");
    assert_eq!(name(0x10c0), "table");
    assert_eq!(name(0x1100), "file: join");
    assert_eq!(name(0x9fff), "stack of thread 7");
    assert_eq!(name(0xa000), "(memory without a name)");
    assert_eq!(structures.place(0, 0x100a).name, "table.rows[0].count");
    assert_eq!(structures.place(0, 0x1004).name, "table.rows[0]");
    assert_eq!(structures.place(0, 0x1050).name, "table+80");
    let table = structures.lookup(0, 0x1000);
    let described = structures.describe(table);
    assert_eq!((described.kind, described.bytes), (StructureKind::Symbol, 0x100));
    assert_eq!(
        (described.file.as_deref(), described.line),
        (Some("/src/join.c"), Some(12))
    );
}

#[test]
fn all_blocks_of_a_site_are_one_structure() {
    let locations = [
        location(0x10, "malloc", None),
        location(0x20, "build_table", Some(("/src/join.c", 120))),
        location(0x30, "main", Some(("/src/join.c", 200))),
        location(0x34, "main", Some(("/src/join.c", 210))),
    ];
    let stacks = [
        stack(&[0x10, 0x20, 0x30]),
        stack(&[0x10, 0x20, 0x34]),
        stack(&[0x10, 0x30]),
    ];
    let mut structures = Structures::new(&Tables {
        stacks: &stacks,
        locations: &locations,
        ..Tables::default()
    });
    for (block, stack) in [(0, 0), (1, 1), (2, 2)] {
        structures.apply(0, 0, &alloc(HEAP + block * 100, 100, stack));
    }
    let first = structures.lookup(0, HEAP);
    assert_eq!(structures.lookup(0, HEAP + 199), first);
    assert_ne!(structures.lookup(0, HEAP + 200), first);
    let described = structures.describe(first);
    assert_eq!(described.name, "heap: build_table (join.c:120)");
    assert_eq!((described.blocks, described.bytes), (2, 200));
    assert_eq!(described.line, Some(120));
    structures.apply(0, 0, &Event::Free { addr: HEAP + 100 });
    assert_eq!(structures.lookup(0, HEAP + 100), UNKNOWN);
    assert_eq!(structures.lookup(0, HEAP + 99), first);
    structures.apply(0, 0, &alloc(HEAP + 100, 10, 2));
    assert_ne!(structures.lookup(0, HEAP + 109), first);
    assert_eq!(structures.lookup(0, HEAP + 110), UNKNOWN);
    assert_eq!(structures.describe(first).bytes, 200, "the most that was live at once");
}

#[test]
fn a_wrapper_inlined_into_main_is_not_called_by_the_start_of_the_program() {
    let modules = [
        module("/src/product", 0x1000, 0x1000),
        module("/lib/libc.so.6", 0x8000, 0x1000),
    ];
    let locations = [
        location(0x8010, "malloc", None),
        location(0x1010, "xmalloc", Some(("/src/product.c", 10))),
        location(0x8020, "__libc_start_main", None),
        location(0x1020, "_start", None),
        location(0x1030, "main", Some(("/src/product.c", 30))),
    ];
    let stacks = [
        stack(&[0x8010, 0x1010, 0x8020, 0x1020]),
        stack(&[0x8010, 0x1010, 0x1030, 0x8020, 0x1020]),
    ];
    assert_eq!(
        site_names(&modules, &locations, &stacks),
        ["heap: xmalloc (product.c:10)", "heap: xmalloc ← main (product.c:30)"]
    );
}

#[test]
fn sites_without_debug_information_name_wrapper_caller_and_module() {
    let modules = [
        module("/lib/libsqlite3.so.0", 0x1000, 0x1000),
        module("/lib/libc.so.6", 0x8000, 0x1000),
    ];
    let locations = [
        location(0x8010, "malloc", None),
        location(0x1010, "sqlite3MemMalloc", None),
        location(0x1020, "sqlite3DbMallocRaw", None),
        location(0x1030, "sqlite3VdbeMemGrow", None),
        location(0x8020, "fopen", None),
        location(0x1040, "open_log", None),
    ];
    let stacks = [
        stack(&[0x8010, 0x1010, 0x1020, 0x1030]),
        stack(&[0x8010, 0x8020, 0x1040]),
    ];
    assert_eq!(
        site_names(&modules, &locations, &stacks),
        [
            "heap: sqlite3MemMalloc ← sqlite3VdbeMemGrow (libsqlite3.so.0)",
            "heap: fopen ← open_log (libsqlite3.so.0)",
        ]
    );
}

#[test]
fn what_malloc_maps_for_itself_is_distinguished_from_what_it_hands_out() {
    let modules = [
        module("/bin/sort", 0x1000, 0x1000),
        module("/lib/libc.so.6", 0x8000, 0x1000),
        module("/lib/ld-linux-x86-64.so.2", 0xa000, 0x1000),
    ];
    let locations = [
        location(0x8010, "__brk", Some(("brk.c", 37))),
        location(0x8020, "sysmalloc", None),
        location(0x8030, "_int_malloc", None),
        location(0x8040, "__mmap64", None),
        location(0x1010, "main", Some(("sort.c", 9))),
        location(0xa010, "_dl_map_segments", None),
    ];
    let stacks = [
        stack(&[0x8010, 0x8020, 0x8030, 0x1010]),
        stack(&[0x8040, 0x1010]),
        stack(&[0xa010, 0x2, 0x1fff_0000]),
    ];
    assert_eq!(
        site_names(&modules, &locations, &stacks),
        [
            "malloc's own memory",
            "heap: main (sort.c:9)",
            "heap: ld-linux-x86-64.so.2"
        ]
    );
}

#[test]
fn allocators_other_than_the_c_librarys_are_called_by_their_name() {
    let modules = [
        module("/bin/server", 0x1000, 0x1000),
        module("/lib/libc.so.6", 0x8000, 0x1000),
        module("/lib/libmimalloc.so.2.0", 0xa000, 0x1000),
    ];
    let locations = [
        location(0x8040, "__mmap64", None),
        location(0x1010, "main.build", Some(("/src/g.go", 4))),
        location(
            0x1020,
            "runtime.newobject",
            Some(("/usr/lib/go/src/runtime/malloc.go", 1)),
        ),
        location(0x1030, "runtime.sysMmap", Some(("/usr/lib/go/src/runtime/sys.s", 4))),
        location(0x1040, "runtime.persistentalloc", None),
        location(0x1050, "main", Some(("/src/server.c", 3))),
    ];
    let stacks = [
        // Memory that a library in malloc's place asks for, and a block that it gave.
        stack(&[0x8040, 0xa010, 0xa020, 0x1050]),
        stack(&[0xa010, 0x1050]),
        // The same of Go.
        stack(&[0x1030, 0x1040]),
        stack(&[0x1020, 0x1010]),
    ];
    assert_eq!(
        site_names(&modules, &locations, &stacks),
        [
            "own memory of libmimalloc.so.2.0",
            "heap: main (server.c:3)",
            "memory of Go's runtime",
            "heap: main.build (g.go:4)",
        ]
    );
}

#[test]
fn the_first_stack_is_found_where_it_has_grown() {
    let thread = |low, high| Thread {
        number: low,
        stack: Some((low, high)),
        ..Thread::default()
    };
    let threads = [thread(0x1fff_0000, 0x1fff_2000), thread(0x7000_0000, 0x7000_2000)];
    let mut structures = Structures::new(&Tables {
        threads: &threads,
        modules: &[module("/bin/x", 0x1ffe_0000, 0x1000)],
        ..Tables::default()
    });
    let stack = structures.lookup(0, 0x1fff_1000);
    assert_eq!(structures.lookup(0, 0x1ffe_f000), stack);
    assert_eq!(
        structures.describe(structures.clone().lookup(0, 0x1ffe_0000)).name,
        "file: x"
    );
    assert_eq!(structures.lookup(0, 0x6fff_f000), UNKNOWN);
}

#[test]
fn a_wrapper_with_debug_information_tells_where_its_caller_called_it() {
    let locations = [
        location(0x10, "calloc", None),
        location(0x20, "alloc_matrix", Some(("mat.c", 9))),
        location(0x30, "main", Some(("mat.c", 50))),
        location(0x34, "main", Some(("mat.c", 51))),
    ];
    let stacks = [
        stack(&[0x10, 0x20, 0x30]),
        stack(&[0x10, 0x20, 0x34]),
        stack(&[0x10, 0x20]),
    ];
    assert_eq!(
        site_names(&[], &locations, &stacks),
        [
            "heap: alloc_matrix ← main (mat.c:50)",
            "heap: alloc_matrix ← main (mat.c:51)",
            "heap: alloc_matrix (mat.c:9)",
        ]
    );
}

#[test]
fn stripped_wrappers_are_seen_by_their_many_callers() {
    let modules = [module("/lib/libx.so.1", 0x1000, 0x1000)];
    let locations = [location(0x10, "malloc", None), location(0x1800, "x_step", None)];
    let callers = [0x1100, 0x1200, 0x1300, 0x1400];
    let stacks: Vec<_> = callers
        .iter()
        .map(|&caller| stack(&[0x10, 0x1010, caller, 0x1800]))
        .collect();
    let names = site_names(&modules, &locations, &stacks);
    assert_eq!(names[0], "heap: libx.so.1+0x100 ← x_step");
    assert_eq!(names[3], "heap: libx.so.1+0x400 ← x_step");
    // A nameless frame inside a named wrapper is part of it.
    let locations = [
        location(0x10, "malloc", None),
        location(0x1500, "xMalloc", None),
        location(0x1010, "libx.so.1+0x10", None),
        location(0x1800, "x_step", None),
    ];
    let names = site_names(&modules, &locations, &[stack(&[0x10, 0x1010, 0x1500, 0x1800])]);
    assert_eq!(names, ["heap: xMalloc ← x_step (libx.so.1)"]);
}

#[test]
fn what_is_not_in_the_tables_is_unknown_and_not_a_crash() {
    let mut structures = Structures::new(&Tables::default());
    structures.apply(0, 0, &alloc(HEAP, 64, 99));
    let structure = structures.lookup(0, HEAP);
    assert_eq!(structures.describe(structure).name, "heap: allocation site unknown");
    structures.apply(5, 0, &alloc(HEAP, 64, 99));
    assert_eq!(structures.lookup(5, HEAP), UNKNOWN);
    structures.apply(0, 0, &alloc(u64::MAX - 10, u64::MAX, 0));
    assert_eq!(structures.lookup(0, u64::MAX - 1), structure);
    structures.apply(0, 0, &Event::Free { addr: 3 });
    assert_eq!(structures.describe(u32::MAX).kind, StructureKind::Unknown);
}

#[test]
fn a_forked_child_begins_with_a_copy_of_its_parents_memory() {
    let process = |parent| Process {
        parent,
        program: "sh".to_string(),
        ..Process::default()
    };
    let threads = [
        Thread::default(),
        Thread {
            process: 1,
            ..Thread::default()
        },
    ];
    let mut structures = Structures::new(&Tables {
        processes: &[process(None), process(Some(0))],
        threads: &threads,
        symbols: &[symbol("counter", 0x1000, 8)],
        ..Tables::default()
    });
    structures.apply(0, 0, &alloc(HEAP, 64, 0));
    structures.apply(0, 0, &Event::Spawn { child: 1 });
    structures.apply(0, 0, &Event::Free { addr: HEAP });
    assert_eq!(structures.lookup(0, HEAP), UNKNOWN);
    assert_ne!(structures.lookup(1, HEAP), UNKNOWN);
    assert_eq!(structures.lookup(1, 0x1000), structures.lookup(0, 0x1000));
}

#[test]
fn a_mapped_file_is_named_by_its_path() {
    let mut structures = Structures::new(&Tables {
        modules: &[module("/data/points.bin", HEAP, 0x2000)],
        ..Tables::default()
    });
    structures.apply(
        0,
        0,
        &Event::Alloc {
            addr: HEAP,
            bytes: 0x2000,
            stack: 0,
            kind: Allocation::File,
        },
    );
    let structure = structures.lookup(0, HEAP + 0x1fff);
    let described = structures.describe(structure);
    assert_eq!(
        (described.name.as_str(), described.kind),
        ("file: points.bin", StructureKind::File)
    );
    assert_eq!(described.bytes, 0x2000);
}

proptest! {
    /// Against a table with one owner per byte: remembered answers are never out of date.
    #[test]
    fn lookups_follow_allocations_and_frees(
        steps in prop::collection::vec((0u64..6000, 1u64..3000, 0u32..3, 0u32..4), 1..120),
    ) {
        let locations: Vec<_> = (0..3).map(|site| location(site + 1, &format!("f{site}"), None)).collect();
        let stacks: Vec<_> = (0..3).map(|site| stack(&[site + 1])).collect();
        let symbols = [symbol("fixed", HEAP + 1000, 50)];
        let mut structures = Structures::new(&Tables {
            stacks: &stacks, locations: &locations, symbols: &symbols, ..Tables::default()
        });
        let mut owner = vec![None; 10_000];
        for (start, bytes, site, action) in steps {
            if action == 0 {
                // Frees a block if one begins there: its extent is given by the model below.
                let id = owner[start as usize];
                let begins = id.is_some_and(|(_, first)| first == start);
                if begins {
                    owner.iter_mut().filter(|owner| **owner == id).for_each(|owner| *owner = None);
                }
                structures.apply(0, 0, &Event::Free { addr: HEAP + start });
            } else {
                let before = owner.clone();
                for byte in start..start + bytes {
                    owner[byte as usize] = Some((site, start));
                }
                // The rest of an older block on the right gets a new number.
                let end = (start + bytes) as usize;
                if let Some(old) = before[end].filter(|_| before[end] == before[end - 1]) {
                    for byte in (end..10_000).take_while(|&byte| before[byte] == Some(old)) {
                        owner[byte] = Some((old.0, end as u64));
                    }
                }
                structures.apply(0, 0, &alloc(HEAP + start, bytes, site));
            }
            for byte in (0..9_500).step_by(61) {
                let structure = structures.lookup(0, HEAP + byte);
                let name = structures.describe(structure).name;
                let expected = match owner[byte as usize] {
                    _ if (1000..1050).contains(&byte) => "fixed".to_string(),
                    Some((site, _)) => format!("heap: f{site}"),
                    None => "(memory without a name)".to_string(),
                };
                prop_assert_eq!(name, expected, "at byte {}", byte);
            }
        }
    }
}
