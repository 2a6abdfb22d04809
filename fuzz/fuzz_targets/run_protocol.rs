//! Any bytes as the instructions of `domicile run`, and as what the run-time reports: the program may have written anything there.
#![no_main]

use std::sync::OnceLock;

use live::protocol::Instructions;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    static PLACE: OnceLock<std::path::PathBuf> = OnceLock::new();
    let name = || std::path::Path::new("/dev/shm").join(format!("domicile-fuzz-{}", std::process::id()));
    let path = PLACE.get_or_init(name);
    std::fs::write(path, data).expect("there is room");
    let _ = Instructions::read(path);
    let _ = live::protocol::read_slate(path);
    if let Ok(text) = std::str::from_utf8(data) {
        let usual = live::protocol::Alignment::new(64, 4096).expect("powers of two");
        let _ = live::protocol::Alignment::read(text, usual);
    }
});
