//! Names that DynamoRIO gives to files.

/// Files that it puts beside a trace: their names, or prefixes.
const BESIDE: [&str; 6] = [
    "serial_schedule.bin",
    "cpu_schedule.bin",
    "modules.log",
    "funclist.log",
    "encodings.bin",
    "v2p.textproto",
];

/// The suffixes of its traces.
const TRACES: [&str; 4] = [".trace", ".trace.gz", ".trace.zip", ".trace.lz4"];

/// Folders without a trace, its own and those of archivers.
const FOLDERS: [&str; 4] = ["raw", "aux", "kernel.raw", "__MACOSX"];

/// True if, by its name, a file or an archive's member may be part of a trace.
pub fn belongs(name: &str) -> bool {
    let (folders, last) = name.rsplit_once('/').unwrap_or(("", name));
    !BESIDE.iter().any(|beside| last.starts_with(beside)) && !folders.split('/').any(|folder| FOLDERS.contains(&folder))
}

/// True if its name claims that it is a trace: if it is not, that is an error and no odd file.
pub fn is_called_trace(name: &str) -> bool {
    TRACES.iter().any(|end| name.ends_with(end))
}
