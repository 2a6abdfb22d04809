//! `domicile completions`: a completion script for a shell.

use std::process::ExitCode;

use clap::Args;
use clap_complete::Shell;
use serde_json::json;

use super::Done;
use crate::console::Console;

/// Print the completion script of a shell
#[derive(Args)]
#[command(after_help = "Example:\n  domicile completions bash > ~/.local/share/bash-completion/completions/domicile")]
pub struct Completions {
    /// The shell to complete for
    shell: Shell,
}

impl Completions {
    pub fn run(&self, console: &mut Console) -> Done {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut crate::command(), "domicile", &mut script);
        let script = String::from_utf8_lossy(&script);
        if console.json() {
            console.line(&json!({"shell": self.shell.to_string(), "script": script}))?;
        } else {
            console.text(&script)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
