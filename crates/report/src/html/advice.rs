//! The advice as a page.

use maud::{Markup, html};
use results::Advice;

use super::pictures::Picture;
use super::sections::Sections;
use super::text::{Text, prose};
use super::{false_sharing, first_screen, flame, nodes, policies, regions, sharing, source, timeline};
use crate::tables::{Top, of_advice};
use crate::verified_text::{agreement, beside};

/// The rows of each list: the full result has all.
const ROWS: Top = Top::Rows(30);

pub fn body(advice: &Advice, read: &dyn Fn(&str) -> Result<String, String>) -> (Markup, Vec<Picture>) {
    let mut sections = Sections::default();
    sections.add("What to do", first_screen::to_do(advice));
    if let Some(verified) = &advice.verified {
        let title = format!("Verified: {}", verified.command);
        sections.add(
            &title,
            html! { p { (Text(&beside(verified))) } p { (Text(&agreement(verified))) } },
        );
    }
    if let Some(over_time) = &advice.timeline {
        timeline::section(&mut sections, timeline::TITLE, over_time);
    }
    if let Some(profile) = &advice.profile {
        flame::section(&mut sections, flame::TITLE, profile);
    }
    source::section(&mut sections, advice, read);
    let nearest = advice
        .base()
        .and_then(|base| base.caches.iter().map(|cache| cache.misses).max());
    false_sharing::section(&mut sections, &advice.false_sharing, nearest.unwrap_or(0));
    if let Some(shared) = &advice.sharing {
        sharing::section(&mut sections, shared);
    }
    if let Some(homes) = &advice.homes {
        nodes::section(&mut sections, homes);
    }
    policies::section(&mut sections, advice);
    for outcome in &advice.policies {
        regions::section(&mut sections, outcome);
    }
    sections.tables(&of_advice(advice, ROWS));
    if !advice.notes.is_empty() {
        sections.add(
            "What is only an estimate",
            html! { ul.notes { @for note in &advice.notes { li { (prose(note)) } } } },
        );
    }
    sections.page(&first_screen::header(advice))
}
