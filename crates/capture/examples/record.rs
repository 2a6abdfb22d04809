//! Records a program from the command line: `record [options] -o TRACE -- PROGRAM ARGS`.
//!
//! The product's own command line is `domicile record`; this one serves the benchmarks and
//! experiments with this floor alone.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut options = capture::Options::new("", Vec::<String>::new(), "out.dtr");
    let mut quiet = false;
    let mut args = std::env::args_os().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().and_then(|v| v.into_string().ok()).unwrap_or_default();
        match arg.to_string_lossy().as_ref() {
            "-o" => options.output = value().into(),
            "--skip" => options.skip = value().parse().unwrap_or(0),
            "--window" => options.window = value().parse().ok(),
            "--windows" => options.windows = value().parse().unwrap_or(1),
            "--fetches" => options.fetches = true,
            "--no-pcs" => options.pcs = false,
            "--no-symbols" => options.symbols = false,
            "--no-children" => options.follow_children = false,
            "--quiet" => quiet = true,
            "--" => break,
            other => {
                eprintln!("record: unknown option {other}");
                return ExitCode::from(2);
            }
        }
    }
    options.program = args.next().unwrap_or_default();
    options.args = args.collect();
    match capture::record(&options, &mut |_| {}) {
        Ok(outcome) => {
            if !quiet {
                eprintln!(
                    "{:?} seen {} {:?}",
                    outcome.exit, outcome.references_seen, outcome.summary
                );
                eprintln!("{}", times());
                outcome.notes.iter().for_each(|n| eprintln!("note: {n}"));
            }
            if let Some(failure) = outcome.failure {
                eprintln!("failure: {failure}");
            }
            // The program's own, as the command does it.
            u8::try_from(outcome.exit.code()).map_or(ExitCode::FAILURE, ExitCode::from)
        }
        Err(e) => {
            eprintln!("record: {e}");
            ExitCode::FAILURE
        }
    }
}

/// Processor time of this process and of the program under Valgrind, in seconds.
fn times() -> String {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = stat.rsplit(')').next().unwrap_or_default();
    let ticks: Vec<f64> = after
        .split_whitespace()
        .skip(11)
        .take(4)
        .filter_map(|t| t.parse().ok())
        .collect();
    match ticks[..] {
        [user, system, child_user, child_system] => format!(
            "cpu: recorder {:.2} + {:.2} s, program {:.2} + {:.2} s",
            user / 100.0,
            system / 100.0,
            child_user / 100.0,
            child_system / 100.0
        ),
        _ => String::new(),
    }
}
