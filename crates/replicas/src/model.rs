//! Every interleaving of small runs (loom): readers enter and leave, come and go, while contents are written, collapsed and
//! replicated.
//!
//! Loom watches each copy: reading one that is being written or was freed, without being ordered before or after that,
//! fails the test. The rest is asserted: no stale contents once a write has returned, none that go back, no write lost.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread::{JoinHandle, spawn};
use std::convert::Infallible;
use std::sync::atomic::Ordering::Relaxed;

use crate::epochs::{Place, Switch, Unchanged};

/// A copy. Its content is written before it can be found, and when it ends.
struct Copy(UnsafeCell<u64>);

const FREED: u64 = u64::MAX;

impl Copy {
    fn new(value: u64) -> Arc<Copy> {
        Arc::new(Copy(UnsafeCell::new(value)))
    }

    fn read(&self) -> u64 {
        // SAFETY: loom fails the test if there is a concurrent write.
        self.0.with(|at| unsafe { *at })
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // SAFETY: loom fails the test if there is another access.
        self.0.with_mut(|at| unsafe { *at = FREED });
    }
}

/// Contents in one copy or two, one for each of two nodes.
struct Contents([Arc<Copy>; 2]);

impl Contents {
    fn replicated(value: u64) -> Contents {
        Contents([Copy::new(value), Copy::new(value)])
    }

    fn read(&self, node: usize) -> u64 {
        self.0[node].read()
    }
}

type Data = Arc<Switch<Contents>>;

fn data() -> Data {
    Arc::new(Switch::new(Contents::replicated(0)))
}

fn replace(data: &Data, make: impl FnOnce(&Contents) -> Contents) {
    data.replace(|old| Ok::<_, Infallible>(make(old))).ok().unwrap();
}

fn add(data: &Data) {
    replace(data, |old| Contents::replicated(old.read(0) + 1));
}

fn collapse(data: &Data) {
    replace(data, |old| Contents([old.0[1].clone(), old.0[1].clone()]));
}

fn replicate(data: &Data) {
    replace(data, |old| Contents([old.0[0].clone(), Copy::new(old.read(0))]));
}

/// Reads twice within one region, which must be the same.
fn read(place: &mut Place<Contents>, node: usize) -> u64 {
    let region = place.enter();
    let value = region.read(node);
    loom::thread::yield_now();
    assert_eq!(region.read(node), value);
    value
}

/// A thread that reads in this many regions, and whose reader is then dropped. The values that it reads never go back.
fn reads(data: &Data, regions: usize, node: usize) -> JoinHandle<u64> {
    let data = data.clone();
    spawn(move || {
        let mut place = Place::new(&data);
        drop(data);
        let values = (0..regions).map(|_| read(&mut place, node));
        values.fold(0, |before, value| {
            assert!(value >= before && value != FREED, "{value} after {before}");
            value
        })
    })
}

fn every_interleaving(switches: usize, run: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(switches);
    model.check(run);
}

#[test]
fn what_is_read_stays_until_the_region_is_left() {
    every_interleaving(3, || {
        let data = data();
        let reader = reads(&data, 2, 0);
        add(&data);
        reader.join().unwrap();
    });
}

/// A relaxed store announces that the write has returned.
#[test]
fn nobody_reads_old_contents_after_the_write_returned() {
    every_interleaving(3, || {
        let data = data();
        let returned = Arc::new(AtomicU64::new(0));
        let (other, said) = (data.clone(), returned.clone());
        let reader = spawn(move || {
            let mut place = Place::new(&other);
            let before = read(&mut place, 1);
            let known = said.load(Relaxed);
            let value = read(&mut place, 1);
            assert!(value >= known.max(before), "{value} after the write of {known}");
        });
        add(&data);
        returned.store(1, Relaxed);
        reader.join().unwrap();
    });
}

#[test]
fn no_write_is_lost() {
    every_interleaving(2, || {
        let data = data();
        let (other, reader) = (data.clone(), reads(&data, 1, 0));
        let writer = spawn(move || add(&other));
        add(&data);
        writer.join().unwrap();
        reader.join().unwrap();
        assert_eq!(data.look(|contents| contents.read(0)), 2);
    });
}

#[test]
fn copies_that_go_or_come_disturb_no_reader_and_lose_no_write() {
    for change in [collapse as fn(&Data), replicate] {
        every_interleaving(2, move || {
            let data = data();
            let (other, reader) = (data.clone(), reads(&data, 2, 0));
            let writer = spawn(move || add(&other));
            change(&data);
            writer.join().unwrap();
            reader.join().unwrap();
            data.look(|contents| assert_eq!([contents.read(0), contents.read(1)], [1, 1]));
        });
    }
}

#[test]
fn replicated_written_and_collapsed_in_turn_under_two_readers() {
    every_interleaving(2, || {
        let data = data();
        let readers = [reads(&data, 1, 0), reads(&data, 1, 1)];
        collapse(&data);
        add(&data);
        replicate(&data);
        readers
            .into_iter()
            .for_each(|reader| assert!(reader.join().unwrap() <= 1));
    });
}

/// The owner is dropped first, or the reader is.
#[test]
fn contents_live_as_long_as_anybody_who_reads_them() {
    every_interleaving(3, || {
        let data = data();
        let reader = reads(&data, 2, 1);
        add(&data);
        drop(data);
        reader.join().unwrap();
    });
}

/// It would wait for itself.
#[test]
fn who_is_inside_does_not_write() {
    every_interleaving(2, || {
        let data = data();
        let mut place = Place::new(&data);
        let region = place.enter();
        let refused = data.replace(|_| Ok::<_, Infallible>(Contents::replicated(7)));
        assert!(matches!(refused, Err(Unchanged::Inside)));
        assert_eq!(region.read(0), 0);
        drop(region);
        add(&data);
        assert_eq!(read(&mut place, 0), 1);
    });
}
