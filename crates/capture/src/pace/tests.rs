use super::*;

const COUNTER: u8 = 0;
const SUM: u8 = 17;

const FORWARD: Forward = Forward {
    in_place: 2,
    elsewhere: 5,
};

/// A load of a word that nothing stores.
const READ: Reference = Reference {
    address: Some(0x1000),
    bytes: 8,
    loads: true,
    stores: false,
};

fn way(to: u8, from: u8, clocks: u16) -> Way {
    Way { to, from, clocks }
}

fn played(ways: Vec<Way>, instructions: u64) -> f64 {
    let mut paces = Paces::default();
    paces.describe(3, ways);
    let mut play = Play::new(FORWARD);
    for _ in 0..1000 {
        play.run(&mut paces, (3, 3), Code::default(), instructions, &[READ]);
    }
    let taken = paces.taken[&3];
    assert_eq!(
        (taken.own.instructions, taken.before),
        (1000 * instructions, Took::default())
    );
    taken.own.clocks as f64 / 1000.0
}

/// A loop of 100 rounds of a multiplication that waits for the one before makes no reference; a load follows.
#[test]
fn loops_without_references_count_for_the_next_one() {
    let mut paces = Paces::default();
    paces.describe(3, vec![way(SUM, SUM, 4)]);
    paces.describe(5, vec![way(1, COUNTER, 4)]);
    let mut play = Play::new(FORWARD);
    for _ in 0..10 {
        for _ in 0..100 {
            play.run(&mut paces, (3, 3), Code::default(), 5, &[]);
        }
        play.run(&mut paces, (5, 5), Code::default(), 2, &[READ]);
    }
    let all: Vec<(usize, Taken)> = paces.all().collect();
    let [(5, taken)] = all[..] else { panic!("{all:?}") };
    assert_eq!((taken.own.instructions, taken.before.instructions), (20, 5000));
    assert_eq!(taken.before.clocks, 4000);
    assert!(taken.own.clocks <= 10, "{taken:?}");
}

#[test]
fn a_loop_takes_as_long_as_what_it_carries_round() {
    // for (...) sum += a[i]: an addition of 3 clocks waits for the one before, the counter for its own.
    let summing = vec![way(COUNTER, COUNTER, 1), way(SUM, SUM, 3), way(SUM, COUNTER, 7)];
    let taken = played(summing, 4);
    assert!((3.0..3.1).contains(&taken), "{taken}");
    // for (...) a[i] = b[i]
    let copying = vec![way(COUNTER, COUNTER, 1), way(2, COUNTER, 4)];
    let taken = played(copying, 4);
    assert!((1.0..1.1).contains(&taken), "{taken}");
    // Chains through one register of four clocks a step.
    let chasing = vec![way(5, 5, 4)];
    assert!((4.0..4.1).contains(&played(chasing, 3)));
}

/// `*word += i`: a clock of the addition, and those from the store to the load of the next round.
#[test]
fn a_loop_waits_for_what_it_stored_in_the_round_before() {
    let counting = vec![
        way(COUNTER, COUNTER, 1),
        way(FIRST_REFERENCE, FIRST_REFERENCE, 1),
        way(FIRST_REFERENCE, COUNTER, 1),
    ];
    let taken = |step: u64| {
        let mut paces = Paces::default();
        paces.describe(3, counting.clone());
        let mut play = Play::new(FORWARD);
        for round in 0..1000 {
            let word = Reference {
                address: Some(0x1000 + step * round),
                stores: true,
                ..READ
            };
            play.run(&mut paces, (3, 3), Code::default(), 4, &[word]);
        }
        paces.taken[&3].own.clocks as f64 / 1000.0
    };
    assert!((2.9..3.1).contains(&taken(0)), "{}", taken(0));
    // Of what is stored elsewhere it loads nothing.
    assert!((0.9..1.1).contains(&taken(8)), "{}", taken(8));
}

/// `sum += a[i]; i++` without registers: neighbours of four bytes are two chains, side by side; one of eight bytes is loaded with both.
#[test]
fn neighbours_of_four_bytes_are_two_words() {
    let taken = |ways: Vec<Way>, references: &[(u64, u64)]| {
        let mut paces = Paces::default();
        paces.describe(3, ways);
        let mut play = Play::new(FORWARD);
        let references: Vec<Reference> = references
            .iter()
            .map(|&(address, bytes)| Reference {
                address: Some(address),
                bytes,
                stores: true,
                ..READ
            })
            .collect();
        for _ in 0..1000 {
            play.run(&mut paces, (3, 3), Code::default(), 4, &references);
        }
        paces.taken[&3].own.clocks as f64 / 1000.0
    };
    let (first, second) = (FIRST_REFERENCE, FIRST_REFERENCE + 1);
    let side_by_side = vec![way(first, first, 1), way(second, second, 1)];
    let apart = taken(side_by_side.clone(), &[(0x1000, 4), (0x1004, 4)]);
    assert!((2.9..3.1).contains(&apart), "{apart}");
    let one_word = taken(side_by_side.clone(), &[(0x1000, 4), (0x1000, 4)]);
    assert!((5.9..6.1).contains(&one_word), "{one_word}");
    let upper_half = taken(side_by_side, &[(0x1004, 4), (0x1000, 8)]);
    assert!((5.9..6.1).contains(&upper_half), "{upper_half}");
}

/// A value that goes through two words within a superblock, to the next.
#[test]
fn what_a_superblock_stores_its_later_loads_wait_for() {
    // word 0 -> sum + 3 -> word 1 -> register.
    let mut paces = Paces::default();
    let (first, second) = (FIRST_REFERENCE, FIRST_REFERENCE + 1);
    paces.describe(3, vec![way(SUM, second, 0), way(first, SUM, 3)]);
    let mut play = Play::new(FORWARD);
    let stores = Reference {
        loads: false,
        stores: true,
        ..READ
    };
    let at = |reference: Reference, address: u64| Reference {
        address: Some(address),
        ..reference
    };
    for round in 0..100 {
        let word = 0x1000 + 8 * round;
        play.run(
            &mut paces,
            (3, 3),
            Code::default(),
            4,
            &[at(stores, word), at(READ, word)],
        );
    }
    let taken = paces.taken[&3].own.clocks as f64 / 100.0;
    assert!((7.9..8.1).contains(&taken), "{taken}");
    // Of a load that was not carried out nothing comes.
    let none = Reference { address: None, ..READ };
    let mut paces = paces.described();
    for _ in 0..100 {
        play.run(&mut paces, (3, 3), Code::default(), 4, &[stores, none]);
    }
    assert!(paces.taken[&3].own.clocks < 10, "{:?}", paces.taken[&3]);
}

/// A loop of four instructions of four bytes, of which none waits for another.
#[test]
fn a_loop_takes_a_clock_for_each_line_of_its_code() {
    let clocks = |begin: u64, line: Option<u64>| {
        let mut paces = Paces::default();
        paces.describe(3, vec![way(1, NONE, 1)]);
        let mut play = Play::new(FORWARD);
        let code = Code::of((0..4).map(|at| (begin + 4 * at, 4)), line);
        for _ in 0..1000 {
            play.run(&mut paces, (3, 3), code, 4, &[READ]);
        }
        let taken = paces.taken[&3].own.clocks;
        // The window's end adds a clock here and there.
        assert!(taken % 1000 <= 50, "{taken}");
        taken / 1000
    };
    assert_eq!(
        [0x100, 0x130, 0x138, 0x13e].map(|begin| clocks(begin, Some(64))),
        [1, 1, 2, 2]
    );
    assert_eq!([0x110, 0x118].map(|begin| clocks(begin, Some(32))), [1, 2]);
    assert_eq!(clocks(0x138, None), 0);
}

#[test]
fn lines_count_once_while_code_goes_on_in_them() {
    let of = |pcs: &[u64]| Code::of(pcs.iter().map(|pc| (*pc, 4)), Some(64));
    // From 0x138 over 0x140 into the same line behind a jump.
    assert_eq!(of(&[0x138, 0x13c, 0x140, 0x150]).lines, 3);
    let (first, second) = (of(&[0x100, 0x104]), of(&[0x108, 0x10c]));
    assert_eq!(
        [second.clocks(first), second.clocks(second), first.clocks(second)],
        [0, 1, 1]
    );
    let aligned = of(&[0x140]);
    assert_eq!(aligned.clocks(of(&[0x13c])), 1);
    assert_eq!(Code::of(std::iter::empty(), Some(64)).clocks(first), 0);
}

#[test]
fn what_waits_for_nothing_is_bounded_by_the_window() {
    // A long chain that restarts each time: 100 instructions, each of which waits for the previous one.
    let chain = vec![way(1, NONE, 100)];
    let taken = played(chain.clone(), 100);
    // Two or three of them are under way at a time.
    assert!((33.0..51.0).contains(&taken), "{taken}");
    assert!(played(chain, 224) >= 99.0);
}

#[test]
fn words_that_name_no_part_are_refused() {
    assert_eq!(Way::read(5 | 6 << 8 | 7 << 16), Some(way(5, 6, 7)));
    assert_eq!(Way::read(5 | 0xff << 8), Some(way(5, NONE, 0)));
    assert_eq!(Way::read(35), None);
    assert_eq!(Way::read(1 | 40 << 8), None);
    assert_eq!(Way::read(191 | 83 << 8 | 2 << 16), Some(way(191, 83, 2)));
    assert_eq!([Way::read(192 | 83 << 8), Way::read(191 | 84 << 8)], [None, None]);
}
