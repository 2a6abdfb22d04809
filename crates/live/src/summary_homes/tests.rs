//! Tests on a made-up process: the requests to Linux, and the report.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use policy::cdpc::homes;
use results::run::LeftOut;
use sys::mappings::{Kind, Mapping};
use sys::memory::Span;
use sys::move_pages::{PageError, Pages};
use sys::numa_maps::Wish;

use super::*;
use crate::cdpc::tests::a_loop;

/// The first mapped page, and the number of mapped pages.
const START: u64 = 1 << 20;
const MAPPED: u64 = 1 << 10;

/// A process with one mapping.
#[derive(Default)]
struct Made {
    mappings: Vec<Mapping>,
    most_mappings: usize,
    wishes: Vec<(u64, u64, Wish)>,
    /// Pages that have a frame, and its node.
    nodes: BTreeMap<u64, u32>,
    /// Pages that do not move.
    held: Vec<u64>,
}

#[derive(Clone)]
struct Fake(Arc<Mutex<Made>>);

impl Fake {
    fn new(kind: Kind) -> Fake {
        let mapping = Mapping {
            span: Span::new(START as usize * PAGE_BYTES, MAPPED as usize * PAGE_BYTES),
            read: true,
            write: true,
            execute: false,
            shared: false,
            kind,
        };
        Fake(Arc::new(Mutex::new(Made {
            mappings: vec![mapping],
            most_mappings: 1000,
            ..Made::default()
        })))
    }

    fn made(&self) -> std::sync::MutexGuard<'_, Made> {
        self.0.lock().unwrap()
    }

    /// The wishes since the last question: first page and pages, from the start of the mapping.
    fn wishes(&self) -> Vec<(u64, u64, Wish)> {
        std::mem::take(&mut self.made().wishes)
    }

    /// Four threads on two nodes, 0 and 3.
    fn homes(&self) -> SummaryHomes {
        let seats = [0, 0, 3, 3].into_iter().zip(0..).map(|(node, cpu)| Seat { cpu, node });
        let policy = "summary-homes".parse().unwrap();
        SummaryHomes::with(&policy, &seats.collect::<Vec<_>>(), Box::new(self.clone()))
    }
}

impl Linux for Fake {
    fn mappings(&mut self) -> io::Result<Vec<Mapping>> {
        Ok(self.made().mappings.clone())
    }
    fn most_mappings(&mut self) -> usize {
        self.made().most_mappings
    }
    fn wish(&mut self, span: Span, wish: &Wish) -> io::Result<()> {
        let (page, pages) = ((span.start / PAGE_BYTES) as u64, (span.bytes / PAGE_BYTES) as u64);
        self.made().wishes.push((page - START, pages, wish.clone()));
        Ok(())
    }
    fn nodes_of(&mut self, addresses: &[usize]) -> io::Result<Pages> {
        let made = self.made();
        let of = |address: &usize| made.nodes.get(&((address / PAGE_BYTES) as u64)).copied();
        Ok(addresses
            .iter()
            .map(|address| of(address).ok_or(PageError::ABSENT))
            .collect())
    }
    fn move_to(&mut self, addresses: &[usize], nodes: &[u32]) -> io::Result<Pages> {
        let mut made = self.made();
        let mut move_one = |(address, node): (&usize, &u32)| {
            let page = (address / PAGE_BYTES) as u64;
            if made.held.contains(&page) {
                return Err(PageError::BUSY);
            }
            made.nodes.insert(page, *node);
            Ok(*node)
        };
        Ok(addresses.iter().zip(nodes).map(&mut move_one).collect())
    }
}

/// A loop over pages of the mapping, a page an iteration.
fn over(place: &str, first: u64, pages: u64) -> Loop {
    let page = PAGE_BYTES as u64;
    a_loop(place, &[((START + first) * page, pages * page)], 4)
}

/// The same, of which each thread has all.
fn all_of(place: &str, first: u64, pages: u64) -> Loop {
    let mut described = over(place, first, pages);
    described.iterations = 4;
    (described.summaries[0].unit, described.summaries[0].span) = (0, pages * PAGE_BYTES as u64);
    described
}

fn prefer(first: u64, pages: u64, node: u32) -> (u64, u64, Wish) {
    (first, pages, Wish::Prefer(vec![node]))
}

#[test]
fn parts_are_wished_to_their_nodes_before_they_are_touched() {
    let fake = Fake::new(Kind::Anonymous);
    let mut homes = fake.homes();
    homes.hear(over("f", 0, 80));
    assert_eq!(fake.wishes(), [], "nothing is placed before the start");
    homes.start();
    assert_eq!(fake.wishes(), [prefer(0, 40, 0), prefer(40, 40, 3)]);
    // An array that all threads read alike is interleaved over the nodes: one wish, for as many
    // pages as there are.
    homes.hear(all_of("table", 100, 64));
    assert_eq!(fake.wishes(), [(100, 64, Wish::Interleave(vec![0, 3]))]);
    let (report, notes) = homes.outcome(true);
    assert_eq!((report.pages, report.absent, report.at_home), (144, 144, 0));
    assert_eq!((report.start.pages, report.start.times), (80, 1));
    assert_eq!((report.later.pages, report.later.times), (64, 1));
    let nodes: Vec<_> = report.nodes.iter().map(|of| (of.node, of.pages)).collect();
    assert_eq!(nodes, [(0, 72), (3, 72)]);
    assert!(notes.is_empty() && report.left_out.is_empty(), "{notes:?} {report:?}");
}

#[test]
fn what_is_asked_for_is_what_the_policy_says_of_each_page() {
    let fake = Fake::new(Kind::Heap);
    let mut homes_here = fake.homes();
    let mut shifted = over("g", 3, 50);
    shifted.iterations = 37;
    (shifted.summaries[0].unit, shifted.summaries[0].span) = (5000, 7000);
    let loops = [over("f", 0, 21), shifted, all_of("table", 60, 9)];
    loops.iter().for_each(|described| homes_here.hear(described.clone()));
    homes_here.start();
    let machine = Machine {
        page_bytes: 4096,
        colors: 1,
        cpus: 4,
        fit: false,
    };
    let decided = homes(&loops, &machine, |cpu| [0, 0, 3, 3][cpu as usize]).unwrap();
    let of_each = |home: &policy::cdpc::Home| home.pages.clone().map(|page| (page, home.node)).collect::<Vec<_>>();
    let expected: BTreeMap<u64, u32> = decided.iter().flat_map(of_each).collect();
    let mut asked = BTreeMap::new();
    for (first, pages, wish) in fake.wishes() {
        for page in START + first..START + first + pages {
            let node = match &wish {
                Wish::Prefer(nodes) => nodes[0],
                // As the kernel has it: by the page's number.
                Wish::Interleave(nodes) => nodes[page as usize % nodes.len()],
                other => panic!("{other:?}"),
            };
            assert_eq!(asked.insert(page, node), None, "page {page} is asked for twice");
        }
    }
    assert_eq!(asked, expected);
}

#[test]
fn pages_that_are_there_already_move_and_those_that_cannot_are_named() {
    let fake = Fake::new(Kind::Anonymous);
    fake.made().nodes.extend((START..START + 80).map(|page| (page, 0)));
    fake.made().held = vec![START + 50, START + 51];
    let mut homes = fake.homes();
    homes.start();
    homes.hear(over("f", 0, 80));
    let (report, _) = homes.outcome(true);
    assert_eq!((report.later.pages, report.later.moved), (80, 38));
    assert_eq!((report.at_home, report.elsewhere), (78, 2));
    let held = LeftOut {
        why: "they were there already and somebody holds them".to_string(),
        pages: 2,
    };
    assert_eq!(report.left_out, [held]);
    // Released, they move when the loop is described again, and it is time to look.
    fake.made().held.clear();
    homes.next_look = None;
    homes.hear(over("f", 0, 80));
    let (report, _) = homes.outcome(true);
    assert_eq!((report.at_home, report.elsewhere, report.again), (80, 0, 1));
    assert_eq!(report.left_out, []);
    // Only these two were given their home once more.
    assert_eq!(
        (report.later.times, report.later.pages, report.later.moved),
        (2, 82, 40)
    );
    homes.next_look = None;
    homes.hear(over("f", 0, 80));
    assert_eq!(
        homes.outcome(false).0.later.times,
        2,
        "a look that changes nothing is none"
    );
}

#[test]
fn parts_that_are_placed_already_take_no_more_mappings() {
    let fake = Fake::new(Kind::Anonymous);
    // Three parts divide one mapping at three places.
    fake.made().most_mappings = 5;
    let mut homes = fake.homes();
    homes.hear(over("f", 0, 80));
    homes.start();
    assert_eq!(fake.wishes().len(), 2);
    assert_eq!(homes.outcome(false).0.left_out, []);
    let part = |first: usize, pages: usize| Mapping {
        span: Span::new((START as usize + first) * PAGE_BYTES, pages * PAGE_BYTES),
        ..fake.made().mappings[0].clone()
    };
    let divided = [part(0, 40), part(40, 40), part(80, MAPPED as usize - 80)];
    fake.made().mappings = divided.into();
    homes.next_look = None;
    homes.hear(over("f", 0, 80));
    assert_eq!(fake.wishes().len(), 2);
    assert_eq!(homes.outcome(false).0.left_out, []);
}

#[test]
fn what_cannot_take_a_wish_is_left_out_with_the_reason() {
    let fake = Fake::new(Kind::Anonymous);
    let mut homes = fake.homes();
    homes.start();
    homes.hear(over("beyond", MAPPED - 10, 20));
    // The last ten of the twenty pages, which are node 3's, are not mapped.
    assert_eq!(fake.wishes(), [prefer(MAPPED - 10, 10, 0)]);
    let (report, _) = homes.outcome(false);
    assert_eq!(
        (report.left_out[0].pages, &*report.left_out[0].why),
        (10, "nothing is mapped there")
    );
    fake.made().mappings[0].shared = true;
    homes.hear(over("shared", 0, 8));
    assert_eq!(fake.wishes(), []);
    let (report, _) = homes.outcome(false);
    assert!(
        report
            .left_out
            .iter()
            .any(|left| left.pages == 8 && left.why.contains("shared"))
    );
    // Mappings of which the kernel would refuse some of the program's own.
    (fake.made().mappings[0].shared, fake.made().most_mappings) = (false, 4);
    homes.hear(over("many", 200, 8));
    assert_eq!(fake.wishes(), [prefer(200, 4, 0)]);
    let (report, _) = homes.outcome(false);
    assert!(
        report
            .left_out
            .iter()
            .any(|left| left.pages == 4 && left.why.contains("max_map_count"))
    );
}

#[test]
fn pages_of_a_file_are_wished_one_by_one_since_it_counts_from_its_own_start() {
    let fake = Fake::new(Kind::File("/bin/x".into()));
    let mut homes = fake.homes();
    homes.hear(all_of("table", 4, 4));
    homes.start();
    let expected: Vec<_> = (4..8)
        .map(|page| prefer(page, 1, if page % 2 == 0 { 0 } else { 3 }))
        .collect();
    assert_eq!(fake.wishes(), expected);
}

#[test]
fn a_loop_that_says_nothing_new_costs_nothing() {
    let fake = Fake::new(Kind::Anonymous);
    let mut homes = fake.homes();
    homes.start();
    homes.hear(over("f", 0, 80));
    assert_eq!(fake.wishes().len(), 2);
    for _ in 0..100 {
        assert!(!homes.has_work(&over("f", 0, 80)), "it was looked at just now");
        homes.heard_again();
    }
    assert_eq!((fake.wishes().len(), homes.outcome(false).0.again), (0, 100));
}
