//! Where a recording is written: under its name only when it is finished, in place where that is no file, and not at all
//! where nothing can be written.
#![forbid(unsafe_code)]

use crate::workshop;

use std::process::Command;

use trace::Trace;
use workshop::{compile, filled, recorder, unfinished};

/// A recording takes its name when it is finished: what was there before is not lost where there is none.
#[test]
fn what_was_there_stays_until_there_is_a_recording() {
    let bench = compile("ends", &[]);
    let mut options = bench.options(&["code"]);
    std::fs::write(&options.output, "old").unwrap();
    let held = std::fs::File::open(&options.output).unwrap();
    let old = || std::fs::read(bench.folder.path().join(options.output.file_name().unwrap())).unwrap();
    {
        let _turn = workshop::alone();
        let mut broken = options.clone();
        broken.program = "/nonexistent".into();
        assert!(capture::record(&broken, &mut |_| {}).is_err());
        // It is a program by its looks only: nothing starts it.
        broken.program = bench.folder.path().join("no-program").into();
        std::fs::write(&broken.program, "#!/nonexistent\n").unwrap();
        std::fs::set_permissions(&broken.program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        assert!(capture::record(&broken, &mut |_| {}).is_err());
        assert_eq!(old(), b"old");
        assert!(!unfinished(&options.output).exists());
    }
    options.args = vec!["code".into()];
    let (_, trace) = workshop::record(&options);
    filled(&trace);
    assert!(!unfinished(&options.output).exists());
    assert_eq!(
        std::io::read_to_string(held).unwrap(),
        "old",
        "who reads the old one reads on"
    );
}

/// Refused before the program is run: it would have written a file.
#[test]
fn places_that_cannot_be_written_are_refused_before_the_program_runs() {
    let bench = compile("ends", &[]);
    let folder = bench.folder.path();
    let ran = folder.join("ran");
    let kept = folder.join("kept");
    std::fs::write(&kept, "old").unwrap();
    let closed = folder.join("closed");
    std::fs::create_dir(&closed).unwrap();
    for (path, mode) in [(&kept, 0o444), (&closed, 0o555), (&folder.to_path_buf(), 0o755)] {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    }
    let mut places = vec![
        (folder.join("no/such.dtr"), "No such file"),
        (folder.to_path_buf(), "is a directory"),
        ("/dev/full".into(), "No space left"),
        ("/proc/no.dtr".into(), "cannot open"),
        // As an ordinary user, below.
        (kept.clone(), "Permission denied"),
        (closed.join("x.dtr"), "Permission denied"),
    ];
    let recorder = recorder(&folder.join("unused")).0;
    let ordinary = || {
        let mut command = if harness::root() {
            let mut command = Command::new("setpriv");
            command
                .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
                .arg(&recorder);
            command
        } else {
            Command::new(&recorder)
        };
        command.current_dir("/");
        command
    };
    let reached = ordinary()
        .arg("--unknown")
        .output()
        .is_ok_and(|tried| tried.status.code() == Some(2));
    if !reached {
        harness::not_here("an ordinary user cannot reach the programs of this folder");
        places.truncate(4);
    }
    for (place, wanted) in places {
        let mut command = if reached { ordinary() } else { Command::new(&recorder) };
        let output = command
            .arg("-o")
            .arg(&place)
            .args(["--", "touch"])
            .arg(&ran)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{}: {said}", place.display());
        assert!(said.contains(wanted), "{}: {said}", place.display());
        assert!(!ran.exists(), "{}: the program ran", place.display());
    }
    assert_eq!(std::fs::read(&kept).unwrap(), b"old");
}

/// What is no regular file is written where it is.
#[test]
fn devices_and_fifos_are_written_in_place() {
    let bench = compile("ends", &[]);
    let fifo = bench.folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let reader = {
        let fifo = fifo.clone();
        std::thread::spawn(move || std::fs::read(fifo).unwrap())
    };
    let _turn = workshop::alone();
    for windows in [1, 2] {
        let mut options = bench.options(&["code"]);
        options.output = "/dev/null".into();
        (options.window, options.windows) = (Some(1000), windows);
        options.warm_bytes = 0;
        let outcome = capture::record(&options, &mut |_| {}).unwrap();
        assert_eq!(outcome.failure, None);
        assert_eq!(outcome.summary.references, 1000 * u64::from(windows));
    }
    let mut options = bench.options(&["code"]);
    options.output.clone_from(&fifo);
    capture::record(&options, &mut |_| {}).unwrap();
    let bytes = reader.join().unwrap();
    let trace = bench.folder.path().join("read.dtr");
    std::fs::write(&trace, bytes).unwrap();
    filled(&Trace::open(&trace).unwrap());
}
