//! Policies written in Python, for experiments: the simulator asks an object, a call at a time.
//!
//! Each question takes the interpreter's lock, so that such a policy is slow. What it raises ends the simulation and is raised there.

use std::collections::{HashMap, HashSet};
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex};

use policy::{Action, Interest, MissLevel, Observation, Page, Placement, Policy, Touch, World};
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyDict, PyType};

use crate::failed;
use crate::waiting::Interrupted;

/// What a policy raised.
pub type Raised = Arc<Mutex<Option<PyErr>>>;

/// An object with a method `place`, or, to act later, an attribute `interest` and a method `observe`, or all three.
pub struct InPython {
    policy: Py<PyAny>,
    /// Its class, for errors.
    name: String,
    known: Known,
    interest: Interest,
    places: bool,
    observes: bool,
    raised: Raised,
}

/// What there is so far.
#[derive(Default)]
struct Known {
    pages: HashSet<Page>,
    threads: HashSet<u32>,
}

/// Whether an object has an attribute that is something.
pub fn has(object: &Bound<'_, PyAny>, name: &str) -> PyResult<bool> {
    Ok(object.getattr_opt(name)?.is_some_and(|attribute| !attribute.is_none()))
}

impl InPython {
    /// Errors: the object has neither method, asks for moments that there are not, or observes none.
    pub fn new(policy: &Bound<'_, PyAny>, raised: &Raised) -> PyResult<InPython> {
        let words = policy.repr()?;
        if policy.is_instance_of::<PyType>() {
            return Err(failed(format_args!("{words} is a class: give an object of it")));
        }
        let (places, observes) = (has(policy, "place")?, has(policy, "observe")?);
        if !places && !observes {
            return Err(failed(format_args!(
                "{words} is neither the name of a policy nor an object with a method `place(touch, world)` or `observe(seen, world)`"
            )));
        }
        let name = policy.get_type().name()?.to_string();
        let mut interest = Interest::NONE;
        if has(policy, "interest")? {
            let asked = policy.getattr("interest")?;
            interest =
                interest_of(&asked).map_err(|why| failed(format_args!("{name}: `interest` is {asked}: {why}")))?;
        }
        if observes && interest == Interest::NONE {
            return Err(failed(format_args!(
                "{name}: `observe` would never be called: `interest` says when, such as {{\"cache_misses\": 16}}"
            )));
        }
        Ok(InPython {
            policy: policy.clone().unbind(),
            name,
            known: Known::default(),
            interest,
            places,
            observes,
            raised: raised.clone(),
        })
    }

    /// Asks the object by a method and reads its answer. What it raises ends the simulation, and so does an answer that is none.
    fn ask<T>(
        &self,
        method: &str,
        describe: impl FnOnce(&Bound<'_, PyDict>) -> PyResult<()>,
        world: &World,
        read: impl FnOnce(&Bound<'_, PyAny>) -> Result<T, Why>,
    ) -> T {
        let ask = |py: Python<'_>| {
            let about = PyDict::new(py);
            describe(&about)?;
            let answer = self
                .policy
                .bind(py)
                .call_method1(method, (about, of_world(py, world)?))?;
            read(&answer).map_err(|why| failed(format_args!("{}: `{method}` gave {answer}: {why}", self.name)))
        };
        Python::attach(|py| {
            ask(py).unwrap_or_else(|error: PyErr| {
                if let Ok(mut raised) = self.raised.lock() {
                    raised.get_or_insert(error);
                }
                resume_unwind(Box::new(Interrupted))
            })
        })
    }
}

/// When an object wants to be asked.
fn interest_of(asked: &Bound<'_, PyAny>) -> Result<Interest, Why> {
    const MOMENTS: &str = "cache_misses, tlb_misses, tick_ns and pressure_frames";
    let asked: HashMap<String, Bound<'_, PyAny>> = asked
        .extract()
        .map_err(|_| format!("a dict from {MOMENTS} to numbers is needed"))?;
    let mut interest = Interest::NONE;
    for (moment, value) in asked {
        let fits = || format!("{value} is no number for `{moment}`");
        let long = || value.extract::<u64>().map_err(|_| fits());
        let short = || value.extract::<u32>().map_err(|_| fits());
        match moment.as_str() {
            "cache_misses" => interest.cache_misses = short()?,
            "tlb_misses" => interest.tlb_misses = short()?,
            "tick_ns" => interest.tick_ns = long()?,
            "pressure_frames" => interest.pressure_frames = long()?,
            _ => return Err(format!("`{moment}` is none of {MOMENTS}")),
        }
    }
    Ok(interest)
}

impl Policy for InPython {
    fn place(&mut self, touch: &Touch, world: &World) -> Placement {
        self.known.pages.insert(touch.page);
        self.known.threads.insert(touch.thread);
        if !self.places {
            return Placement::default();
        }
        let about = |seen: &Bound<'_, PyDict>| {
            about_page(seen, touch.page)?;
            seen.set_item("thread", touch.thread)?;
            seen.set_item("cpu", touch.cpu)?;
            seen.set_item("write", touch.write)
        };
        self.ask("place", about, world, |answer| placement(answer, world, &[]))
    }

    fn interest(&self) -> Interest {
        self.interest
    }

    fn observe(&mut self, observation: &Observation, world: &World, actions: &mut Vec<Action>) {
        if !self.observes {
            return;
        }
        if matches!(observation, Observation::Touched(_) | Observation::Slots(_)) {
            return;
        }
        let (page, thread) = named(observation);
        self.known.pages.extend(page);
        self.known.threads.extend(thread);
        let about = |seen: &Bound<'_, PyDict>| describe(seen, observation);
        let wanted = self.ask("observe", about, world, |answer| {
            self::actions(answer, world, &self.known)
        });
        actions.extend(wanted);
    }
}

fn about_page(seen: &Bound<'_, PyDict>, page: Page) -> PyResult<()> {
    seen.set_item("page", (page.space, page.number))
}

/// The page and the thread that an observation names.
fn named(observation: &Observation) -> (Option<Page>, Option<u32>) {
    match observation {
        Observation::Miss(miss) => (Some(miss.page), Some(miss.thread)),
        Observation::ReplicaWritten(touched) => (Some(touched.page), Some(touched.thread)),
        Observation::Tick(tick) => (None, tick.ran.map(|ran| ran.thread)),
        Observation::Pressure(_) | Observation::Touched(_) | Observation::Slots(_) => (None, None),
    }
}

/// What was observed, of the kinds that policies in Python hear of.
fn describe(seen: &Bound<'_, PyDict>, observation: &Observation) -> PyResult<()> {
    match observation {
        Observation::Miss(miss) => {
            let kind = match miss.level {
                MissLevel::Cache => "cache_miss",
                MissLevel::Tlb => "tlb_miss",
            };
            seen.set_item("kind", kind)?;
            about_page(seen, miss.page)?;
            seen.set_item("thread", miss.thread)?;
            seen.set_item("cpu", miss.cpu)?;
            seen.set_item("served_by", miss.served_by)?;
            seen.set_item("write", miss.write)?;
            seen.set_item("fetch", miss.fetch)?;
        }
        Observation::ReplicaWritten(touched) => {
            seen.set_item("kind", "replica_written")?;
            about_page(seen, touched.page)?;
            seen.set_item("thread", touched.thread)?;
            seen.set_item("cpu", touched.cpu)?;
        }
        Observation::Tick(tick) => {
            seen.set_item("kind", "tick")?;
            seen.set_item("cpu", tick.cpu)?;
            seen.set_item("thread", tick.ran.map(|ran| ran.thread))?;
        }
        Observation::Pressure(pressure) => {
            seen.set_item("kind", "pressure")?;
            seen.set_item("node", pressure.node)?;
            seen.set_item("free_frames", pressure.free_frames)?;
        }
        Observation::Touched(_) | Observation::Slots(_) => {}
    }
    Ok(())
}

fn of_world<'py>(py: Python<'py>, world: &World) -> PyResult<Bound<'py, PyDict>> {
    let known = PyDict::new(py);
    known.set_item("page_bytes", world.page_bytes)?;
    known.set_item("colors", world.colors)?;
    known.set_item("cpus", world.cpus)?;
    known.set_item("nodes", world.nodes)?;
    known.set_item("cpu_nodes", world.cpu_nodes)?;
    known.set_item("free_frames", &world.free_frames)?;
    known.set_item("now_ns", world.now_ns)?;
    Ok(known)
}

/// What is wrong with an answer.
type Why = String;

/// `None`, or a dict with `color`, `node` or both.
fn placement(answer: &Bound<'_, PyAny>, world: &World, also: &[&str]) -> Result<Placement, Why> {
    if answer.is_none() {
        return Ok(Placement::default());
    }
    let Ok(answer) = answer.cast::<PyDict>() else {
        return Err("a place is None, or a dict with `color`, `node` or both".to_string());
    };
    only(answer, &[&["color", "node"], also].concat())?;
    Ok(Placement {
        color: number(answer, "color", world.colors)?,
        node: number(answer, "node", world.nodes)?,
    })
}

/// Nothing but these keys.
fn only(answer: &Bound<'_, PyDict>, keys: &[&str]) -> Result<(), Why> {
    let other = answer
        .keys()
        .iter()
        .find(|key| !key.extract::<String>().is_ok_and(|key| keys.contains(&key.as_str())));
    match other {
        Some(other) => Err(format!("`{other}` is none of {}", keys.join(", "))),
        None => Ok(()),
    }
}

/// What a dict has under a name; `None` counts as missing.
fn item<'py>(of: &Bound<'py, PyDict>, name: &str) -> Option<Bound<'py, PyAny>> {
    of.get_item(name).ok().flatten().filter(|value| !value.is_none())
}

/// A number below `count`.
fn number(of: &Bound<'_, PyDict>, name: &str, count: u32) -> Result<Option<u32>, Why> {
    let Some(value) = item(of, name) else {
        return Ok(None);
    };
    match value.extract::<u32>().ok().filter(|number| *number < count) {
        Some(number) => Ok(Some(number)),
        None => Err(format!("there is no {name} {value}: there are {count}, from 0")),
    }
}

fn needed<T>(found: Option<T>, name: &str) -> Result<T, Why> {
    found.ok_or_else(|| format!("an action lacks `{name}`"))
}

/// A dict with `action` and what that needs. `known`: pages and threads so far.
fn action(wanted: &Bound<'_, PyAny>, world: &World, known: &Known) -> Result<Action, Why> {
    let Ok(wanted) = wanted.cast::<PyDict>() else {
        return Err("an action is a dict with `action`".to_string());
    };
    let page = || {
        let page = needed(item(wanted, "page"), "page")?;
        let of = page.extract().map(|(space, number)| Page { space, number });
        let found = of.ok().filter(|page| known.pages.contains(page));
        found.ok_or_else(|| format!("there is no page {page} yet: `page` is one that `touch` or `seen` had"))
    };
    let node = || number(wanted, "node", world.nodes);
    let thread = || {
        let thread = needed(item(wanted, "thread"), "thread")?;
        let found = thread.extract().ok().filter(|thread| known.threads.contains(thread));
        found.ok_or_else(|| format!("there is no thread {thread} yet"))
    };
    let name = needed(item(wanted, "action"), "action")?.to_string();
    let (keys, found): (&[&str], Action) = match name.as_str() {
        "move" => {
            let to = placement(wanted, world, &["action", "page"])?;
            (&["color", "node", "page"], Action::Move { page: page()?, to })
        }
        "copy" => {
            let node = needed(node()?, "node")?;
            (&["node", "page"], Action::Copy { page: page()?, node })
        }
        "collapse" => {
            let node = node()?;
            (&["node", "page"], Action::Collapse { page: page()?, node })
        }
        "move_thread" => {
            let thread = thread()?;
            let cpu = needed(number(wanted, "cpu", world.cpus)?, "cpu")?;
            (&["cpu", "thread"], Action::MoveThread { thread, cpu })
        }
        "allow" => {
            let cpus: Vec<u32> = needed(item(wanted, "cpus"), "cpus")?
                .extract()
                .map_err(|_| "`cpus` is a list of cpus".to_string())?;
            if let Some(none) = cpus.iter().find(|&&cpu| cpu >= world.cpus) {
                return Err(format!("there is no cpu {none}: there are {}, from 0", world.cpus));
            }
            let cpus = cpus.into_iter().fold(0, |mask, cpu| mask | 1 << cpu);
            (
                &["cpus", "thread"],
                Action::Allow {
                    thread: thread()?,
                    cpus,
                },
            )
        }
        other => {
            return Err(format!(
                "`{other}` is none of the actions move, copy, collapse, move_thread and allow"
            ));
        }
    };
    only(wanted, &[keys, &["action"]].concat())?;
    Ok(found)
}

/// Of a list of actions; `None` is none.
fn actions(answer: &Bound<'_, PyAny>, world: &World, known: &Known) -> Result<Vec<Action>, Why> {
    if answer.is_none() {
        return Ok(Vec::new());
    }
    let Ok(wanted) = answer.try_iter() else {
        return Err("it gives None, or a list of actions".to_string());
    };
    wanted
        .map(|wanted| action(&wanted.map_err(|error| error.to_string())?, world, known))
        .collect()
}
