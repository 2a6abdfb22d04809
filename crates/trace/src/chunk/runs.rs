//! Runs of bodies to columns.
//!
//! A body is a stretch of a program that is entered at its top: its sites follow one another every time. So only its
//! first site needs a prediction, and the addresses of four sites are compared with the predicted ones at once. The
//! result is the same chunk that [`super::Encoder`] makes from single references, except that a site is named once for
//! each body that has it: within a body each site then has a fixed successor.

use super::bodies::{Four, Known, NO_SITES, NOBODY, NOTHING, before, find, insert, link};
use super::encoded::Encoded;
use super::{NEW_INSNS, NEW_SITE};
use crate::error::TraceError;
use crate::limits;
use crate::model::Ref;

/// The description of a body that [`crate::Writer::runs`] takes.
#[derive(Clone, Copy, Debug)]
pub struct Body<'a> {
    /// Its references without addresses; the instructions of the first count from the entry.
    pub refs: &'a [Ref],
    /// All its instructions.
    pub insns: u16,
    /// Those after its last reference.
    pub tail: u16,
}

/// The top four bits of a word that names a body.
const HEAD: u64 = 0x9;
/// The top four bits of a word for a previous run that was left early.
const LEFT: u64 = 0xa;
/// The top bit marks words that are not addresses.
const TAGGED: u64 = 1 << 63;
/// Instead of a head: the body is one site, whose number follows.
const SINGLE: u64 = 1 << 62;

/// Encodes one chunk after the other.
#[derive(Default)]
pub struct Coder {
    pub encoded: Encoded,
    known: Vec<Known>,
    fours: Vec<Four>,
    /// Bodies by head: open addressing, 0 for none.
    table: Vec<u32>,
    /// The previous body, and the last one with sites.
    cur: u32,
    here: u32,
}

/// Words that are examined together: a head, four addresses, and one more word.
const AHEAD: usize = 6;

/// The result of [`Coder::runs`].
pub struct Taken {
    pub words: usize,
    pub refs: usize,
    /// The next run has no room in the chunk.
    pub full: bool,
}

impl Coder {
    /// Begins a chunk, to be encoded to `encoded`; returns the previous one.
    pub fn begin(&mut self, encoded: Encoded) -> Encoded {
        self.known.clear();
        self.known.push(NOBODY);
        self.fours.clear();
        self.fours.push(NO_SITES);
        self.table.fill(0);
        (self.cur, self.here) = (0, 0);
        std::mem::replace(&mut self.encoded, encoded)
    }

    /// Its memory, in references' worth.
    pub fn weight(&self) -> usize {
        self.encoded.refs + 3 * self.known.len() + 8 * self.fours.len() + self.table.len() / 4
    }

    /// Encodes ordinary runs. `carried` are the instructions since the last reference, before and after. At most `most`
    /// references are taken.
    pub fn runs<'b>(
        &mut self,
        words: &[u64],
        carried: &mut u64,
        most: usize,
        bodies: &dyn Fn(u64) -> Option<Body<'b>>,
    ) -> Taken {
        let mut at = 0;
        let begun = self.encoded.refs;
        let stop = begun.saturating_add(most).min(limits::CHUNK_REFS);
        let full = loop {
            let rest = words.len() - at;
            let stopped = if rest >= AHEAD {
                self.on(words, &mut at, words.len(), carried, stop)
            } else {
                // The last words, with padding, so that there are enough to examine together.
                let mut last = [0; 2 * AHEAD];
                last[..rest].copy_from_slice(&words[at..]);
                let mut on = 0;
                let stopped = self.on(&last, &mut on, rest, carried, stop);
                at += on;
                stopped
            };
            let refs = match stopped {
                Stopped::Unusual => break false,
                Stopped::Last => continue,
                // Lines of wide references are counted one by one.
                Stopped::New(head) => {
                    match bodies(head).filter(|body| body.refs.iter().all(|r| r.size <= limits::WIDE)) {
                        Some(body) if self.enter(head, body, words, &mut at, carried, stop) => continue,
                        Some(body) => body.refs.len(),
                        None => break false,
                    }
                }
                Stopped::Room(refs) if self.encoded.refs + refs <= stop => {
                    self.encoded.grow(refs);
                    continue;
                }
                Stopped::Room(refs) => refs,
            };
            break self.encoded.refs + refs > limits::CHUNK_REFS;
        };
        Taken {
            words: at,
            refs: self.encoded.refs - begun,
            full,
        }
    }

    /// The loop over all runs of `words`, from `from` up to `limit`; it needs [`AHEAD`] words to examine, even beyond
    /// the limit.
    #[inline(never)]
    fn on(&mut self, words: &[u64], from: &mut usize, limit: usize, carry: &mut u64, stop: usize) -> Stopped {
        let encoded = &mut self.encoded;
        let known = self.known.as_mut_slice();
        let fours = self.fours.as_mut_slice();
        let (mut cur, mut here) = (self.cur as usize, self.here as usize);
        // The predictions of the two, already in hand.
        let (mut follow, mut foreseen) = (known[cur].follow as usize, known[here].link);
        let (mut at, mut carried) = (*from, *carry);
        let (mut done, mut run) = (encoded.refs, 0);
        let room = stop.min(encoded.tokens.len());
        let stopped = loop {
            let Some(near) = words.get(at..).and_then(<[u64]>::first_chunk::<AHEAD>) else {
                break Stopped::Last;
            };
            let [head, first_four @ .., _] = near;
            let mut next = follow;
            if known[next].head != *head {
                if head >> 60 != HEAD {
                    break Stopped::Unusual;
                }
                next = find(&self.table, known, *head);
                if next == 0 {
                    break Stopped::New(*head);
                }
                known[cur].follow = next as u32;
            }
            let body = &known[next];
            let refs = usize::from(body.refs);
            let end = at + 1 + refs;
            if refs <= 4 {
                if near[1 + refs] >> 60 == LEFT || end > limit {
                    break Stopped::Unusual;
                }
                if refs == 0 {
                    carried += u64::from(body.insns);
                    run += u64::from(body.insns);
                    follow = body.follow as usize;
                    cur = next;
                    at = end;
                    continue;
                }
            } else if end > limit || words.get(end).is_some_and(|word| word >> 60 == LEFT) {
                break Stopped::Unusual;
            }
            if done + refs > room {
                break Stopped::Room(refs);
            }
            let link = link(body.number, carried + u64::from(body.first));
            let slots = body.slots as usize;
            if link != foreseen && link as u32 > 255 {
                break Stopped::Unusual;
            }
            if refs > 4 || !fours[slots].confirm(first_four) {
                let before = before(fours, &known[here]);
                match encode(&mut fours[slots..], &words[at + 1..end], before, encoded, done) {
                    Addresses::Encoded => {}
                    Addresses::Tagged => break Stopped::Unusual,
                    Addresses::NoRoom => break Stopped::Room(refs),
                }
            }
            if link != foreseen {
                let names = encoded.names.len();
                let literals = (&mut encoded.site_low, &mut encoded.site_high, &mut encoded.insns);
                encoded.tokens[done] |= surprise(&mut known[here].link, link, names, literals);
            }
            (cur, here) = (next, next);
            let body = &known[next];
            (follow, foreseen) = (body.follow as usize, body.link);
            carried = u64::from(body.tail);
            run += u64::from(body.insns);
            done += refs;
            at = end;
        };
        (self.cur, self.here) = (cur as u32, here as u32);
        // References count the executed instructions, except those that are carried in and out.
        encoded.instructions += *carry + run - carried;
        encoded.refs = done;
        (*from, *carry) = (at, carried);
        stopped
    }

    /// The first run of a body in the chunk; false if it is unusual or has no room.
    #[inline(never)]
    fn enter(
        &mut self,
        head: u64,
        body: Body<'_>,
        words: &[u64],
        at: &mut usize,
        carried: &mut u64,
        stop: usize,
    ) -> bool {
        let refs = body.refs.len();
        let end = *at + 1 + refs;
        let Some(addresses) = words.get(*at + 1..end) else {
            return false;
        };
        let first = *carried + body.refs.first().map_or(0, |r| u64::from(r.insns));
        let left = words.get(end).is_some_and(|word| word >> 60 == LEFT);
        if left || first > 255 || self.encoded.refs + refs > stop || addresses.iter().any(|a| a & TAGGED != 0) {
            return false;
        }
        let new = self.meet(head, &body);
        if refs == 0 {
            *carried += u64::from(body.insns);
        } else {
            self.first_time(new, body.refs, addresses, first as u8);
            *carried = u64::from(body.tail);
        }
        *at = end;
        true
    }

    /// Encodes a single reference; the chunk must have room for it.
    pub fn single(&mut self, r: &Ref) -> Result<(), TraceError> {
        let head = SINGLE | u64::from(r.site);
        let next = find(&self.table, &self.known, head);
        if next == 0 {
            let refs = std::slice::from_ref(r);
            let new = self.meet(
                head,
                &Body {
                    refs,
                    insns: 0,
                    tail: 0,
                },
            );
            self.first_time(new, refs, &[r.addr], r.insns);
            return Ok(());
        }
        self.encoded.grow(1);
        let body = self.known[next];
        let name = self.encoded.names[body.number as usize];
        if (name.op, name.size) != (r.op, r.size) {
            return Err(TraceError::Refused(format!(
                "a reference says {:?} of {} bytes, its site {} says {:?} of {}",
                r.op, r.size, r.site, name.op, name.size
            )));
        }
        let before = before(&self.fours, &self.known[self.here as usize]);
        let encoded = &mut self.encoded;
        let link = link(body.number, u64::from(r.insns));
        let from = &mut self.known[self.here as usize].link;
        let mut token = 0;
        if *from != link {
            let literals = (&mut encoded.site_low, &mut encoded.site_high, &mut encoded.insns);
            token = surprise(from, link, encoded.names.len(), literals);
        }
        let four = &mut self.fours[body.slots as usize];
        token |= four.code(0, r.addr, before, &mut encoded.deltas, &mut encoded.bytes);
        encoded.tokens[encoded.refs] = token;
        encoded.refs += 1;
        encoded.instructions += u64::from(r.insns);
        self.known[self.cur as usize].follow = next as u32;
        (self.cur, self.here) = (next as u32, next as u32);
        Ok(())
    }

    /// Makes room for a new body in the chunk.
    fn meet(&mut self, head: u64, body: &Body<'_>) -> usize {
        let new = self.known.len();
        self.known.push(Known {
            head,
            link: NOTHING,
            follow: 0,
            number: self.encoded.names.len() as u32,
            slots: self.fours.len() as u32,
            refs: body.refs.len() as u16,
            tail: body.tail,
            insns: body.insns,
            first: body.refs.first().map_or(0, |r| u16::from(r.insns)),
        });
        if 2 * self.known.len() > self.table.len() {
            self.table.clear();
            self.table
                .resize((4 * self.known.len()).next_power_of_two().max(1024), 0);
            for number in 1..new {
                insert(&mut self.table, self.known[number].head, number);
            }
        }
        insert(&mut self.table, head, new);
        self.known[self.cur as usize].follow = new as u32;
        self.cur = new as u32;
        new
    }

    /// Names all sites of a body for the first time.
    fn first_time(&mut self, new: usize, refs: &[Ref], addresses: &[u64], first: u8) {
        self.encoded.grow(refs.len());
        let mut before = before(&self.fours, &self.known[self.here as usize]);
        let encoded = &mut self.encoded;
        self.known[self.here as usize].link = link(encoded.names.len() as u32, u64::from(first));
        for (site, (r, &addr)) in refs.iter().zip(addresses).enumerate() {
            let insns = if site == 0 { first } else { r.insns };
            encoded.site_low.push(0);
            encoded.site_high.push(0);
            encoded.insns.push(insns);
            encoded.instructions += u64::from(insns);
            encoded.names.push(*r);
            if site % 4 == 0 {
                self.fours.push(NO_SITES);
            }
            let slots = self.fours.len() - 1;
            let four = &mut self.fours[slots];
            four.last[site % 4] = before;
            four.which[site % 4] = u64::MAX;
            let code = four.code(site % 4, addr, before, &mut encoded.deltas, &mut encoded.bytes);
            encoded.tokens[encoded.refs] = NEW_SITE | code;
            encoded.refs += 1;
            before = addr;
        }
        self.here = new as u32;
    }
}

/// Why the loop ended.
enum Stopped {
    /// There are too few words to examine.
    Last,
    /// The next run is for the caller.
    Unusual,
    /// The next body is new to the chunk.
    New(u64),
    /// The columns have no room for this many references, or they are not allowed.
    Room(usize),
}

/// The outcome for a run's addresses.
enum Addresses {
    Encoded,
    /// They are not all addresses.
    Tagged,
    NoRoom,
}

/// The addresses of a run, if some were not predicted, or there are more than four; their tokens begin at `done`. It is
/// separate from the loop, so that the loop can use all registers.
#[inline(never)]
fn encode(fours: &mut [Four], addresses: &[u64], mut before: u64, encoded: &mut Encoded, done: usize) -> Addresses {
    if addresses.iter().fold(0, |any, a| any | a) & TAGGED != 0 {
        return Addresses::Tagged;
    }
    if encoded.bytes + 8 * addresses.len() + 8 > encoded.deltas.len() {
        return Addresses::NoRoom;
    }
    let tokens = &mut encoded.tokens[done..];
    let (deltas, bytes) = (encoded.deltas.as_mut_slice(), &mut encoded.bytes);
    for ((four, some), tokens) in fours.iter_mut().zip(addresses.chunks(4)).zip(tokens.chunks_mut(4)) {
        let foreseen = addresses.len() > 4 && some.first_chunk().is_some_and(|all| four.confirm(all));
        if !foreseen {
            for (site, (&addr, token)) in some.iter().zip(tokens).enumerate() {
                *token = four.code(site & 3, addr, before, deltas, bytes);
                before = addr;
            }
        }
        before = some[some.len() - 1];
    }
    Addresses::Encoded
}

/// The part of the token for a site that was not predicted; the literals are written here.
#[inline(never)]
fn surprise(from: &mut u64, link: u64, names: usize, literals: (&mut Vec<u8>, &mut Vec<u8>, &mut Vec<u8>)) -> u8 {
    let (site_low, site_high, insns) = literals;
    let foreseen = *from != NOTHING && *from >> 32 == link >> 32;
    *from = link;
    insns.push(link as u8);
    if foreseen {
        return NEW_INSNS;
    }
    // The distance back to the site's name.
    let literal = names - (link >> 32) as usize;
    site_low.push(literal as u8);
    site_high.push((literal >> 8) as u8);
    NEW_SITE
}
