//! Other programs: Valgrind with our tool, and the daemon.

use std::io;
use std::path::{Path, PathBuf};

use live::daemon::{self, Client, ClientError};

use super::{Facility, Works, why};

pub fn recording() -> Facility {
    judge_recording(
        capture::find_tool(None)
            .map(|tool| tool.folder)
            .map_err(|error| error.to_string()),
    )
}

fn judge_recording(found: Result<PathBuf, String>) -> Facility {
    let (works, found, change) = match found {
        Ok(folder) => (Works::Yes, format!("the tool is in {}", folder.display()), None),
        Err(error) => (
            Works::No,
            error,
            Some("install Valgrind (sudo apt-get install valgrind), then `make install` in Domicile's sources".into()),
        ),
    };
    Facility {
        facility: "recording".into(),
        works,
        found,
        purpose: "Valgrind with our tool: `record` and `advise` see every reference of a program".into(),
        change,
    }
}

pub fn daemon() -> Facility {
    let socket = daemon::socket();
    // A listener is not enough: it must answer.
    let tried = Client::connect(&socket)
        .and_then(|mut client| client.status())
        .map(drop);
    judge_daemon(&socket, tried)
}

fn judge_daemon(socket: &Path, tried: Result<(), ClientError>) -> Facility {
    let at = socket.display();
    let start = || Some("sudo systemctl start domicile, or sudo domicile daemon".into());
    let (works, found, change) = match tried {
        Ok(()) => (Works::Yes, format!("it answers at {at}"), None),
        Err(ClientError::Absent { error, .. }) if error.kind() == io::ErrorKind::PermissionDenied => (
            Works::No,
            format!("it may not be asked at {at}: this user may not"),
            Some(format!("let this user reach it: ls -l {at} shows who may")),
        ),
        Err(ClientError::Absent { error, .. }) => {
            (Works::No, format!("nobody answers at {at}: {}", why(&error)), start())
        }
        Err(ClientError::Refused { text, .. }) => (Works::No, format!("it answers at {at}, and refuses: {text}"), None),
        Err(error) => (
            Works::No,
            format!("somebody listens at {at}, but: {error}"),
            Some("sudo systemctl restart domicile".into()),
        ),
    };
    Facility {
        facility: "daemon".into(),
        works,
        found,
        purpose:
            "frames sorted by color held ready for any user: slots come faster, and private ones hold across programs"
                .into(),
        change,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_missing_can_be_started() {
        let absent = |kind: io::ErrorKind| ClientError::Absent {
            path: "/run/s".into(),
            error: kind.into(),
        };
        let nobody = judge_daemon(Path::new("/run/s"), Err(absent(io::ErrorKind::NotFound)));
        assert!(nobody.works == Works::No && nobody.change.unwrap().contains("domicile daemon"));
        let closed = judge_daemon(Path::new("/run/s"), Err(absent(io::ErrorKind::PermissionDenied)));
        assert!(closed.change.unwrap().contains("ls -l /run/s"));
        let mute = judge_daemon(Path::new("/run/s"), Err(ClientError::Slow));
        assert!(mute.works == Works::No && mute.found.contains("did not answer"));
        assert_eq!(judge_daemon(Path::new("/run/s"), Ok(())).works, Works::Yes);
        assert!(
            judge_recording(Err("no `valgrind` in PATH".into()))
                .found
                .contains("valgrind")
        );
        assert_eq!(judge_recording(Ok("/x".into())).works, Works::Yes);
    }
}
