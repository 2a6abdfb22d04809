//! The instructions whose steps one prefetching cache follows, as a list in the order in which they were seen.

use machine::Stride;

/// A thread at a site.
pub type Instruction = (u32, u32);

struct Followed {
    instruction: Instruction,
    /// All addresses since its step is the same, the last one at the end.
    walk: Vec<i128>,
}

pub struct Strides {
    limits: Stride,
    /// The one seen least recently in front.
    list: Vec<Followed>,
}

impl Strides {
    pub fn new(limits: Stride) -> Strides {
        Strides {
            limits,
            list: Vec::new(),
        }
    }

    /// A lookup of an address; the addresses to bring, in their order.
    pub fn see(&mut self, instruction: Instruction, address: u64) -> Vec<i128> {
        let address = i128::from(address);
        let known = self.list.iter().position(|one| one.instruction == instruction);
        let mut followed = match known {
            Some(known) => self.list.remove(known),
            None => {
                if self.list.len() == self.limits.entries as usize {
                    self.list.remove(0);
                }
                let walk = Vec::new();
                Followed { instruction, walk }
            }
        };
        let walk = &mut followed.walk;
        let mut wanted = Vec::new();
        if walk.last() != Some(&address) {
            walk.push(address);
            let steps: Vec<i128> = walk.windows(2).map(|two| two[1] - two[0]).collect();
            let longest = i128::from(self.limits.bytes);
            match steps[..] {
                [.., step] if step.abs() > longest => *walk = vec![address],
                [.., before, step] if before != step => *walk = vec![address - step, address],
                [_, .., step] => {
                    let all = (1..=i128::from(self.limits.ahead)).map(|steps| address + steps * step);
                    let skipped = if steps.len() > 2 {
                        self.limits.ahead as usize - 1
                    } else {
                        0
                    };
                    wanted = all.skip(skipped).collect();
                }
                _ => {}
            }
        }
        self.list.push(followed);
        wanted
    }
}
