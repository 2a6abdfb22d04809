//! Starting the program under Valgrind.

use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sys::supervise::Supervisor;

use crate::clocks::Clocks;
use crate::folder::{self, Folder};
use crate::interpreted;
use crate::options::{CaptureError, Options};
use crate::said::Said;
use crate::tool::{Tool, lookup};

/// Frames kept of each call stack.
const STACK_DEPTH: u32 = 8;
/// Options that show the target of a prefetch. Prefetches are not only in code from files.
const PREFETCHES: [&str; 3] = [
    "--domicile-prefetches=yes",
    "--px-default=allregs-at-each-insn",
    "--px-file-backed=allregs-at-each-insn",
];
/// Bytes of a Unix socket's path, without the zero that ends it: the kernel's `sun_path` has 108.
const LONGEST_SOCKET: usize = 107;

/// The name of a recording's folders.
const ROOM: &str = "record";

/// The private folder of a recording: the socket and Valgrind's own messages. Deleted when dropped.
pub struct Room {
    folder: Folder,
}

impl Room {
    /// Makes it in `TMPDIR`, or in `/tmp` if that path is too long for a socket, or unsuitable for `library`.
    pub fn new() -> Result<Room, CaptureError> {
        let room = Room::below(&std::env::temp_dir())?;
        if room.socket().as_os_str().len() <= LONGEST_SOCKET && preloadable(room.folder.path()) {
            return Ok(room);
        }
        Room::below(Path::new("/tmp"))
    }

    fn below(folder: &Path) -> Result<Room, CaptureError> {
        let folder = Folder::below(folder, ROOM).map_err(CaptureError::system(
            "cannot make a folder for temporary files (TMPDIR)",
        ))?;
        Ok(Room { folder })
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// A path of the tool's folder from which Valgrind can preload: the folder itself, or a link to it.
    /// Pre: the folder is absolute.
    fn library(&self, folder: &Path) -> Result<PathBuf, CaptureError> {
        if preloadable(folder) {
            return Ok(folder.to_path_buf());
        }
        let link = self.folder.path().join("library");
        std::os::unix::fs::symlink(folder, &link)
            .map_err(CaptureError::system("cannot link to the folder of the Valgrind tool"))?;
        Ok(link)
    }

    /// Valgrind's messages about each process, by their numbers.
    pub fn said(&self) -> Vec<Said> {
        let Ok(files) = fs::read_dir(self.folder.path()) else {
            return Vec::new();
        };
        let read = |file: fs::DirEntry| {
            let name = file.file_name();
            let pid = name.to_string_lossy().strip_prefix(folder::LOG)?.parse().ok()?;
            let mut bytes = Vec::new();
            let opened = fs::File::open(file.path()).ok()?;
            opened.take(1 << 16).read_to_end(&mut bytes).ok()?;
            Some(Said::read(pid, &String::from_utf8_lossy(&bytes)))
        };
        let mut said: Vec<Said> = files.flatten().filter_map(read).collect();
        said.sort_unstable_by_key(|said| said.pid);
        said
    }
}

/// True if `LD_PRELOAD`, a list of files between spaces or colons, can name what lies below this path.
fn preloadable(path: &Path) -> bool {
    !path
        .as_os_str()
        .as_encoded_bytes()
        .iter()
        .any(|byte| b" :".contains(byte))
}

/// Starts the program, and returns its number. It uses our input, output and errors, and `supervisor` handles its
/// signals.
pub fn start(
    options: &Options,
    tool: &Tool,
    room: &Room,
    supervisor: Option<&Supervisor>,
) -> Result<u32, CaptureError> {
    let program = program(options)?;
    let lines = options.from.as_deref().filter(|from| *from == interpreted::BEGINS);
    let mut command = Command::new(&tool.valgrind);
    command
        .env("VALGRIND_LIB", room.library(&tool.folder)?)
        .env_remove("VALGRIND_OPTS")
        .envs(patience())
        .env(TUNABLES, whole_words(std::env::var_os(TUNABLES)))
        .envs(options.environment.iter().map(|(name, value)| (name, value)))
        .envs(lines.map(|_| (interpreted::WANTED, "1")))
        .arg("--tool=domicile")
        .arg(prefixed("--domicile-socket=", &room.socket()))
        .arg(prefixed(
            "--log-file=",
            &room.folder.path().join(format!("{}%p", folder::LOG)),
        ))
        .args([
            "-q",
            // With -q it would not report the unknown instruction.
            "--sigill-diagnostics=yes",
            "--vgdb=no",
            "--fair-sched=try",
            "--error-exitcode=0",
            "--run-libc-freeres=no",
        ])
        .arg(format!(
            "--trace-children={}",
            if options.follow_children { "yes" } else { "no" }
        ))
        .arg(format!("--num-callers={STACK_DEPTH}"))
        .args(options.prefetches.then_some(PREFETCHES).into_iter().flatten())
        .args((options.pcs && options.call_stacks).then_some("--domicile-call-stacks=yes"))
        .args(Clocks::here().into_iter().flat_map(Clocks::arguments))
        .arg("--")
        .arg(&program)
        .args(&options.args);
    if options.discard_output {
        command.stdout(Stdio::null());
    } else if options.output_to_stderr {
        command.stdout(std::io::stderr());
    }
    if let Some(supervisor) = supervisor {
        supervisor.prepare(&mut command);
    }
    // Timed before the program runs.
    crate::clocks::code_line();
    crate::clocks::Forward::here();
    let child = command.spawn().map_err(|e| CaptureError::NoValgrind {
        what: format!("{}: {e}", tool.valgrind.display()),
    })?;
    Ok(child.id())
}

/// Makes waiting OpenMP threads sleep, unless the user has chosen otherwise: threads run one at a time, and spinning
/// ones take time from those that they wait for.
fn patience() -> impl Iterator<Item = (&'static str, &'static str)> {
    [("OMP_WAIT_POLICY", "passive"), ("KMP_BLOCKTIME", "0")]
        .into_iter()
        .filter(|(name, _)| std::env::var_os(name).is_none())
}

const TUNABLES: &str = "GLIBC_TUNABLES";
/// The size from which the C library fills and copies memory by one repeated instruction. Valgrind executes that byte
/// by byte, and a processor a line at a time: below the threshold, and so always here, the library uses vectors.
const REPEATED: [&str; 2] = ["glibc.cpu.x86_rep_stosb_threshold", "glibc.cpu.x86_rep_movsb_threshold"];

/// The C library's tunables that avoid repeated instructions, except those that the user has chosen.
fn whole_words(chosen: Option<OsString>) -> OsString {
    let mut tunables = chosen.unwrap_or_default();
    for name in REPEATED {
        if !tunables.to_string_lossy().contains(name) {
            let colon = if tunables.is_empty() { "" } else { ":" };
            tunables.push(format!("{colon}{name}={}", u32::MAX >> 1));
        }
    }
    tunables
}

fn prefixed(option: &str, path: &Path) -> std::ffi::OsString {
    let mut out = std::ffi::OsString::from(option);
    out.push(path);
    out
}

/// The file to run: looked up here, since Valgrind's own message would go to its log.
fn program(options: &Options) -> Result<PathBuf, CaptureError> {
    let missing = |what: String| CaptureError::NoProgram {
        program: PathBuf::from(&options.program),
        what,
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = lookup(&options.program, &path).ok_or_else(|| {
        let exists = Path::new(&options.program).exists();
        missing(if exists {
            "it is not an executable file".into()
        } else {
            "no such program".into()
        })
    })?;
    let mut head = [0u8; 5];
    fs::File::open(&found)
        .and_then(|mut f| f.read(&mut head))
        .map_err(|e| missing(e.to_string()))?;
    if head.starts_with(b"\x7fELF") && head[4] == 1 {
        return Err(missing(
            "it is a 32-bit program; only 64-bit ones can be recorded".into(),
        ));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tunables_of_the_user_stay() {
        let of = |chosen: Option<&str>| whole_words(chosen.map(OsString::from)).into_string().unwrap();
        assert_eq!(
            of(None),
            "glibc.cpu.x86_rep_stosb_threshold=2147483647:glibc.cpu.x86_rep_movsb_threshold=2147483647"
        );
        let malloc = of(Some("glibc.malloc.perturb=3"));
        assert!(
            malloc.starts_with("glibc.malloc.perturb=3:glibc.cpu.x86_rep_stosb_threshold="),
            "{malloc}"
        );
        let both = "glibc.cpu.x86_rep_movsb_threshold=1:glibc.cpu.x86_rep_stosb_threshold=2";
        assert_eq!(of(Some(both)), both);
    }
}
