use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

fn runs() -> impl Strategy<Value = Run> {
    (0..1u64 << 44, 1..=LOOK_PAGES as u32).prop_map(|(page, count)| Run {
        start: page << 12,
        count,
    })
}

fn requests() -> impl Strategy<Value = Request> {
    let wants = vec((0..2048u16, 0..100_000u32), 1..300).prop_map(|mut wants| {
        wants.sort_unstable();
        wants.dedup();
        wants.into_iter().map(|(color, page)| Want { page, color }).collect()
    });
    prop_oneof![
        any::<u16>().prop_map(|version| Request::Hello { version }),
        (any::<u32>(), 0..1u64 << 44, wants).prop_map(|(cpu, page, wants)| Request::Take {
            cpu,
            start: page << 12,
            wants
        }),
        runs().prop_map(|run| Request::Look { run }),
        runs().prop_map(|run| Request::Leave { run }),
        any::<u32>().prop_map(|cpu| Request::Left { cpu }),
        runs().prop_map(|run| Request::Adopt { run }),
        Just(Request::Stock),
        vec(any::<u32>(), 0..CPUS).prop_map(|cpus| Request::Available { cpus }),
        (any::<u64>(), any::<bool>()).prop_map(|(bytes, private)| Request::Slot { bytes, private }),
        (any::<Option<u64>>(), any::<u64>(), vec(any::<u32>(), 0..CPUS))
            .prop_map(|(slot, bytes, cpus)| { Request::Allocate { slot, bytes, cpus } }),
        (any::<bool>(), vec(any::<u32>(), 0..CPUS), vec(any::<u16>(), 0..COLORS))
            .prop_map(|(private, cpus, colors)| Request::Claim { private, cpus, colors }),
        any::<u64>().prop_map(|set| Request::Free { set }),
        any::<u64>().prop_map(|slot| Request::Close { slot }),
        Just(Request::Status),
    ]
}

fn answers() -> impl Strategy<Value = Answer> {
    let placed = (1..=11u32).prop_flat_map(|bits| (Colors::FIRST_BIT..=52 - bits, Just(bits)));
    let colors = (placed, Colors::COLOR_BYTES, "[a-zA-Z0-9é]{0,100}", any::<bool>()).prop_map(
        |((first_bit, bits), color_bytes, cache, validated)| Colors {
            first_bit,
            bits,
            color_bytes,
            cache,
            source: if validated { Source::Validated } else { Source::Forced },
        },
    );
    let status = (any::<u32>(), any::<u32>(), any::<[u64; Status::NUMBERS]>())
        .prop_map(|(process, clients, numbers)| Answer::Status(Status::new(process, clients, numbers)));
    prop_oneof![
        (any::<u16>(), colors).prop_map(|(version, colors)| Answer::Welcome { version, colors }),
        vec(any::<bool>(), 0..=TAKE_PAGES).prop_map(|met| Answer::Released { met }),
        vec(any::<u16>(), 0..=LOOK_PAGES).prop_map(|of| Answer::Colors { of }),
        any::<u32>().prop_map(|pages| Answer::Count { pages }),
        vec(any::<u64>(), 0..=COLORS).prop_map(|frames| Answer::Stock { frames }),
        (any::<u64>(), any::<u64>()).prop_map(|(bytes, together)| Answer::Free { bytes, together }),
        Just(Answer::Done),
        any::<u64>().prop_map(|slot| Answer::Slot { slot }),
        (
            any::<u64>(),
            any::<u64>(),
            vec(any::<u16>(), 0..=COLORS),
            vec(any::<u32>(), 0..=CPUS)
        )
            .prop_map(|(set, slot, colors, caches)| Answer::Granted {
                set,
                slot,
                colors,
                caches
            }),
        status,
        (0..Refusal::ALL.len(), ".{0,100}").prop_map(|(why, text)| Answer::Refused {
            why: Refusal::ALL[why],
            text
        }),
    ]
}

proptest! {
    #[test]
    fn what_was_asked_arrives(request in requests()) {
        let message = request.encode();
        prop_assert!(message.len() <= MESSAGE_BYTES);
        prop_assert_eq!(Request::decode(&message), Ok(request));
    }

    #[test]
    fn what_was_answered_arrives(answer in answers()) {
        let message = answer.encode();
        prop_assert!(message.len() <= MESSAGE_BYTES);
        prop_assert_eq!(Answer::decode(&message), Ok(answer));
    }

    /// Any bytes get an answer, and bytes that are accepted are a message, byte for byte.
    #[test]
    fn garbage_is_refused(tag in 0..16u8, rest in vec(any::<u8>(), 0..2000)) {
        let mut message = vec![tag];
        message.extend(rest);
        if let Ok(request) = Request::decode(&message) {
            // The number of an absent slot may be anything.
            let canonical = request.encode();
            prop_assert_eq!(canonical.len(), message.len());
            prop_assert_eq!(Request::decode(&canonical), Ok(request));
        }
        if let Ok(answer) = Answer::decode(&message) {
            prop_assert_eq!(answer.encode(), message);
        }
    }

    #[test]
    fn a_message_cut_or_longer_is_none(request in requests(), at in any::<prop::sample::Index>(), more in 1..9usize) {
        let mut message = request.encode();
        prop_assert!(Request::decode(&message[..at.index(message.len())]).is_err());
        message.resize(message.len() + more, 0);
        prop_assert!(Request::decode(&message).is_err());
    }
}

#[test]
fn lies_about_lengths_take_no_memory() {
    for (tag, before) in [(2, 12), (8, 0), (10, 17), (11, 1)] {
        let mut message = vec![tag];
        message.resize(1 + before, 0);
        message.extend([0xff; 4]);
        assert_eq!(Request::decode(&message), Err(Malformed::List));
    }
    assert_eq!(Request::decode(&[]), Err(Malformed::Short));
    assert_eq!(Request::decode(&vec![7; MESSAGE_BYTES + 1]), Err(Malformed::Long));
    assert_eq!(Request::decode(&[99]), Err(Malformed::Unknown(99)));
}

#[test]
fn addresses_are_pages_of_user_space() {
    for start in [1, 0x1001, 1 << 57, !0xfff] {
        let message = Request::Look {
            run: Run { start, count: 1 },
        };
        assert_eq!(Request::decode(&message.encode()), Err(Malformed::Range));
    }
    let end = Request::Look {
        run: Run {
            start: (1 << 57) - 4096,
            count: 2,
        },
    };
    assert_eq!(Request::decode(&end.encode()), Err(Malformed::Range));
    for count in [0, LOOK_PAGES as u32 + 1] {
        let message = Request::Leave {
            run: Run { start: 4096, count },
        };
        assert_eq!(Request::decode(&message.encode()), Err(Malformed::Range));
    }
}
