//! The places of pages: the policy's wish on first touch, and the available frame.

use std::sync::Arc;

use machine::Machine;
use policy::{Interest, Page, Placement, Policy, Touch, World};

use crate::cdpc::RunHints;
use crate::counts::PageCounts;
use crate::domains::domains;
use crate::error::SimError;
use crate::frames::{Frames, colors};

/// A policy, and the frames that it disposes of.
pub struct Homes {
    pub policy: Box<dyn Policy>,
    pub interest: Interest,
    pub world: World,
    pub frames: Frames,
    pub counts: PageCounts,
    /// Nodes that have become short of frames; the policy has not been told yet.
    pub pressed: Vec<u32>,
    /// The hints that the policy was handed.
    pub hints: Option<Arc<RunHints>>,
    /// Each page's first color, if that is asked for.
    pub placements: Option<Vec<(Page, u32)>>,
}

impl Homes {
    pub fn new(machine: &Machine, policy: Box<dyn Policy>) -> Self {
        let frames = Frames::new(machine, colors(machine));
        Homes {
            interest: policy.interest(),
            policy,
            world: world(machine, &frames),
            frames,
            counts: PageCounts::default(),
            pressed: Vec::new(),
            hints: None,
            placements: None,
        }
    }

    /// The frame for a page that is touched for the first time; `pages`: how many there are by now.
    pub fn place(&mut self, touch: &Touch, pages: usize) -> Result<u64, SimError> {
        let wish = self.policy.place(touch, &self.world);
        let (node, color) = self.wished(wish, Placement::default());
        let Some(frame) = self.frames.take(node, color) else {
            return Err(SimError::OutOfFrames {
                pages: pages as u64,
                nodes: self.world.nodes,
                frames_per_node: self.frames.per_node(),
            });
        };
        if wish != Placement::default() {
            let fits = (wish.node.is_none() || self.frames.node_of(frame) == node)
                && (wish.color.is_none() || self.frames.color_of(frame) == color);
            self.counts.hints_placed += 1;
            self.counts.hints_honoured += u64::from(fits);
        }
        if let Some(hints) = &self.hints
            && hints.colors.of(touch.page).is_some()
        {
            self.counts.colors_asked += 1;
            self.counts.colors_honoured += u64::from(self.frames.color_of(frame) == color);
        }
        if let Some(placements) = &mut self.placements {
            placements.push((touch.page, self.frames.color_of(frame)));
        }
        self.took(frame);
        Ok(frame)
    }

    /// The hints of policy `cdpc`, and their results.
    pub fn cdpc(&self) -> Option<results::Cdpc> {
        let hints = self.hints.as_ref()?;
        Some(hints.outcome(self.counts.colors_asked, self.counts.colors_honoured))
    }

    /// A policy's wish, within the machine: node and color; 0 where there is none.
    pub fn wished(&self, wish: Placement, otherwise: Placement) -> (u32, u32) {
        let node = wish.node.or(otherwise.node).unwrap_or(0) % self.world.nodes;
        let color = wish.color.or(otherwise.color).unwrap_or(0) % self.frames.colors();
        (node, color)
    }

    /// A frame was taken: the policy's view of free frames follows.
    pub fn took(&mut self, frame: u64) {
        let node = self.frames.node_of(frame);
        let free = self.frames.free(node);
        let before = std::mem::replace(&mut self.world.free_frames[node as usize], free);
        if before >= self.interest.pressure_frames && free < self.interest.pressure_frames {
            self.pressed.push(node);
        }
    }

    pub fn give_back(&mut self, frame: u64) {
        self.frames.give_back(frame);
        let node = self.frames.node_of(frame);
        self.world.free_frames[node as usize] = self.frames.free(node);
    }
}

/// A machine as policies see it before the run.
pub fn world(machine: &Machine, frames: &Frames) -> World {
    World {
        page_bytes: machine.page_bytes,
        colors: frames.colors(),
        cpus: machine.cpus,
        cpu_nodes: machine.memory.nodes,
        nodes: machine.memory.all_nodes(),
        free_frames: (0..machine.memory.all_nodes()).map(|node| frames.free(node)).collect(),
        now_ns: 0,
        caches: crate::slots::caches(machine),
        domains: domains(machine).map(Arc::new),
        runnable: vec![0; machine.cpus as usize],
    }
}

/// The first touch of a page.
pub fn touch(page: Page, thread: u32, cpu: u32, write: bool) -> Touch {
    Touch {
        page,
        thread,
        cpu,
        write,
    }
}
