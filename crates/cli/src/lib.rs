//! The `domicile` command: parse, call, print.
//!
//! There is one definition of the command line, [`Arguments`]; the parser, the help, the man pages and the
//! completions all come from it. Each verb is one file in `verbs/`: its arguments, and what it does.
//!
//! Results go to standard output, everything else to standard error. The exit code is 0 when the work is done, 1 when
//! it failed, 2 when the command line was wrong and 3 when a condition of `compare` is met; `record`, `advise` and
//! `run` end with the exit code of the program that they started.
#![forbid(unsafe_code)]

mod console;
mod destination;
mod failure;
mod forgotten;
mod kept;
mod progress;
mod shown;
mod suggested;
mod verbs;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

pub use verbs::man::pages;

use console::Console;
use verbs::Verb;

/// See, predict and improve the memory locality of programs.
///
/// Domicile records which memory a program touches, simulates the caches, TLBs and memory of a
/// machine, and shows where the time goes and what placing pages differently would gain.
#[derive(Parser)]
#[command(
    name = "domicile",
    version,
    max_term_width = 100,
    after_help = "Start with:  domicile advise -- PROGRAM ARGUMENTS",
    after_long_help = AFTER_HELP,
)]
struct Arguments {
    /// Print the result as JSON, for other programs to read
    #[arg(long, global = true)]
    json: bool,

    /// Print results, errors and warnings that results cover less than asked for; no notes, no progress
    #[arg(short, long, global = true)]
    quiet: bool,

    /// Show no progress (it is shown on a terminal only)
    #[arg(long, global = true)]
    no_progress: bool,

    #[command(subcommand)]
    verb: Verb,
}

const AFTER_HELP: &str = "\
Exit status:
  0  the work is done
  1  the work failed: a file that cannot be read or is damaged, a program that cannot be run
  2  the command line is wrong: an unknown verb, option, policy, parameter or machine
  3  a condition of `compare --fail-if` is met
`record`, `advise` and `run` end with the exit status of the program that they started: 128 and the number of the signal
that killed it, if one did.

Environment:
  NO_COLOR        print without colors
  CLICOLOR_FORCE  print with colors even where the output is not a terminal
  DOMICILE_SOCKET the daemon's socket, where it is not /run/domicile/daemon.sock

Example:
  domicile advise -- sqlite3 :memory: 'select count(*) from pragma_function_list'";

/// The definition of the command line, for generators of documentation.
pub fn command() -> clap::Command {
    Arguments::command()
}

/// Runs the command with the arguments of a process, its name first.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let words: Vec<OsString> = arguments.into_iter().collect();
    let arguments = match Arguments::try_parse_from(&words) {
        Ok(arguments) => arguments,
        Err(error) => return explain(&error, &words),
    };
    if arguments.quiet || arguments.no_progress {
        progress::hide();
    }
    if arguments.quiet {
        console::silence();
    }
    let mut console = Console::new(arguments.json);
    let done = arguments.verb.run(&mut console).and_then(|code| {
        console.flush()?;
        Ok(code)
    });
    match done {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}

/// Prints clap's message: help, the version, or the error in the command line.
fn explain(error: &clap::Error, words: &[OsString]) -> ExitCode {
    if !error.use_stderr() {
        // A reader that closes the help early is no failure.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let mut text = error.render().ansi().to_string();
    for style in ["\u{1b}[1m\u{1b}[31merror:\u{1b}[0m ", "error: "] {
        if let Some(rest) = text.strip_prefix(style) {
            text = format!("domicile: {rest}");
            break;
        }
    }
    if error.kind() == ErrorKind::InvalidSubcommand {
        let command = command();
        let verbs: Vec<_> = command.get_subcommands().map(|verb| verb.get_name()).collect();
        text += &format!("The verbs are: {}.\n", verbs.join(", "));
    }
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(meant) = forgotten::separator(&command(), words)
    {
        text += &format!("A program and its arguments come after `--`:  {meant}\n");
    }
    console::say(&text);
    ExitCode::from(2)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_definition_is_consistent() {
        super::command().debug_assert();
    }
}
