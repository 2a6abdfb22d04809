//! False sharing: the two accesses that take a line from each other, side by side.

use maud::{Markup, html};
use results::{Collision, Side, count, short};

use super::sections::Sections;
use super::text::Text;

const TITLE: &str = "False sharing, side by side";
/// How many lines are shown; the table below has more.
const LINES: usize = 6;
/// A line with a smaller part of all misses is left out.
const SEEN: f64 = 0.01;

/// `misses`: all misses of the run in the caches nearest to the cpus.
pub fn section(sections: &mut Sections, collisions: &[Collision], misses: u64) {
    let is_shown = |of: &&Collision| !of.lock && of.misses as f64 >= SEEN * misses as f64;
    let shown: Vec<&Collision> = collisions.iter().filter(is_shown).take(LINES).collect();
    if misses == 0 || shown.is_empty() {
        return;
    }
    let body = html! {
        p.faint { "Two threads use different data in one cache line, and each access takes the line from the other. Data of one thread belongs into lines of its own." }
        @for of in shown {
            div.clash {
                h3 { (Text(&short(&of.structure))) ": " (count(of.misses)) " misses at " code { (format!("{:#x}", of.line)) } }
                div.sides { @for side in &of.sides { (half(side)) } }
            }
        }
    };
    sections.add(TITLE, body);
}

fn half(side: &Side) -> Markup {
    html! {
        div.side {
            p { "thread " (Text(&side.thread)) (if side.write { " writes" } else { " reads" }) }
            p { code.field { (Text(&side.field)) } }
            @if let Some(source) = &side.source { p.faint { "at " code { (Text(source)) } } }
        }
    }
}
