//! The source with the waits of its lines: the colors of a column show their length.

use maud::{Markup, html};
use results::{Advice, count, percent};

use super::sections::Sections;
use super::text::Text;
use crate::annotated::{ListedFile, ListedLine, Listing};

pub const TITLE: &str = "Annotated source";

/// How many files, and lines of each, a page has; an annotated source (`advise --annotate`) has all.
const FILES: usize = 6;
const LINES: usize = 400;
/// Characters of a line; generated code has lines of megabytes.
const WIDTH: usize = 300;
/// Files that wait for a smaller part are left out.
const LEAST: f64 = 0.001;

/// `read` returns the text of a source file, or why there is none.
pub fn section(sections: &mut Sections, advice: &Advice, read: &dyn Fn(&str) -> Result<String, String>) {
    let shown = |at: usize, part: f64| at < FILES && part >= LEAST;
    let Some(listing) = Listing::of(advice, shown, read) else {
        return;
    };
    let mut files: Vec<&ListedFile> = listing
        .files
        .iter()
        .filter(|file| file.part >= LEAST)
        .take(FILES)
        .collect();
    let left_out = listing.files.iter().filter(|file| file.part >= LEAST).count() - files.len();
    // Files without text come last.
    files.sort_by_key(|file| file.lacks.is_some());
    if files.is_empty() {
        return;
    }
    let most = files.iter().flat_map(|file| &file.lines);
    let most = most.filter_map(|line| line.counts.as_ref()).map(|(part, _)| *part);
    let most = most.fold(0.0, f64::max);
    let body = html! {
        p.faint { "The part of all waiting, and misses, by line." }
        @for (at, file) in files.iter().enumerate() {
            // The worst file is open, if there is text.
            details open[at == 0 && file.lacks.is_none()] {
                summary { (Text(&file.path)) ": " (percent(file.part)) }
                @if let Some(why) = &file.lacks { p.faint { "Its text is not here: " (Text(why)) } }
                div.scroll tabindex="0" role="region" aria-label=(Text(&file.path)) { (table(file, &listing.levels, most)) }
            }
        }
        @if left_out > 0 { p.faint { (left_out) " more files wait for less." } }
    };
    sections.add(TITLE, body);
}

fn table(file: &ListedFile, levels: &[u8], most: f64) -> Markup {
    html! {
        table.source {
            thead { tr {
                th.share { "stall" }
                @for level in levels { th.count { "L" (level) } }
                th.number { "line" }
                th { "source" }
            } }
            tbody {
                @for line in file.lines.iter().take(LINES) {
                    @if line.after_gap { tr.gap { td colspan=(levels.len() + 3) { "…" } } }
                    (row(line, levels, most))
                }
            }
        }
        @if file.lines.len() > LINES { p.faint { (file.lines.len() - LINES) " more lines are in the annotated source (advise --annotate)." } }
    }
}

fn row(line: &ListedLine, levels: &[u8], most: f64) -> Markup {
    html! {
        tr {
            @match &line.counts {
                Some((part, misses)) => {
                    td class={ "share heat-" (heat(*part, most)) } { (percent(*part)) }
                    @for misses in misses { td.count { (count(*misses)) } }
                }
                None => { td.share {} @for _ in levels { td.count {} } }
            }
            td.number { (line.number) }
            td { code { (Text(cut(&line.text))) @if cut(&line.text).len() < line.text.len() { "…" } } }
        }
    }
}

fn cut(line: &str) -> &str {
    line.char_indices().nth(WIDTH).map_or(line, |(at, _)| &line[..at])
}

/// From 0 to 9, by the square root: a tenth of the worst is still visible.
fn heat(part: f64, most: f64) -> u32 {
    match most > 0.0 {
        true => (9.0 * (part / most).sqrt()).round() as u32,
        false => 0,
    }
}
