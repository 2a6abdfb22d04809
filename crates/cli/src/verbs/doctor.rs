//! `domicile doctor`: tries which facilities of Linux work for this user.

mod faults;
mod frames;
mod machine;
mod programs;

use std::io;
use std::process::ExitCode;

use clap::Args;
use results::{Doctor as Found, Facility, Works, saved};

use super::Done;
use crate::console::Console;

/// Try every facility of Linux that Domicile can use, and say what to change if one does not work
///
/// Each facility is tried as the calling user, not guessed from versions and settings. Nothing on the machine is
/// changed. Domicile works without most facilities, but does less: the text says what each one is for.
#[derive(Args)]
#[command(after_help = "Example:\n  domicile doctor\n  sudo domicile doctor")]
pub struct Doctor {}

impl Doctor {
    pub fn run(&self, console: &mut Console) -> Done {
        let root = sys::Root::default();
        let report = Found {
            kernel: sys::kernel::Kernel::read(&root).ok().map(|kernel| kernel.text),
            facilities: vec![
                frames::page_map(),
                frames::huge_pages(&root),
                frames::colors(),
                frames::locked_memory(),
                frames::mappings(),
                faults::own(),
                faults::kernel(),
                faults::moving(&root),
                faults::protection_keys(),
                machine::nodes(&root),
                machine::resctrl(&root),
                machine::counters(),
                machine::pressure(&root),
                programs::recording(),
                programs::daemon(),
            ],
        };
        if console.json() {
            console.line(&saved(&report))?;
        } else {
            console.text(&text(&report, console.columns()))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn text(found: &Found, width: usize) -> String {
    let mut text = match &found.kernel {
        Some(kernel) => format!("Linux {kernel}\n\n"),
        None => String::new(),
    };
    text += &report::doctor(found).text(width);
    let off = found.facilities.iter().filter(|facility| facility.works != Works::Yes);
    text += &match off.count() {
        0 => "\nEverything works.\n".to_string(),
        some => format!(
            "\n{some} of {} do not work in full for this user.\n",
            found.facilities.len()
        ),
    };
    text
}

/// Why something was refused, as text without a full stop.
fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "this user may not".into(),
        io::ErrorKind::Unsupported => "this kernel cannot".into(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_tells_what_to_change() {
        let facility = |works, change: Option<&str>| Facility {
            facility: "huge pages".into(),
            works,
            found: "none was given".into(),
            purpose: "frames".into(),
            change: change.map(str::to_string),
        };
        let report = |facilities| Found {
            kernel: Some("6.8.0".into()),
            facilities,
        };
        let plain = |report: &Found| anstream::adapter::strip_str(&text(report, 80)).to_string();
        let printed = plain(&report(vec![facility(Works::No, Some("echo madvise"))]));
        assert!(
            printed.contains("none was given") && printed.contains("change: echo madvise"),
            "{printed}"
        );
        assert!(printed.contains("1 of 1 do not work in full"), "{printed}");
        let printed = plain(&report(vec![facility(Works::Yes, None)]));
        assert!(
            printed.starts_with("Linux 6.8.0\n") && printed.ends_with("Everything works.\n"),
            "{printed}"
        );
        assert!(!printed.contains("change:"), "{printed}");
    }
}
