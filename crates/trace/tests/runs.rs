//! References written as runs of bodies come back as if they had been written one by one.

use crate::memory;

use memory::Shared;
use trace::{Batch, Body, Event, Header, Op, Options, Process, Ref, Site, Thread, Trace, TraceError, Writer};

const HEAD: u64 = 0x9 << 60;
const LEFT: u64 = 0xa << 60;
const NULL: u64 = 0x8 << 60;

/// Numbers that look random.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % bound
    }
}

struct Stretch {
    refs: Vec<Ref>,
    insns: u16,
    tail: u16,
}

/// Bodies of no reference to a dozen; some sites are of several bodies.
fn bodies(writer: &mut Writer, dice: &mut Dice, count: u64) -> Vec<Stretch> {
    let body = |_| {
        let length = [0, 1, 1, 2, 2, 3, 4, 5, 8, 9, 12][dice.below(11) as usize];
        let refs: Vec<Ref> = (0..length)
            .map(|_| {
                let site = Site {
                    pc: dice.below(400),
                    op: [Op::Read, Op::Write, Op::Modify][dice.below(3) as usize],
                    size: 1 << dice.below(4),
                };
                Ref {
                    addr: 0,
                    site: writer.site(site),
                    insns: dice.below(4) as u8,
                    op: site.op,
                    size: site.size,
                }
            })
            .collect();
        let tail = if length == 0 { 0 } else { dice.below(70) as u16 };
        let counted: u16 = refs.iter().map(|r| u16::from(r.insns)).sum();
        Stretch {
            insns: if length == 0 {
                1 + dice.below(90) as u16
            } else {
                counted + tail
            },
            tail,
            refs,
        }
    };
    (0..count).map(body).collect()
}

/// What a thread did.
#[derive(Clone, Debug, PartialEq)]
enum Deed {
    Ref(Ref),
    Event(Event),
}

/// The recorder's part for runs that the writer leaves to it, and what must come back.
#[derive(Default)]
struct Player {
    deeds: Vec<Deed>,
    carried: u64,
}

impl Player {
    /// Does `refs` of a run, with what is carried; what the writer must be given if not in runs.
    fn run(&mut self, body: &Stretch, addresses: &[u64], whole: bool) -> Vec<Deed> {
        let mut done = Vec::new();
        if addresses.is_empty() {
            self.carried += u64::from(if whole { body.insns } else { 1 });
            return done;
        }
        if self.carried + u64::from(body.refs[0].insns) > 255 {
            let instructions = std::mem::take(&mut self.carried);
            done.push(Deed::Event(Event::Work { instructions }));
        }
        for (r, &addr) in body.refs.iter().zip(addresses) {
            // An address left out takes nothing with it but itself.
            if addr == NULL {
                continue;
            }
            let insns = r.insns + std::mem::take(&mut self.carried) as u8;
            done.push(Deed::Ref(Ref { addr, insns, ..*r }));
        }
        self.carried += u64::from(if whole { body.tail } else { 0 });
        self.deeds.extend_from_slice(&done);
        done
    }
}

fn write(writer: &mut Writer, thread: u32, deeds: &[Deed]) {
    for deed in deeds {
        match deed {
            Deed::Ref(r) => writer.push(thread, *r).unwrap(),
            Deed::Event(event) => writer.event(thread, event.clone()).unwrap(),
        }
    }
}

/// Plays `steps` pieces of two threads, and reads them back.
fn play(seed: u64, steps: u64, kinds: u64, buffered_refs: usize) {
    let mut dice = Dice(seed);
    let out = Shared::default();
    let header = Header {
        counts_instructions: true,
        ..Header::default()
    };
    let options = Options {
        buffered_refs,
        ..Options::default()
    };
    let mut writer = Writer::new(out.clone(), &header, options).unwrap();
    let process = writer.process(Process::default());
    let threads = [0, 1].map(|number| {
        writer.thread(Thread {
            process,
            number,
            ..Thread::default()
        })
    });
    let bodies = bodies(&mut writer, &mut dice, kinds);
    let fetch = Site {
        pc: 0x5000,
        op: Op::Fetch,
        size: 4,
    };
    let fetch = Ref {
        addr: 0x5000,
        site: writer.site(fetch),
        insns: 1,
        op: Op::Fetch,
        size: 4,
    };
    let mut players = [Player::default(), Player::default()];
    let mut row = 0x1000u64;
    for step in 0..steps {
        let which = dice.below(2) as usize;
        let (thread, player) = (threads[which], &mut players[which]);
        match dice.below(40) {
            0 => {
                let event = Event::Lock { object: step };
                writer.event(thread, event.clone()).unwrap();
                player.deeds.push(Deed::Event(event));
            }
            1 if step % 9 == 0 => {
                writer.push(thread, fetch).unwrap();
                player.deeds.push(Deed::Ref(fetch));
            }
            _ => {}
        }
        // Words of runs, and for each whose it is, how many addresses and whether it is whole.
        let (mut words, mut runs) = (Vec::new(), Vec::new());
        let mut kind = dice.below(kinds);
        for _ in 0..1 + dice.below(60) {
            kind = if dice.below(6) == 0 {
                dice.below(kinds)
            } else {
                (kind * 7 + 1) % kinds
            };
            let body = &bodies[kind as usize];
            let at = words.len();
            words.push(HEAD | kind);
            row += 8;
            words.extend((0..body.refs.len() as u64).map(|slot| match dice.below(30) {
                0 => dice.below(1 << 40),
                1 => row ^ 0x7f00_0000_0000,
                _ => row + slot * 0x1_0000,
            }));
            let mut whole = true;
            if dice.below(50) == 0 && body.refs.len() > 1 {
                whole = false;
                words.truncate(words.len() - dice.below(body.refs.len() as u64 + 1) as usize);
                words.push(LEFT);
            } else if dice.below(50) == 0 && body.refs.len() > 1 {
                // Never the first: the model would carry on differently.
                words[at + 2] = NULL;
            }
            runs.push((at, words.len() - usize::from(!whole), kind, whole));
        }
        let mut at = 0;
        for (begin, end, kind, whole) in runs {
            let body = &bodies[kind as usize];
            assert!(at >= begin, "seed {seed}: a run was skipped");
            if at > begin {
                // It went with others.
                assert!(whole && at >= end, "seed {seed}: part of a run was taken");
                continue_run(player, body, &words[begin + 1..end]);
                continue;
            }
            let mut carried = player.carried;
            let most = if dice.below(8) == 0 {
                dice.below(20) as usize
            } else {
                usize::MAX
            };
            let known = |head: u64| {
                let body = bodies.get(head as u32 as usize)?;
                Some(Body {
                    refs: &body.refs,
                    insns: body.insns,
                    tail: body.tail,
                })
            };
            let (taken, refs) = writer
                .runs(thread, &words[begin..], &mut carried, most, &known)
                .unwrap();
            assert!(refs <= most);
            at = begin + taken;
            if taken > 0 {
                continue_run(player, body, &words[begin + 1..end]);
            } else {
                let done = player.run(body, &words[begin + 1..end], whole);
                write(&mut writer, thread, &done);
                at = end + usize::from(!whole);
            }
        }
    }
    let summary = writer.finish().unwrap();
    let trace = Trace::from_bytes(out.take()).unwrap();
    let mut instructions = 0;
    for (player, thread) in players.iter().zip(threads) {
        let read = read(&trace, thread);
        for (at, (read, done)) in read.iter().zip(&player.deeds).enumerate() {
            assert_eq!(read, done, "seed {seed}, thread {thread}, deed {at}");
        }
        assert_eq!(read.len(), player.deeds.len(), "seed {seed}");
        instructions += read
            .iter()
            .map(|deed| match deed {
                Deed::Ref(r) => u64::from(r.insns),
                Deed::Event(Event::Work { instructions }) => *instructions,
                Deed::Event(_) => 0,
            })
            .sum::<u64>();
    }
    assert_eq!(summary.instructions, instructions, "seed {seed}");
}

/// The model's part of a run that the writer took in.
fn continue_run(player: &mut Player, body: &Stretch, addresses: &[u64]) {
    let done = player.run(body, addresses, true);
    assert!(
        !done.iter().any(|deed| matches!(deed, Deed::Event(_))),
        "more was carried than a reference can carry"
    );
}

fn read(trace: &Trace, thread: u32) -> Vec<Deed> {
    let mut stream = trace.thread(thread).unwrap();
    let (mut batch, mut deeds) = (Batch::default(), Vec::new());
    while stream.next(&mut batch).unwrap() {
        let mut events = batch.events.iter().peekable();
        for at in 0..=batch.refs.len() {
            while let Some(timed) = events.next_if(|timed| timed.at as usize <= at) {
                deeds.push(Deed::Event(timed.event.clone()));
            }
            deeds.extend(batch.refs.get(at).map(|r| Deed::Ref(*r)));
        }
    }
    deeds
}

#[test]
fn runs_come_back_as_references() {
    for seed in 0..60 {
        play(seed, 60, 1 + seed % 40, usize::MAX);
    }
}

#[test]
fn runs_fill_chunks_and_share_the_buffers() {
    play(1000, 6000, 200, usize::MAX);
    play(1001, 3000, 3000, 20_000);
}

#[test]
fn what_is_not_a_site_is_refused() {
    let mut writer = Writer::new(Shared::default(), &Header::default(), Options::default()).unwrap();
    let process = writer.process(Process::default());
    let thread = writer.thread(Thread {
        process,
        ..Thread::default()
    });
    let stray = [Ref {
        addr: 0,
        site: 7,
        insns: 1,
        op: Op::Read,
        size: 4,
    }];
    let body = Body {
        refs: &stray,
        insns: 1,
        tail: 0,
    };
    assert!(writer.runs(thread + 1, &[HEAD, 5], &mut 0, 9, &|_| Some(body)).is_err());
    let taken = writer.runs(thread, &[HEAD, 5], &mut 0, 9, &|_| Some(body)).unwrap();
    assert_eq!(taken, (2, 1));
    assert!(matches!(writer.finish(), Err(TraceError::Refused(why)) if why.contains("site 7")));
}
