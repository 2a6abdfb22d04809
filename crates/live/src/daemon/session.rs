//! One connection: what it took, what it may ask about, and what it owes.
//!
//! Nothing that a client says is believed. Frames that it says it freed are looked for; a page's color is told only
//! where it was asked to be filled or holds a frame that came from here, which is why the frames are remembered and
//! not the addresses: a client may move its pages.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::io;
use std::time::Instant;

use policy::slots::Owner;
use sys::frames::{Entry, Pagemap};
use sys::packet::Peer;
use sys::peer::Identity;

use super::desk::{Desk, Refused, failed};
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
    pub who: Identity,
    pub since: Instant,
    pub greeted: bool,
    pub owner: Owner,
    /// What was released for it and not looked at yet.
    taken: VecDeque<Taken>,
    taken_pages: usize,
    account: Account,
    /// Frames that it got in place of others: their colors may be asked for, no more.
    strange: Frames,
    /// What it is about to free.
    leaving: Option<(Run, Vec<Option<u64>>)>,
    things: u32,
    entries: Vec<Entry>,
}

/// What an address space holds.
#[derive(Debug)]
pub struct Account {
    map: Pagemap,
    /// Frames that it got, and how many it is charged for.
    held: Frames,
    charged: u64,
}

impl Account {
    pub fn new(map: Pagemap) -> Account {
        Account {
            map,
            held: Frames::default(),
            charged: 0,
        }
    }

    pub fn charge(&mut self, frames: u64) {
        self.charged += frames;
    }

    pub fn charged(&self) -> u64 {
        self.charged
    }

    /// Whether there is nothing to answer for any more, or nobody.
    pub fn is_settled(&self) -> bool {
        self.charged == 0 || !self.map.lives()
    }

    /// Pre: of the same address space.
    pub fn add(&mut self, other: Account) {
        self.held.extend(other.held);
        self.charged += other.charged;
    }
}

struct Taken {
    start: u64,
    wants: Vec<Want>,
}

impl Session {
    /// Pre: the ledger knows `owner`. Errors: the process is gone.
    pub fn new(peer: Peer, who: Identity, owner: Owner, now: Instant) -> io::Result<Session> {
        let map = who.pagemap()?;
        Ok(Session {
            peer,
            who,
            since: now,
            greeted: false,
            owner,
            taken: VecDeque::new(),
            taken_pages: 0,
            account: Account::new(map),
            strange: Frames::default(),
            leaving: None,
            things: 0,
            entries: Vec::new(),
        })
    }

    /// Frames that count against its user's quota.
    pub fn charged(&self) -> u64 {
        self.account.charged
    }

    /// Answers for what the process has kept from an earlier connection.
    pub fn resume(&mut self, kept: Account) {
        self.account.add(kept);
    }

    /// Ends it; what it leaves behind.
    pub fn close(self, users: &mut Users) -> Account {
        if let Some(user) = users.of(self.who.user) {
            user.things = user.things.saturating_sub(self.things);
        }
        self.account
    }

    pub fn answer(&mut self, desk: &mut Desk, request: Request, now: Instant) -> Result<Answer, Refused> {
        match (self.greeted, &request) {
            (false, Request::Hello { version }) if *version == VERSION => {
                self.greeted = true;
                return Ok(Answer::Welcome {
                    version: VERSION,
                    colors: desk.stock.colors().clone(),
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
            Request::Hello { .. } => Err((Refusal::Protocol, "the greeting comes once".into())),
            Request::Take { cpu, start, wants } => self.take(desk, cpu, start, wants, now),
            Request::Look { run } => self.look(desk, run, now),
            Request::Leave { run } => self.leave(run),
            Request::Left { cpu } => self.left(desk, cpu, now),
            Request::Adopt { run } => self.adopt(desk, run),
            Request::Stock => Ok(Answer::Stock {
                frames: desk.stock.by_color().collect(),
            }),
            Request::Status => Ok(Answer::Status(desk.status(now))),
            Request::Available { cpus } => desk.available(&cpus),
            Request::Slot { bytes, private } => self.thing(desk, 1, |desk, owner| desk.slot(owner, bytes, private)),
            Request::Allocate { slot, bytes, cpus } => {
                self.thing(desk, 1, |desk, owner| desk.allocate(owner, slot, bytes, &cpus))
            }
            Request::Claim { private, cpus, colors } => {
                self.thing(desk, 2, |desk, owner| desk.claim(owner, private, &cpus, &colors))
            }
            Request::Free { set } => {
                let done = desk.free(self.owner, set);
                self.nothing(desk, done)
            }
            Request::Close { slot } => {
                let done = desk.close(self.owner, slot);
                self.nothing(desk, done)
            }
        }
    }

    /// Something that adds `count` to what the ledger keeps for this connection.
    fn thing(
        &mut self,
        desk: &mut Desk,
        count: u32,
        make: impl FnOnce(&mut Desk, Owner) -> Result<Answer, Refused>,
    ) -> Result<Answer, Refused> {
        if self.things + count > THINGS {
            let text = format!("an application may have {THINGS} slots and data sets; free some");
            return Err((Refusal::Crowded, text));
        }
        if self.user(desk)?.things + count > THINGS_OF_USER {
            let text = format!("a user may have {THINGS_OF_USER} slots and data sets; free some");
            return Err((Refusal::Crowded, text));
        }
        let answer = make(desk, self.owner)?;
        self.things += count;
        self.user(desk)?.things += count;
        Ok(answer)
    }

    fn nothing(&mut self, desk: &mut Desk, done: Result<Answer, Refused>) -> Result<Answer, Refused> {
        if done.is_ok() {
            self.things = self.things.saturating_sub(1);
            let user = self.user(desk)?;
            user.things = user.things.saturating_sub(1);
        }
        done
    }

    fn user<'a>(&self, desk: &'a mut Desk) -> Result<&'a mut User, Refused> {
        let user = desk.users.of(self.who.user);
        user.ok_or_else(|| (Refusal::Failed, "the user has no connection".into()))
    }

    fn take(
        &mut self,
        desk: &mut Desk,
        cpu: u32,
        start: u64,
        mut wants: Vec<Want>,
        now: Instant,
    ) -> Result<Answer, Refused> {
        let colors = desk.stock.colors().count();
        if let Some(want) = wants.iter().find(|want| u32::from(want.color) >= colors) {
            let text = format!("color {} was asked for; there are {colors}", want.color);
            return Err((Refusal::Invalid, text));
        }
        if self.taken_pages + wants.len() > UNSEEN_PAGES {
            let text = format!("{UNSEEN_PAGES} pages were taken and not looked at; look at them first");
            return Err((Refusal::Invalid, text));
        }
        let limit = desk.users.limits().frames;
        let user = self.user(desk)?;
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
        let released = match desk.attend(cpu, now) {
            Ok(()) => desk.stock.release(wants.iter().map(|want| want.color)).map_err(failed),
            Err(refused) => Err(refused),
        };
        let user = self.user(desk)?;
        let met = match released {
            Ok(met) => met,
            Err(refused) => {
                user.frames.put(count);
                return Err(refused);
            }
        };
        let there = met.iter().filter(|met| **met).count() as u64;
        user.frames.put(count - there);
        user.held += there;
        self.account.charge(there);
        let mut each = met.iter();
        wants.retain(|_| each.next() == Some(&true));
        self.taken_pages += wants.len();
        if !wants.is_empty() {
            self.taken.push_back(Taken { start, wants });
        }
        Ok(Answer::Released { met })
    }

    /// Pre: the run was decoded, so it lies in user space.
    fn read(&mut self, run: Run) -> Result<(), Refused> {
        self.entries.clear();
        self.entries.resize(run.count as usize, Entry::default());
        self.account
            .map
            .read(run.start as usize, &mut self.entries)
            .map_err(failed)
    }

    fn look(&mut self, desk: &mut Desk, run: Run, now: Instant) -> Result<Answer, Refused> {
        self.read(run)?;
        let color = |frame: u64| desk.stock.colors().of(frame) as u16;
        let mut of: Vec<u16> = vec![UNKNOWN; self.entries.len()];
        let (mut hits, mut misses) = (0, 0);
        let first = run.start / PAGE_BYTES as u64;
        for taken in &mut self.taken {
            let start = taken.start / PAGE_BYTES as u64;
            taken.wants.retain(|want| {
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
                    // It has a frame of the kernel's choice, or none: ours went elsewhere.
                    None => {
                        misses += 1;
                        self.strange.extend(frame);
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
                && (self.account.held.contains(&frame) || self.strange.contains(&frame))
            {
                *color_of = color(frame);
            }
        }
        desk.metrics.hits += hits;
        desk.metrics.misses += misses;
        self.taken_pages -= (hits + misses) as usize;
        // A frame that went elsewhere may have gone to another page of the same client. For misses there is as much trust as
        // for frames that are freed unseen, and a client that gets its frames earns more.
        let user = self.user(desk)?;
        user.trust.put(hits / 2);
        let believed = user.trust.take_some(misses, now);
        self.discharge(desk, believed)?;
        Ok(Answer::Colors { of })
    }

    /// So many frames count no more.
    fn discharge(&mut self, desk: &mut Desk, frames: u64) -> Result<(), Refused> {
        let frames = frames.min(self.account.charged);
        self.account.charged -= frames;
        let user = self.user(desk)?;
        user.held = user.held.saturating_sub(frames);
        Ok(())
    }

    fn leave(&mut self, run: Run) -> Result<Answer, Refused> {
        self.read(run)?;
        let frames: Vec<_> = self
            .entries
            .iter()
            .map(|entry| entry.frame().filter(|frame| self.account.held.contains(frame)))
            .collect();
        let pages = frames.iter().flatten().count() as u32;
        self.leaving = Some((run, frames));
        Ok(Answer::Count { pages })
    }

    fn left(&mut self, desk: &mut Desk, cpu: u32, now: Instant) -> Result<Answer, Refused> {
        let Some((run, frames)) = self.leaving.take() else {
            return Err((Refusal::Invalid, "nothing was said to be leaving".into()));
        };
        self.read(run)?;
        let gone: Vec<u64> = frames
            .iter()
            .zip(&self.entries)
            .filter(|(frame, entry)| entry.frame() != **frame)
            .filter_map(|(frame, _)| *frame)
            // Many pages may show one frame, as all that are full of zeros do: it counts once.
            .filter(|frame| self.account.held.remove(frame))
            .collect();
        let mut seen = 0;
        if desk.takes_back && !gone.is_empty() {
            desk.attend(cpu, now)?;
            let came: Frames = desk.stock.take_back(gone.len()).map_err(failed)?.into_iter().collect();
            seen = gone.iter().filter(|frame| came.contains(*frame)).count() as u64;
        }
        let unseen = gone.len() as u64 - seen;
        desk.metrics.unseen += unseen;
        // A page that is gone here may have been moved elsewhere. What came back proves itself; for the rest
        // there is a measure of trust.
        let takes_back = desk.takes_back;
        let user = self.user(desk)?;
        let believed = if takes_back {
            user.trust.take_some(unseen, now)
        } else {
            unseen
        };
        user.frames.put(seen);
        self.discharge(desk, seen + believed)?;
        Ok(Answer::Count {
            pages: (seen + believed) as u32,
        })
    }

    fn adopt(&mut self, desk: &mut Desk, run: Run) -> Result<Answer, Refused> {
        self.read(run)?;
        let fresh: Frames = self
            .entries
            .iter()
            .filter(|entry| !entry.of_file())
            .filter_map(|entry| entry.frame())
            .filter(|frame| !self.account.held.contains(frame))
            .collect();
        let limit = desk.users.limits().frames;
        let user = self.user(desk)?;
        let count = fresh.len() as u64;
        if user.held + count > limit {
            return Err((Refusal::Quota, "more frames than a user may hold".into()));
        }
        user.held += count;
        self.account.charge(count);
        self.account.held.extend(fresh);
        Ok(Answer::Count { pages: count as u32 })
    }
}

/// Numbers of frames. The kernel gives them out, so nobody can choose ones that collide.
type Frames = HashSet<u64, BuildHasherDefault<Spread>>;

#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 << 8 | u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}
