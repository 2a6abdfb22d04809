//! The facilities of this machine, and its memory manager.

use results::{DaemonStatus, Doctor, Works};

use crate::table::{Cell, Column, Role, Table, Tone};

/// Every facility, its purpose, its state, and the change that would enable it.
pub fn doctor(found: &Doctor) -> Table {
    let mut table = Table::new(
        "Facilities of Linux, for this user",
        [
            Column::new(Role::Label, "facility"),
            Column::new(Role::Text, "works"),
            Column::new(Role::Text, "what it is for, what was found, what to change").wrap(),
        ],
    );
    for facility in &found.facilities {
        let (word, tone) = match facility.works {
            Works::Yes => ("yes", Tone::Good),
            Works::Partly => ("partly", Tone::Partly),
            Works::No => ("no", Tone::Bad),
        };
        table.row([
            Cell::name(&facility.facility),
            Cell::from(word).toned(tone),
            Cell::faint(&facility.purpose),
        ]);
        table.row([Cell::empty(), Cell::empty(), facility.found.as_str().into()]);
        if let Some(change) = &facility.change {
            table.row([Cell::empty(), Cell::empty(), format!("change: {change}").into()]);
        }
    }
    table
}

/// The state of the memory manager, fact by fact.
pub fn daemon(status: &DaemonStatus) -> Table {
    let mib = |frames: u64| format!("{:.1} MiB", frames as f64 / 256.0);
    let (frames, colors) = (&status.frames, &status.colors);
    let by_color = &frames.by_color;
    let (least, most) = (by_color.iter().min().unwrap_or(&0), by_color.iter().max().unwrap_or(&0));
    let rate = match frames.hits + frames.misses {
        0 => "none looked at yet".to_string(),
        looked => format!("{:.1}% arrived", frames.hits as f64 * 100.0 / looked as f64),
    };
    let own = format!(
        "{:.1} MiB of the daemon itself",
        status.memory.own_bytes as f64 / 1_048_576.0
    );
    let memory = match (status.memory.limit_bytes, status.memory.left_bytes) {
        (Some(limit), Some(left)) => format!("{own}; {} MiB left of {} MiB", left >> 20, limit >> 20),
        _ => format!("{own}; its control group has no limit"),
    };
    let facts = [
        (
            "socket",
            format!(
                "{}, process {}, up {} s",
                status.socket, status.process, status.up_seconds
            ),
        ),
        (
            "colors",
            format!(
                "{} of {} KiB of cache {} ({})",
                colors.count,
                colors.bytes >> 10,
                colors.cache,
                colors.source
            ),
        ),
        (
            "at hand",
            format!(
                "{} of {}; {} to {} of a color",
                mib(frames.at_hand),
                mib(frames.target),
                mib(*least),
                mib(*most)
            ),
        ),
        ("handed out", format!("{} in all, {rate}", mib(frames.released))),
        (
            "held",
            format!(
                "{} by {} programs; a user may hold {}",
                mib(frames.held),
                status.clients,
                mib(status.quota_bytes / 4096)
            ),
        ),
        ("came back", mib(frames.returned)),
        (
            "given up",
            format!(
                "{} in {} times that memory was short",
                mib(status.pressure.frames),
                status.pressure.releases
            ),
        ),
        ("memory", memory),
        (
            "cache free",
            format!(
                "{} KiB for private slots, {} KiB for one on all cpus",
                status.cache_free_bytes.private_slots >> 10,
                status.cache_free_bytes.one_slot_on_all_cpus >> 10
            ),
        ),
    ];
    Table::of_facts("Memory manager", facts)
}
