//! `daemon --regions` from start to end: its refusals, the effects of a dry run, and the restored state of each thread
//! afterwards.

use crate::house;

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use house::{Room, json, output};
use serde_json::Value;

/// The cpus of this machine in two halves, as `--domains` has them; `None` if there is one cpu.
fn halves() -> Option<[String; 2]> {
    let cpus = sys::cpus::cpus(&sys::Root::default()).unwrap().online;
    let mine = sys::affinity::allowed(None).unwrap();
    if cpus.len() < 2 || mine != cpus {
        harness::not_here("this test runs on all cpus of the machine, and on two at least");
        return None;
    }
    let (first, second) = cpus.split_at(cpus.len() / 2);
    Some([sys::cpus::list(first), sys::cpus::list(second)])
}

/// A program that is always busy, ended with the test.
struct Busy(Child);

impl Busy {
    /// By this name, as `/proc/PID/comm` has it.
    fn named(room: &Room, name: &str) -> Busy {
        let path = room.path(name);
        if !fs::exists(&path).unwrap() {
            symlink("/bin/sh", &path).unwrap();
        }
        Busy(Command::new(path).args(["-c", "while :; do :; done"]).spawn().unwrap())
    }

    fn number(&self) -> u32 {
        self.0.id()
    }

    fn mask(&self) -> String {
        let status = fs::read_to_string(format!("/proc/{}/status", self.number())).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        mask.unwrap().trim().to_string()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two busy programs, of which the first is to get a cache of its own: that needs no luck with working sets.
struct Scene {
    room: Room,
    busy: [Busy; 2],
    halves: [String; 2],
}

impl Scene {
    fn new() -> Option<Scene> {
        let halves = halves()?;
        if let Err(error) = sys::referenced::probe(&sys::Root::default()) {
            harness::not_here(error);
            return None;
        }
        let room = Room::new();
        let busy = ["server", "neighbor"].map(|name| Busy::named(&room, name));
        Some(Scene { room, busy, halves })
    }

    fn arguments(&self, more: &[&str]) -> Vec<String> {
        let numbers = self.busy.each_ref().map(|busy| busy.number().to_string()).join(",");
        let state = self.room.path("state");
        let always = [
            "daemon",
            "--regions",
            "--pid",
            &numbers,
            "--preferred",
            "server",
            "--state",
            &state,
        ];
        let always = always
            .iter()
            .chain(&["--source", "referenced", "--interval", "50ms", "--domains"]);
        let halves = self.halves.iter().map(String::as_str);
        always
            .copied()
            .chain(halves)
            .chain(more.iter().copied())
            .map(String::from)
            .collect()
    }

    fn masks(&self) -> [String; 2] {
        self.busy.each_ref().map(Busy::mask)
    }

    fn undo(&self) -> bool {
        fs::exists(self.room.path("state/regions-undo.json")).unwrap()
    }

    /// Starts it, and waits until both are placed.
    fn placed(&self) -> Busy {
        // A shell's background job ignores SIGINT and SIGQUIT, and so would the daemon.
        let mut daemon = Command::new("env");
        daemon
            .args(["--default-signal", env!("CARGO_BIN_EXE_domicile")])
            .args(self.arguments(&["--act"]))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let daemon = Busy(daemon.spawn().unwrap());
        let begun = Instant::now();
        while self.masks() != self.halves {
            assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", self.masks());
            std::thread::sleep(Duration::from_millis(5));
        }
        daemon
    }
}

fn signal(process: u32, name: &str) {
    let sent = Command::new("sh")
        .args(["-c", &format!("kill -{name} {process}")])
        .status()
        .unwrap();
    assert!(sent.success());
}

fn run(arguments: &[String]) -> Value {
    let arguments: Vec<&str> = std::iter::once("--json")
        .chain(arguments.iter().map(String::as_str))
        .collect();
    json(&arguments).remove(0)
}

#[test]
fn masks_are_as_before_when_its_time_is_up() {
    let Some(scene) = Scene::new() else { return };
    let before = scene.masks();
    let log = scene.room.path("log");
    let report = run(&scene.arguments(&["--act", "--duration", "3s", "--observations", &log]));
    assert_eq!(scene.masks(), before);
    assert!(!scene.undo());
    assert_eq!(
        (&report["acted"], report["restored_threads"].as_u64() >= Some(2)),
        (&Value::Bool(true), true),
        "{report}"
    );
    let replayed = live::regions::replay(fs::read(log).unwrap().as_slice()).unwrap();
    assert_eq!(replayed.before, replayed.now);
    assert_eq!(replayed.now.len() as u64, report["actions_count"].as_u64().unwrap());
}

#[test]
fn masks_are_as_before_when_it_is_asked_to_end() {
    let Some(scene) = Scene::new() else { return };
    let before = scene.masks();
    for name in ["TERM", "INT", "QUIT"] {
        let mut daemon = scene.placed();
        assert!(scene.undo());
        signal(daemon.number(), name);
        assert!(daemon.0.wait().unwrap().success());
        assert_eq!(scene.masks(), before, "{name}");
        assert!(!scene.undo());
    }
}

#[test]
fn masks_are_as_before_at_the_next_start_after_a_kill() {
    let Some(scene) = Scene::new() else { return };
    let before = scene.masks();
    let mut daemon = scene.placed();
    daemon.0.kill().unwrap();
    daemon.0.wait().unwrap();
    assert_eq!(scene.masks(), scene.halves);
    assert!(scene.undo());
    let report = run(&scene.arguments(&["--dry-run"]));
    assert_eq!(report["recovered_threads"], 2);
    assert_eq!(scene.masks(), before);
    assert!(!scene.undo());
}

#[test]
fn the_first_time_it_is_a_dry_run_and_says_how_to_act() {
    let Some(scene) = Scene::new() else { return };
    let before = scene.masks();
    let arguments = scene.arguments(&[]);
    let said: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (text, notes) = output(&said, 0);
    assert!(
        text.contains("dry run: nothing was changed") && text.contains("would do"),
        "{text}"
    );
    assert!(
        text.contains("(server) to cache 0: a preferred program gets caches of its own"),
        "{text}"
    );
    assert!(
        notes.contains("since it is the first time") && notes.contains("--act"),
        "{notes}"
    );
    assert_eq!(scene.masks(), before);
    let report = run(&scene.arguments(&["--duration", "2s"]));
    assert_eq!(report["acted"], true);
    assert_eq!(scene.masks(), before);
}

#[test]
fn who_is_pinned_is_left_alone() {
    let Some(scene) = Scene::new() else { return };
    let own = sys::affinity::allowed(None).unwrap()[0];
    sys::affinity::allow(Some(scene.busy[1].number()), &[own]).unwrap();
    let report = run(&scene.arguments(&["--act", "--duration", "2s"]));
    assert_eq!(scene.busy[1].mask(), own.to_string());
    let pinned = report["processes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|process| process["name"] == "neighbor");
    let why = pinned.unwrap()["why"].as_str().unwrap();
    assert!(why.starts_with("its owner has pinned it to cpus"), "{why}");
}

#[test]
fn wrong_options_of_regions_tell_what_would_be_right() {
    let Some([first, _]) = halves() else { return };
    let room = Room::new();
    let state = room.path("state");
    let mine = std::process::id().to_string();
    let base = ["daemon", "--regions", "--pid", &mine, "--state", &state];
    for (more, code, part) in [
        (&["--domains", &first][..], 2, "at least two lists"),
        (&["--domains", "0", "0"], 2, "cpu 0 stands in two lists"),
        (&["--domains", "0", "x"], 2, "no list of cpus"),
        (&["--source", "magic"], 2, "the sources are referenced, damon, resctrl"),
        (&["--act", "--dry-run"], 2, "cannot be used with"),
        (&["--set", "migrate.trigger=1"], 2, "cannot be used with"),
        (&["--homes"], 2, "cannot be used with"),
    ] {
        let (_, said) = output(&[&base, more].concat(), code);
        assert!(said.contains(part), "{more:?}: {said}");
    }
    let (_, said) = output(&["daemon", "--regions"], 2);
    assert!(
        said.contains("--name") && said.contains("--user") && said.contains("--pid"),
        "{said}"
    );
    let (_, said) = output(&["daemon", "--act"], 2);
    assert!(said.contains("--regions"), "{said}");
    let (_, said) = output(
        &[
            "daemon",
            "--regions",
            "--user",
            "nobody-of-this-name",
            "--state",
            &state,
        ],
        2,
    );
    assert!(said.contains("no user nobody-of-this-name"), "{said}");
    let (_, said) = output(&["daemon", "--regions", "--pid", "4194305", "--state", &state], 1);
    assert!(
        said.contains("there is no process 4194305") || said.contains("nothing can be gained"),
        "{said}"
    );
}

/// `run --policy regions` runs a program of one thread as it would run by itself, and reports the outcome.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_program_follows_its_data_as_an_experiment() {
    let room = Room::new();
    let several = sys::cache_domains::usable().is_ok_and(|domains| domains.len() > 1);
    let keys = sys::protection_keys::try_key().is_ok();
    let closings = if keys { &["keys", "mprotect"][..] } else { &["mprotect"] };
    // Bounds that are given are not simulated, which takes long in a test's build.
    let run = |more: &[&str], code: i32| {
        let bounds = [
            "stay-least=100",
            "stay-most=1000000",
            "one-cache=1000",
            "all-caches=1000",
        ];
        let sets = bounds.map(|bound| format!("--set=regions.{bound}"));
        let mut arguments = vec!["run", "--policy", "regions"];
        arguments.extend(sets.iter().map(String::as_str));
        arguments.extend(more);
        output(&arguments, code)
    };
    let command = ["--json", "--", "sh", "-c", "echo done; exit 5"];
    if !several {
        let (_, said) = run(&command, 1);
        assert!(said.contains("share each cache"), "{said}");
        harness::not_here("this test needs two caches of one level");
        return;
    }
    if !keys {
        let (_, said) = run(&[&["--close-by=keys"], &command[..]].concat(), 1);
        assert!(said.contains("no protection keys"), "{said}");
    }
    for (closing, sleep) in closings.iter().flat_map(|closing| [(closing, true), (closing, false)]) {
        let by = format!("--close-by={closing}");
        let options: &[&str] = if sleep { &["--let-cpus-sleep", &by] } else { &[&by] };
        let (out, said) = run(&[options, &command[..]].concat(), 5);
        assert_eq!(out, "done\n");
        let report: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
        assert_eq!(
            (&report["exit_code"], &report["closed_by"]),
            (&5.into(), &(*closing).into())
        );
        assert!(report["move_ns"].as_u64().unwrap() > 500, "{report}");
        assert_eq!(
            report["kept_awake"],
            if sleep { 0 } else { report["caches"].as_u64().unwrap() }
        );
    }
    let (_, said) = output(&["run", "--policy", "cdpc", "--close-by", "keys", "--", "true"], 2);
    assert!(
        said.contains("`--close-by` is for") && said.contains("`cdpc` closes no pages"),
        "{said}"
    );
    let (_, said) = output(&["run", "--policy", "cdpc", "--let-cpus-sleep", "--", "true"], 2);
    assert!(said.contains("`--let-cpus-sleep` is for"), "{said}");
    let (_, said) = output(&["run", "--policy", "pairing", "--", "true"], 2);
    assert!(said.contains("possible values"), "it is simulated only: {said}");
    let file = room.path("report.txt");
    let (_, said) = output(
        &[
            "run",
            "--policy",
            "regions",
            "--report",
            &file,
            "--",
            "sh",
            "-c",
            "kill -TERM $$",
        ],
        143,
    );
    assert!(said.contains("is an experiment"), "{said}");
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains("experiment  the thread was never moved"), "{text}");
    let (_, said) = run(&["--", "/no/such/program"], 1);
    assert!(said.contains("/no/such/program: it could not be started"), "{said}");
    let (_, said) = run(&["--children", "--", "true"], 2);
    assert!(said.contains("leave out"), "{said}");
    let (_, said) = output(
        &["run", "--policy", "regions", "--set", "regions.perod=1", "--", "true"],
        2,
    );
    assert!(said.contains("has no parameter `perod`"), "{said}");
}

/// The arguments of a run beside the scene's neighbor, with a cache of its own for that.
fn beside(scene: &Scene, script: &str) -> Vec<String> {
    let neighbor = scene.busy[1].number().to_string();
    let state = scene.room.path("state");
    let [first, second] = scene.halves.each_ref().map(String::as_str);
    let run = [
        "--json",
        "run",
        "--regions-with",
        &neighbor,
        "--preferred",
        "neighbor",
        "--state",
        &state,
    ];
    let watched = [
        "--source",
        "referenced",
        "--interval",
        "50ms",
        "--domains",
        first,
        second,
    ];
    let program = ["--", "sh", "-c", script];
    run.iter()
        .chain(&watched)
        .chain(&program)
        .map(|part| (*part).to_string())
        .collect()
}

/// Shell: busy until this process and the neighbor have the two halves; `$mine` and `$its` are their lists then.
fn until_placed(scene: &Scene) -> String {
    let neighbor = scene.busy[1].number();
    let [first, second] = &scene.halves;
    format!(
        "list() {{ while read -r key value; do [ $key = Cpus_allowed_list: ] && echo $value; done < /proc/$1/status; }}; \
         while :; do mine=$(list $$); its=$(list {neighbor}); case $mine/$its in {first}/{second}|{second}/{first}) break;; esac; done; "
    )
}

/// A program that is started beside one that runs already.
#[test]
fn a_program_is_paired_with_those_it_is_started_beside() {
    let Some(scene) = Scene::new() else { return };
    let before = scene.masks();
    let seen = scene.room.path("seen");
    // The other one is not named.
    let other = scene.busy[0].number();
    let script = until_placed(&scene) + &format!("list {other} > {seen}; exit 7");
    let arguments = beside(&scene, &script);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (_, said) = output(&arguments, 7);
    let report: Value = serde_json::from_str(said.lines().find(|line| line.starts_with('{')).unwrap()).unwrap();
    assert_eq!(report["acted"], true, "{report}");
    assert!(report["restored_threads"].as_u64() >= Some(1), "{report}");
    assert_eq!(fs::read_to_string(seen).unwrap().trim(), before[0]);
    assert_eq!(scene.masks(), before);
    assert!(!scene.undo());
}

/// A process that the program leaves behind has the cpus that the program began with.
#[test]
fn processes_that_a_paired_program_leaves_behind_have_all_cpus() {
    let Some(scene) = Scene::new() else { return };
    let room = Room::new();
    let number = room.path("number");
    let script = until_placed(&scene) + &format!("sleep 1000 > {number}.out 2>&1 & echo $! > {number}");
    let arguments = beside(&scene, &script);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    output(&arguments, 0);
    let left: u32 = fs::read_to_string(number).unwrap().trim().parse().unwrap();
    let status = fs::read_to_string(format!("/proc/{left}/status")).unwrap();
    signal(left, "KILL");
    let mask = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    assert_eq!(mask.unwrap().trim(), scene.masks()[0]);
}

#[test]
fn a_program_is_not_started_beside_nobody() {
    let room = Room::new();
    let made = room.path("made");
    for (with, why) in [
        ("4194304", "there is no process 4194304"),
        ("no-such-program", "no process is called no-such-program"),
    ] {
        let (_, said) = output(&["run", "--regions-with", with, "--", "touch", &made], 1);
        assert!(said.contains(why), "{said}");
    }
    let (_, said) = output(
        &["run", "--regions-with", "1", "--align", "no", "--", "touch", &made],
        2,
    );
    assert!(said.contains("--align"), "{said}");
    assert!(!fs::exists(made).unwrap());
}
