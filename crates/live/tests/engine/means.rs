//! Every means, forced; and the error if one does not work.

use live::{Config, Error, Knowledge, Others, Placing, Supply, Wish};

use crate::engine::memory::{ColorOwn, Memory, assert_colored, config, open, set};

const MIB: usize = 1 << 20;

fn forced(placing: Option<Placing>, knowledge: Option<Knowledge>) -> Config {
    let mut config = config(3);
    (config.placing, config.knowledge) = (placing, knowledge);
    config
}

#[test]
fn each_means_alone_colors_pages_and_keeps_their_content() {
    for placing in [Placing::Move, Placing::Refill, Placing::Remap] {
        for knowledge in [Knowledge::Pagemap, Knowledge::HugePages] {
            if (placing, knowledge) == (Placing::Refill, Knowledge::HugePages) {
                // Only a page map shows the frames that came.
                let error = live::Engine::open(forced(Some(placing), Some(knowledge)))
                    .err()
                    .unwrap();
                assert!(error.to_string().contains("refilling needs a page map"), "{error}");
                continue;
            }
            let Some(mut engine) = open(forced(Some(placing), Some(knowledge))) else {
                continue;
            };
            assert_eq!(engine.means().placing, Some(placing));
            assert_eq!(engine.means().knowledge, Some(knowledge));
            assert!(engine.means().to_string().contains("forced"));
            let memory = Memory::alone(2 * MIB);
            let untouched = Memory::alone(MIB);
            memory.number();
            for chosen in [set(&[2]), set(&[0, 1, 5])] {
                for memory in [&memory, &untouched] {
                    let done = engine.color_own(memory.pages(), &Wish::Set(chosen.clone()), Others::Absent);
                    let done = done.unwrap_or_else(|error| panic!("{placing:?} {knowledge:?}: {error}"));
                    if placing == Placing::Refill && !done.complete() {
                        // Another thread of this cpu took frames in between, each time.
                        assert!(done.left.iter().all(|left| left.why == live::Why::Miscolored));
                        continue;
                    }
                    assert!(done.complete(), "{placing:?} {knowledge:?}: {done:?}");
                    assert_colored(memory.pages(), 3, &chosen);
                }
                memory.assert_numbered();
                untouched.assert_zero();
            }
        }
    }
}

#[test]
fn more_than_may_be_filled_is_refused_and_nothing_is_filled() {
    let Some(mut engine) = open(config(3)) else { return };
    let total = sys::pressure::Memory::read(&sys::Root::default()).unwrap().total as usize;
    // The kernel maps as much as there could be, and no frame stands behind it.
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let sparse = Memory::mapped(4 * (total / MIB) * MIB, flags, -1);
    let few = set(&[2, 5]);
    let refused = engine.color_own(sparse.pages(), &Wish::Set(few.clone()), Others::Absent);
    assert!(
        matches!(refused, Err(Error::Memory { wanted, room }) if wanted == sparse.bytes as u64 && room < wanted),
        "{refused:?}"
    );
    let first = live::Pages {
        count: 512,
        ..sparse.pages()
    };
    let map = sys::frames::Pagemap::own().unwrap();
    let present = |pages: live::Pages| {
        let entries = map.entries(sys::memory::Span::new(pages.start, pages.bytes())).unwrap();
        entries.iter().filter(|entry| entry.present()).count()
    };
    assert_eq!(present(first), 0);
    // A part that there is memory for is colored.
    assert!(engine.color_own(first, &Wish::Set(few), Others::Absent).is_ok());
    assert_eq!(present(first), 512);
}

#[test]
fn remapping_stays_within_its_budget_of_mappings() {
    let mut config = forced(Some(Placing::Remap), None);
    // Fewer than the pages need. (A count of the current mappings plus some would be wrong: other tests may unmap
    // theirs before it matters.)
    config.mappings = 500;
    let Some(mut engine) = open(config) else { return };
    let memory = Memory::alone(4 * MIB);
    memory.number();
    // The frames that other tests have freed may all be of color 1: then few pages would need
    // another frame.
    if let Some(mut other) = open(forced(Some(Placing::Refill), None)) {
        let color_2 = Wish::Set(set(&[2]));
        other.color_own(memory.pages(), &color_2, Others::Absent).unwrap();
    }
    let error = engine
        .color_own(memory.pages(), &Wish::Set(set(&[1])), Others::Absent)
        .unwrap_err();
    assert!(
        matches!(error, Error::Mappings { wanted, .. } if wanted > 500),
        "{error}"
    );
    memory.assert_numbered();
    assert_eq!(sys::mappings::within(memory.span()).unwrap().len(), 1);
}

#[test]
fn ranges_in_use_are_refused_where_pages_cannot_be_moved() {
    for placing in [Placing::Refill, Placing::Remap] {
        let Some(mut engine) = open(forced(Some(placing), None)) else {
            continue;
        };
        assert!(!engine.means().running);
        let memory = Memory::alone(MIB);
        memory.number();
        // The harness runs tests on threads of their own, so that there are others.
        let error = engine
            .color_own(memory.pages(), &Wish::Set(set(&[1])), Others::Running)
            .unwrap_err();
        assert!(error.to_string().contains("UFFDIO_MOVE"), "{error}");
        memory.assert_numbered();
    }
}

#[test]
fn colors_beyond_a_huge_page_need_the_page_map() {
    let mut config = forced(None, Some(Knowledge::HugePages));
    (config.colors.first_bit, config.colors.bits) = (18, 4);
    let error = live::Engine::open(config).err().unwrap();
    assert!(error.to_string().contains("bits 12 to 20"), "{error}");
}

#[test]
fn colors_that_no_address_has_are_refused() {
    for (first_bit, bits) in [(11, 4), (0, 1), (12, 17), (12, 32), (12, 64), (50, 3), (u32::MAX, 1)] {
        let mut config = config(4);
        (config.colors.first_bit, config.colors.bits) = (first_bit, bits);
        let error = live::Engine::open(config).err().unwrap();
        let said = error.to_string();
        assert!(
            said.contains("from bit 12 to bit 51") || said.contains("1 to 16 bits"),
            "{said}"
        );
    }
}

#[test]
fn pages_that_the_program_locked_keep_content_and_lock_when_they_are_filled_anew() {
    let Some(mut engine) = open(forced(Some(Placing::Refill), None)) else {
        return;
    };
    let memory = Memory::alone(MIB);
    memory.number();
    // The frames that other tests have freed may all be of color 1: then no page would need another
    // frame.
    let color_2 = Wish::Set(set(&[2]));
    engine.color_own(memory.pages(), &color_2, Others::Absent).unwrap();
    // Two mappings, of which the kernel refuses to empty the second after it has emptied the first.
    let half = sys::memory::Span::new(memory.start + MIB / 2, MIB / 4);
    sys::memory::lock(half).unwrap();
    let done = engine
        .color_own(memory.pages(), &Wish::Set(set(&[1])), Others::Absent)
        .unwrap();
    memory.assert_numbered();
    assert!(done.exchanged > 0, "{done:?}");
    let details = sys::mappings::details(memory.span()).unwrap();
    let locked: Vec<_> = details.iter().filter(|details| details.has("lo")).collect();
    assert!(locked.len() == 1 && locked[0].mapping.span == half, "{details:?}");
}

#[test]
fn frames_run_out_at_the_limit_and_the_content_stays() {
    let mut config = config(8);
    config.collect_bytes = 8 << 20;
    let Some(mut engine) = open(config) else { return };
    let memory = Memory::alone(4 * MIB);
    memory.number();
    let error = engine
        .color_own(memory.pages(), &Wish::Set(set(&[77])), Others::Absent)
        .unwrap_err();
    let Error::NoFrames {
        color, wanted, found, ..
    } = &error
    else {
        panic!("{error}")
    };
    assert!(*color == 77 && *wanted > 900 && found < wanted, "{error}");
    memory.assert_numbered();
}

#[test]
fn colors_that_do_not_exist_are_no_wish() {
    let Some(mut engine) = open(config(3)) else { return };
    let memory = Memory::alone(MIB);
    let wish = |engine: &mut live::Engine, wish| engine.color_own(memory.pages(), &wish, Others::Absent).unwrap_err();
    assert!(matches!(wish(&mut engine, Wish::Set(set(&[8]))), Error::Wish(_)));
    assert!(matches!(wish(&mut engine, Wish::Hints(vec![(256, 1)])), Error::Wish(_)));
}

/// A supply that lies, fails, or serves only some.
struct Odd {
    calls: usize,
}

impl Supply for Odd {
    unsafe fn fill(&mut self, into: live::Pages, want: &[u16]) -> Result<Vec<Option<u16>>, Error> {
        self.calls += 1;
        match self.calls % 3 {
            0 => Err(Error::Unavailable {
                what: "the supply".into(),
                why: "it is tired".into(),
            }),
            // Any frames of the kernel's, with a lie about every second one.
            1 => {
                sys::memory::populate(sys::memory::Span::new(into.start, into.bytes())).unwrap();
                Ok((0..)
                    .zip(want)
                    .map(|(at, &want)| (at % 2 == 0).then_some(want))
                    .collect())
            }
            _ => Ok(Vec::new()),
        }
    }

    unsafe fn give_back(&mut self, _: live::Pages) -> Result<(), Error> {
        Ok(())
    }

    fn by_color(&mut self) -> Result<Vec<u64>, Error> {
        Ok(vec![1; 8])
    }
}

#[test]
fn what_a_supply_gets_wrong_comes_from_the_own_pool() {
    let mut config = config(3);
    config.supply = Some(Box::new(Odd { calls: 0 }));
    let Some(mut engine) = open(config) else { return };
    let memory = Memory::alone(MIB);
    memory.number();
    let chosen = [
        set(&[1]),
        set(&[2, 3]),
        set(&[4]),
        set(&[5, 6, 7]),
        set(&[0]),
        set(&[1]),
    ];
    for (call, chosen) in chosen.into_iter().enumerate() {
        let untouched = Memory::alone(MIB / 4);
        for memory in [&memory, &untouched] {
            let done = engine
                .color_own(memory.pages(), &Wish::Set(chosen.clone()), Others::Absent)
                .unwrap();
            assert!(done.complete(), "{call}: {done:?}");
            // An ordinary user believes the lies.
            if engine.means().knowledge == Some(Knowledge::Pagemap) {
                assert_colored(memory.pages(), 3, &chosen);
            }
        }
        memory.assert_numbered();
        untouched.assert_zero();
    }
    assert_eq!(engine.by_color().unwrap(), [1; 8]);
}

#[test]
fn the_pool_keeps_no_more_than_its_reserve() {
    let mut config = config(3);
    config.reserve_bytes = 2 << 20;
    let Some(mut engine) = open(config) else { return };
    let memory = Memory::alone(4 * MIB);
    memory.number();
    for color in 0..8 {
        let done = engine
            .color_own(memory.pages(), &Wish::Set(set(&[color])), Others::Absent)
            .unwrap();
        assert!(done.complete());
        let held: u64 = engine.by_color().unwrap().iter().sum();
        assert!(held <= (2 << 20) / 4096, "{held}");
    }
    memory.assert_numbered();
}
