//! Disagreements between the engine and the model that were found and settled, in their smallest form.

use trace::Op;

use crate::oracle::both::{self, Agreed};
use crate::reference::Program;

fn run(caches: &str, program: &Program) -> Agreed {
    let text = format!(
        "name = \"settled\"\nclock_mhz = 1000\npage_bytes = 512\ncpus = 2\n{caches}\n[memory]\nnodes = 1\n\
         local_ns = 100.0\nremote_ns = 100.0\ndirty_remote_ns = 100.0\n"
    );
    let machine = machine::from_toml(&text, "settled.toml").expect("the machine is valid");
    both::run_recorded(&machine, program, "page-coloring")
}

fn cache(name: &str, level: u8, kind: &str, line: u32, lines: u32, cpus: u32, rest: &str) -> String {
    let bytes = line * lines;
    format!(
        "[[cache]]\nname = \"{name}\"\nlevel = {level}\nkind = \"{kind}\"\nbytes = {bytes}\nways = {lines}\n\
         line_bytes = {line}\ncpus_per_instance = {cpus}\nindex = \"physical\"\nhit_ns = 1.0\n{rest}\n"
    )
}

/// Cpu 0's read makes the inclusive L2 take a dirty line out of cpu 1's L1: that is a writeback of cpu 1's L1.
#[test]
fn a_writeback_by_inclusion_is_put_down_to_the_cpu_whose_cache_it_leaves() {
    let caches = cache("L1", 1, "unified", 16, 1, 1, "") + &cache("L2", 2, "unified", 16, 1, 2, "inclusive = true");
    let mut program = Program::new(2);
    program.push(1, Op::Modify, 0, 1);
    program.push(0, Op::Read, 16, 1);
    let outcome = run(&caches, &program);
    outcome.cache_of(1, "L1", "writebacks", 1);
    outcome.cache_of(0, "L1", "writebacks", 0);
    outcome.cache_of(0, "L2", "writebacks", 1);
}

/// A fetch that finds its line in a first cache shared with another cpu cleans the other's dirty copy, as any
/// read that is not found in a private cache does.
#[test]
fn a_fetch_from_a_shared_first_cache_cleans_dirty_lines() {
    let caches = cache("L1D", 1, "data", 16, 1, 1, "") + &cache("L2", 2, "unified", 16, 4, 2, "");
    let mut program = Program::new(2);
    program.push(1, Op::Modify, 0, 1);
    program.push(0, Op::Fetch, 0, 1);
    program.push(1, Op::Read, 16, 1); // evicts the line, clean by now, from cpu 1's L1D
    run(&caches, &program).cache("L1D", "writebacks", 0);
}

/// Dubois93 defines sharing by the words that a processor accesses: a fetch of the word that another cpu wrote makes
/// the miss of a data cache essential, in whichever cache the fetch hit.
#[test]
fn a_fetch_of_a_written_word_makes_a_data_miss_true_sharing() {
    let caches = cache("L1D", 1, "data", 64, 4, 1, "") + &cache("L1I", 1, "instruction", 64, 4, 1, "");
    let mut program = Program::new(2);
    program.push(0, Op::Read, 0, 4);
    program.push(1, Op::Write, 32, 4);
    program.push(0, Op::Read, 0, 4); // a sharing miss of L1D, on a word that nobody wrote
    program.push(0, Op::Fetch, 32, 4); // the word that was
    let outcome = run(&caches, &program);
    outcome.cache("L1D", "true_sharing", 1);
    outcome.cache("L1D", "false_sharing", 0);
}
