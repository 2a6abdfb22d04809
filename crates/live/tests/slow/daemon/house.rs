//! A daemon in a process of its own, and clients in others. This test program plays all the parts: run with
//! `DOMICILE_TEST_PART`, the test `part` below is a daemon or a client.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use live::daemon::wire::{Answer, MESSAGE_BYTES, Request, VERSION, Want};
use live::daemon::{At, Client, Config, Server};
use live::discovery::{Unknown, discover};
use live::{PAGE_BYTES, Pages, Supply};
use sys::frames::Pagemap;
use sys::memory::{Area, Size};
use sys::packet::{Peer, Received, wait};

pub const MIB: u64 = 1 << 20;
pub const COLORS: usize = 16;

/// Filling and emptying as tests do it.
pub trait FillOwn {
    fn fill_own(&mut self, into: Pages, want: &[u16]) -> Result<Vec<Option<u16>>, live::Error>;
    fn give_back_own(&mut self, pages: Pages) -> Result<(), live::Error>;
}

impl FillOwn for Client {
    fn fill_own(&mut self, into: Pages, want: &[u16]) -> Result<Vec<Option<u16>>, live::Error> {
        // SAFETY: tests fill areas of their own, whose content nobody needs.
        unsafe { self.fill(into, want) }
    }

    fn give_back_own(&mut self, pages: Pages) -> Result<(), live::Error> {
        // SAFETY: as above.
        unsafe { self.give_back(pages) }
    }
}

/// The settings of a daemon that a test chooses.
#[derive(Clone)]
pub struct Wish {
    pub stock: u64,
    pub quota: u64,
    pub clients: u32,
    pub root: Option<PathBuf>,
    pub metrics: Option<String>,
    /// The file that puts the daemon into a control group.
    pub group: Option<PathBuf>,
}

impl Default for Wish {
    fn default() -> Wish {
        Wish {
            stock: 64 * MIB,
            quota: 32 * MIB,
            clients: 64,
            root: None,
            metrics: None,
            group: None,
        }
    }
}

pub struct Daemon {
    pub folder: tempfile::TempDir,
    pub socket: PathBuf,
    wish: Wish,
    child: Running,
}

/// A process that plays a part. It ends when its standard input does.
pub struct Running {
    child: Child,
    input: Option<ChildStdin>,
    pub output: BufReader<ChildStdout>,
}

impl Running {
    pub fn new(mut command: Command) -> Running {
        let mut child = command.spawn().unwrap();
        Running {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Its next line.
    pub fn line(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line).ok()? == 0 {
                return None;
            }
            // The test harness may have begun the line.
            if let Some(at) = line.find("part: ") {
                return Some(line[at + 6..].trim().to_string());
            }
        }
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Says a line to it.
    pub fn ask(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.input.take());
        if std::thread::panicking() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// Returns whether frames can be seen here. If not, asserts that the daemon says so.
pub fn privileged() -> bool {
    if Pagemap::own_numbers_visible() {
        return true;
    }
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let said = start(&folder.path().join("s"), &Wish::default(), &[]).err().unwrap();
    assert!(said.contains("CAP_SYS_ADMIN"), "{said}");
    harness::not_allowed(format_args!("frames are shown to root only; the daemon said: {said}"));
    false
}

/// This program, where any user may run it.
pub fn program() -> &'static Path {
    static COPY: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = COPY.get_or_init(|| {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = folder.path().join("daemon-test");
        harness::copy_program(&std::env::current_exe().unwrap(), &path);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        (folder, path)
    });
    path
}

/// The command that plays a part, as some user.
pub fn command(part: &str, before: &[&str]) -> Command {
    command_of("slow::daemon::house::part", part, before)
}

/// The same for a part that another test knows.
pub fn command_of(test: &str, part: &str, before: &[&str]) -> Command {
    let mut words: Vec<&std::ffi::OsStr> = before.iter().map(std::ffi::OsStr::new).collect();
    words.push(program().as_os_str());
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env("DOMICILE_TEST_PART", part)
        .env("DOMICILE_COLORS", "force:12:4:65536")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

/// Runs a command as an ordinary user that no other test has. The daemon looks for an ended process's frames
/// in all processes of its user, so tests of one user would be charged for each other's frames, and wait for
/// each other.
pub fn stranger() -> Stranger {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // The number is above Debian's ranges for people, services and containers' first users.
    let user = 1_000_000 + std::process::id() % 100_000 * 64 + NEXT.fetch_add(1, Ordering::Relaxed);
    Stranger {
        user,
        words: [
            "setpriv".into(),
            format!("--reuid={user}"),
            format!("--regid={user}"),
            "--clear-groups".into(),
        ],
    }
}

pub struct Stranger {
    pub user: u32,
    words: [String; 4],
}

impl Stranger {
    /// The words before the program.
    pub fn before(&self) -> [&str; 4] {
        self.words.each_ref().map(String::as_str)
    }
}

pub fn start(socket: &Path, wish: &Wish, before: &[&str]) -> Result<Running, String> {
    let mut before = before.to_vec();
    let group = wish.group.as_ref().map(|group| group.display().to_string());
    if let Some(group) = &group {
        before.extend(["sh", "-c", "echo $$ >\"$0\" && exec \"$@\"", group]);
    }
    let mut command = command("daemon", &before);
    command
        .env("TEST_SOCKET", socket)
        .env("TEST_STOCK", wish.stock.to_string())
        .env("TEST_QUOTA", wish.quota.to_string())
        .env("TEST_CLIENTS", wish.clients.to_string());
    if let Some(root) = &wish.root {
        command.env("TEST_ROOT", root);
    }
    if let Some(metrics) = &wish.metrics {
        command.env("TEST_METRICS", metrics);
    }
    let mut child = Running::new(command);
    match child.line() {
        Some(said) if said == "ready" => Ok(child),
        said => Err(said.unwrap_or("nothing".into())),
    }
}

impl Daemon {
    pub fn new(wish: Wish) -> Daemon {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let socket = folder.path().join("s");
        let child = start(&socket, &wish, &[]).unwrap_or_else(|said| panic!("{said}"));
        Daemon {
            folder,
            socket,
            wish,
            child,
        }
    }

    pub fn process(&self) -> u32 {
        self.child.process()
    }

    pub fn client(&self) -> Client {
        Client::connect(&self.socket).unwrap()
    }

    /// A client of a daemon whose stock is full, or that rests with 4000 frames: more than most tests take.
    pub fn client_of_full(&self) -> Client {
        self.client_with(4000)
    }

    /// A client of a daemon whose stock is full, or that rests with so many frames, as many of each color: where the
    /// kernel has few free frames of some color, it hands out again those that the daemon let go, and the rests double
    /// up to minutes.
    pub fn client_with(&self, frames: u64) -> Client {
        let mut client = self.client();
        let (mut stock, mut unchanged, begun) = (Vec::new(), 0, Instant::now());
        loop {
            let each = client.status().unwrap().target / COLORS as u64;
            let enough = each.min(frames.div_ceil(COLORS as u64));
            let last = std::mem::replace(&mut stock, client.stock().unwrap());
            let least = stock.iter().copied().min().unwrap_or(0);
            unchanged = if stock == last { unchanged + 1 } else { 0 };
            if least >= each || (least >= enough && unchanged > 200) {
                return client;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "of {each} frames each, the stock has {stock:?}"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// kill -9, and another one at the same socket.
    pub fn kill_and_restart(&mut self) {
        self.child.kill();
        self.restart();
    }

    /// Another one at the same socket. Pre: there is none.
    pub fn restart(&mut self) {
        self.child = start(&self.socket, &self.wish, &[]).unwrap_or_else(|said| panic!("{said}"));
    }

    pub fn kill(&mut self) {
        self.child.kill();
    }
}

/// Waits for something that takes as long as it takes.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Fresh memory and its pages.
pub fn area(pages: usize) -> (Area, Pages) {
    let area = Area::map(pages * PAGE_BYTES, Size::Small).unwrap();
    let pages = Pages {
        start: area.start(),
        count: area.pages(),
    };
    (area, pages)
}

/// The frames of pages of a process, as root sees them.
pub fn frames_of(process: u32, pages: Pages) -> Vec<Option<u64>> {
    let map = Pagemap::of(process).unwrap();
    let entries = map.entries(sys::memory::Span::new(pages.start, pages.bytes())).unwrap();
    entries.iter().map(|entry| entry.frame()).collect()
}

/// A connection that sends arbitrary bytes.
pub struct Raw(pub Peer);

impl Raw {
    pub fn new(daemon: &Daemon) -> Raw {
        Raw(Peer::connect(&daemon.socket).unwrap())
    }

    pub fn greeted(daemon: &Daemon) -> Raw {
        let raw = Raw::new(daemon);
        let welcome = raw.ask(&Request::Hello { version: VERSION });
        assert!(matches!(welcome, Some(Answer::Welcome { .. })), "{welcome:?}");
        raw
    }

    /// `None`: the daemon has hung up.
    pub fn ask(&self, request: &Request) -> Option<Answer> {
        self.say(&request.encode())
    }

    pub fn say(&self, message: &[u8]) -> Option<Answer> {
        self.0.send(message).ok()?;
        self.hear()
    }

    pub fn hear(&self) -> Option<Answer> {
        let mut buffer = vec![0; MESSAGE_BYTES + 1];
        assert!(wait(&[self.0.as_fd()], 60_000).unwrap()[0], "the daemon says nothing");
        match self.0.receive(&mut buffer).unwrap() {
            Received::Message(bytes) => Some(Answer::decode(&buffer[..bytes]).unwrap()),
            Received::Nothing => panic!("nothing to hear"),
            Received::End => None,
        }
    }
}

/// The page of metrics at a Unix socket.
pub fn metrics(at: &Path) -> String {
    let mut stream = UnixStream::connect(at).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    page
}

/// One number of the page.
pub fn metric(page: &str, name: &str) -> u64 {
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {page}")).parse().unwrap()
}

#[test]
fn part() {
    let variable = |name: &str| std::env::var(name).unwrap();
    match std::env::var("DOMICILE_TEST_PART").as_deref() {
        Ok("daemon") => {
            let colors = discover(Unknown::Refuse).unwrap();
            let mut config = Config::new(variable("TEST_SOCKET").into(), colors, vec![vec![0], vec![1]], 0);
            config.stock = variable("TEST_STOCK").parse().unwrap();
            config.quota = variable("TEST_QUOTA").parse().unwrap();
            config.clients_of_user = variable("TEST_CLIENTS").parse().unwrap();
            config.every = Duration::from_millis(100);
            if let Ok(root) = std::env::var("TEST_ROOT") {
                config.root = sys::Root::new(root);
            }
            config.metrics = std::env::var("TEST_METRICS").ok().map(|at| at.parse::<At>().unwrap());
            match Server::start(config) {
                Ok(mut server) => {
                    println!("part: ready");
                    server.run(std::io::stdin().as_fd()).unwrap();
                }
                Err(error) => println!("part: {error}"),
            }
        }
        Ok("taker") => taker(
            Path::new(&variable("TEST_SOCKET")),
            variable("TEST_PAGES").parse().unwrap(),
        ),
        Ok("grabber") => {
            let raw = Raw(Peer::connect(Path::new(&variable("TEST_SOCKET"))).unwrap());
            raw.ask(&Request::Hello { version: VERSION }).unwrap();
            let pages: u32 = variable("TEST_PAGES").parse().unwrap();
            match raw.ask(&grab(pages)) {
                Some(Answer::Released { met }) => println!("part: {}", met.iter().filter(|met| **met).count()),
                Some(Answer::Refused { text, .. }) => println!("part: {text}"),
                other => println!("part: {other:?}"),
            }
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
        }
        Ok("busy") => busy(Path::new(&variable("TEST_SOCKET"))),
        _ => {}
    }
}

/// Wants as a request has them.
pub fn in_order(wants: impl Iterator<Item = (u32, u16)>) -> Vec<Want> {
    let mut wants: Vec<Want> = wants.map(|(page, color)| Want { page, color }).collect();
    wants.sort_by_key(|want| (want.color, want.page));
    wants
}

/// Takes so many frames of all colors for pages that will never be.
pub fn grab(pages: u32) -> Request {
    Request::Take {
        cpu: 0,
        start: 0x1000,
        wants: in_order((0..pages).map(|page| (page, (page as usize % COLORS) as u16))),
    }
}

/// Takes frames, prints their colors, and holds them until its standard input ends.
fn taker(socket: &Path, pages: usize) {
    let mut client = Client::connect(socket).unwrap();
    let (_area, into) = area(pages);
    let want: Vec<u16> = (0..pages).map(|page| (page % 4) as u16).collect();
    let sees = Pagemap::own_numbers_visible();
    match client.fill_own(into, &want) {
        Ok(got) => {
            let got: Vec<String> = got
                .iter()
                .map(|color| color.map_or("-".into(), |color| color.to_string()))
                .collect();
            println!("part: {} {sees} {}", into.start, got.join(","));
        }
        Err(error) => println!("part: {error}"),
    }
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// Does all that a client does, again and again.
fn busy(socket: &Path) {
    let mut client = Client::connect(socket).unwrap();
    println!("part: ready");
    let (mine, into) = area(512);
    let want: Vec<u16> = (0..512).map(|page| (page % COLORS) as u16).collect();
    loop {
        let slot = client.slot(2 * 65536, policy::slots::Kind::Private).unwrap();
        let granted = client.allocate(Some(slot), MIB, &[0, 1]);
        if client.fill_own(into, &want).is_ok() {
            for page in 0..512 {
                assert_eq!(mine.word(page, 1), 0);
                mine.set_word(page, 1, 7);
            }
            client.give_back_own(into).unwrap();
        } else {
            // SAFETY: the area is the test\'s own.
            unsafe { sys::memory::discard(mine.span()) }.unwrap();
        }
        if let Ok(granted) = granted {
            client.free(granted.set).unwrap();
        }
        client.close(slot).unwrap();
    }
}
