//! The recording, from start to end.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use sys::packet;
use sys::supervise::Supervisor;
use trace::{Destination, Summary, TraceError, Writer};

use crate::asked::{check, header, mark, writer};
use crate::connection::Ring;
use crate::deadline::Deadline;
use crate::ending::{Ending, named, points};
use crate::gate::Gate;
use crate::interpreted;
use crate::journal::Journal;
use crate::launch::{self, Room};
use crate::options::{CaptureError, Exit, Options, Outcome, Progress};
use crate::output::Output;
use crate::process_tree::{Connection, Listener, ProcessTree};
use crate::schedule::Schedule;
use crate::symbols;
use crate::tool;
use crate::wire::{self, Hello, record as kind};

/// The interval of checks that the program still runs, while no message arrives.
const GLANCE_MS: u32 = 50;
/// A program that has sent nothing for this long is blocked.
const SILENCE: Duration = Duration::from_millis(200);
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// Records a program; returns when it has ended and the trace is written.
///
/// The trace has its name when it is finished (see [`Destination`]). `progress` is called a few times a second. Signals
/// that are sent to this process are passed on to the program while it runs, all that can be caught, and the trace is
/// finished when the program has ended. A failure to write ends the recording, not the program: [`Outcome::failure`]
/// reports it.
pub fn record(options: &Options, progress: &mut dyn FnMut(Progress)) -> Result<Outcome, CaptureError> {
    check(options)?;
    let tool = tool::find(options.tool.as_deref())?;
    // From here on, requests to end go to the program: the folder is always removed.
    let mut supervisor = Some(Supervisor::begin().map_err(CaptureError::system("cannot catch signals"))?);
    let room = Room::new()?;
    let listener =
        packet::Listener::bind(&room.socket()).map_err(CaptureError::system("cannot listen for the tool"))?;
    let unwritable = |source| TraceError::Open {
        path: options.output.clone(),
        source,
    };
    let destination = Destination::begin(&options.output).map_err(unwritable)?;
    let begun = destination
        .file()
        .map_err(unwritable)
        .and_then(|file| writer(options, file));
    let mut recorder = None;
    let recorded = begun.map_err(CaptureError::from).and_then(|writer| {
        let child = launch::start(options, &tool, &room, supervisor.as_ref())?;
        let recorder = recorder.insert(Recorder::new(listener, child, options));
        take_down(
            options,
            writer,
            &destination.folder(),
            recorder,
            &room,
            &mut supervisor,
            progress,
        )
    });
    // The recording is kept, whatever happened afterwards; but an older file stays if nothing could be written.
    let nothing = |outcome: &Outcome| outcome.failure.is_some() && outcome.summary.references == 0;
    if recorder.is_some_and(|recorder| recorder.greeted > 0) && !recorded.as_ref().is_ok_and(nothing) {
        let kept = destination.keep();
        let mut outcome = recorded?;
        if let (Err(source), None) = (kept, &outcome.failure) {
            let path = options.output.clone();
            outcome.failure = Some(TraceError::Name { path, source }.to_string());
        }
        Ok(outcome)
    } else {
        destination.discard();
        recorded
    }
}

/// Records the program that `recorder` listens to; `folder` has room for temporary files.
fn take_down(
    options: &Options,
    writer: Writer,
    folder: &Path,
    recorder: &mut Recorder,
    room: &Room,
    supervisor: &mut Option<Supervisor>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Outcome, CaptureError> {
    let windows = options.window.map(|n| (n, options.windows));
    let mut whole = false;
    let (ended, mut tree, stopped) = match windows {
        Some((references, count)) if count > 1 => {
            let schedule = Schedule::new(options.skip, references, count, options.windows_seed);
            let mut journal = Journal::new(folder, schedule, (options.warm_bytes / 64) as usize)
                .map_err(CaptureError::system("cannot make a temporary file beside the trace"))?;
            let ended = recorder.listen_to_the_end(&mut journal, supervisor, progress)?;
            // A budget asks for as much as fits; `--windows` asks for windows.
            let or_whole = options.within.is_some() && !recorder.deadline.is_over();
            let (replay, chosen) = journal.finish(or_whole);
            whole = replay.is_whole();
            let out = Output::new(writer, chosen, !whole, options.pcs, options.fetches);
            let mut tree = ProcessTree::new(out.warming(options.warms() && !whole));
            let stopped = replay.replay(&mut tree).err();
            (ended, tree, stopped)
        }
        _ => {
            let first = options.skip..options.window.map_or(u64::MAX, |n| options.skip.saturating_add(n));
            let out = Output::new(
                writer,
                vec![first],
                options.window.is_some(),
                options.pcs,
                options.fetches,
            );
            let mut tree = ProcessTree::new(out);
            let ended = recorder.listen_to_the_end(&mut tree, supervisor, progress)?;
            (ended, tree, None)
        }
    };
    let mut notes = std::mem::take(&mut recorder.notes);
    let said = room.said();
    if recorder.greeted == 0 {
        let lines: Vec<_> = said.iter().flat_map(|said| said.lines.iter().cloned()).collect();
        let log = lines.join("; ");
        return Err(CaptureError::DidNotStart { log });
    }
    notes.append(&mut recorder.gate.notes());
    let lines = said.iter().flat_map(|said| &said.lines);
    notes.extend(lines.map(|line| format!("valgrind: {line}")));
    progress(Progress {
        references: tree.out.seen(),
        bytes: tree.out.bytes(),
        finishing: true,
    });
    notes.append(&mut tree.commons.notes);
    notes.extend(interpreted::note(tree.commons.lines_reached, tree.out.seen()));
    if let Some(wanted) = options.window.map(|_| options.windows).filter(|_| !whole)
        && tree.out.windows_begun() < wanted
    {
        notes.push(format!(
            "the program made {} references: {} of {wanted} windows could be taken",
            tree.out.seen(),
            tree.out.windows_begun()
        ));
    }
    let points: Vec<(u32, u64)> = said.iter().flat_map(|said| points(&tree, said)).collect();
    let places = symbols::write(options, &mut tree, &points, &mut notes);
    let exit = Exit::from(ended);
    let ending = Ending {
        exit,
        // A program that ends with status 0 when asked to, as servers do, was recorded whole.
        interrupted: recorder.interrupted.filter(|_| exit != Exit::Code(0)),
        ended_by_us: recorder.deadline.ended_it(),
        program: recorder.child,
        said: &said,
        name: &|pid| {
            tree.newest(pid)
                .map_or_else(|| "unknown".to_string(), |process| named(tree.program(process)))
        },
        place: &|pid, pc| {
            let told = tree.newest(pid).and_then(|process| places.get(&(process, pc)));
            told.map_or_else(|| format!("{pc:#x}"), String::clone)
        },
    };
    notes.extend(ending.notes());
    let broke = ending.broke();
    if windows.is_some() || broke.is_some() {
        let mut header = header(options, windows.map(|_| tree.out.seen()));
        if let Some(chosen) = header.chosen.as_mut().filter(|_| whole) {
            (chosen.windows, chosen.references, chosen.warmed) = (1, None, false);
        }
        if let Some(broke) = &broke {
            mark(&mut header, broke);
        }
        tree.out.writer().header(&header);
    }
    // Without program counters, one site stands for many.
    if options.pcs {
        let (dependences, mispredictions) = std::mem::take(&mut tree.commons.dependences).tables();
        tree.out.writer().dependences(dependences);
        tree.out.writer().mispredictions(mispredictions);
    }
    let (finished, seen) = tree.out.finish();
    let stopped = stopped.or_else(|| recorder.nowhere(options));
    let all_skipped = || {
        (options.skip > 0 && seen <= options.skip).then(|| {
            format!(
                "nothing was recorded: the program made {seen} references, and the first {} were to be skipped",
                options.skip
            )
        })
    };
    let stopped = stopped.or_else(all_skipped);
    let (summary, failure) = match finished {
        Ok(summary) => (summary, stopped),
        Err(failure) => (kept(&failure), Some(failure.to_string())),
    };
    Ok(Outcome {
        exit,
        broke,
        interrupted: recorder.interrupted,
        ended_by_us: recorder.deadline.ended_it(),
        summary,
        references_seen: seen,
        notes,
        failure,
    })
}

/// The contents of the file although it could not be finished.
fn kept(failure: &TraceError) -> Summary {
    let (references, bytes) = match failure {
        TraceError::Write { references, bytes, .. } => (*references, *bytes),
        _ => (0, 0),
    };
    let bytes_per_reference = if references == 0 {
        0.0
    } else {
        bytes as f64 / references as f64
    };
    Summary {
        references,
        bytes,
        bytes_per_reference,
        events: 0,
        instructions: 0,
        threads: 0,
        sites: 0,
        chunks: 0,
    }
}

/// The connections of the processes under way.
struct Recorder {
    listener: packet::Listener,
    child: u32,
    /// The last signal that asked to end meanwhile.
    interrupted: Option<i32>,
    rings: BTreeMap<Connection, Ring>,
    next: Connection,
    greeted: u64,
    /// When something last arrived.
    heard: Option<Instant>,
    gate: Gate,
    deadline: Deadline,
    words: Vec<u64>,
    notes: Vec<String>,
}

impl Recorder {
    fn new(listener: packet::Listener, child: u32, options: &Options) -> Recorder {
        Recorder {
            listener,
            child,
            interrupted: None,
            rings: BTreeMap::new(),
            next: 0,
            greeted: 0,
            heard: None,
            gate: Gate::new(options.from.as_deref()),
            deadline: Deadline::new(options.duration, options.within, options.interrupt_ends),
            words: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Passes everything to `tree` until the program has ended. If an interrupt ended it, the next one ends this
    /// process, too.
    fn listen_to_the_end(
        &mut self,
        tree: &mut dyn Listener,
        supervisor: &mut Option<Supervisor>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<ExitStatus, CaptureError> {
        let Some(catching) = supervisor else {
            return Err(CaptureError::GivenUp);
        };
        let status = self.listen(tree, catching, progress)?;
        if self.deadline.given_up() {
            return Err(CaptureError::GivenUp);
        }
        if self.deadline.is_over() && !self.deadline.ended_it() {
            *supervisor = None;
        }
        Ok(status)
    }

    /// The same.
    fn listen(
        &mut self,
        tree: &mut dyn Listener,
        supervisor: &mut Supervisor,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<ExitStatus, CaptureError> {
        let mut ended = None;
        let mut reported = Instant::now();
        loop {
            self.wait(supervisor, ended.is_some())?;
            if ended.is_none() {
                // The program decides how to react.
                if let Some(signal) = supervisor.pass_on(self.child) {
                    self.interrupted = Some(signal);
                    if self.deadline.interrupted(signal, self.child) {
                        self.hang_up(tree);
                    }
                }
                ended = supervisor
                    .ended(self.child)
                    .map_err(CaptureError::system("cannot wait for the program"))?;
            }
            if ended.is_none() {
                self.watch_the_time(tree);
            }
            self.accept()?;
            let mut moved = self.take(tree);
            if moved {
                self.heard = Some(Instant::now());
            }
            while moved && reported.elapsed() < PROGRESS_EVERY {
                self.accept()?;
                moved = self.take(tree);
            }
            if reported.elapsed() >= PROGRESS_EVERY {
                reported = Instant::now();
                let (references, bytes) = tree.progress();
                progress(Progress {
                    references,
                    bytes,
                    finishing: false,
                });
            }
            if tree.failed() {
                self.rings.values_mut().for_each(Ring::hang_up);
                self.rings.clear();
            }
            if let Some(status) = ended
                && !moved
            {
                self.leave(tree);
                return Ok(status);
            }
        }
    }

    /// Waits until a message comes. Once the program has ended, only messages that were sent before are of interest.
    fn wait(&self, supervisor: &Supervisor, ended: bool) -> Result<(), CaptureError> {
        let mut sources = vec![supervisor.as_fd(), self.listener.as_fd()];
        sources.extend(self.rings.values().filter_map(Ring::peer).map(|p| p.as_fd()));
        packet::wait(&sources, if ended { 0 } else { GLANCE_MS })
            .map_err(CaptureError::system("cannot wait for the tool"))?;
        Ok(())
    }

    fn accept(&mut self) -> Result<(), CaptureError> {
        loop {
            match self.listener.accept() {
                // When the time is up, new connections are dropped.
                Ok(Some(_)) if self.deadline.is_over() => {}
                Ok(Some(peer)) => {
                    self.rings.insert(self.next, Ring::new(peer));
                    self.next += 1;
                }
                Ok(None) => break,
                // Out of descriptors: the process waits in the queue until another has ended.
                Err(e) if !self.rings.is_empty() => {
                    self.note(format!("some processes had to wait to be recorded: {e}"));
                    break;
                }
                Err(source) => {
                    return Err(CaptureError::System {
                        what: "cannot accept the tool",
                        source,
                    });
                }
            }
        }
        for ring in self.rings.values_mut() {
            ring.listen();
        }
        Ok(())
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Takes one slot of each ring that may continue; returns whether there was any.
    fn take(&mut self, tree: &mut dyn Listener) -> bool {
        let mut moved = false;
        for id in self.rings.keys().copied().collect::<Vec<_>>() {
            let Some(ring) = self.rings.get(&id) else { continue };
            if let Some(hello) = ring.hello
                && !ring.opened
            {
                if self.must_wait_to_open(id, &hello) {
                    continue;
                }
                self.greeted += 1;
                self.gate.open(tree, id, hello);
                moved = true;
            }
            if self.must_wait(ring) {
                continue;
            }
            let Some(ring) = self.rings.get_mut(&id) else { continue };
            ring.opened |= ring.hello.is_some();
            if ring.take(&mut self.words) {
                self.gate.words(tree, id, &self.words);
                moved = true;
            }
            if ring.finished() {
                let fault = ring.fault;
                let opened = ring.opened;
                self.rings.remove(&id);
                if opened {
                    self.gate.close(tree, id);
                }
                if let Some(fault) = fault {
                    self.note(fault.to_string());
                }
                moved = true;
            }
        }
        moved
    }

    /// A forked child comes after what its parent did before the fork; a program that replaced
    /// another comes after it.
    fn must_wait_to_open(&self, id: Connection, hello: &Hello) -> bool {
        self.rings
            .iter()
            .filter(|(other, _)| **other < id)
            .any(|(_, ring)| match ring.hello {
                Some(other) if hello.forked && other.pid == hello.parent => ring.taken < hello.parent_slots,
                Some(other) => other.pid == hello.pid,
                None => false,
            })
    }

    /// The words after a wait come after everything that the awaited process did. (The tool
    /// begins a slot for it.)
    fn must_wait(&self, ring: &Ring) -> bool {
        let Some((head, pid)) = ring.peek() else { return false };
        let waited = wire::kind(head) == wire::RECORD && (head >> 48 & 0xfff) as u32 == kind::WAITED;
        waited
            && self
                .rings
                .values()
                .any(|r| r.hello.is_some_and(|h| u64::from(h.pid) == pid))
    }

    /// Ends the recording when its time is up, and then the program.
    fn watch_the_time(&mut self, tree: &mut dyn Listener) {
        // A program that blocks soon after its beginning sends so little that nothing has arrived.
        let silent = self.heard.is_some_and(|heard| heard.elapsed() > SILENCE);
        if self.gate.entered() && self.greeted > 0 || self.gate.is_at_the_beginning() && silent {
            self.deadline.begin();
        }
        if let Some(note) = self.deadline.look(self.child) {
            // The rest of a program's words comes when it ends, if the program is still waited for.
            if self.gate.entered() {
                self.hang_up(tree);
            }
            self.note(note);
        }
    }

    /// The reason why nothing was recorded, if no process reached the function at which recording was to begin.
    fn nowhere(&self, options: &Options) -> Option<String> {
        let function = options.from.as_ref().filter(|_| !self.gate.entered())?;
        if function == interpreted::BEGINS {
            let none = "nothing was recorded: the program entered no `with domicile.recording():`; it needs the package `domicile`";
            return Some(none.to_string());
        }
        Some(format!(
            "nothing was recorded: no process entered `{function}`; functions are found by their symbols, and those that the \
             compiler put into their callers (inlined) are entered by nobody"
        ))
    }

    /// The program has ended: children that still run continue unrecorded.
    fn leave(&mut self, tree: &mut dyn Listener) {
        let running = self.rings.values().filter(|r| !r.ended()).count();
        if running > 0 {
            self.note(format!(
                "{running} processes outlived the program; they were recorded until it ended"
            ));
        }
        self.hang_up(tree);
    }

    /// Takes the words that have arrived, and stops listening: programs that still run continue unrecorded.
    fn hang_up(&mut self, tree: &mut dyn Listener) {
        for (id, mut ring) in std::mem::take(&mut self.rings) {
            ring.hang_up();
            ring.listen();
            if ring.opened {
                while ring.take(&mut self.words) {
                    self.gate.words(tree, id, &self.words);
                }
                self.gate.close(tree, id);
            }
        }
    }
}
