use super::*;

#[test]
fn an_area_holds_what_is_written_until_it_is_discarded() {
    let mut area = Area::map(3 * PAGE, Size::Small).unwrap();
    area.set_word(1, 511, 7);
    let mut other = Area::map(PAGE, Size::Small).unwrap();
    other.copy(0, &mut area, 1, 1);
    assert_eq!((other.word(0, 511), other.word(0, 0)), (7, 0));
    area.clear(1, 1);
    assert_eq!(area.word(1, 511), 0);
    other.as_mut_slice()[8] = 3;
    assert_eq!(other.word(0, 1), 3);
    other.discard(0, 1).unwrap();
    assert_eq!(other.word(0, 511), 0);
    assert!(Area::map(0, Size::Small).is_err() && Area::map(usize::MAX, Size::Huge).is_err());
}

#[test]
#[cfg_attr(miri, ignore = "Miri unmaps only whole mappings")]
fn huge_areas_are_aligned() {
    let area = Area::map(HUGE + 1, Size::Huge).unwrap();
    assert_eq!((area.start() % HUGE, area.bytes()), (0, 2 * HUGE));
}

#[test]
#[should_panic(expected = "beyond the area")]
fn no_page_beyond_the_end() {
    Area::map(PAGE, Size::Small).unwrap().word(1, 0);
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no process_vm_readv and its like")]
fn reading_what_is_not_mapped_is_an_error() {
    // The lowest addresses, which no process may map.
    let gone = Span::new(0, 2 * PAGE);
    let mut area = Area::map(2 * PAGE, Size::Small).unwrap();
    assert_eq!(read(gone, &mut area, 0).unwrap_err().raw_os_error(), Some(libc::EFAULT));
    assert_eq!(populate(gone).unwrap_err().raw_os_error(), Some(libc::ENOMEM));
}

/// An area far below all addresses that the kernel chooses by itself: once it is unmapped, no other test gets
/// its place.
fn far_below(bytes: usize) -> Area {
    // Each is tried once.
    static NEXT: AtomicU64 = AtomicU64::new(1 << 36);
    loop {
        let start = NEXT.fetch_add(1 << 36, Ordering::Relaxed) as usize;
        assert!(start < 1 << 45, "no place is free");
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        // SAFETY: with this flag nothing that is mapped is replaced.
        if unsafe { libc::mmap(start as *mut _, bytes, access, flags, -1, 0) } as usize == start {
            return Area { start, bytes };
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no process_vm_readv and its like")]
fn a_place_that_was_unmapped_on_the_way_gets_its_content_back() {
    let mut area = Area::map(2 * PAGE, Size::Small).unwrap();
    area.set_word(1, 3, 5);
    let place = far_below(PAGE);
    let to = place.span();
    place.set_word(0, 3, 9);
    // SAFETY: the place is the test's own, and nobody else touches it.
    unsafe { restore(&area, 1, to) }.unwrap();
    assert_eq!(place.word(0, 3), 9, "what is mapped stays");
    // SAFETY: the area's own mapping, which nobody uses until it is mapped again.
    assert_eq!(unsafe { libc::munmap(to.start as *mut _, to.bytes) }, 0);
    // SAFETY: as above.
    unsafe { restore(&area, 1, to) }.unwrap();
    assert_eq!(place.word(0, 3), 5);
    area.clear(1, 1);
    assert_eq!(place.word(0, 3), 5);
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no process_vm_readv and its like")]
fn pages_read_written_and_remapped() {
    let theirs = Area::map(2 * PAGE, Size::Small).unwrap();
    theirs.set_word(1, 3, 5);
    let mut area = Area::map(2 * PAGE, Size::Small).unwrap();
    read(theirs.span(), &mut area, 0).unwrap();
    assert_eq!(area.word(1, 3), 5);
    area.set_word(0, 0, 9);
    // SAFETY: both areas are the test's own.
    unsafe { write(theirs.part(0, 1), &area, 0) }.unwrap();
    assert_eq!((theirs.word(0, 0), theirs.word(1, 3)), (9, 5));
    area.set_word(1, 3, 6);
    // SAFETY: as above.
    unsafe { remap(&mut area, 1, theirs.part(1, 1)) }.unwrap();
    assert_eq!((theirs.word(0, 0), theirs.word(1, 3), area.word(1, 3)), (9, 6, 0));
}
