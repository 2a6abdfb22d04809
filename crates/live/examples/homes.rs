//! What watching costs the watcher: own time for each page that a policy is told of, on any machine.
//!
//! The pages are this process's, on one node; a second node is made up, and nobody runs there, so that nothing moves.

use std::time::Duration;

use live::homes::sources::{Choice, Lost, Scale, Source, Touched};
use live::homes::{Config, Here, Host, Layout, Log, Whom};
use sys::memory::{Area, PAGE, Size, Span};

/// All of an area is touched all the time.
struct Told(Span);

impl Source for Told {
    fn name(&self) -> &'static str {
        "told"
    }
    fn counts(&self) -> String {
        "made up".to_string()
    }
    fn scale(&self) -> Scale {
        Scale::Looks(4)
    }
    fn begin(&mut self, _process: u32) -> Result<(), Lost> {
        Ok(())
    }
    fn look(&mut self, _process: u32) -> Result<Vec<Touched>, Lost> {
        Ok(vec![Touched {
            span: self.0,
            counts: 4,
            by: None,
            write: None,
        }])
    }
    fn end(&mut self, _process: u32) {}
}

fn main() {
    let cpus = sys::cpus::cpus(&sys::Root::default())
        .map(|cpus| cpus.online)
        .unwrap_or_default();
    for pages in [0, 1024, 16_384] {
        let area = Area::map((pages + 1) * PAGE, Size::Small).expect("memory");
        (0..area.pages()).for_each(|page| area.set_word(page, 0, 1));
        let layout = Layout::new(&[(0, cpus.clone()), (1, Vec::new())], false);
        let choice = Choice {
            source: Box::new(Told(Span::new(area.start(), pages * PAGE))),
            others: Vec::new(),
        };
        let mut config = Config::new("migrate".parse().expect("a policy"));
        config.interval = Duration::from_millis(200);
        config.duration = Some(Duration::from_secs(4));
        let whom = Whom::Processes(vec![std::process::id()]);
        let mut host = Host::new(Here::default(), layout, choice, config, whom, Log::new(None)).expect("a host");
        host.run(|| false).expect("a run");
        let report = host.report().expect("a report");
        let intervals: u64 = report.intervals.len() as u64;
        println!(
            "{pages} pages: {:.3} ms an interval, {:.2}% of a cpu at one interval a second; {} counts",
            report.own_ns as f64 / 1e6 / intervals as f64,
            report.own_ns as f64 / 1e7 / intervals as f64,
            report.samples.local
        );
    }
}
