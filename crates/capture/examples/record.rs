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
                eprintln!("{:?} seen {} {:?}", outcome.exit, outcome.references_seen, outcome.summary);
                outcome.notes.iter().for_each(|n| eprintln!("note: {n}"));
            }
            if let Some(failure) = outcome.failure {
                eprintln!("failure: {failure}");
            }
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("record: {e}");
            ExitCode::FAILURE
        }
    }
}
