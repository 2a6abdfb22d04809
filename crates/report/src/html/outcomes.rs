//! Simulated runs side by side, as a page.

use maud::{Markup, html};
use results::{Outcome, count};

use super::pictures::Picture;
use super::sections::Sections;
use super::text::Text;
use super::{flame, regions, timeline};
use crate::tables::{Top, of_outcomes};

pub fn body(outcomes: &[Outcome]) -> (Markup, Vec<Picture>) {
    let mut sections = Sections::default();
    let Some(first) = outcomes.first() else {
        return (html! { main { p { "There are no results to show." } } }, Vec::new());
    };
    let header = html! {
        header {
            p.product { "Domicile: simulation" }
            h1 { (Text(&first.machine)) }
            p.facts { (count(first.references)) " references" }
        }
    };
    for outcome in outcomes {
        if let Some(over_time) = &outcome.timeline {
            let title = format!("{} under {}", timeline::TITLE, outcome.name());
            timeline::section(&mut sections, &title, over_time);
        }
    }
    for outcome in outcomes {
        if let Some(profile) = &outcome.profile {
            let title = format!("{} under {}", flame::TITLE, outcome.name());
            flame::section(&mut sections, &title, profile);
        }
    }
    for outcome in outcomes {
        regions::section(&mut sections, outcome);
    }
    sections.tables(&of_outcomes(outcomes, Top::Usual));
    sections.page(&header)
}
