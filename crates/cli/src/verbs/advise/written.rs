//! The outputs of an advice: files, and the terminal.

use report::Top;
use results::{Advice, SharingAdvice, Todo, command_line, saved};

use super::{Advise, Form};
use crate::console::{self, Console, quoted};
use crate::destination::Destination;
use crate::failure::Failure;
use crate::verbs::model::HOST;
use crate::verbs::saved::{named_source, source_text};

impl Advise {
    /// Tables are printed even if a file cannot be written.
    pub fn report(&self, mut advice: Advice, places: Places, console: &mut Console) -> Result<(), Failure> {
        for todo in &mut advice.todo {
            todo.code = code(todo);
        }
        let mut failed = None;
        let mut wrote = |done: Result<(), Failure>| match done {
            Ok(()) => true,
            Err(failure) => {
                failed.get_or_insert(failure);
                false
            }
        };
        let asked = places.slots.as_ref().map(|place| place.path().display().to_string());
        if let (Some(place), Some(slots)) = (places.slots, advice.slots.as_mut())
            && ::advise::slots_gain(slots)
        {
            let name = place.path().display().to_string();
            if wrote(place.write_text(&slots.plan)) {
                slots.written = Some(name);
            }
        }
        if let Some(name) = asked.filter(|_| advice.slots.as_ref().is_none_or(|slots| slots.written.is_none())) {
            let why = match &advice.slots {
                Some(slots) if ::advise::slots_gain(slots) => "it could not be written".to_string(),
                Some(slots) if slots.why_not.is_empty() => {
                    "the proposed partition would save less than 1% of the time".to_string()
                }
                Some(slots) => format!("no cache slots are proposed: {}", slots.why_not),
                None => "no cache slots are proposed".to_string(),
            };
            not_written(&mut advice, &name, &why);
        }
        if let Some((place, form)) = places.placement {
            let name = place.path().display().to_string();
            let text = match &advice.sharing {
                None if advice.trace.threads < 2 => Err("one thread ran, and it shares nothing".to_string()),
                None => Err(format!(
                    "each cpu of {} has caches of its own, and there are no more threads than cpus",
                    advice.machine.name
                )),
                Some(sharing) if !::advise::placement_matters(sharing) => {
                    Err("it makes less than 1% of difference under which caches the threads run".to_string())
                }
                Some(sharing) => match form.scheduler() {
                    Some(scheduler) => ::advise::placement_text(sharing, scheduler),
                    None => for_run(&advice, sharing),
                },
            };
            let done = text.and_then(|text| match wrote(place.write_text(&text)) {
                true => Ok(()),
                false => Err("it could not be written".to_string()),
            });
            match (done, &mut advice.sharing) {
                (Ok(()), Some(sharing)) => sharing.written = Some(name),
                (Err(why), _) => not_written(&mut advice, &name, &why),
                _ => {}
            }
        }
        if let Some(place) = places.annotated {
            let name = place.path().display().to_string();
            match report::annotated(&advice, source_text) {
                Some(text) => {
                    wrote(place.write_text(&text));
                }
                None => not_written(
                    &mut advice,
                    &name,
                    "the program has no line information (compile it with -g)",
                ),
            }
        }
        let mut full = None;
        if let Some(place) = places.result {
            let file = place.path().to_path_buf();
            let text = serde_json::to_string(&saved(&advice)).map_err(Failure::work)? + "\n";
            if wrote(place.write_text(&text)) {
                full = Some(file);
            }
        }
        let mut page = None;
        if let Some(place) = places.page {
            let file = place.path().to_path_buf();
            if wrote(place.write_text(&report::advice_page(&advice, &named_source))) {
                page = Some(file);
            }
        }
        if console.json() {
            console.line(&saved(&advice))?;
        } else {
            let columns = console.columns();
            match places.details {
                Some(top) => console.text(&report::advice(&advice, columns, top))?,
                None => console.text(&report::screen(&advice, columns))?,
            }
            if let Some(verified) = &advice.verified {
                console.text(&report::verified(verified, columns))?;
            }
            if let Some(file) = full {
                let name = quoted(&file);
                console.text(&format!("More: domicile report {name} --details\n"))?;
                if page.is_none() {
                    console.text(&format!("Page: domicile report {name} --html advice.html\n"))?;
                }
            }
            if let Some(file) = page {
                console.text(&format!("Page: {}\n", file.display()))?;
            }
        }
        console.flush()?;
        failed.map_or(Ok(()), Err)
    }
}

/// A requested output that does not exist is also reported beside the screen, which shows no notes.
fn not_written(advice: &mut Advice, name: &str, why: &str) {
    let note = format!("{name} was not written: {why}");
    console::note(format_args!("note: {note}"));
    advice.notes.push(note);
}

/// The placements in the form that `domicile run --placement` reads.
fn for_run(advice: &Advice, sharing: &SharingAdvice) -> Result<String, String> {
    let machine = &advice.machine.name;
    let numbers = match machine == HOST {
        true => measured::here().ok().map(|here| here.cpu_numbers),
        false => None,
    };
    let placement = ::advise::placement(sharing, &advice.arguments, machine, numbers.as_deref())?;
    let text = toml::to_string(&placement).map_err(|error| error.to_string())?;
    let words = std::iter::once(&placement.program).chain(&advice.arguments);
    Ok(format!(
        "# Threads under caches, the fastest way first. Apply it: domicile run --placement FILE -- {}\n{text}",
        command_line(words)
    ))
}

/// The source line that waits, if its file is here.
fn code(todo: &Todo) -> Option<String> {
    let line: usize = todo.source.as_ref()?.rsplit_once(':')?.1.parse().ok()?;
    let text = source_text(todo.file.as_ref()?).ok()?;
    let line = text.lines().nth(line.checked_sub(1)?)?.trim();
    (!line.is_empty()).then(|| line.to_string())
}

/// The destinations of results, and how many rows of each list are printed, if tables are.
pub struct Places {
    pub result: Option<Destination>,
    pub page: Option<Destination>,
    pub slots: Option<Destination>,
    pub placement: Option<(Destination, Form)>,
    pub annotated: Option<Destination>,
    pub details: Option<Top>,
}
