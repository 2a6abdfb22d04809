//! `--align`: large blocks of the heap begin on lines, each at another place of a page, and are blocks like any other.

use crate::slow::run::workshop::{Run, Workshop, plainly};

fn places(run: &Run, line: usize) -> Vec<u32> {
    let printed = run.printed();
    let line = printed.lines().nth(line).unwrap();
    line.split(' ').map(|place| place.parse().unwrap()).collect()
}

#[test]
fn large_blocks_begin_on_lines_and_apart() {
    let shop = Workshop::new();
    let Some(program) = shop.program("blocks.c", &["-O1"]) else {
        return;
    };
    let program = program.to_str().unwrap();
    let run = shop.directed("cdpc", &["--align", "64:4096"], &[program]);
    assert!(run.printed().ends_with("good 1\n"), "{}{}", run.printed(), run.said());
    for line in [0, 1] {
        let places = places(&run, line);
        assert!(places.iter().all(|place| place % 64 == 0), "{places:?}");
        let mut different = places.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), 40, "{places:?}");
    }
    let padded = &run.cdpc()["padded"];
    assert!(padded["blocks"].as_u64().unwrap() >= 40, "{padded:#}");
    assert_eq!((&padded["line"], &padded["way"]), (&64.into(), &4096.into()));
}

#[test]
fn they_lie_where_the_c_library_puts_them_if_that_is_asked_for() {
    let shop = Workshop::new();
    let Some(program) = shop.program("blocks.c", &["-O1"]) else {
        return;
    };
    let program = program.to_str().unwrap();
    let plain = plainly(&[program]);
    let run = shop.directed("cdpc", &["--align", "no"], &[program]);
    assert_eq!(
        run.printed().lines().next(),
        String::from_utf8_lossy(&plain.stdout).lines().next()
    );
    assert!(run.cdpc()["padded"].is_null());
    assert!(
        places(&run, 0).iter().all(|place| place % 64 == 16),
        "{}",
        run.printed()
    );
}

#[test]
fn operators_of_cxx_give_and_take_them() {
    let shop = Workshop::new();
    for source in ["torture.cc", "containers.cc"] {
        let Some(program) = shop.program(source, &["-O1"]) else {
            return;
        };
        let program = program.to_str().unwrap();
        let run = shop.directed("cdpc", &["--align", "64:4096"], &[program]);
        run.is_as(&plainly(&[program]));
    }
}
