//! Any text as a saved result; what was understood can be shown, as text and as a page.
#![no_main]

use results::Document;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(document) = Document::parse(text) {
        for width in [0, 20, 80] {
            report::text(&document, width, report::Top::All);
        }
        report::page(&document);
    }
});
