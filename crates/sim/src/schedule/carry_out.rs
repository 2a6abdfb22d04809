//! A thread's turn: its references, one after the other, as long as its cpu is the one that goes next.

use trace::Ref;

use crate::changes::Changes;
use crate::clock::Units;
use crate::engine::Engine;
use crate::error::SimError;
use crate::pieces::Who;

/// Carries references out while the cpu's clock is below `bound`, at least one; returns how many.
#[inline(always)]
pub fn run<const COHERENT: bool, const CLASSES: bool>(
    engine: &mut Engine,
    who: Who,
    refs: &[Ref],
    bound: Units,
) -> Result<usize, SimError> {
    for (done, r) in refs.iter().enumerate() {
        engine.reference::<COHERENT, CLASSES>(who, r)?;
        if engine.cpus[who.cpu as usize].clock >= bound || engine.moves_threads() {
            return Ok(done + 1);
        }
    }
    Ok(refs.len())
}

/// The same where data is changed.
pub fn run_changed<const COHERENT: bool, const CLASSES: bool>(
    engine: &mut Engine,
    changes: &mut Changes,
    who: Who,
    refs: &[Ref],
    bound: Units,
) -> Result<usize, SimError> {
    for (done, r) in refs.iter().enumerate() {
        if changes.leaves(who.space, r.addr, u64::from(r.size)) {
            engine.reference::<COHERENT, CLASSES>(who, r)?;
        } else {
            let parts = changes.find(who.space, r.addr, u64::from(r.size))?;
            engine.reference_in_parts::<COHERENT, CLASSES>(who, r, parts)?;
        }
        if engine.cpus[who.cpu as usize].clock >= bound || engine.moves_threads() {
            return Ok(done + 1);
        }
    }
    Ok(refs.len())
}
