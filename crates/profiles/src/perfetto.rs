//! A trace of Perfetto: the program's phases, and the waits over time, as counters.
//!
//! A counter's value is for the interval that begins there. After the last interval all counters are 0, so that the
//! last one has an end.

mod message;

use prost::Message;
use results::{Timeline, TimelineRow};

use crate::runs::Run;
use crate::stacks::{clean, signed};
use message::{
    CounterDescriptor, EXPLICIT_ORDER, INCREMENTAL_STATE_CLEARED, NO_MERGING, ProcessDescriptor, TYPE_COUNTER,
    TYPE_SLICE_BEGIN, TYPE_SLICE_END, Trace, TracePacket, TrackDescriptor, TrackEvent,
};

/// All packets are from one writer. The viewer ignores packets without a writer's number.
const SEQUENCE: u32 = 1;

/// The one process. 0 is the system's idle process.
const PID: i32 = 1;

pub fn trace(run: &Run, of: &Timeline) -> Vec<u8> {
    let mut tracks = Tracks::default();
    let process = tracks.add(TrackDescriptor {
        description: Some(run.about().join("\n")),
        process: Some(ProcessDescriptor {
            pid: Some(PID),
            cmdline: [run.program]
                .into_iter()
                .chain(run.arguments.iter().map(String::as_str))
                .map(str::to_string)
                .collect(),
            process_name: Some(run.program.to_string()),
        }),
        child_ordering: Some(EXPLICIT_ORDER),
        ..TrackDescriptor::default()
    });
    if !of.phases.is_empty() {
        let track = tracks.group(process, "phases");
        tracks.phases(track, of);
    }
    waits(
        &mut tracks,
        process,
        "waiting by data structure",
        &of.structures,
        of.interval_ns,
    );
    waits(&mut tracks, process, "waiting by thread", &of.threads, of.interval_ns);
    waits(
        &mut tracks,
        process,
        "waiting by page color",
        &of.colors,
        of.interval_ns,
    );
    if !of.blocks.is_empty() {
        let misses = summed(of.blocks.iter().map(|block| &block.misses[..]));
        let track = tracks.counter(process, "misses of the first cache", "misses", "misses");
        tracks.values(track, &misses, of.interval_ns);
    }
    if !of.moved_pages.is_empty() {
        let track = tracks.counter(process, "pages moved or copied", "pages", "pages");
        tracks.values(track, &of.moved_pages, of.interval_ns);
    }
    tracks.into_trace()
}

/// The number of intervals in any row.
fn intervals(of: &Timeline) -> u64 {
    let rows = of.structures.iter().chain(&of.threads).map(|row| row.stall_ns.len());
    let blocks = of.blocks.iter().map(|block| block.misses.len());
    rows.chain(blocks).chain([of.moved_pages.len()]).max().unwrap_or(0) as u64
}

/// A group of counters, one for each row.
fn waits(tracks: &mut Tracks, process: u64, group: &str, rows: &[TimelineRow], interval_ns: u64) {
    if rows.is_empty() {
        return;
    }
    let group_track = tracks.group(process, group);
    for row in rows {
        let track = tracks.counter(group_track, &clean(&row.name), "ns", group);
        tracks.values(track, &row.stall_ns, interval_ns);
    }
}

/// Sums interval by interval.
fn summed<'a>(rows: impl Iterator<Item = &'a [u64]>) -> Vec<u64> {
    let mut sums: Vec<u64> = Vec::new();
    for row in rows {
        sums.resize(sums.len().max(row.len()), 0);
        for (sum, value) in sums.iter_mut().zip(row) {
            *sum = sum.saturating_add(*value);
        }
    }
    sums
}

/// Tracks, and the events on them.
#[derive(Default)]
struct Tracks {
    descriptors: Vec<TrackDescriptor>,
    /// Each with its time in nanoseconds.
    events: Vec<(u64, TrackEvent)>,
}

impl Tracks {
    /// The id of a new track.
    fn add(&mut self, descriptor: TrackDescriptor) -> u64 {
        // 0 is a track in all traces.
        let id = self.descriptors.len() as u64 + 1;
        self.descriptors.push(TrackDescriptor {
            uuid: Some(id),
            ..descriptor
        });
        id
    }

    /// A named track below another, in the order in which they are added.
    fn below(&mut self, parent: u64, name: &str) -> TrackDescriptor {
        TrackDescriptor {
            parent_uuid: Some(parent),
            name: Some(name.to_string()),
            child_ordering: Some(EXPLICIT_ORDER),
            sibling_order_rank: i32::try_from(self.descriptors.len()).ok(),
            // Two threads of one name stay separate.
            sibling_merge_behavior: Some(NO_MERGING),
            ..TrackDescriptor::default()
        }
    }

    fn group(&mut self, parent: u64, name: &str) -> u64 {
        let track = self.below(parent, name);
        self.add(track)
    }

    /// A counter. Counters with the same scale are drawn to one scale.
    fn counter(&mut self, parent: u64, name: &str, unit: &str, scale: &str) -> u64 {
        let track = TrackDescriptor {
            counter: Some(CounterDescriptor {
                unit_name: Some(unit.to_string()),
                y_axis_share_key: Some(scale.to_string()),
            }),
            ..self.below(parent, name)
        };
        self.add(track)
    }

    /// The values of a counter in each interval.
    fn values(&mut self, track: u64, values: &[u64], interval_ns: u64) {
        let end = (!values.is_empty()).then_some(0);
        for (at, value) in (0..).zip(values.iter().copied().chain(end)) {
            let event = TrackEvent {
                kind: Some(TYPE_COUNTER),
                track_uuid: Some(track),
                counter_value: Some(signed(value)),
                name: None,
            };
            self.events.push((interval_ns.saturating_mul(at), event));
        }
    }

    /// A slice for each phase, which ends where the next begins, and the last with the timeline.
    fn phases(&mut self, track: u64, of: &Timeline) {
        let end = of.interval_ns.saturating_mul(intervals(of));
        let ends = of.phases.iter().skip(1).map(|phase| phase.begin_ns);
        for (phase, end) in of.phases.iter().zip(ends.chain([end])) {
            let event = |kind, name| TrackEvent {
                kind: Some(kind),
                track_uuid: Some(track),
                name,
                ..TrackEvent::default()
            };
            let begins = event(TYPE_SLICE_BEGIN, Some(clean(&phase.name).into_owned()));
            self.events.push((phase.begin_ns, begins));
            self.events.push((end.max(phase.begin_ns), event(TYPE_SLICE_END, None)));
        }
    }

    fn into_trace(mut self) -> Vec<u8> {
        self.events.sort_by_key(|(at, _)| *at);
        let descriptors = self.descriptors.into_iter().map(|track| TracePacket {
            track_descriptor: Some(track),
            ..TracePacket::default()
        });
        let events = self.events.into_iter().map(|(at, event)| TracePacket {
            timestamp: Some(at),
            track_event: Some(event),
            ..TracePacket::default()
        });
        let mut packets: Vec<TracePacket> = descriptors.chain(events).collect();
        for packet in &mut packets {
            packet.trusted_packet_sequence_id = Some(SEQUENCE);
        }
        // Nothing before it is missing.
        packets[0].sequence_flags = Some(INCREMENTAL_STATE_CLEARED);
        Trace { packet: packets }.encode_to_vec()
    }
}
