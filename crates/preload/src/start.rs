//! Before `main`: reads the instructions, places static data, and begins to examine allocations.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use live::protocol::{Instructions, Report, State as Stage, What};
use live::slots::Others;
use live::{PAGE_BYTES, Pages};
use sys::memory::Span;

use crate::arena::Arena;
use crate::blocks::Blocks;
use crate::data_sets::DataSets;
use crate::modules::Modules;
use crate::outset::{alone, leave_no_trace};
use crate::placing::{self, State, Stay};
use crate::sites::Sites;
use crate::{aside, cdpc, end, files, fork, text};

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;

extern "C" fn at_start() {
    let Some(_stay) = Stay::begin() else { return };
    // A panic must not reach the dynamic linker; the program then runs as without us.
    let started = std::panic::catch_unwind(start);
    if started.is_err() {
        placing::stop();
    }
}

fn start() {
    let began = Instant::now();
    let text = match text::start() {
        Ok(text) => text,
        Err(why) => {
            end::say(&format!("domicile: {why}"));
            true
        }
    };
    let Some(path) = std::env::var_os(live::protocol::ENVIRONMENT) else {
        if !text {
            cdpc::align_alone();
        }
        return;
    };
    let instructions = match Instructions::read(Path::new(&path)) {
        Ok(instructions) => instructions,
        Err(error) => {
            end::say(&format!("domicile: the run-time cannot read its instructions: {error}"));
            return;
        }
    };
    if !is_meant(&instructions) {
        return;
    }
    if !instructions.children {
        leave_no_trace(&[live::protocol::ENVIRONMENT], instructions.preload_before.as_deref());
    }
    if let Err(error) = end::prepare(&instructions.slate) {
        end::say(&format!(
            "domicile: the run-time cannot report to {}: {error}",
            instructions.slate.display()
        ));
    }
    if let Some(homed) = &instructions.homed {
        return cdpc::start_homes(homed);
    }
    let Some(colors) = instructions.colors.clone() else {
        return;
    };
    if let Some(directed) = &instructions.directed {
        return cdpc::start(directed, colors);
    }
    files::out_of_the_way(|| match DataSets::open(&instructions.plan, colors) {
        Ok(data_sets) => arm(instructions, data_sets, began),
        Err(why) => end::put(&Report {
            state: Stage::Failed,
            notes: vec![why],
            ..Report::default()
        }),
    });
}

/// Returns true if this is the program in which the names were found, and not a shell that starts it.
fn is_meant(instructions: &Instructions) -> bool {
    let file = Path::new("/proc/self/exe").metadata();
    file.is_ok_and(|about| (about.dev(), about.ino()) == instructions.program_file)
}

fn arm(instructions: Instructions, data_sets: DataSets, began: Instant) {
    let mut notes = Vec::new();
    let modules = Modules::find(&instructions.modules, &mut notes);
    let sites = Sites::new(&instructions, &modules);
    let any_site = instructions
        .targets
        .iter()
        .any(|target| matches!(target.what, What::Site(_)));
    let arena = if any_site { Arena::find() } else { None };
    if any_site && arena.is_none() {
        notes.push("no range of addresses was found for the heap's data sets: they are not placed".to_string());
    }
    let mut state = State::new(instructions, data_sets, arena.map(Blocks::new));
    place_static(&mut state, &modules);
    state.notes.append(&mut notes);
    state.start_time = began.elapsed();
    end::write(&state, false);
    if let Some(mut place) = placing::state() {
        *place = Some(state);
    }
    fork::watch();
    aside::watch();
    if any_site {
        placing::begin(sites);
    }
}

/// The static data of each entry together.
fn place_static(state: &mut State, modules: &Modules) {
    let alone = alone();
    let others = if alone { Others::Absent } else { Others::Running };
    let entries = state.instructions.targets.iter().map(|target| target.data_set);
    let entries: std::collections::BTreeSet<u32> = entries.collect();
    for entry in entries {
        let mut ranges = Vec::new();
        let mut counted = Vec::new();
        for (number, target) in state.instructions.targets.iter().enumerate() {
            let What::Symbol(areas) = &target.what else { continue };
            if target.data_set != entry {
                continue;
            }
            for (start, end) in areas.iter().filter_map(|area| modules.place(area)) {
                ranges.push((start, end - start));
                counted.push((number as u32, end - start));
            }
        }
        for &(target, bytes) in &counted {
            state.count(target, bytes);
        }
        let mut guarded = Vec::new();
        for &(start, bytes) in &ranges {
            let first = start.next_multiple_of(PAGE_BYTES);
            let last = (start + bytes) / PAGE_BYTES * PAGE_BYTES;
            if let Err(why) = anonymous(first, last, alone, &mut guarded) {
                state.data_sets.note(entry, why);
            }
        }
        // SAFETY: the addresses of the program's symbols, from its modules; `others` was determined above.
        unsafe { state.data_sets.place_static(entry, &ranges, others) };
        for (pages, rights) in guarded {
            let start = std::ptr::with_exposed_provenance_mut::<libc::c_void>(pages.start);
            // SAFETY: the pages were taken from the program's file by `anonymous`, and had these rights there.
            unsafe { libc::mprotect(start, pages.bytes(), rights) };
        }
    }
}

/// Makes file pages from address `first` up to `last` the process's own: initialised data is a private mapping of the
/// program's file, and only frames of writable memory without a file can be exchanged. The contents stay. `guarded`
/// gets the pages that were not writable, and their rights.
pub fn anonymous(
    first: usize,
    last: usize,
    alone: bool,
    guarded: &mut Vec<(Pages, libc::c_int)>,
) -> Result<(), String> {
    if first >= last {
        return Ok(());
    }
    let mappings = sys::mappings::within(Span::new(first, last - first)).map_err(|error| error.to_string())?;
    for mapping in mappings.iter().filter(|mapping| !mapping.private_anonymous()) {
        if mapping.shared || !mapping.read {
            return Err("it lies in memory that is shared, or cannot be read".to_string());
        }
        if !alone {
            return Err("threads run before main, so that initialised data stays where it is".to_string());
        }
        let start = first.max(mapping.span.start);
        let end = last.min(mapping.span.end());
        let pages = Pages {
            start,
            count: (end - start) / PAGE_BYTES,
        };
        replace(pages).map_err(|error| format!("its pages cannot be taken from the file: {error}"))?;
        if !mapping.write {
            let rights = libc::PROT_READ | if mapping.execute { libc::PROT_EXEC } else { 0 };
            guarded.push((pages, rights));
        }
    }
    Ok(())
}

/// Replaces pages by a copy without a file.
///
/// Pre: this is the only thread, and the pages can be read.
fn replace(pages: Pages) -> std::io::Result<()> {
    let failed = std::io::Error::last_os_error;
    let old = std::ptr::with_exposed_provenance_mut::<libc::c_void>(pages.start);
    // SAFETY: a new mapping, at addresses that the kernel chooses.
    let copy = unsafe {
        libc::syscall(
            libc::SYS_mmap,
            0,
            pages.bytes(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if copy == -1 {
        return Err(failed());
    }
    let copy = std::ptr::with_exposed_provenance_mut::<libc::c_void>(copy as usize);
    // SAFETY: both have that many bytes; nothing writes the old pages between here and the exchange: no other thread
    // runs, and the calls are system calls.
    let moved = unsafe {
        copy.cast::<u8>().copy_from_nonoverlapping(old.cast(), pages.bytes());
        libc::syscall(
            libc::SYS_mremap,
            copy,
            pages.bytes(),
            pages.bytes(),
            libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED,
            old,
        )
    };
    if moved == -1 {
        let error = failed();
        // SAFETY: the copy is ours and unknown to others.
        unsafe { libc::syscall(libc::SYS_munmap, copy, pages.bytes()) };
        return Err(error);
    }
    Ok(())
}
