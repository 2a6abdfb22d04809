//! What watching a process costs the watcher and the kernel: while it rests, and while it touches its memory all the time.
//! JSON: processor time of both in percent of one cpu, for each.
//!
//! `cargo run --release -p domicile-live --example watching [SECONDS [PAGES]]`
//!
//! The best source that works here is used, or the one that `SOURCE` in the environment names. Where the machine has one node, a
//! second one is made up; nobody runs there, so that nothing moves.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use live::homes::sources::choose;
use live::homes::{Config, Here, Host, Layout, Log, Whom};
use sys::Root;
use sys::memory::{Area, PAGE, Size};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [child, touches, pages] = &arguments[..]
        && child == "child"
    {
        watched(touches == "touches", pages.parse()?);
        return Ok(());
    }
    let seconds = arguments.first().map_or(Ok(10), |text| text.parse())?;
    let pages: usize = arguments.get(1).map_or(Ok(16_384), |text| text.parse())?;
    let mut lines = Vec::new();
    for what in ["rests", "touches"] {
        let mut child = start(what, pages)?;
        let watched = watch(child.id(), seconds);
        child.kill()?;
        child.wait()?;
        lines.push(format!("\"{what}\": {}", watched?));
    }
    println!("{{\"pages\": {pages}, {}}}", lines.join(", "));
    Ok(())
}

/// The process that is watched, once it has its memory.
fn start(what: &str, pages: usize) -> std::io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["child", what, &pages.to_string()]).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(said) = &mut child.stdout {
        said.read_exact(&mut [0])?;
    }
    Ok(child)
}

fn watched(touches: bool, pages: usize) {
    let area = Area::map(pages * PAGE, Size::Small).expect("memory");
    let touch = || (0..pages).for_each(|page| area.set_word(page, 0, 1));
    touch();
    print!("!");
    std::io::stdout().flush().expect("a pipe");
    loop {
        match touches {
            true => touch(),
            false => std::thread::sleep(Duration::from_secs(1)),
        }
    }
}

fn watch(process: u32, seconds: u64) -> Result<String, Box<dyn std::error::Error>> {
    let root = Root::default();
    let mut config = Config::new("migrate".parse()?);
    config.duration = Some(Duration::from_secs(seconds));
    let asked = std::env::var("SOURCE").ok();
    let choice = choose(&root, asked.as_deref(), config.interval)?;
    let source = choice.source.name();
    let mut layout = Layout::read(&root, choice.source.knows_cpus())?;
    if layout.count() < 2 {
        let cpus = sys::cpus::cpus(&root)?.online;
        layout = Layout::new(&[(0, cpus), (1, Vec::new())], choice.source.knows_cpus());
    }
    let whom = Whom::Processes(vec![process]);
    let mut host = Host::new(Here::default(), layout, choice, config, whom, Log::new(None))?;
    host.run(|| false)?;
    let report = host.report()?;
    let percent = |ns: u64| ns as f64 / 1e7 / seconds as f64;
    let kernel = report
        .kernel_ns
        .map_or("null".to_string(), |ns| percent(ns).to_string());
    Ok(format!(
        "{{\"source\": \"{source}\", \"own\": {}, \"kernel\": {kernel}, \"counts\": {}}}",
        percent(report.own_ns),
        report.samples.local + report.samples.remote
    ))
}
