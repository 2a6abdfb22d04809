//! Policies written in Python, for experiments: the simulator asks an object, a call at a time.
//!
//! Each question takes the interpreter's lock, so that such a policy is slow. What it raises ends the simulation and is raised there.

use std::panic::resume_unwind;
use std::sync::{Arc, Mutex};

use policy::{Action, Interest, MissLevel, Observation, Page, Placement, Policy, Touch, World};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyDict};

use crate::waiting::Interrupted;

/// What a policy raised.
pub type Raised = Arc<Mutex<Option<PyErr>>>;

/// An object with a method `place`, or, to act later, an attribute `interest` and a method `observe`, or all three.
pub struct InPython {
    policy: Py<PyAny>,
    interest: Interest,
    places: bool,
    observes: bool,
    raised: Raised,
}

/// Whether an object has an attribute that is something.
pub fn has(object: &Bound<'_, PyAny>, name: &str) -> PyResult<bool> {
    Ok(object.getattr_opt(name)?.is_some_and(|attribute| !attribute.is_none()))
}

impl InPython {
    /// Errors: the object has neither method, asks for moments that there are not, or observes none.
    pub fn new(policy: &Bound<'_, PyAny>, raised: &Raised) -> PyResult<InPython> {
        let (places, observes) = (has(policy, "place")?, has(policy, "observe")?);
        if !places && !observes {
            return Err(PyTypeError::new_err(format!(
                "{} is neither the name of a policy nor an object with a method `place(touch, world)` or `observe(seen, world)`",
                policy.repr()?
            )));
        }
        let mut interest = Interest::NONE;
        if has(policy, "interest")? {
            let asked: std::collections::HashMap<String, u64> = policy.getattr("interest")?.extract()?;
            for (moment, value) in asked {
                let small =
                    || u32::try_from(value).map_err(|_| PyValueError::new_err(format!("`{moment}` is too large")));
                match moment.as_str() {
                    "cache_misses" => interest.cache_misses = small()?,
                    "tlb_misses" => interest.tlb_misses = small()?,
                    "tick_ns" => interest.tick_ns = value,
                    "pressure_frames" => interest.pressure_frames = value,
                    _ => {
                        return Err(PyValueError::new_err(format!(
                            "`interest` has `{moment}`, which is none of cache_misses, tlb_misses, tick_ns and pressure_frames"
                        )));
                    }
                }
            }
        }
        if observes && interest == Interest::NONE {
            return Err(PyValueError::new_err(
                "`observe` would never be called: `interest` says when, such as {\"cache_misses\": 16}",
            ));
        }
        Ok(InPython {
            policy: policy.clone().unbind(),
            interest,
            places,
            observes,
            raised: raised.clone(),
        })
    }

    /// Asks the object; what it raises ends the simulation.
    fn ask<T>(&self, ask: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> T {
        Python::attach(|py| {
            ask(self.policy.bind(py)).unwrap_or_else(|error| {
                if let Ok(mut raised) = self.raised.lock() {
                    raised.get_or_insert(error);
                }
                resume_unwind(Box::new(Interrupted))
            })
        })
    }
}

impl Policy for InPython {
    fn place(&mut self, touch: &Touch, world: &World) -> Placement {
        if !self.places {
            return Placement::default();
        }
        self.ask(|policy| {
            let seen = PyDict::new(policy.py());
            about_page(&seen, touch.page)?;
            seen.set_item("thread", touch.thread)?;
            seen.set_item("cpu", touch.cpu)?;
            seen.set_item("write", touch.write)?;
            placement(
                &policy.call_method1("place", (seen, of_world(policy.py(), world)?))?,
                world,
                &[],
            )
        })
    }

    fn interest(&self) -> Interest {
        self.interest
    }

    fn observe(&mut self, observation: &Observation, world: &World, actions: &mut Vec<Action>) {
        if !self.observes {
            return;
        }
        let wanted: Vec<Action> = self.ask(|policy| {
            let seen = PyDict::new(policy.py());
            if !describe(&seen, observation)? {
                return Ok(Vec::new());
            }
            let answer = policy.call_method1("observe", (seen, of_world(policy.py(), world)?))?;
            if answer.is_none() {
                return Ok(Vec::new());
            }
            answer.try_iter()?.map(|wanted| action(&wanted?, world)).collect()
        });
        actions.extend(wanted);
    }
}

fn about_page(seen: &Bound<'_, PyDict>, page: Page) -> PyResult<()> {
    seen.set_item("page", (page.space, page.number))
}

/// What was observed; false: nothing that policies in Python hear of.
fn describe(seen: &Bound<'_, PyDict>, observation: &Observation) -> PyResult<bool> {
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
        Observation::Touched(_) | Observation::Slots(_) => return Ok(false),
    }
    Ok(true)
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

/// `None`, or a dict with `color`, `node` or both.
fn placement(answer: &Bound<'_, PyAny>, world: &World, also: &[&str]) -> PyResult<Placement> {
    if answer.is_none() {
        return Ok(Placement::default());
    }
    let answer = answer
        .cast::<PyDict>()
        .map_err(|_| PyTypeError::new_err("a place is None, or a dict with `color`, `node` or both"))?;
    only(answer, &[&["color", "node"], also].concat())?;
    Ok(Placement {
        color: below(number(answer, "color")?, world.colors, "color")?,
        node: below(number(answer, "node")?, world.nodes, "node")?,
    })
}

/// Nothing but these keys.
fn only(answer: &Bound<'_, PyDict>, keys: &[&str]) -> PyResult<()> {
    for key in answer.keys() {
        let key: String = key.extract()?;
        if !keys.contains(&key.as_str()) {
            return Err(PyValueError::new_err(format!("`{key}` is none of {}", keys.join(", "))));
        }
    }
    Ok(())
}

/// A number that there is.
fn below(number: Option<u32>, count: u32, what: &str) -> PyResult<Option<u32>> {
    match number.filter(|number| *number >= count) {
        Some(number) => Err(PyValueError::new_err(format!(
            "there is no {what} {number}: there are {count}, from 0"
        ))),
        None => Ok(number),
    }
}

fn number(of: &Bound<'_, PyDict>, name: &str) -> PyResult<Option<u32>> {
    match of.get_item(name)? {
        None => Ok(None),
        Some(value) if value.is_none() => Ok(None),
        Some(value) => value.extract().map(Some),
    }
}

/// A dict with `action` and what that needs.
fn action(wanted: &Bound<'_, PyAny>, world: &World) -> PyResult<Action> {
    let wanted = wanted
        .cast::<PyDict>()
        .map_err(|_| PyTypeError::new_err("an action is a dict with `action`"))?;
    let needed = |name: &str, count: u32| {
        below(number(wanted, name)?, count, name)?
            .ok_or_else(|| PyValueError::new_err(format!("an action lacks `{name}`: {wanted}")))
    };
    let page = || {
        let page = wanted.get_item("page")?;
        let page = page.ok_or_else(|| PyValueError::new_err(format!("an action lacks `page`: {wanted}")))?;
        let (space, number) = page.extract()?;
        Ok::<_, PyErr>(Page { space, number })
    };
    let name: String = wanted
        .get_item("action")?
        .ok_or_else(|| PyValueError::new_err(format!("an action lacks `action`: {wanted}")))?
        .extract()?;
    Ok(match name.as_str() {
        "move" => Action::Move {
            page: page()?,
            to: placement(wanted, world, &["action", "page"])?,
        },
        "copy" => Action::Copy {
            page: page()?,
            node: needed("node", world.nodes)?,
        },
        "collapse" => Action::Collapse {
            page: page()?,
            node: below(number(wanted, "node")?, world.nodes, "node")?,
        },
        "move_thread" => Action::MoveThread {
            thread: needed("thread", u32::MAX)?,
            cpu: needed("cpu", world.cpus)?,
        },
        other => {
            return Err(PyValueError::new_err(format!(
                "`{other}` is none of the actions move, copy, collapse and move_thread"
            )));
        }
    })
}
