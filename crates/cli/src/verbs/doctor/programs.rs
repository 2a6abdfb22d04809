//! Other programs: Valgrind with our tool, and the daemon.

use std::ffi::OsString;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

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
        facility: "recording",
        works,
        found,
        purpose: "Valgrind with our tool: `record` and `advise` see every reference of a program",
        change,
    }
}

const VARIABLE: &str = "DOMICILE_SOCKET";
const SOCKET: &str = "/run/domicile/daemon.sock";

pub fn daemon() -> Facility {
    let socket = socket(std::env::var_os(VARIABLE));
    let tried = UnixStream::connect(&socket).map(|_| ());
    judge_daemon(&socket, tried)
}

fn socket(given: Option<OsString>) -> PathBuf {
    given
        .filter(|path| !path.is_empty())
        .map_or(SOCKET.into(), PathBuf::from)
}

fn judge_daemon(socket: &Path, tried: io::Result<()>) -> Facility {
    let at = socket.display();
    let (works, found, change) = match tried {
        Ok(()) => (Works::Yes, format!("it answers at {at}"), None),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => (
            Works::No,
            format!("it may not be asked at {at}: this user may not"),
            Some(format!("let this user reach it: ls -l {at} shows who may")),
        ),
        Err(error) => (
            Works::No,
            format!("nobody answers at {at}: {}", why(&error)),
            Some("sudo systemctl start domicile, or sudo domicile daemon".into()),
        ),
    };
    Facility {
        facility: "daemon",
        works,
        found,
        purpose: "frames sorted by color held ready for any user: slots come faster, and private ones hold across programs",
        change,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_is_where_the_variable_says() {
        assert_eq!(socket(None), Path::new("/run/domicile/daemon.sock"));
        assert_eq!(socket(Some("".into())), Path::new("/run/domicile/daemon.sock"));
        assert_eq!(socket(Some("/tmp/s".into())), Path::new("/tmp/s"));
    }

    #[test]
    fn who_is_missing_can_be_started() {
        let nobody = judge_daemon(Path::new("/run/s"), Err(io::ErrorKind::NotFound.into()));
        assert!(nobody.works == Works::No && nobody.change.unwrap().contains("domicile daemon"));
        let closed = judge_daemon(Path::new("/run/s"), Err(io::ErrorKind::PermissionDenied.into()));
        assert!(closed.change.unwrap().contains("ls -l /run/s"));
        assert_eq!(judge_daemon(Path::new("/run/s"), Ok(())).works, Works::Yes);
        assert!(
            judge_recording(Err("no `valgrind` in PATH".into()))
                .found
                .contains("valgrind")
        );
        assert_eq!(judge_recording(Ok("/x".into())).works, Works::Yes);
    }
}
