//! QEMU's interface for plugins, version 4 (qemu-plugin.h of QEMU 9.2 to 10): the callbacks, and the functions that the
//! plugin calls.
//!
//! QEMU loads the library, looks for `qemu_plugin_version` and calls `qemu_plugin_install`. From then on it calls back
//! when it translates a block of instructions, and each time that a reference or a marker of such a block is executed.
//! A cpu's callbacks come one at a time, on the cpu's thread.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::frames::{self, Frames};
use crate::marker::{self, Marker};
use crate::options::Options;
use crate::places::{Place, Places};
use crate::scribe::{BATCH, Batch, Counts, Scribe};

type Id = u64;
type MemInfo = u32;

#[repr(C)]
struct Block([u8; 0]);
#[repr(C)]
struct Instruction([u8; 0]);
#[repr(C)]
struct HardwareAddress([u8; 0]);
#[repr(C)]
struct Scoreboard([u8; 0]);

/// `qemu_plugin_u64`: a counter of each cpu.
#[repr(C)]
#[derive(Clone, Copy)]
struct Counter {
    score: *mut Scoreboard,
    offset: usize,
}

// SAFETY: QEMU's scoreboards may be used from any thread.
unsafe impl Send for Counter {}
// SAFETY: as above.
unsafe impl Sync for Counter {}

type OnMemory = extern "C" fn(c_uint, MemInfo, u64, *mut c_void);
type OnInstruction = extern "C" fn(c_uint, *mut c_void);

const NO_REGISTERS: c_int = 0;
const READS_AND_WRITES: c_int = 3;
const ADD: c_int = 0;

unsafe extern "C" {
    fn qemu_plugin_tb_n_insns(block: *const Block) -> usize;
    fn qemu_plugin_tb_get_insn(block: *const Block, at: usize) -> *mut Instruction;
    fn qemu_plugin_insn_vaddr(instruction: *const Instruction) -> u64;
    fn qemu_plugin_insn_data(instruction: *const Instruction, to: *mut c_void, bytes: usize) -> usize;
    fn qemu_plugin_insn_size(instruction: *const Instruction) -> usize;
    fn qemu_plugin_register_vcpu_tb_trans_cb(id: Id, call: extern "C" fn(Id, *mut Block));
    fn qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(block: *mut Block, op: c_int, entry: Counter, by: u64);
    fn qemu_plugin_register_vcpu_mem_cb(
        i: *mut Instruction,
        call: OnMemory,
        regs: c_int,
        what: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_register_vcpu_insn_exec_cb(i: *mut Instruction, call: OnInstruction, regs: c_int, data: *mut c_void);
    fn qemu_plugin_register_atexit_cb(id: Id, call: extern "C" fn(Id, *mut c_void), data: *mut c_void);
    fn qemu_plugin_scoreboard_new(bytes: usize) -> *mut Scoreboard;
    fn qemu_plugin_u64_get(entry: Counter, cpu: c_uint) -> u64;
    fn qemu_plugin_get_hwaddr(info: MemInfo, address: u64) -> *mut HardwareAddress;
    fn qemu_plugin_hwaddr_is_io(address: *const HardwareAddress) -> bool;
    fn qemu_plugin_hwaddr_phys_addr(address: *const HardwareAddress) -> u64;
    fn qemu_plugin_mem_size_shift(info: MemInfo) -> c_uint;
    fn qemu_plugin_mem_is_store(info: MemInfo) -> bool;
}

/// The version of the interface that this is written for.
#[unsafe(no_mangle)]
pub static qemu_plugin_version: c_int = 4;

/// Most cpus of a guest.
const CPUS: usize = 256;

/// A cpu's references that the scribe does not have yet.
#[derive(Default)]
struct Cpu {
    batch: Batch,
    frames: Frames,
    /// Instructions that it had executed at its last reference.
    instructions: u64,
    devices: u64,
    nowhere: u64,
    wrong: u64,
}

struct Cell(UnsafeCell<Cpu>);

// SAFETY: only a cpu's callbacks use its cell, one at a time, and the end, when no cpu runs.
unsafe impl Sync for Cell {}

struct Plugin {
    cpus: Vec<Cell>,
    /// Instructions of the blocks that each cpu has begun.
    begun: Counter,
    places: Places,
    scribe: Mutex<Option<Scribe>>,
    /// How much the cpus have passed to the scribe.
    handed: AtomicU64,
    most: u64,
    check: bool,
    options: Options,
}

static PLUGIN: OnceLock<Plugin> = OnceLock::new();
static RECORDING: AtomicBool = AtomicBool::new(false);

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// QEMU's only entry point: returns 0, or prints why not.
///
/// # Safety
///
/// `words` has `count` strings that end with 0, as QEMU promises.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: Id,
    _machine: *const c_void,
    count: c_int,
    words: *const *const c_char,
) -> c_int {
    let word = |at: usize| {
        // SAFETY: the caller's promise.
        let word = unsafe { CStr::from_ptr(*words.add(at)) };
        word.to_string_lossy().into_owned()
    };
    let words: Vec<String> = (0..usize::try_from(count).unwrap_or(0)).map(word).collect();
    match install(id, &words) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("libdomicile_qemu: {error}");
            -1
        }
    }
}

fn install(id: Id, words: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let options = Options::read(words.iter().map(String::as_str))?;
    let places = Places::default();
    let scribe = Scribe::start(&options, places.clone())?;
    // SAFETY: QEMU is installing the plugin, when scoreboards may be made.
    let score = unsafe { qemu_plugin_scoreboard_new(size_of::<u64>()) };
    RECORDING.store(!options.from_marker, Ordering::Relaxed);
    let plugin = Plugin {
        cpus: (0..CPUS).map(|_| Cell(UnsafeCell::default())).collect(),
        begun: Counter { score, offset: 0 },
        places,
        scribe: Mutex::new(Some(scribe)),
        handed: AtomicU64::new(0),
        most: options.references.unwrap_or(u64::MAX),
        check: options.check,
        options,
    };
    if PLUGIN.set(plugin).is_err() {
        return Err("the plugin is there twice".into());
    }
    // SAFETY: QEMU is installing the plugin; the functions stay where they are.
    unsafe {
        qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
        qemu_plugin_register_atexit_cb(id, ended, std::ptr::null_mut());
    }
    Ok(())
}

extern "C" fn translated(_id: Id, block: *mut Block) {
    let Some(plugin) = PLUGIN.get() else { return };
    // SAFETY: QEMU's block is there until this returns, and so are its instructions.
    let count = unsafe { qemu_plugin_tb_n_insns(block) };
    // SAFETY: as above; the counter was made for this.
    unsafe { qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(block, ADD, plugin.begun, count as u64) };
    for at in 0..count {
        // SAFETY: as above, and the block has this many instructions.
        let instruction = unsafe { qemu_plugin_tb_get_insn(block, at) };
        let mut bytes = [0u8; marker::BYTES];
        // SAFETY: as above; there is room for as many bytes.
        let (pc, size, read) = unsafe {
            (
                qemu_plugin_insn_vaddr(instruction),
                qemu_plugin_insn_size(instruction),
                qemu_plugin_insn_data(instruction, bytes.as_mut_ptr().cast(), bytes.len()),
            )
        };
        if size == bytes.len()
            && read == size
            && let Some(marker) = marker::of(&bytes)
        {
            let word = usize::from(marker == Marker::Begin) as *mut c_void;
            // SAFETY: as above.
            unsafe { qemu_plugin_register_vcpu_insn_exec_cb(instruction, marked, NO_REGISTERS, word) };
        }
        if frames::may_change(&bytes[..read.min(bytes.len())]) {
            // SAFETY: as above.
            unsafe { qemu_plugin_register_vcpu_insn_exec_cb(instruction, moved, NO_REGISTERS, std::ptr::null_mut()) };
        }
        let data = std::ptr::from_ref(plugin.places.place(pc, (count - 1 - at) as u32));
        let data = data.cast_mut().cast();
        // SAFETY: as above; the place stays for ever.
        unsafe { qemu_plugin_register_vcpu_mem_cb(instruction, referenced, NO_REGISTERS, READS_AND_WRITES, data) };
    }
}

extern "C" fn marked(_cpu: c_uint, word: *mut c_void) {
    RECORDING.store(!word.is_null(), Ordering::Relaxed);
}

/// Pages may have moved.
extern "C" fn moved(cpu: c_uint, _data: *mut c_void) {
    if let Some(cell) = PLUGIN.get().and_then(|plugin| plugin.cpus.get(cpu as usize)) {
        // SAFETY: this is the cpu's only callback under way.
        unsafe { (*cell.0.get()).frames.forget() };
    }
}

extern "C" fn referenced(cpu: c_uint, info: MemInfo, address: u64, data: *mut c_void) {
    if !RECORDING.load(Ordering::Relaxed) {
        return;
    }
    let Some(plugin) = PLUGIN.get() else { return };
    let Some(cell) = plugin.cpus.get(cpu as usize) else {
        return;
    };
    // SAFETY: this is the cpu's only callback under way.
    let of = unsafe { &mut *cell.0.get() };
    // SAFETY: it is the place that the callback was registered with, and stays for ever.
    let place = unsafe { &*data.cast::<Place>() };
    let physical = match of.frames.get(address) {
        Some(physical) if !plugin.check => physical,
        known => match asked(of, info, address, known) {
            Some(physical) => physical,
            None => return,
        },
    };
    // SAFETY: the counter was made at the beginning, and QEMU knows the cpu.
    let begun = unsafe { qemu_plugin_u64_get(plugin.begun, cpu) };
    let done = begun.saturating_sub(u64::from(place.after));
    // The first reference of a window comes after everything that was not recorded.
    let instructions = done.saturating_sub(of.instructions).min(u64::from(u16::MAX));
    of.instructions = done;
    // SAFETY: the value that QEMU passed to this callback.
    let (write, size_bits) = unsafe { (qemu_plugin_mem_is_store(info), qemu_plugin_mem_size_shift(info)) };
    let site = place.site(info).unwrap_or_else(|| {
        let site = plugin.places.number(place.pc, write, size_bits);
        place.learn(info, site);
        site
    });
    of.batch
        .add(physical, site, write, size_bits, instructions, place.is_kernel());
    if of.batch.refs.len() >= BATCH {
        hand_over(plugin, cpu, of);
    }
}

/// The physical address, as QEMU reports it; `None`: it has none in memory.
#[cold]
fn asked(of: &mut Cpu, info: MemInfo, address: u64, known: Option<u64>) -> Option<u64> {
    // SAFETY: QEMU answers this within a callback of a reference, and the answer is there until it returns.
    let (physical, is_device) = unsafe {
        let found = qemu_plugin_get_hwaddr(info, address);
        if found.is_null() {
            of.nowhere += 1;
            of.wrong += u64::from(known.is_some());
            return None;
        }
        (qemu_plugin_hwaddr_phys_addr(found), qemu_plugin_hwaddr_is_io(found))
    };
    of.wrong += u64::from(known.is_some_and(|known| is_device || known != physical));
    if is_device {
        of.devices += 1;
        return None;
    }
    of.frames.put(address, physical);
    Some(physical)
}

/// Passes a cpu's references to the scribe; ends recording when there are enough.
fn hand_over(plugin: &Plugin, cpu: u32, of: &mut Cpu) {
    let before = plugin.handed.fetch_add(of.batch.refs.len() as u64, Ordering::Relaxed);
    of.batch.sites = plugin.places.sites();
    let room = plugin.most.saturating_sub(before);
    if of.batch.refs.len() as u64 >= room {
        of.batch
            .truncate(usize::try_from(room).unwrap_or(usize::MAX), &plugin.places);
        RECORDING.store(false, Ordering::Relaxed);
    }
    if let Some(scribe) = &*lock(&plugin.scribe) {
        of.batch = scribe.take(cpu, std::mem::take(&mut of.batch));
    }
}

extern "C" fn ended(_id: Id, _data: *mut c_void) {
    RECORDING.store(false, Ordering::Relaxed);
    let Some(plugin) = PLUGIN.get() else { return };
    let mut counts = Counts::default();
    for (cpu, cell) in (0..).zip(&plugin.cpus) {
        // SAFETY: the machine has stopped: no cpu runs.
        let of = unsafe { &mut *cell.0.get() };
        if !of.batch.refs.is_empty() {
            hand_over(plugin, cpu, of);
        }
        counts.devices += of.devices;
        counts.nowhere += of.nowhere;
        if plugin.check {
            *counts.wrong.get_or_insert(0) += of.wrong;
        }
    }
    let Some(scribe) = lock(&plugin.scribe).take() else {
        return;
    };
    match scribe.end() {
        Ok(written) => {
            let report = written.report(&counts);
            let told = plugin.options.report.as_ref().map(|path| fs::write(path, &report));
            if let Some(Err(error)) = told {
                eprintln!("libdomicile_qemu: the report cannot be written: {error}");
            }
        }
        Err(error) => eprintln!("libdomicile_qemu: {error}"),
    }
}
