//! Names that DynamoRIO gives to files.

/// Files that it puts beside a trace: their names, or what these begin with.
const BESIDE: [&str; 6] = [
    "serial_schedule.bin",
    "cpu_schedule.bin",
    "modules.log",
    "funclist.log",
    "encodings.bin",
    "v2p.textproto",
];

/// How the names of its traces end.
const TRACES: [&str; 4] = [".trace", ".trace.gz", ".trace.zip", ".trace.lz4"];

/// Folders in which there is no trace, of its own and of those who pack folders.
const FOLDERS: [&str; 4] = ["raw", "aux", "kernel.raw", "__MACOSX"];

/// True if a file, or an archive's member, may be of a trace, by its name.
pub fn belongs(name: &str) -> bool {
    let (folders, last) = name.rsplit_once('/').unwrap_or(("", name));
    !BESIDE.iter().any(|beside| last.starts_with(beside)) && !folders.split('/').any(|folder| FOLDERS.contains(&folder))
}

/// True if its name says that it is a trace: if it then is none, that is an error and no odd file.
pub fn is_called_trace(name: &str) -> bool {
    TRACES.iter().any(|end| name.ends_with(end))
}
