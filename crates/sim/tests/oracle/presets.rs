//! The machines that come with the product, at their real sizes: engine and model agree on them too.

use trace::{Event, Op};

use crate::oracle::both::{self, Setup};
use crate::oracle::engine;
use crate::reference::Program;
use crate::reference::random::SplitMix64;

/// Eight threads: walks over arrays a large power of two apart (they meet in few sets), a shared counter, strays over
/// 4 GiB, and a barrier now and then.
fn program() -> Program {
    let mut random = SplitMix64(11);
    let mut program = Program::new(8);
    for step in 0..400u64 {
        for thread in 0..8u32 {
            let own = 0x1000_0000 + (u64::from(thread) << 24);
            let (op, address) = match random.below(8) {
                0..3 => (Op::Read, own + step % 50 * 64),
                3 => (Op::Write, own + ((random.next() % 16) << 20)),
                4 => (Op::Modify, 0x2000),
                5 => (Op::Fetch, 0x40_0000 + random.next() % 4096),
                6 => (Op::Read, 0x8000 + random.next() % 8192),
                _ => (Op::Write, random.next() % (1 << 32)),
            };
            program.push(thread, op, address, 8);
        }
        if step % 100 == 99 {
            program.barrier();
        }
    }
    program.event(0, Event::Work { instructions: 1000 });
    program
}

#[test]
fn all_machines_that_come_with_the_product_agree() {
    let program = program();
    let policies = ["page-coloring", "bin-hopping", "round-robin+random"];
    let setup = Setup::default();
    for preset in machine::presets() {
        let machine = machine::load(preset.name).expect("a preset is valid");
        let outcomes = engine::simulate(&machine, &program, &policies, &setup).expect("the engine runs");
        for (policy, outcome) in policies.iter().zip(&outcomes) {
            let model = both::model(&machine, &program, policy, &setup).expect("there are page frames enough");
            let different = both::differences(&model, outcome);
            assert!(
                different.is_empty(),
                "{policy} on {}: {}",
                preset.name,
                different.join("\n")
            );
        }
    }
}
