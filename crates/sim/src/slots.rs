//! Policy `slots`: the caches that it gives colors of, and the statements about slots and data sets that it is told.
//!
//! Either the program speaks for itself, by events of the trace, or a plan ([`policy::slots::Plan`], the file of
//! `domicile run --slots`) speaks in its place: then the program's own words are passed over, and the
//! variables and blocks that the plan names are found by the trace's tables.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use machine::{Index, Kind as CacheKind, Machine};
use policy::slots::{Caches, Kind, Plan};
use policy::{Observation, SlotWord};
use results::site::{Frame, Memory};
use trace::{Allocation, Event, Module, StackId};

use crate::detail::Names;
use crate::engine::Engine;
use crate::error::SimError;
use crate::structures::Tables;

/// The outermost caches for data, as slots see them: all instances have the same colors. `None` where placement does
/// not decide the set, or there is but one color.
pub fn caches(machine: &Machine) -> Option<Caches> {
    let outer = machine
        .caches
        .iter()
        .rev()
        .find(|cache| cache.kind != CacheKind::Instruction)?;
    if outer.index == Index::Virtual || outer.cpus_per_instance == 0 {
        return None;
    }
    let alone = Machine {
        caches: vec![outer.clone()],
        ..machine.clone()
    };
    let colors = crate::frames::colors(&alone);
    let cpus: Vec<u32> = (0..machine.cpus).collect();
    let caches = Caches {
        colors,
        color_bytes: outer.bytes / u64::from(colors.max(1)),
        page_bytes: machine.page_bytes,
        cpus: cpus
            .chunks(outer.cpus_per_instance as usize)
            .map(<[u32]>::to_vec)
            .collect(),
    };
    (colors > 1 && caches.check().is_ok()).then_some(caches)
}

/// A plan over a trace: which of its variables and blocks are meant.
pub struct Planned {
    plan: Arc<Plan>,
    /// The plan's entries for a stack's allocations, whatever their size.
    by_stack: HashMap<(StackId, bool), Vec<u32>>,
    /// Entries for variables that the trace knows: process, first byte, bytes, entry.
    variables: Vec<(u32, u64, u64, u32)>,
    /// The data sets of live blocks that the plan means.
    blocks: HashMap<(u32, u64), u64>,
    /// The number of the last data set. The variables of an entry are one data set in each process, and each block is one.
    sets: u64,
}

impl Planned {
    pub fn new(plan: Arc<Plan>, names: &Names, cpus: u32) -> Result<Planned, SimError> {
        for (at, data) in plan.data.iter().enumerate() {
            if let Some(cpu) = data.cpus.iter().find(|&&cpu| cpu >= cpus) {
                return Err(SimError::Slots(format!(
                    "data[{at}].cpus names cpu {cpu}, and the machine's cpus are 0 to {}; change it, or use `--cpus`",
                    cpus - 1
                )));
            }
        }
        let modules = Modules::new(&names.tables);
        let tables = names.tables;
        let named = tables
            .symbols
            .iter()
            .map(|s| (s.process, s.addr, s.bytes, s.name.as_str()));
        let named = named.chain(
            tables
                .arrays
                .iter()
                .map(|a| (a.process, a.addr, a.bytes, a.name.as_str())),
        );
        let variables = named
            .filter(|(_, _, bytes, _)| *bytes > 0)
            .filter_map(|(process, addr, bytes, name)| {
                let program = || {
                    tables
                        .processes
                        .get(process as usize)
                        .map(|process| process.program.as_str())
                };
                let path = modules
                    .find(process, addr)
                    .map(|module| module.path.as_str())
                    .or_else(program);
                let entry = plan
                    .data
                    .iter()
                    .position(|data| data.what.is_variable(name, path.unwrap_or("")))?;
                Some((process, addr, bytes, entry as u32))
            });
        let mut variables: Vec<_> = variables.collect();
        inherit(&mut variables, &tables);
        Ok(Planned {
            variables,
            by_stack: by_stack(&plan, &tables, &modules),
            blocks: HashMap::new(),
            sets: 0,
            plan,
        })
    }

    /// The entry for a block.
    fn entry(&self, stack: StackId, kind: Allocation, bytes: u64) -> Option<u32> {
        let heap = match kind {
            Allocation::Heap => true,
            Allocation::Map => false,
            Allocation::File | Allocation::Stack => return None,
        };
        let entries = self.by_stack.get(&(stack, heap))?;
        entries.iter().copied().find(|&entry| fits(&self.plan, entry, bytes))
    }

    /// Said for a process before all else of it: its slots.
    fn slots(&self, space: u32) -> impl Iterator<Item = SlotWord> + '_ {
        self.plan
            .slots
            .iter()
            .enumerate()
            .map(move |(at, slot)| SlotWord::Slot {
                slot: slot_number(space, at as u32),
                bytes: slot.bytes,
                kind: slot.kind,
            })
    }

    /// The statements about the variables of an entry, or one of its blocks: address and bytes of each. Also returns
    /// the number of the data set.
    fn data_set(&mut self, space: u32, entry: u32, ranges: &[(u64, u64)]) -> (u64, Vec<SlotWord>) {
        let data = &self.plan.data[entry as usize];
        self.sets += 1;
        let set = self.sets;
        let user = |&cpu: &u32| SlotWord::User { set, cpu };
        let range = |&(addr, bytes): &(u64, u64)| SlotWord::Range {
            set,
            space,
            addr,
            bytes,
        };
        let words = data.cpus.iter().map(user).chain(ranges.iter().map(range));
        let slot = data.slot.map(|slot| slot_number(space, slot as u32));
        (set, words.chain([SlotWord::Allocate { set, slot }]).collect())
    }

    /// The statements about all variables.
    fn variables(&mut self) -> Vec<SlotWord> {
        let mut variables: BTreeMap<(u32, u32), Vec<(u64, u64)>> = BTreeMap::new();
        for &(space, addr, bytes, entry) in &self.variables {
            variables.entry((space, entry)).or_default().push((addr, bytes));
        }
        let words = variables
            .into_iter()
            .flat_map(|((space, entry), ranges)| self.data_set(space, entry, &ranges).1);
        words.collect()
    }
}

/// A process that has no names of its own was forked: its parent's variables are where the parent has them.
fn inherit(variables: &mut Vec<(u32, u64, u64, u32)>, tables: &Tables) {
    let modules: HashSet<u32> = tables.modules.iter().map(|module| module.process).collect();
    for (number, process) in tables.processes.iter().enumerate() {
        let parent = process.parent.filter(|&parent| (parent as usize) < number);
        let Some(parent) = parent.filter(|_| !modules.contains(&(number as u32))) else {
            continue;
        };
        let of_parent = variables.iter().filter(|(process, ..)| *process == parent);
        let own: Vec<_> = of_parent
            .map(|&(_, addr, bytes, entry)| (number as u32, addr, bytes, entry))
            .collect();
        variables.extend(own);
    }
}

/// The slots of a plan have numbers of their own in each process.
fn slot_number(space: u32, at: u32) -> u64 {
    u64::from(space) << 32 | u64::from(at)
}

fn fits(plan: &Plan, entry: u32, bytes: u64) -> bool {
    match &plan.data[entry as usize].what {
        policy::slots::What::Site { at_least, at_most, .. } => (*at_least..=*at_most).contains(&bytes),
        policy::slots::What::Symbol { .. } => false,
    }
}

/// The entries of a plan that each stack of a trace could belong to.
fn by_stack(plan: &Plan, tables: &Tables, modules: &Modules) -> HashMap<(StackId, bool), Vec<u32>> {
    let located: HashMap<_, _> = tables.locations.iter().map(|at| ((at.process, at.pc), at)).collect();
    let mut found: HashMap<_, Vec<u32>> = HashMap::new();
    for (number, stack) in tables.stacks.iter().enumerate() {
        let frames: Vec<Frame> = stack
            .frames
            .iter()
            .map(|frame| {
                let location = located.get(&(stack.process, frame.pc));
                let module = modules.find(stack.process, frame.pc);
                Frame {
                    function: location.map(|at| at.function.as_str()).filter(|name| !name.is_empty()),
                    file: location.and_then(|at| at.file.as_deref()),
                    line: location.and_then(|at| at.line),
                    module: module.map(|module| module.path.as_str()),
                    offset: module.map(|module| frame.pc.wrapping_sub(module.bias)),
                }
            })
            .collect();
        for (entry, data) in plan.data.iter().enumerate() {
            let policy::slots::What::Site { at_least, .. } = &data.what else {
                continue;
            };
            for (memory, heap) in [(Memory::Heap, true), (Memory::Map, false)] {
                if data.what.is_block(&frames, memory, *at_least) {
                    found.entry((number as StackId, heap)).or_default().push(entry as u32);
                }
            }
        }
    }
    found
}

/// Modules by process and address.
struct Modules<'a>(Vec<&'a Module>);

impl<'a> Modules<'a> {
    fn new(tables: &Tables<'a>) -> Self {
        let mut modules: Vec<_> = tables.modules.iter().collect();
        modules.sort_by_key(|module| (module.process, module.start));
        Modules(modules)
    }

    fn find(&self, process: u32, addr: u64) -> Option<&'a Module> {
        let after = self
            .0
            .partition_point(|module| (module.process, module.start) <= (process, addr));
        let module = self.0.get(after.checked_sub(1)?)?;
        (module.process == process && addr - module.start < module.bytes).then_some(module)
    }
}

impl Engine {
    /// Before the run: the plan's statements about the variables that it names.
    pub fn begin_slots(&mut self, plan: Option<Arc<Plan>>, names: &Names) -> Result<(), SimError> {
        let Some(plan) = plan.filter(|_| self.homes.interest.slots) else {
            return Ok(());
        };
        let mut planned = Planned::new(plan, names, self.layout.cpus)?;
        let mut words = Vec::new();
        for space in 0..names.tables.processes.len().max(1) as u32 {
            words.extend(planned.slots(space));
        }
        words.extend(planned.variables());
        self.plan = Some(Box::new(planned));
        self.say(0, words)
    }

    /// Reports an event that concerns cache slots to the policy, if it wants to know.
    pub fn slots(&mut self, cpu: u32, space: u32, event: &Event) -> Result<(), SimError> {
        if !self.homes.interest.slots {
            return Ok(());
        }
        let words = match &mut self.plan {
            Some(_) => self.of_plan(space, event),
            None => self.of_program(space, event).into_iter().collect(),
        };
        self.say(cpu, words)
    }

    fn say(&mut self, cpu: u32, words: Vec<SlotWord>) -> Result<(), SimError> {
        words
            .into_iter()
            .try_for_each(|word| self.observe(cpu, Observation::Slots(word)))
    }

    fn of_program(&self, space: u32, event: &Event) -> Option<SlotWord> {
        Some(match *event {
            Event::Slot { slot, bytes, private } => SlotWord::Slot {
                slot,
                bytes,
                kind: if private { Kind::Private } else { Kind::Shared },
            },
            Event::SlotFree { slot } => SlotWord::SlotFree { slot },
            Event::DataRange { set, addr, bytes } => SlotWord::Range {
                set,
                space,
                addr,
                bytes,
            },
            Event::DataThread { set, thread } => SlotWord::User {
                set,
                cpu: thread % self.layout.cpus,
            },
            Event::Allocate { set, slot } => SlotWord::Allocate { set, slot },
            Event::DataFree { set } => SlotWord::Free { set },
            _ => return None,
        })
    }

    fn of_plan(&mut self, space: u32, event: &Event) -> Vec<SlotWord> {
        let Some(planned) = &mut self.plan else {
            return Vec::new();
        };
        match *event {
            Event::Alloc {
                addr,
                bytes,
                stack,
                kind,
            } => {
                let Some(entry) = planned.entry(stack, kind, bytes) else {
                    return Vec::new();
                };
                let (set, words) = planned.data_set(space, entry, &[(addr, bytes)]);
                // A block that is there still was freed unseen.
                let before = planned
                    .blocks
                    .insert((space, addr), set)
                    .map(|set| SlotWord::Free { set });
                before.into_iter().chain(words).collect()
            }
            Event::Free { addr } => {
                let set = planned.blocks.remove(&(space, addr));
                set.map(|set| SlotWord::Free { set }).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }
}
