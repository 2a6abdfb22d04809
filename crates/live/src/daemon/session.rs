//! One connection: its frames, the pages that it may ask about, and its debts.
//!
//! The daemon believes nothing that a client says. It looks for frames that the client claims to have freed. It reports
//! a page's color only if the client asked to fill the page, or if the page holds a frame that came from here. So it
//! remembers frames and not addresses: a client may move its pages.
//!
//! A request that needs a look at the client's page map is answered in two steps: [`Session::answer`] names the pages
//! to look at, [`Session::answer_seen`] continues with the result ([`super::looks`]). In between only the client waits.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::BuildHasherDefault;
use std::sync::Arc;
use std::time::Instant;

use policy::slots::Owner;
use sys::frames::{Entry, Pagemap};
use sys::packet::Peer;
use sys::peer::Identity;

use super::account::{Account, Frames, Spread};
use super::asked::{Left, Pending, Purpose, Reply, too_slow};
use super::broker::{Broker, Refused, failed};
use super::looks::Task;
use super::users::{User, Users};
use super::wire::{Answer, Refusal, Request, Run, UNKNOWN, VERSION, Want};
use crate::PAGE_BYTES;

/// Pages taken and not looked at yet, at most.
const UNSEEN_PAGES: usize = 1 << 16;
/// Slots and data sets of one connection, at most.
const THINGS: u32 = 4096;
/// Slots and data sets of one user, at most.
const THINGS_OF_USER: u32 = 16_384;

pub struct Session {
    pub peer: Peer,
    pub who: Arc<Identity>,
    pub since: Instant,
    pub greeted: bool,
    pub owner: Owner,
    /// The look that it waits for.
    pub look: Option<Pending>,
    /// A look that was given up and is not over.
    pub stuck: Option<u64>,
    /// True while its messages are not read.
    pub paused: bool,
    /// The frames released for it and not looked at yet.
    taken: VecDeque<Taken>,
    taken_pages: usize,
    /// Its page map; none before it was opened.
    map: Option<Arc<Pagemap>>,
    account: Account,
    /// Frames that it got in place of others, with the page that got each: their colors may be asked for until that
    /// page is freed or filled again.
    strange: Strange,
    /// The frames that it is about to free.
    leaving: Option<(Run, Vec<Option<u64>>)>,
    things: u32,
    /// Room for a look.
    entries: Vec<Entry>,
}

/// Frames, and the number of the page that each was in.
type Strange = HashMap<u64, u64, BuildHasherDefault<Spread>>;

struct Taken {
    start: u64,
    /// Each want, and the frame that was released for it.
    wants: Vec<(Want, u64)>,
}

impl Session {
    /// Pre: the ledger knows `owner`.
    pub fn new(peer: Peer, who: Arc<Identity>, owner: Owner, now: Instant) -> Session {
        Session {
            peer,
            who,
            since: now,
            greeted: false,
            owner,
            look: None,
            stuck: None,
            paused: true,
            taken: VecDeque::new(),
            taken_pages: 0,
            map: None,
            account: Account::default(),
            strange: Strange::default(),
            leaving: None,
            things: 0,
            entries: Vec::new(),
        }
    }

    /// Pre: the page map is its process's.
    pub fn opened(&mut self, map: Pagemap) {
        self.map = Some(Arc::new(map));
    }

    /// The task of a look at these pages. Errors: an earlier one is stuck.
    pub fn task(&mut self, run: Run) -> Result<Task, Refused> {
        match &self.map {
            Some(map) if self.stuck.is_none() => {
                let entries = std::mem::take(&mut self.entries);
                Ok(Task::Pages(Arc::clone(map), run, entries))
            }
            _ => Err(too_slow()),
        }
    }

    /// Frames that count against its user's quota.
    pub fn charged(&self) -> u64 {
        self.account.charged
    }

    /// Takes over the frames that the process has kept from an earlier connection.
    pub fn resume(&mut self, kept: Account) {
        self.account.add(kept);
    }

    /// Ends it, and returns the frames that its process may still have.
    pub fn close(mut self, users: &mut Users) -> Account {
        let unseen = self.taken.iter().flat_map(|taken| &taken.wants);
        self.account.away.extend(unseen.map(|(_, frame)| *frame));
        if let Some(user) = users.of(self.who.user) {
            user.things = user.things.saturating_sub(self.things);
        }
        self.account
    }

    pub fn answer(&mut self, broker: &mut Broker, request: Request, now: Instant) -> Result<Reply, Refused> {
        match request {
            Request::Look { run } if self.greeted => Ok(Reply::Seen(run, Purpose::Look(run))),
            Request::Leave { run } if self.greeted => Ok(Reply::Seen(run, Purpose::Leave(run))),
            Request::Adopt { run } if self.greeted => Ok(Reply::Seen(run, Purpose::Adopt)),
            Request::Left { cpu } if self.greeted => match self.leaving.take() {
                Some((run, frames)) => Ok(Reply::Seen(run, Purpose::Left(Left { frames, cpu }))),
                None => Err((Refusal::Invalid, "nothing was said to be leaving".into())),
            },
            request => self.answer_now(broker, request, now).map(Reply::Now),
        }
    }

    /// Continues with the result of a look.
    pub fn answer_seen(
        &mut self,
        broker: &mut Broker,
        purpose: Purpose,
        entries: Vec<Entry>,
        now: Instant,
    ) -> Result<Answer, Refused> {
        self.entries = entries;
        match purpose {
            Purpose::Open => Ok(Answer::Done),
            Purpose::Look(run) => self.look(broker, run, now),
            Purpose::Leave(run) => Ok(self.leave(run)),
            Purpose::Left(left) => self.left(broker, left, now),
            Purpose::Adopt => self.adopt(broker),
        }
    }

    fn answer_now(&mut self, broker: &mut Broker, request: Request, now: Instant) -> Result<Answer, Refused> {
        match (self.greeted, &request) {
            (false, Request::Hello { version }) if *version == VERSION => {
                self.greeted = true;
                return Ok(Answer::Welcome {
                    version: VERSION,
                    colors: broker.stock.colors().clone(),
                });
            }
            (false, Request::Hello { version }) => {
                let text = format!("the daemon speaks version {VERSION} and the client {version}; install one release");
                return Err((Refusal::Protocol, text));
            }
            (false, _) | (true, Request::Hello { .. }) => {
                return Err((Refusal::Protocol, "the greeting comes first, and once".into()));
            }
            (true, _) => {}
        }
        match request {
            Request::Hello { .. }
            | Request::Look { .. }
            | Request::Leave { .. }
            | Request::Left { .. }
            | Request::Adopt { .. } => Err((Refusal::Protocol, "not its turn".into())),
            Request::Take { cpu, start, wants } => self.take(broker, cpu, start, wants, now),
            Request::Stock => Ok(Answer::Stock {
                frames: broker.stock.by_color().collect(),
            }),
            Request::Status => Ok(Answer::Status(broker.status(now))),
            Request::Available { cpus } => broker.available(&cpus),
            Request::Slot { bytes, private } => {
                self.thing(broker, 1, |broker, owner| broker.slot(owner, bytes, private))
            }
            Request::Allocate { slot, bytes, cpus } => {
                self.thing(broker, 1, |broker, owner| broker.allocate(owner, slot, bytes, &cpus))
            }
            Request::Claim { private, cpus, colors } => {
                self.thing(broker, 2, |broker, owner| broker.claim(owner, private, &cpus, &colors))
            }
            Request::Free { set } => {
                let done = broker.free(self.owner, set);
                self.nothing(broker, done)
            }
            Request::Close { slot } => {
                let done = broker.close(self.owner, slot);
                self.nothing(broker, done)
            }
        }
    }

    /// Something that adds `count` to what the ledger keeps for this connection.
    fn thing(
        &mut self,
        broker: &mut Broker,
        count: u32,
        make: impl FnOnce(&mut Broker, Owner) -> Result<Answer, Refused>,
    ) -> Result<Answer, Refused> {
        if self.things + count > THINGS {
            let text = format!("an application may have {THINGS} slots and data sets; free some");
            return Err((Refusal::Crowded, text));
        }
        if self.user(broker)?.things + count > THINGS_OF_USER {
            let text = format!("a user may have {THINGS_OF_USER} slots and data sets; free some");
            return Err((Refusal::Crowded, text));
        }
        let answer = make(broker, self.owner)?;
        self.things += count;
        self.user(broker)?.things += count;
        Ok(answer)
    }

    fn nothing(&mut self, broker: &mut Broker, done: Result<Answer, Refused>) -> Result<Answer, Refused> {
        if done.is_ok() {
            self.things = self.things.saturating_sub(1);
            let user = self.user(broker)?;
            user.things = user.things.saturating_sub(1);
        }
        done
    }

    fn user<'a>(&self, broker: &'a mut Broker) -> Result<&'a mut User, Refused> {
        let user = broker.users.of(self.who.user);
        user.ok_or_else(|| (Refusal::Failed, "the user has no connection".into()))
    }

    fn take(
        &mut self,
        broker: &mut Broker,
        cpu: u32,
        start: u64,
        wants: Vec<Want>,
        now: Instant,
    ) -> Result<Answer, Refused> {
        let colors = broker.stock.colors().count();
        if let Some(want) = wants.iter().find(|want| u32::from(want.color) >= colors) {
            let text = format!("color {} was asked for; there are {colors}", want.color);
            return Err((Refusal::Invalid, text));
        }
        if self.taken_pages + wants.len() > UNSEEN_PAGES {
            let text = format!("{UNSEEN_PAGES} pages were taken and not looked at; look at them first");
            return Err((Refusal::Invalid, text));
        }
        let limit = broker.users.limits().frames;
        let user = self.user(broker)?;
        let count = wants.len() as u64;
        if user.held + count > limit {
            let mib = |frames: u64| (frames * PAGE_BYTES as u64) >> 20;
            let text = format!(
                "user {} holds {} MiB of frames from the daemon and may hold {} MiB",
                self.who.user,
                mib(user.held),
                mib(limit)
            );
            return Err((Refusal::Quota, text));
        }
        if !user.frames.take(count, now) {
            let text = "frames are taken faster than they are collected; use your own, or try again later";
            return Err((Refusal::Pace, text.into()));
        }
        self.forget_strange(start, &wants);
        let released = match broker.attend(cpu, now) {
            Ok(()) => broker
                .stock
                .release(wants.iter().map(|want| want.color))
                .map_err(failed),
            Err(refused) => Err(refused),
        };
        let user = self.user(broker)?;
        let met = match released {
            Ok(met) => met,
            Err(refused) => {
                user.frames.put(count);
                return Err(refused);
            }
        };
        let there = met.iter().flatten().count() as u64;
        user.frames.put(count - there);
        user.held += there;
        self.account.charged += there;
        let wants: Vec<(Want, u64)> = wants
            .into_iter()
            .zip(&met)
            .filter_map(|(want, frame)| frame.map(|frame| (want, frame)))
            .collect();
        self.taken_pages += wants.len();
        if !wants.is_empty() {
            self.taken.push_back(Taken { start, wants });
        }
        let met = met.iter().map(Option::is_some).collect();
        Ok(Answer::Released { met })
    }

    fn look(&mut self, broker: &mut Broker, run: Run, now: Instant) -> Result<Answer, Refused> {
        let color = |frame: u64| broker.stock.colors().of(frame) as u16;
        let mut of: Vec<u16> = vec![UNKNOWN; self.entries.len()];
        let mut hits = 0;
        let mut missed = Vec::new();
        let first = run.start / PAGE_BYTES as u64;
        for taken in &mut self.taken {
            let start = taken.start / PAGE_BYTES as u64;
            taken.wants.retain(|(want, released)| {
                let page = (start + u64::from(want.page)).wrapping_sub(first);
                let Some(entry) = usize::try_from(page).ok().and_then(|page| self.entries.get(page)) else {
                    return true;
                };
                let frame = entry.frame().filter(|_| !entry.of_file());
                if let Some(frame) = frame {
                    of[page as usize] = color(frame);
                }
                match frame.filter(|frame| color(*frame) == want.color) {
                    Some(frame) => {
                        hits += 1;
                        self.account.held.insert(frame);
                    }
                    // The page has a frame of the kernel's choice, or none: ours went elsewhere.
                    None => {
                        missed.push(*released);
                        self.strange.extend(frame.map(|frame| (frame, first + page)));
                    }
                }
                false
            });
        }
        if self.strange.len() > UNSEEN_PAGES {
            self.strange.clear();
        }
        self.taken.retain(|taken| !taken.wants.is_empty());
        for (color_of, entry) in of.iter_mut().zip(&self.entries).filter(|(color, _)| **color == UNKNOWN) {
            if let Some(frame) = entry.frame()
                && (self.account.held.contains(&frame) || self.strange.contains_key(&frame))
            {
                *color_of = color(frame);
            }
        }
        let misses = missed.len() as u64;
        broker.metrics.hits += hits;
        broker.metrics.misses += misses;
        self.taken_pages -= (hits + misses) as usize;
        // A frame that went elsewhere may have gone to another page of the same client. For misses there is as much trust as
        // for frames that are freed unseen, and a client that gets its frames earns more.
        let user = self.user(broker)?;
        user.trust.put(hits / 2);
        let believed = user.trust.take_some(misses, now);
        self.account.away.extend(missed.into_iter().skip(believed as usize));
        self.discharge(broker, believed)?;
        Ok(Answer::Colors { of })
    }

    /// Takes so many frames off the account.
    fn discharge(&mut self, broker: &mut Broker, frames: u64) -> Result<(), Refused> {
        let frames = frames.min(self.account.charged);
        self.account.charged -= frames;
        let user = self.user(broker)?;
        user.held = user.held.saturating_sub(frames);
        Ok(())
    }

    /// Refilled pages have lost their old frames: the kernel may hand these to any page.
    fn forget_strange(&mut self, start: u64, wants: &[Want]) {
        if self.strange.is_empty() {
            return;
        }
        let first = start / PAGE_BYTES as u64;
        let pages: HashSet<u64> = wants.iter().map(|want| first + u64::from(want.page)).collect();
        self.strange.retain(|_, page| !pages.contains(page));
    }

    fn leave(&mut self, run: Run) -> Answer {
        for frame in self.entries.iter().filter_map(|entry| entry.frame()) {
            self.strange.remove(&frame);
        }
        let frames: Vec<_> = self
            .entries
            .iter()
            .map(|entry| entry.frame().filter(|frame| self.account.held.contains(frame)))
            .collect();
        let pages = frames.iter().flatten().count() as u32;
        self.leaving = Some((run, frames));
        Answer::Count { pages }
    }

    fn left(&mut self, broker: &mut Broker, left: Left, now: Instant) -> Result<Answer, Refused> {
        let Left { frames, cpu } = left;
        if broker.takes_back {
            broker.attend(cpu, now)?;
        }
        let mut gone: Vec<u64> = frames
            .iter()
            .zip(&self.entries)
            .filter(|(frame, entry)| entry.frame() != **frame)
            .filter_map(|(frame, _)| *frame)
            // Many pages may show one frame, as all that are full of zeros do: it counts once.
            .filter(|frame| self.account.held.remove(frame))
            .collect();
        let mut seen = 0;
        if broker.takes_back && !gone.is_empty() {
            let came = match broker.stock.take_back(gone.len()) {
                Ok(came) => came.into_iter().collect::<Frames>(),
                Err(error) => {
                    self.account.away.extend(gone);
                    return Err(failed(error));
                }
            };
            let before = gone.len();
            gone.retain(|frame| !came.contains(frame));
            seen = (before - gone.len()) as u64;
        }
        let unseen = gone.len() as u64;
        broker.metrics.unseen += unseen;
        // A page that is gone here may have been moved elsewhere. A page that came back is proof; the rest
        // is trusted within limits.
        let takes_back = broker.takes_back;
        let user = self.user(broker)?;
        let believed = if takes_back {
            user.trust.take_some(unseen, now)
        } else {
            unseen
        };
        user.frames.put(seen);
        self.account.away.extend(gone.into_iter().skip(believed as usize));
        self.discharge(broker, seen + believed)?;
        Ok(Answer::Count {
            pages: (seen + believed) as u32,
        })
    }

    fn adopt(&mut self, broker: &mut Broker) -> Result<Answer, Refused> {
        let fresh: Frames = self
            .entries
            .iter()
            .filter(|entry| !entry.of_file())
            .filter_map(|entry| entry.frame())
            .filter(|frame| !self.account.held.contains(frame))
            .collect();
        let limit = broker.users.limits().frames;
        let user = self.user(broker)?;
        let count = fresh.len() as u64;
        if user.held + count > limit {
            return Err((Refusal::Quota, "more frames than a user may hold".into()));
        }
        user.held += count;
        self.account.charged += count;
        self.account.held.extend(fresh);
        Ok(Answer::Count { pages: count as u32 })
    }
}
