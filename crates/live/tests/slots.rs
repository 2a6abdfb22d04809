//! Slots on this machine: every page of a data set has one of its colors, and nothing is lost.

use live::engine::{Census, Done};
use live::slots::{
    Application, ColorSet, ColorsFrom, DataSet, Error, Given, Kind, On, Others, Refused, Slot, Start, ThreadGroup,
    Through,
};
use live::{Colors, PAGE_BYTES, Source};

const PAGES: usize = 64;

/// 16 colors of 64 KiB: on any machine the low bits of a frame's number can be chosen.
fn colors() -> Colors {
    Colors {
        first_bit: 12,
        bits: 4,
        color_bytes: 64 << 10,
        cache: "forced".to_string(),
        source: Source::Forced,
    }
}

/// `None` if this user can neither see frames nor order them: then there is nothing to test, which is reported.
fn start() -> Option<Application> {
    let start = Start {
        on: On::Affinity,
        colors: ColorsFrom::Given(colors()),
        through: Through::Own,
    };
    match Application::start(start) {
        Ok(application) => Some(application),
        Err(error) => {
            harness::not_allowed(error);
            None
        }
    }
}

/// Memory of its own that begins and ends with a page, and each byte of which says where it is.
struct Data {
    bytes: Vec<u8>,
    first: usize,
}

impl Data {
    fn new(pages: usize) -> Data {
        let mut bytes = vec![0u8; (pages + 1) * PAGE_BYTES];
        let first = bytes.as_ptr().align_offset(PAGE_BYTES);
        for (at, byte) in bytes[first..first + pages * PAGE_BYTES].iter_mut().enumerate() {
            *byte = said(at);
        }
        bytes.truncate(first + pages * PAGE_BYTES);
        Data { bytes, first }
    }

    fn address(&self) -> usize {
        self.bytes.as_ptr() as usize + self.first
    }

    fn len(&self) -> usize {
        self.bytes.len() - self.first
    }

    fn is_whole(&self) -> bool {
        self.bytes[self.first..]
            .iter()
            .enumerate()
            .all(|(at, &byte)| byte == said(at))
    }
}

fn said(at: usize) -> u8 {
    (at / PAGE_BYTES * 31 + at % 251) as u8
}

/// Adds memory by its address.
fn add(set: &mut DataSet, address: usize, bytes: usize) -> Result<(), Error> {
    // SAFETY: the tests' data outlives its sets; what else is said to be memory is refused.
    unsafe { set.add_raw(address, bytes) }
}

fn allocate<'set>(set: &'set mut DataSet, slot: Option<&Slot>) -> Result<&'set Given, Error> {
    // SAFETY: a test has its data to itself, but for one that says otherwise.
    unsafe { set.allocate_among(slot, Others::Absent) }
}

fn repair(set: &mut DataSet) -> Result<(usize, Done), Error> {
    // SAFETY: as above.
    unsafe { set.repair_among(Others::Absent) }
}

/// A census of the pages. The kernel may give any page another frame at any time, when it compacts memory: such moves
/// since the pages were placed are repaired first, and other errors stay.
fn settled(set: &mut DataSet) -> Census {
    for _ in 0..10 {
        let census = set.census().unwrap();
        if census.wrong == 0 || census.unknown > 0 {
            return census;
        }
        assert!(census.wrong <= MOVED_MEANWHILE, "{census:?}");
        repair(set).unwrap();
    }
    set.census().unwrap()
}

/// Asserts so many pages of each color, except for those that the kernel moved from one allowed
/// color to another.
fn assert_even(by_color: &[u64], colors: &ColorSet, each: u64) {
    for color in colors.iter() {
        let pages = by_color[color as usize];
        assert!(
            pages.abs_diff(each) <= MOVED_MEANWHILE as u64,
            "{pages} pages of color {color}: {by_color:?}"
        );
    }
}

/// More pages than these the kernel does not move within the milliseconds of a test.
const MOVED_MEANWHILE: usize = 4;

#[test]
fn every_page_gets_a_color_of_its_slot_and_keeps_what_it_holds() {
    let Some(program) = start() else { return };
    let slot = program.slot(256 << 10, Kind::Private).unwrap();
    let data = Data::new(PAGES);
    let mut set = program.data_set(&ThreadGroup::all()).unwrap();
    add(&mut set, data.address(), data.len()).unwrap();
    let given = allocate(&mut set, Some(&slot)).unwrap().clone();
    assert_eq!(given.colors.len(), 4);
    assert!(data.is_whole());
    assert_eq!(set.done().unwrap().left, []);
    let census = settled(&mut set);
    assert_eq!(census.pages, PAGES);
    if census.unknown == 0 {
        assert_eq!((census.right, census.wrong), (PAGES, 0));
        assert_even(&census.by_color, &given.colors, PAGES as u64 / 4);
    }
    set.free().unwrap();
    assert_eq!(set.given(), None);
    assert!(data.is_whole());
    // All of the cache is free again.
    assert_eq!(program.available().unwrap().together, 1 << 20);
}

#[test]
fn what_is_lent_is_used_through_the_data_set_and_comes_back() {
    let Some(program) = start() else { return };
    let slot = program.slot(256 << 10, Kind::Private).unwrap();
    let (mut one, mut two) = (vec![1u64; PAGES * 512], vec![2u64; PAGES * 512]);
    let shared = vec![3u8; 4 * PAGE_BYTES];
    let mut set = program.data_set(&ThreadGroup::all()).unwrap();
    let parts = [set.add(&mut one).unwrap(), set.add(&mut two).unwrap()];
    let colors = set.allocate(Some(&slot)).unwrap().colors.clone();
    let census = settled(&mut set);
    assert!(census.unknown > 0 || census.wrong == 0, "{census:?} {colors:?}");
    let [first, second] = set.parts_mut(parts);
    assert!(first.iter().all(|&word| word == 1) && second.iter().all(|&word| word == 2));
    first.swap_with_slice(second);
    assert_eq!((set.part(parts[0])[700], set.part(parts[1])[700]), (2, 1));
    let mut other = program.data_set(&ThreadGroup::all()).unwrap();
    other.add_shared(&shared).unwrap();
    assert!(matches!(other.discard(), Err(Error::NotLent)));
    drop(set);
    assert!(one.iter().all(|&word| word == 2) && two.iter().all(|&word| word == 1));
    let mut set = program.data_set(&ThreadGroup::all()).unwrap();
    let part = set.add(&mut one).unwrap();
    set.allocate(Some(&slot)).unwrap();
    set.discard().unwrap();
    // All but the two ends, whose pages are somebody else's too.
    assert!(set.part(part)[512..(PAGES - 1) * 512].iter().all(|&word| word == 0));
    drop(set);
    assert!(one[512..(PAGES - 1) * 512].iter().all(|&word| word == 0));
    assert!(shared.iter().all(|&byte| byte == 3));
}

#[test]
#[should_panic(expected = "another data set's")]
fn a_part_is_of_one_data_set() {
    let Some(program) = start() else {
        panic!("another data set's part needs one; skipped");
    };
    let mut words = vec![0u32; 1024];
    let mut set = program.data_set(&ThreadGroup::all()).unwrap();
    let part = set.add(&mut words).unwrap();
    let other = program.data_set(&ThreadGroup::all()).unwrap();
    other.part(part);
}

#[test]
fn many_short_ranges_use_all_colors_alike() {
    let Some(program) = start() else { return };
    let slot = program.slot(512 << 10, Kind::Private).unwrap();
    let data = Data::new(PAGES * 2);
    let mut set = program.data_set(&ThreadGroup::all()).unwrap();
    // Every other page.
    for page in (0..PAGES * 2).step_by(2) {
        add(&mut set, data.address() + page * PAGE_BYTES, PAGE_BYTES).unwrap();
    }
    let given = allocate(&mut set, Some(&slot)).unwrap().clone();
    let census = settled(&mut set);
    if census.unknown == 0 {
        assert_eq!(census.right, PAGES);
        assert_even(&census.by_color, &given.colors, PAGES as u64 / 8);
    }
    assert!(data.is_whole());
}

#[test]
fn over_commitment_says_what_is_free_and_moves_nothing() {
    let Some(program) = start() else { return };
    let most = program.slot(640 << 10, Kind::Private).unwrap();
    let first = Data::new(16);
    let second = Data::new(16);
    let place = |data: &Data| {
        let mut set = program.data_set(&ThreadGroup::all()).unwrap();
        add(&mut set, data.address(), data.len()).unwrap();
        set
    };
    let mut one = place(&first);
    allocate(&mut one, Some(&most)).unwrap();
    let rest = program.slot(448 << 10, Kind::Private).unwrap();
    let mut two = place(&second);
    let error = allocate(&mut two, Some(&rest)).unwrap_err();
    assert!(error.is_full(), "{error}");
    assert!(
        matches!(
            error,
            Error::Refused(Refused::Full {
                asked: 7,
                together: 6,
                ..
            })
        ),
        "{error:?}"
    );
    // Without a slot there is room: one shared color.
    let given = allocate(&mut two, None).unwrap().clone();
    assert_eq!(given.colors.len(), 1);
    assert!(!given.colors.meets(&one.given().unwrap().colors));
    // And with more of it free, the same data set moves there.
    one.free().unwrap();
    let given = allocate(&mut two, Some(&rest)).unwrap().clone();
    assert_eq!(given.colors.len(), 7);
    assert!(first.is_whole() && second.is_whole());
}

#[test]
fn a_page_has_one_data_set_and_its_neighbours_stay() {
    let Some(program) = start() else { return };
    let data = Data::new(8);
    let mut set = program.data_set(&ThreadGroup::all()).unwrap();
    add(&mut set, data.address() + 100, 4 * PAGE_BYTES).unwrap();
    assert_eq!(set.left_out(), PAGE_BYTES as u64);
    allocate(&mut set, None).unwrap();
    let mut other = program.data_set(&ThreadGroup::all()).unwrap();
    add(&mut other, data.address() + 3 * PAGE_BYTES, 2 * PAGE_BYTES).unwrap();
    let error = allocate(&mut other, None).unwrap_err();
    assert!(matches!(error, Error::Overlap { .. }), "{error}");
    set.free().unwrap();
    allocate(&mut other, None).unwrap();
    let mut small = program.data_set(&ThreadGroup::all()).unwrap();
    add(&mut small, data.address() + 7 * PAGE_BYTES + 1, 4000).unwrap();
    let error = allocate(&mut small, None).unwrap_err();
    assert!(matches!(error, Error::NoWholePage { bytes: 4000, .. }), "{error}");
    assert!(data.is_whole());
}

#[test]
fn data_of_several_slots_does_not_meet_and_that_of_one_slot_does() {
    let Some(program) = start() else { return };
    let memory: Vec<Data> = (0..4).map(|_| Data::new(8)).collect();
    let private = program.slot(128 << 10, Kind::Private).unwrap();
    let also = program.slot(128 << 10, Kind::Private).unwrap();
    let weak = program.slot(128 << 10, Kind::Shared).unwrap();
    let slots = [Some(&private), Some(&also), Some(&private), Some(&weak)];
    let mut sets = Vec::new();
    for (data, slot) in memory.iter().zip(slots) {
        let mut set = program.data_set(&ThreadGroup::all()).unwrap();
        add(&mut set, data.address(), data.len()).unwrap();
        allocate(&mut set, slot).unwrap();
        sets.push(set);
    }
    let of: Vec<&ColorSet> = sets.iter().map(|set| &set.given().unwrap().colors).collect();
    assert_eq!(of[0], of[2]);
    assert!(!of[0].meets(of[1]) && !of[0].meets(of[3]) && !of[1].meets(of[3]));
    // A slot whose last handle is gone lives on in its data sets.
    drop(private);
    sets[0].free().unwrap();
    assert_eq!(settled(&mut sets[2]).wrong, 0);
    program.exit().unwrap();
    assert!(matches!(allocate(&mut sets[2], None), Err(Error::Exited)));
    assert!(matches!(program.slot(1, Kind::Shared), Err(Error::Exited)));
    assert!(memory.iter().all(Data::is_whole));
}

#[test]
fn what_is_not_there_is_refused() {
    let Some(program) = start() else { return };
    let mut set = program.data_set(&ThreadGroup::all()).unwrap();
    assert!(matches!(add(&mut set, 4096, 0), Err(Error::Range { .. })));
    assert!(matches!(add(&mut set, usize::MAX - 5, 100), Err(Error::Range { .. })));
    // Nothing is mapped there.
    add(&mut set, 4096, 8192).unwrap();
    let error = allocate(&mut set, None).unwrap_err();
    assert!(matches!(error, Error::Live(live::Error::Unfit { .. })), "{error:?}");
    assert_eq!(set.given(), None);
    let other = start().unwrap();
    let slot = other.slot(1 << 16, Kind::Private).unwrap();
    assert!(matches!(allocate(&mut set, Some(&slot)), Err(Error::OtherApplication)));
    let on = |on| {
        Application::start(Start {
            on,
            colors: ColorsFrom::Given(colors()),
            through: Through::Own,
        })
    };
    assert!(matches!(
        on(On::Processors(100_000)),
        Err(Error::Processors { asked: 100_000, .. })
    ));
    assert!(matches!(
        on(On::Cpus(vec![60_000])),
        Err(Error::Cpu { cpu: 60_000, .. })
    ));
    assert!(matches!(on(On::Cpus(vec![])), Err(Error::NoThreads)));
    assert!(!on(On::Processors(1)).unwrap().means().recording);
}

#[test]
fn a_container_lives_in_a_slot() {
    use allocator_api2::vec::Vec as VecIn;

    let Some(program) = start() else { return };
    let slot = program.slot(256 << 10, Kind::Private).unwrap();
    let memory = program.containers(Some(&slot), &ThreadGroup::all());
    let mut numbers: VecIn<u64, _> = VecIn::new_in(memory.clone());
    numbers.extend(0..200_000u64);
    assert!(numbers.iter().copied().eq(0..200_000));
    assert_eq!(
        memory.keeper().bytes(),
        (numbers.capacity() as u64 * 8).next_multiple_of(4096)
    );
    let left = program.available().unwrap().together;
    assert_eq!(left, (1 << 20) - (256 << 10));
    // A second one uses the same slot.
    let mut more: VecIn<u8, _> = VecIn::new_in(memory.clone());
    more.resize(10_000, 1);
    assert_eq!(program.available().unwrap().together, left);
    drop((numbers, more));
    assert_eq!(program.available().unwrap().together, 1 << 20);
    // Without a cache there is no memory, and the error gives the reason.
    let all = program.slot(1 << 20, Kind::Private).unwrap();
    let held = program.containers(Some(&all), &ThreadGroup::all());
    let mut holder: VecIn<u8, _> = VecIn::new_in(held);
    holder.push(1);
    let mut refused: VecIn<u8, _> = VecIn::new_in(memory.clone());
    assert!(refused.try_reserve(1).is_err());
    assert!(memory.keeper().trouble().unwrap().is_full());
}

#[test]
fn threads_that_write_meanwhile_lose_nothing() {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

    let Some(program) = start() else { return };
    let words: Vec<AtomicU64> = (0..PAGES * 512).map(|_| AtomicU64::new(0)).collect();
    let stop = AtomicBool::new(false);
    let written = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut written = 0u64;
            while !stop.load(Relaxed) {
                words[written as usize * 7919 % words.len()].fetch_add(1, Relaxed);
                written += 1;
            }
            written
        });
        let mut set = program.data_set(&ThreadGroup::all()).unwrap();
        set.add_shared(&words).unwrap();
        for colors in [1, 2, 4, 8] {
            let slot = program.slot(colors << 16, Kind::Private).unwrap();
            match set.allocate(Some(&slot)) {
                Ok(given) => assert_eq!(u64::from(given.colors.len()), colors),
                // This user may not make system calls wait.
                Err(Error::Live(live::Error::Unavailable { .. })) => {}
                Err(error) => panic!("{error}"),
            }
        }
        stop.store(true, Relaxed);
        writer.join().unwrap()
    });
    assert_eq!(words.iter().map(|word| word.load(Relaxed)).sum::<u64>(), written);
}

#[test]
fn a_child_of_fork_has_no_part_in_its_parents_slots() {
    let Some(program) = start() else { return };
    let slot = program.slot(1 << 16, Kind::Private).unwrap();
    let data = Data::new(8);
    let mut set = program.data_set(&ThreadGroup::all()).unwrap();
    add(&mut set, data.address(), data.len()).unwrap();
    allocate(&mut set, Some(&slot)).unwrap();
    // SAFETY: the child only looks at what it has, asks for what is refused before any lock is taken, and ends without
    // coming back.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refused = matches!(program.available(), Err(Error::Forked { .. }))
            && matches!(set.free(), Err(Error::Forked { .. }))
            && matches!(program.exit(), Err(Error::Forked { .. }));
        let code = if refused && data.is_whole() { 0 } else { 1 };
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(code) };
    }
    assert!(child > 0);
    let mut status = 0;
    // SAFETY: waits for our own child.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
    // The parent's are as they were.
    assert_eq!(settled(&mut set).wrong, 0);
    set.free().unwrap();
    assert!(data.is_whole());
    assert_eq!(program.available().unwrap().together, 1 << 20);
}
