//! `domicile man`: the manual pages.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::Done;
use crate::console::Console;
use crate::failure::Failure;

/// Print the manual page, or write all of them to a folder
#[derive(Args)]
#[command(after_help = "Examples:\n  domicile man | man -l -\n  domicile man ~/.local/share/man/man1")]
pub struct Man {
    /// Folder to write the pages of all verbs to; it must exist
    dir: Option<PathBuf>,
}

impl Man {
    pub fn run(&self, console: &mut Console) -> Done {
        let Some(dir) = &self.dir else {
            let (name, page) = pages().swap_remove(0);
            if console.json() {
                console.line(&json!({"name": name, "page": page}))?;
            } else {
                console.text(&page)?;
            }
            return Ok(ExitCode::SUCCESS);
        };
        let mut files = Vec::new();
        for (name, page) in pages() {
            let file = dir.join(name);
            std::fs::write(&file, page).map_err(|error| {
                Failure::work(format!(
                    "cannot write {}: {error}; name a folder that exists and that you may write to",
                    file.display()
                ))
            })?;
            files.push(file);
        }
        if console.json() {
            console.line(&json!({"files": files}))?;
        } else {
            console.text(&format!("{} manual pages written to {}\n", files.len(), dir.display()))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// File name and text of each manual page, that of `domicile` itself first.
pub fn pages() -> Vec<(String, String)> {
    let mut command = crate::command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    add_pages(&command, &mut pages);
    pages
}

fn add_pages(command: &clap::Command, pages: &mut Vec<(String, String)>) {
    let name = command
        .get_display_name()
        .unwrap_or_else(|| command.get_name())
        .to_string();
    let mut text = Vec::new();
    let page = clap_mangen::Man::new(command.clone())
        .source(concat!("domicile ", env!("CARGO_PKG_VERSION")))
        .manual("Domicile");
    // Writing to memory does not fail.
    if page.render(&mut text).is_ok() {
        pages.push((format!("{name}.1"), String::from_utf8_lossy(&text).into_owned()));
    }
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        add_pages(verb, pages);
    }
}
