//! The time of a piece's request: its waits before any lookup, on processors that overlap.

use trace::Op;

use super::sets::By;
use super::{AtHand, HERE};
use crate::clock::Units;
use crate::engine::Engine;
use crate::lookup::SetLine;
use crate::pieces::{Access, Who};

impl Engine {
    /// The set in which a piece takes its turn, if sets or banks have turns.
    fn turn_of(&self, a: &Access, op: Op) -> Option<SetLine> {
        let lane = &self.overlap.as_ref()?.lanes[a.who.cpu as usize];
        lane.sets.as_ref().filter(|_| op != Op::Fetch)?;
        let (first, _) = self.steps.route(a.who.cpu, false);
        Some(self.set_line(a, self.steps.at(first)))
    }

    /// A piece begins: when its transfers are asked for. `near`: it was found in its first cache; `first`: of its
    /// reference; `tlb_missed`: its page's translation is asked for before it.
    pub fn piece_asks(&mut self, a: &mut Access, op: Op, near: bool, first: bool, tlb_missed: bool) {
        let place = self.turn_of(a, op);
        let refill_here = self.refill_here;
        let Some(overlap) = &mut self.overlap else { return };
        let cpu = &self.cpus[a.who.cpu as usize];
        let clock = cpu.clock;
        overlap.comes = HERE;
        overlap.at_hand.upgrade = None;
        overlap.at_hand.data = op != Op::Fetch;
        (overlap.at_hand.waited, overlap.at_hand.translation) = (0, 0);
        if op == Op::Fetch {
            return;
        }
        let room = overlap.room(a.who.cpu);
        let (period, window, ahead) = (overlap.period, overlap.window, overlap.ahead);
        let lane = &mut overlap.lanes[a.who.cpu as usize];
        let entered = lane.entered(clock, cpu.passed, period, window, ahead);
        overlap.at_hand.entered = entered;
        // The pieces of a reference begin together, even if others wait for them.
        if first || !overlap.depends.is_known(a.pc_site) {
            overlap.at_hand.address = overlap.depends.address(a.who.thread, a.pc_site);
        }
        let begins = match op {
            Op::Write if near => clock,
            Op::Write => clock.max(room),
            _ => {
                let locked = op == Op::Modify && overlap.depends.is_own(a.pc_site);
                let entered = if locked { clock } else { entered };
                let begins = entered.max(overlap.at_hand.address);
                if first {
                    overlap.at_hand.ahead = overlap.depends.begins(a.who.thread, a.pc_site, begins);
                } else if !overlap.depends.is_changed(a.pc_site) {
                    overlap.at_hand.ahead = None;
                }
                overlap.at_hand.ahead.map_or(begins, |ahead| begins.min(ahead))
            }
        };
        let refill = match tlb_missed {
            // Far entries come from memory while the walker goes on to other walks.
            true => {
                let held = refill_here.min(overlap.walk);
                lane.walk(begins, held) + (refill_here - held)
            }
            false => 0,
        };
        let begins = begins + refill;
        let mut joined = false;
        a.now = match near {
            true => begins,
            false => lane.room(a.virtual_address >> overlap.line_bits, begins, entered),
        };
        if let Some((sets, place)) = lane.sets.as_mut().zip(place) {
            let by = By {
                number: cpu.passed,
                entered,
            };
            let turn = sets.joins(place.line, by, begins).filter(|_| !near);
            joined = turn.is_some();
            a.now = match turn {
                Some(turn) => turn,
                None if near => begins,
                None => sets.takes(place, a.virtual_address >> overlap.line_bits, by, a.now),
            };
            if matches!(op, Op::Write | Op::Modify) {
                sets.write(place, by);
            }
        }
        overlap.at_hand = AtHand {
            near,
            joined,
            store: op == Op::Write,
            refill,
            first,
            ..overlap.at_hand
        };
    }

    /// When a prefetch of the program is asked for; none where cpus do not overlap.
    pub fn prefetch_asks(&mut self, who: Who, address: u64, site: u32) -> Option<Units> {
        let overlap = self.overlap.as_mut()?;
        let cpu = &self.cpus[who.cpu as usize];
        let (period, window, ahead) = (overlap.period, overlap.window, overlap.ahead);
        let lane = &mut overlap.lanes[who.cpu as usize];
        let entered = lane.entered(cpu.clock, cpu.passed, period, window, ahead);
        overlap.at_hand.entered = entered;
        let known = overlap.depends.address(who.thread, site);
        Some(lane.room(address >> overlap.line_bits, entered.max(known), entered))
    }

    /// The line that a prefetch of the program brought last is on its way like any other line.
    pub fn prefetch_requested(&mut self, cpu: u32, address: u64, asked: Units) {
        if let Some(overlap) = &mut self.overlap {
            overlap.lanes[cpu as usize].request(address >> overlap.line_bits, asked, overlap.comes.at);
        }
    }
}
