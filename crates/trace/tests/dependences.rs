//! Which sites wait for which, how long and on which branches: written, read, and refused where there are no such sites.
#![forbid(unsafe_code)]

use trace::{Dependence, Header, Misprediction, Op, Pace, Process, Ref, Site, Thread, Trace, TraceError, Writer};

/// A trace of three sites and one reference, with these dependences.
fn trace(dependences: Option<Vec<Dependence>>) -> Result<Vec<u8>, TraceError> {
    with(|writer| {
        if let Some(dependences) = dependences {
            writer.dependences(dependences);
        }
    })
}

fn with(tables: impl FnOnce(&mut Writer)) -> Result<Vec<u8>, TraceError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.trace");
    let mut writer = Writer::create(&path, &Header::default())?;
    let process = writer.process(Process::default());
    let thread = writer.thread(Thread {
        process,
        ..Thread::default()
    });
    let (op, size) = (Op::Read, 8);
    let sites = [0x10, 0x20, 0x30].map(|pc| writer.site(Site { pc, op, size }));
    let reference = Ref {
        addr: 0x1000,
        site: sites[0],
        insns: 1,
        op,
        size,
    };
    writer.push(thread, reference)?;
    tables(&mut writer);
    writer.finish()?;
    Ok(std::fs::read(&path).unwrap())
}

fn waits(site: u32, on: &[u32]) -> Dependence {
    Dependence {
        site,
        on: on.to_vec(),
        either: on.len() > 1,
    }
}

#[test]
fn what_is_known_is_read_back_and_nothing_is_not_none() {
    let table = vec![waits(0, &[0]), waits(2, &[0, 1])];
    for written in [Some(table), Some(Vec::new()), None] {
        let trace = Trace::from_bytes(trace(written.clone()).unwrap()).unwrap();
        assert_eq!(trace.dependences().map(<[Dependence]>::to_vec), written);
    }
}

#[test]
fn sites_that_there_are_not_are_refused_or_left_out() {
    for wrong in [waits(3, &[0]), waits(1, &[0, 3]), waits(u32::MAX, &[])] {
        let bytes = trace(Some(vec![waits(0, &[1]), wrong])).unwrap();
        let error = Trace::from_bytes(bytes.clone()).err().expect("there are three sites");
        assert!(error.to_string().contains("not one of the 3"), "{error}");
        let salvaged = Trace::salvage_bytes(bytes).unwrap();
        assert_eq!(salvaged.dependences(), Some(&[waits(0, &[1])][..]));
    }
}

#[test]
fn paces_and_mispredictions_name_sites_that_there_are() {
    let pace = |site| Pace { site, clocks: 2048 };
    let branch = |site, on: &[u32]| Misprediction {
        site,
        per_1024: 512,
        on: on.to_vec(),
    };
    let right = [branch(2, &[0])];
    let bytes = with(|writer| {
        writer.paces([pace(1)]);
        writer.mispredictions(right.clone());
    });
    let trace = Trace::from_bytes(bytes.unwrap()).unwrap();
    assert_eq!((trace.paces(), trace.mispredictions()), (&[pace(1)][..], &right[..]));
    let wrong: [(Option<Pace>, Option<Misprediction>); 3] = [
        (Some(pace(3)), None),
        (None, Some(branch(3, &[]))),
        (None, Some(branch(1, &[u32::MAX]))),
    ];
    for (wrong_pace, wrong_branch) in wrong {
        let bytes = with(|writer| {
            writer.paces([pace(1)].into_iter().chain(wrong_pace));
            writer.mispredictions(right.clone().into_iter().chain(wrong_branch));
        });
        let bytes = bytes.unwrap();
        let error = Trace::from_bytes(bytes.clone()).err().expect("there are three sites");
        assert!(error.to_string().contains("not one of the 3"), "{error}");
        let salvaged = Trace::salvage_bytes(bytes).unwrap();
        assert_eq!(
            (salvaged.paces(), salvaged.mispredictions()),
            (&[pace(1)][..], &right[..])
        );
    }
}
