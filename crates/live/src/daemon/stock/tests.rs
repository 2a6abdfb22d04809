//! These see frame numbers, and so run as root only; elsewhere they see the refusal.

use sys::memory::{Area, PAGE, Size};

use super::*;
use crate::Source;

fn stock(bits: u32, target: usize) -> Option<Stock> {
    let colors = Colors {
        first_bit: 12,
        bits,
        color_bytes: 65536,
        cache: "L2".into(),
        source: Source::Forced,
    };
    match Stock::new(colors, target) {
        Ok(stock) => Some(stock),
        Err(error) => {
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
            harness::not_allowed("frames are shown to root only");
            None
        }
    }
}

/// Collects until there is enough of each color. The frames that a round lets go are those that the kernel hands out next,
/// and they may be all of a few colors. So they are held until the end.
fn fill(stock: &mut Stock) {
    let mut held = Vec::new();
    for _ in 0..50 {
        while !stock.collect().unwrap().1 {}
        if stock.full() {
            return;
        }
        let area = Area::map(stock.target() * PAGE, Size::Small).unwrap();
        sys::memory::populate(area.span()).unwrap();
        held.push(area);
    }
    panic!(
        "some color is not to be had: {:?}",
        stock.by_color().collect::<Vec<_>>()
    );
}

/// The frame of each page on the lists, by color.
fn listed(stock: &Stock) -> Vec<(u16, Option<u64>)> {
    let mut entries = Vec::new();
    stock.shelf.entries(0..stock.frame_of.len(), &mut entries).unwrap();
    let lists = stock.by_color.iter().enumerate();
    lists
        .flat_map(|(color, pages)| pages.iter().map(move |&page| (color as u16, page)))
        .map(|(color, page)| (color, entries[page as usize].frame()))
        .collect()
}

/// All that must hold at any moment.
fn whole(stock: &Stock) {
    let flow = stock.flow();
    assert_eq!(
        flow.collected + flow.taken_back,
        stock.len() as u64 + flow.released + flow.let_go + flow.given_up + flow.lost,
        "{flow:?}"
    );
    let listed = listed(stock);
    let mut frames: Vec<u64> = Vec::new();
    for (color, frame) in listed {
        // The kernel may have moved one since it was sorted; that is what `check` is for.
        let Some(frame) = frame else { continue };
        assert_eq!(stock.colors().of(frame), u32::from(color));
        frames.push(frame);
    }
    let count = frames.len();
    frames.sort_unstable();
    frames.dedup();
    assert_eq!(frames.len(), count, "a frame is there twice");
    assert_eq!(count, stock.len());
}

#[test]
fn a_round_of_collecting_ends_with_enough_of_each_color() {
    let Some(mut stock) = stock(4, 4096) else { return };
    assert!(stock.hungry());
    fill(&mut stock);
    whole(&stock);
    assert!(!stock.hungry());
    let by_color: Vec<u64> = stock.by_color().collect();
    assert_eq!(by_color.len(), 16);
    assert!(
        by_color.iter().all(|&frames| (256..=288).contains(&frames)),
        "{by_color:?}"
    );
}

#[test]
fn what_is_released_is_of_the_color_wished_and_comes_back() {
    let Some(mut stock) = stock(2, 2048) else { return };
    fill(&mut stock);
    let before: Vec<u64> = stock.by_color().collect();
    let wants = [3u16, 1].repeat(200);
    let met = stock.release(wants.iter().copied()).unwrap();
    for (want, frame) in wants.iter().zip(&met) {
        assert_eq!(frame.map(|frame| stock.colors().of(frame)), Some(u32::from(*want)));
    }
    let after: Vec<u64> = stock.by_color().collect();
    assert_eq!(after, [before[0], before[1] - 200, before[2], before[3] - 200]);
    whole(&stock);
    assert!(stock.hungry());
    let came = stock.take_back(400).unwrap();
    assert_eq!(came.len(), 400);
    whole(&stock);
}

#[test]
fn what_is_not_there_is_not_promised() {
    let Some(mut stock) = stock(1, 16) else { return };
    assert_eq!(stock.release([0, 1].into_iter()).unwrap(), [None, None]);
    fill(&mut stock);
    let there = stock.by_color().next().unwrap() as usize;
    let met = stock.release(vec![0; there + 5].into_iter()).unwrap();
    assert_eq!(met.iter().flatten().count(), there);
    assert!(met[there..].iter().all(Option::is_none));
    whole(&stock);
}

#[test]
fn memory_is_given_up_evenly_and_to_the_last_frame() {
    let Some(mut stock) = stock(2, 1024) else { return };
    fill(&mut stock);
    let before = stock.len();
    assert_eq!(stock.give_up(500).unwrap(), 500);
    whole(&stock);
    let by_color: Vec<u64> = stock.by_color().collect();
    assert!(
        by_color.iter().max().unwrap() - by_color.iter().min().unwrap() <= 1,
        "{by_color:?}"
    );
    assert_eq!(stock.give_up(usize::MAX).unwrap(), before - 500);
    assert_eq!(stock.len(), 0);
    whole(&stock);
    assert_eq!(stock.check(100).unwrap(), 0);
}

#[test]
fn a_color_used_up_is_filled_up_alone() {
    let Some(mut stock) = stock(2, 1024) else { return };
    fill(&mut stock);
    stock.release(vec![2; 250].into_iter()).unwrap();
    assert!(stock.hungry());
    fill(&mut stock);
    whole(&stock);
    assert!(stock.by_color().all(|frames| (256..=288).contains(&frames)));
    assert!(stock.flow().let_go > 0);
}

#[test]
fn a_round_of_collecting_holds_half_as_much_again_at_most() {
    let Some(mut stock) = stock(4, 16_384) else { return };
    fill(&mut stock);
    let most = 16_384 + 8192 + ROOM;
    assert_eq!(stock.most(), most);
    // A client uses up one color, and keeps it: the kernel gives sixteen frames for each of these.
    for _ in 0..3 {
        stock.release(vec![5; 1000].into_iter()).unwrap();
        let mut over = false;
        while !over {
            over = stock.collect().unwrap().1;
            assert!(stock.len() <= most, "{}", stock.len());
        }
        whole(&stock);
        // Afterwards an eighth too much of each at most.
        assert!(
            stock.by_color().all(|frames| frames <= 1152),
            "{:?}",
            stock.by_color().collect::<Vec<_>>()
        );
    }
}
