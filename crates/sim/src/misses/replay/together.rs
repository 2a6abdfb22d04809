//! Misses that a policy is told of together, for speed: the result is the same as one by one.

use policy::{MissAt, MissLevel};

use crate::error::SimError;

use super::super::stream::{Miss, MissStream};
use super::{Host, REPLICATED};

/// At most this many misses go to a policy together, and fewer after an action on one: those after it are served again.
const MOST_TOGETHER: usize = 64;
const FEW_TOGETHER: usize = 4;

impl Host {
    /// Misses in their order. As many as can be served before anything else happens go to the policy together.
    pub(super) fn run(&mut self, stream: &MissStream, misses: &[Miss]) -> Result<(), SimError> {
        let every = [self.interest.cache_misses, self.interest.tlb_misses];
        if every == [0; 2] || every.iter().any(|&every| every > 1) {
            return misses.iter().try_for_each(|&miss| self.miss(stream, miss));
        }
        let hears = |miss: Miss| every[usize::from(miss.is_of_tlb())] == 1;
        let (mut at, mut most) = (0, FEW_TOGETHER);
        let mut heard = Vec::with_capacity(MOST_TOGETHER);
        while at < misses.len() {
            let next = &misses[at..misses.len().min(at + most)];
            heard.clear();
            let served = self.serve(stream, next, hears, &mut heard);
            if served == 0 {
                self.miss(stream, misses[at])?;
                at += 1;
                continue;
            }
            let count = self.policy.observe_misses(&heard, &mut self.world, &mut self.actions);
            let done = if self.actions.is_empty() {
                most = MOST_TOGETHER.min(most * 2);
                served
            } else {
                most = FEW_TOGETHER;
                let places = next.iter().zip(1..).filter(|(miss, _)| hears(**miss));
                let last = places.map(|(_, place)| place).nth(count - 1).unwrap_or(served);
                self.take_back(&next[last..served]);
                last
            };
            let last = next[done - 1];
            self.world.now_ns = last.now_ns();
            let (cpu, page) = (last.cpu() as usize, last.page() as usize);
            self.act(stream, cpu, page);
            self.tell_of_pressure(stream, cpu, page);
            at += done;
        }
        Ok(())
    }

    /// Misses are served, up to the first at which there is more to do than to tell the policy. Returns how many, and
    /// the misses to tell the policy of.
    #[inline(always)]
    fn serve(
        &mut self,
        stream: &MissStream,
        misses: &[Miss],
        hears: impl Fn(Miss) -> bool,
        heard: &mut Vec<MissAt>,
    ) -> usize {
        let nodes = self.world.nodes as usize;
        for (place, &miss) in misses.iter().enumerate() {
            let (cpu, page, now_ns) = (miss.cpu() as usize, miss.page() as usize, miss.now_ns());
            let Some(&home) = self.pages.get(page) else {
                return place;
            };
            let replicated = home & REPLICATED != 0;
            if replicated && miss.is_write() || now_ns >= self.next_tick_ns[cpu] {
                return place;
            }
            let served_by = if replicated {
                self.copy_for(page, self.nodes[cpu])
            } else {
                home.into()
            };
            let level = miss.level();
            self.served[cpu * nodes + served_by as usize] += u64::from(level == MissLevel::Cache);
            if hears(miss) {
                heard.push(MissAt {
                    now_ns,
                    miss: policy::Miss {
                        level,
                        page: stream.pages[page].page,
                        index: miss.page(),
                        thread: miss.thread(),
                        cpu: cpu as u32,
                        served_by,
                        write: miss.is_write(),
                        fetch: miss.is_fetch(),
                    },
                });
            }
        }
        misses.len()
    }

    /// Misses are to be served again, and were not counted.
    fn take_back(&mut self, misses: &[Miss]) {
        for miss in misses.iter().filter(|miss| miss.level() == MissLevel::Cache) {
            let served_by = self.copy_for(miss.page() as usize, self.nodes[miss.cpu() as usize]);
            self.served[miss.cpu() as usize * self.world.nodes as usize + served_by as usize] -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use machine::Machine;
    use policy::Page;
    use proptest::prelude::*;

    use crate::config::{Config, PolicySpec};

    use super::super::super::stream::FirstTouch;
    use super::super::host;
    use super::*;

    const PAGES: u32 = 12;

    fn machine(frames: u64) -> Machine {
        let text = format!(
            "name = \"four-nodes\"\nclock_mhz = 1000\npage_bytes = 4096\ncpus = 8\n\
             [[cache]]\nname = \"L1\"\nlevel = 1\nkind = \"unified\"\nbytes = 64\nways = 1\nline_bytes = 64\n\
             cpus_per_instance = 1\nindex = \"physical\"\nhit_ns = 0.0\n\
             [memory]\nnodes = 4\nlocal_ns = 300.0\nremote_ns = 1200.0\ndirty_remote_ns = 1200.0\nframes_per_node = {frames}\n"
        );
        machine::from_toml(&text, "four-nodes.toml").unwrap()
    }

    fn stream(misses: &[(u32, u32, u8, u64)]) -> MissStream {
        let mut stream = MissStream::default();
        let page = |number: u32| Page {
            space: 0,
            number: number.into(),
        };
        for number in 0..PAGES {
            stream.touch(FirstTouch {
                page: page(number),
                thread: 0,
                cpu: number % 8,
                write: false,
            });
        }
        let mut now_ns = 0;
        for &(number, cpu, kind, ns) in misses {
            now_ns += ns;
            let miss = policy::Miss {
                level: if kind & 3 == 3 {
                    MissLevel::Tlb
                } else {
                    MissLevel::Cache
                },
                page: page(number),
                index: number,
                thread: cpu,
                cpu,
                served_by: 0,
                write: kind & 0b11_1100 == 0,
                fetch: false,
            };
            stream.miss(now_ns, &miss);
        }
        stream
    }

    /// Few pages, most of the time the same ones.
    fn misses() -> impl Strategy<Value = Vec<(u32, u32, u8, u64)>> {
        let page = prop_oneof![4 => 0..3u32, 1 => 0..PAGES];
        proptest::collection::vec((page, 0..8u32, any::<u8>(), 0..400u64), 0..1500)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(harness::cases(300)))]

        #[test]
        fn together_comes_to_the_same_as_one_by_one(
            misses in misses(),
            name in prop_oneof![Just("migrate"), Just("replicate"), Just("migrate-replicate"), Just("first-touch")],
            frames in prop_oneof![Just(1000u64), 3..9u64],
            counts in (1..24u64, 1..6u64, 0..4u64, 0..4u64, 0..2u64),
            times in (1..60u64, 1..5u64, 1..40u64, 0..6u64, 0..30u64),
        ) {
            let (trigger, hold, writes, moves, count) = counts;
            let (reset, batch, wait, reserve, adapt) = times;
            let wanted = [
                ("trigger", trigger), ("hold", hold), ("writes", writes), ("moves", moves), ("count", count), ("reset", reset),
                ("batch", batch), ("wait", wait), ("reserve", reserve), ("adapt", adapt),
            ];
            let entry = policy::entry(name).unwrap();
            let known = wanted.iter().filter(|(param, _)| entry.params.iter().any(|known| known.name == *param));
            let spec = PolicySpec {
                sets: known.map(|(param, value)| format!("{name}.{param}={value}")).collect(),
                ..PolicySpec::new(name.parse().unwrap())
            };
            let config = Config::new(machine(frames), vec![spec.clone()]);
            let stream = stream(&misses);
            let policy = || policy::build(&spec.name, &spec.sets).unwrap();
            let mut together = host(&stream, &config, name, policy()).unwrap();
            let mut single = host(&stream, &config, name, policy()).unwrap();
            let ran = together.run(&stream, &stream.misses);
            let alone = stream.misses.iter().try_for_each(|&miss| single.miss(&stream, miss));
            prop_assert_eq!(ran.is_err(), alone.is_err(), "one of them ran out of frames");
            prop_assume!(ran.is_ok());
            prop_assert_eq!(&together.pages, &single.pages);
            prop_assert_eq!(&together.served, &single.served);
            prop_assert_eq!(together.outcome(&stream, name), single.outcome(&stream, name));
        }
    }

    /// The test above would hold if nothing ever moved.
    #[test]
    fn pages_move_in_such_streams() {
        let misses: Vec<_> = (0..2000)
            .map(|at| (at % 3, at % 5, 4 * u8::from(at % 50 != 0), 100))
            .collect();
        let stream = stream(&misses);
        let sets = vec![
            "migrate-replicate.trigger=8".to_string(),
            "migrate-replicate.batch=1".to_string(),
        ];
        let config = Config::new(machine(1000), Vec::new());
        let policy = policy::build(&"migrate-replicate".parse().unwrap(), &sets).unwrap();
        let mut host = host(&stream, &config, "migrate-replicate", policy).unwrap();
        host.run(&stream, &stream.misses).unwrap();
        let memory = host.outcome(&stream, "migrate-replicate").memory;
        assert!(memory.replications > 0 && memory.collapses > 0, "{memory:?}");
    }
}
