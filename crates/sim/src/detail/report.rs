//! The result of the detail of a run: the parts of the outcome that exist if asked for.

use results::{Collision, Misses, Page, Structure, Thread};

use super::clashes::{Act, Block, Pair, Side};
use super::code::Code;
use super::evidence::evidence;
use super::rows::Row;
use super::{Detail, Names, thread_name};
use crate::clock::whole_ns;
use crate::counts::CLASSES;
use crate::layout::Layout;
use crate::outcome::{Sharing, Simulated};
use crate::pages::PageTable;
use results::site::base;

impl Detail {
    /// Adds the requested parts to the outcome of a run that has ended.
    pub fn report(mut self, run: &mut Simulated, layout: &Layout, table: &PageTable, names: &Names) {
        let classes = self.classes;
        let outcome = &mut run.outcome;
        run.curves = self.curves.take().map(|curves| curves.report());
        let caches = |row: Row| misses(layout, row, classes);
        if let Some(rows) = &mut self.threads {
            let threads = self.references.len().max(names.tables.threads.len());
            let thread = |number: usize| {
                let known = names.tables.threads.get(number);
                let row = rows.get(number as u32);
                Thread {
                    thread: number as u32,
                    number: known.map_or(number as u64, |thread| thread.number),
                    name: known.map_or_else(String::new, |thread| thread.name.clone()),
                    process: known.map_or(0, |thread| thread.process),
                    references: self.references.get(number).copied().unwrap_or(0),
                    stall_ns: whole_ns(row.stall()),
                    caches: caches(row),
                }
            };
            outcome.threads = Some((0..threads).map(thread).collect());
        }
        if let Some(rows) = &self.by_structure {
            let structure = |(number, row): (u32, Row)| {
                let about = self.structures.describe(number);
                Structure {
                    name: about.name,
                    kind: about.kind,
                    file: about.file,
                    line: about.line,
                    bytes: about.bytes,
                    blocks: about.blocks,
                    stall_ns: whole_ns(row.stall()),
                    caches: caches(row),
                }
            };
            outcome.structures = Some(rows.ranked().into_iter().map(structure).collect());
        }
        if let Some(rows) = &self.pages {
            let page = |(number, row): (u32, Row)| {
                let page = table.page(number);
                Page {
                    process: page.space,
                    page: page.number << layout.page_bits,
                    structure: self.structures.describe(self.tenants[number as usize].0).name,
                    stall_ns: whole_ns(row.stall()),
                    caches: caches(row),
                }
            };
            outcome.pages = Some(rows.ranked().into_iter().take(self.wanted.pages).map(page).collect());
        }
        let code = Code::new(names);
        if self.wanted.false_sharing > 0 {
            outcome.false_sharing = Some(self.collisions(&code, names));
        }
        outcome.timeline = self
            .timeline
            .take()
            .map(|timeline| timeline.report(&self.structures, names));
        run.remote = self.remote.take().map(|remote| remote.report(&self.structures, &code));
        run.sharing = self.together.take().map(|together| {
            let (graph, sets) = together.report(&self.structures, names);
            Sharing { graph, sets }
        });
        if let (Some(stacks), Some(lines)) = (self.stacks.take(), &self.lines) {
            let kind = usize::from(self.first);
            outcome.profile = Some(stacks.report(lines, kind, &code, &self.structures, names));
        }
        if let Some(lines) = &self.lines {
            if self.wanted.source_lines > 0 {
                outcome.source_lines = Some(lines.ranked(self.wanted.source_lines, &code, &self.structures, caches));
            }
            if let Some(causes) = self.causes.take() {
                let structures = &self.structures;
                run.evidence = Some(evidence(causes, lines, &code, structures, layout, caches));
            }
        }
    }

    fn collisions(&self, code: &Code, names: &Names) -> Vec<Collision> {
        let Some(clashes) = &self.clashes else {
            return Vec::new();
        };
        let worst = clashes.worst(self.wanted.false_sharing);
        let side = |side: &Side| results::Side {
            thread: thread_name(names, side.act.thread),
            field: side.name.clone(),
            write: side.act.write,
            source: source(side.act, code, names),
        };
        let lock = |block: &Block, pair: &Pair| {
            let (Some(causes), Some([a, b])) = (&self.causes, &pair.sides) else {
                return false;
            };
            causes.of_one_lock(block.space, [a.act.address, b.act.address])
        };
        let collision = |(block, pair): &(&Block, &Pair)| Collision {
            structure: self.structures.describe(pair.structure).name,
            line: block.address,
            misses: block.misses(),
            lock: lock(block, pair),
            sides: pair.sides.iter().flatten().map(side).collect(),
        };
        worst.iter().map(collision).collect()
    }
}

fn misses(layout: &Layout, row: Row, classes: bool) -> Vec<Misses> {
    let of_kind = |(shape, (misses, counts)): (&crate::layout::Shape, (u64, [u64; CLASSES]))| {
        let class = counts.map(|count| classes.then_some(count));
        Misses {
            name: shape.name.clone(),
            level: shape.level,
            misses,
            cold: class[0],
            capacity: class[1],
            conflict: class[2],
            true_sharing: class[3],
            false_sharing: class[4],
        }
    };
    layout.caches.iter().zip(row.kinds()).map(of_kind).collect()
}

/// The place of an access in the source, as `file:line`.
fn source(act: Act, code: &Code, names: &Names) -> Option<String> {
    let thread = names.tables.threads.get(act.thread as usize)?;
    let location = code.location(thread.process, act.site)?;
    Some(format!("{}:{}", base(location.file.as_ref()?), location.line?))
}
