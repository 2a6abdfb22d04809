//! `probe` and `doctor`: on any machine they come to a conclusion and give the reason.

use crate::house;

use assert_cmd::Command;
use house::{Room, domicile, output};
use serde_json::Value;

/// The command with figures kept in a room of their own.
fn at(room: &Room, arguments: &[&str]) -> Command {
    let mut command = domicile(arguments);
    command
        .env("XDG_CACHE_HOME", room.folder())
        .env_remove("DOMICILE_COLORS")
        .env_remove("DOMICILE_SOCKET");
    command
}

fn text(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(command: &mut Command) -> Value {
    serde_json::from_str(&text(command)).unwrap()
}

fn facility(report: &Value, name: &str) -> Value {
    let all = report["facilities"].as_array().unwrap();
    all.iter().find(|one| one["facility"] == name).unwrap().clone()
}

#[test]
fn a_probe_concludes_and_keeps_what_it_found() {
    let room = Room::new();
    assert_eq!(
        facility(&json(&mut at(&room, &["doctor", "--json"])), "page colors")["change"],
        "domicile probe"
    );
    let first = json(&mut at(&room, &["probe", "--quick", "--json"]));
    let colors = &first["colors"];
    let (validated, reason) = (&colors["validated"], &colors["reason"]);
    assert!(validated.is_null() != reason.is_null(), "{colors}");
    if let Some(reason) = reason.as_str() {
        assert!(reason.len() > 20, "{reason}");
    } else {
        let number = |name: &str| validated[name].as_u64().unwrap();
        assert!(number("first_bit") >= 12 && number("bits") >= 1, "{validated}");
        assert_eq!(number("capacity_bytes"), number("color_bytes") << number("bits"));
        assert!(validated["confidence"].as_f64().unwrap() > 0.9);
    }
    for finding in colors["findings"].as_array().unwrap() {
        let verdict = finding["verdict"]["is"].as_str().unwrap();
        assert!(["colors", "nothing", "unclear"].contains(&verdict), "{finding}");
    }
    assert!(first["measured"]["curve"].as_array().unwrap().len() > 4);
    for level in first["levels"].as_array().unwrap() {
        assert!(level["got_bytes"].as_u64().unwrap() > 0 && level["told_bytes"].as_u64().unwrap() > 0);
    }
    // A machine that identifies its boot has the same figures the second time, to the last digit.
    if std::fs::read_to_string("/proc/sys/kernel/random/boot_id").is_ok() {
        assert_eq!(first, json(&mut at(&room, &["probe", "--quick", "--json"])));
        let printed = text(&mut at(&room, &["probe", "--quick"]));
        assert!(
            printed.contains("Conclusion: ") && printed.contains("What this process gets"),
            "{printed}"
        );
        assert!(
            printed.lines().count() <= 30 && !printed.contains("Time of a load over"),
            "{printed}"
        );
        let details = text(&mut at(&room, &["probe", "--quick", "--details"]));
        assert!(details.contains("Time of a load over the working set"), "{details}");
        let doctor = facility(&json(&mut at(&room, &["doctor", "--json"])), "page colors");
        assert_ne!(doctor["change"], "domicile probe");
        assert_eq!(doctor["works"] == "yes", reason.is_null(), "{doctor}");
    }
}

#[test]
fn a_doctor_tells_what_each_facility_is_for_and_what_to_change() {
    let room = Room::new();
    let report = json(&mut at(&room, &["doctor", "--json"]));
    let facilities = report["facilities"].as_array().unwrap();
    assert!(facilities.len() >= 15);
    for facility in facilities {
        let works = facility["works"].as_str().unwrap();
        assert!(["yes", "partly", "no"].contains(&works), "{facility}");
        assert!(!facility["for"].as_str().unwrap().is_empty() && !facility["found"].as_str().unwrap().is_empty());
        assert_eq!(facility["change"].is_null(), works == "yes", "{facility}");
    }
    let printed = text(&mut at(&room, &["doctor"]));
    for facility in facilities {
        assert!(printed.contains(facility["facility"].as_str().unwrap()), "{printed}");
    }
}

#[test]
fn a_doctor_looks_where_the_environment_says() {
    let room = Room::new();
    let socket = room.path("s");
    let mut command = at(&room, &["doctor", "--json"]);
    command
        .env("DOMICILE_SOCKET", &socket)
        .env("DOMICILE_COLORS", "force:12:4:65536");
    let report = json(&mut command);
    let daemon = facility(&report, "daemon");
    assert!(daemon["works"] == "no" && daemon["found"].as_str().unwrap().contains(&socket));
    assert!(
        facility(&report, "page colors")["found"]
            .as_str()
            .unwrap()
            .contains("FORCED")
    );
    // Somebody else's socket is no daemon that answers; `daemon.rs` has one that does.
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    assert_eq!(facility(&json(&mut command), "daemon")["works"], "no");
    drop(listener);
}

#[test]
fn quick_and_careful_exclude_each_other() {
    assert!(output(&["probe", "--quick", "--careful"], 2).1.contains("--careful"));
}
