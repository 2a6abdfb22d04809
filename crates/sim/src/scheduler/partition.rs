//! The cpus of a machine, divided among the programs that take part.

/// The programs that take part, in the order in which they came.
pub struct Partition {
    cpus: u32,
    programs: Vec<Program>,
}

struct Program {
    name: u32,
    /// The number of its threads that want a cpu.
    wants: u32,
    dealt: u32,
    cpus: Vec<u32>,
    /// The cpu on which it runs if it was dealt none.
    guest: Option<u32>,
}

impl Partition {
    pub fn new(cpus: u32) -> Partition {
        Partition {
            cpus,
            programs: Vec::new(),
        }
    }

    /// Returns whether the program's threads may run on the cpu.
    pub fn has(&self, program: u32, cpu: u32) -> bool {
        let found = self.programs.iter().find(|other| other.name == program);
        found.is_some_and(|program| program.guest == Some(cpu) || program.cpus.contains(&cpu))
    }

    /// `more` further threads of a program want a cpu, or fewer: the cpus are divided again. `was`: returns whether a
    /// thread of a program that wants a cpu was on this one last.
    pub fn wants(&mut self, program: u32, more: i32, was: impl Fn(u32, u32) -> bool) {
        let known = self.programs.iter().position(|other| other.name == program);
        let at = known.unwrap_or_else(|| {
            self.programs.push(Program {
                name: program,
                wants: 0,
                dealt: 0,
                cpus: Vec::new(),
                guest: None,
            });
            self.programs.len() - 1
        });
        let wants = &mut self.programs[at].wants;
        *wants = wants.saturating_add_signed(more);
        self.programs.retain(|program| program.wants > 0);
        self.deal();
        for program in &mut self.programs {
            let name = program.name;
            program.cpus.sort_by_key(|&cpu| (!was(name, cpu), cpu));
            program.cpus.truncate(program.dealt as usize);
        }
        self.take(was);
    }

    fn deal(&mut self) {
        for program in &mut self.programs {
            program.dealt = 0;
        }
        let mut left = self.cpus;
        loop {
            let before = left;
            for program in &mut self.programs {
                if left > 0 && program.dealt < program.wants {
                    program.dealt += 1;
                    left -= 1;
                }
            }
            if left == before {
                return;
            }
        }
    }

    /// Programs that have fewer cpus than they were dealt take the free ones.
    fn take(&mut self, was: impl Fn(u32, u32) -> bool) {
        let owned: Vec<u32> = self.programs.iter().flat_map(|program| program.cpus.clone()).collect();
        let mut free: Vec<u32> = (0..self.cpus).filter(|cpu| !owned.contains(cpu)).collect();
        for (place, program) in (0..).zip(&mut self.programs) {
            let fewer = program.dealt as usize - program.cpus.len();
            let name = program.name;
            free.sort_by_key(|&cpu| (!was(name, cpu), cpu));
            program.cpus.extend(free.drain(..fewer));
            program.guest = (program.dealt == 0).then_some(place % self.cpus);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(partition: &Partition, program: u32) -> Vec<u32> {
        (0..partition.cpus).filter(|&cpu| partition.has(program, cpu)).collect()
    }

    fn nowhere(_program: u32, _cpu: u32) -> bool {
        false
    }

    /// The paper's Raytrace of splash, section 5: it has 8 cpus, 4 when another one came, and so on.
    #[test]
    fn programs_that_come_and_go_change_what_others_have() {
        let mut partition = Partition::new(8);
        partition.wants(0, 8, nowhere);
        assert_eq!(of(&partition, 0), [0, 1, 2, 3, 4, 5, 6, 7]);
        partition.wants(1, 8, nowhere);
        assert_eq!(
            (of(&partition, 0), of(&partition, 1)),
            (vec![0, 1, 2, 3], vec![4, 5, 6, 7])
        );
        partition.wants(2, 8, nowhere);
        assert_eq!(of(&partition, 0), [0, 1, 2]);
        assert_eq!(of(&partition, 1), [4, 5, 6]);
        assert_eq!(of(&partition, 2), [3, 7]);
        partition.wants(1, -8, nowhere);
        partition.wants(2, -6, nowhere);
        assert_eq!(of(&partition, 0), [0, 1, 2, 4, 6, 7]);
        assert_eq!(of(&partition, 2), [3, 5]);
        partition.wants(2, -2, nowhere);
        assert_eq!(of(&partition, 0), [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    /// A thread that waits for another's end gives its own cpu up and gets it back: no thread has to go elsewhere.
    #[test]
    fn cpus_of_threads_that_want_none_are_given_up_first() {
        let mut partition = Partition::new(4);
        partition.wants(0, 3, nowhere);
        partition.wants(0, -1, |_, cpu| cpu != 1);
        assert_eq!(of(&partition, 0), [0, 2]);
        partition.wants(9, 1, |program, cpu| {
            program == 0 && cpu != 1 || program == 9 && cpu == 3
        });
        assert_eq!(of(&partition, 9), [3]);
        partition.wants(0, 1, nowhere);
        assert_eq!(of(&partition, 0), [0, 1, 2]);
    }

    #[test]
    fn what_a_program_does_not_want_goes_to_the_others() {
        let mut partition = Partition::new(6);
        partition.wants(7, 1, nowhere);
        partition.wants(8, 9, nowhere);
        assert_eq!((of(&partition, 7), of(&partition, 8)), (vec![0], vec![1, 2, 3, 4, 5]));
        partition.wants(8, -7, nowhere);
        assert_eq!(of(&partition, 8), [1, 2]);
    }

    #[test]
    fn more_programs_than_cpus_share_them() {
        let mut partition = Partition::new(2);
        for program in 0..5 {
            partition.wants(program, 2, nowhere);
        }
        let cpus: Vec<Vec<u32>> = (0..5).map(|program| of(&partition, program)).collect();
        assert_eq!(cpus, [[0], [1], [0], [1], [0]]);
        partition.wants(0, -2, nowhere);
        // The third is now dealt the free cpu, not as a guest.
        assert_eq!(of(&partition, 1), [1]);
        assert_eq!(of(&partition, 2), [0]);
        // The fourth is at an even place by now.
        assert_eq!(of(&partition, 3), [0]);
    }
}
