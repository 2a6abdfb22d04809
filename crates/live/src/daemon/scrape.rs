//! Metrics over HTTP: one page, for any client on this machine.

use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Instant;

use prometheus_client::encoding::prometheus_text::CONTENT_TYPE;

/// The longest request; browsers and Prometheus send a tenth of it.
const REQUEST_BYTES: usize = 8192;

/// The address at which metrics are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    /// A Unix socket.
    Path(PathBuf),
    /// An address of the loopback interface.
    Loopback(SocketAddr),
}

impl FromStr for At {
    type Err = String;

    fn from_str(text: &str) -> Result<At, String> {
        if text.contains('/') {
            return Ok(At::Path(text.into()));
        }
        let wrong = "write the path of a socket, or an address and port of this machine such as 127.0.0.1:9464";
        let address: SocketAddr = text.parse().map_err(|_| format!("{text:?} is no address: {wrong}"))?;
        if !address.ip().is_loopback() {
            return Err(format!("{address} can be reached from other machines: {wrong}"));
        }
        Ok(At::Loopback(address))
    }
}

impl fmt::Display for At {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Path(path) => write!(to, "{}", path.display()),
            At::Loopback(address) => write!(to, "http://{address}/metrics"),
        }
    }
}

pub enum Door {
    Path(UnixListener, PathBuf),
    Loopback(TcpListener),
}

impl Door {
    /// Pre: where `at` is a path, nothing exists there.
    pub fn open(at: &At) -> io::Result<Door> {
        Ok(match at {
            At::Path(path) => {
                let listener = UnixListener::bind(path)?;
                listener.set_nonblocking(true)?;
                sys::packet::open_to(path, 0o660)?;
                Door::Path(listener, path.clone())
            }
            At::Loopback(address) => {
                let listener = TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                Door::Loopback(listener)
            }
        })
    }

    /// Accepts the next waiting connection, if any.
    pub fn accept(&self, now: Instant) -> io::Result<Option<Scrape>> {
        let stream: io::Result<io::Result<Stream>> = match self {
            Door::Path(listener, _) => listener.accept().map(|(stream, _)| {
                stream.set_nonblocking(true)?;
                Ok(Stream::Path(stream))
            }),
            Door::Loopback(listener) => listener.accept().map(|(stream, _)| {
                stream.set_nonblocking(true)?;
                Ok(Stream::Loopback(stream))
            }),
        };
        match stream {
            Ok(stream) => Ok(Some(Scrape {
                stream: stream?,
                since: now,
                asked: Vec::new(),
                said: None,
            })),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Door {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Door::Path(listener, _) => listener.as_fd(),
            Door::Loopback(listener) => listener.as_fd(),
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        if let Door::Path(_, path) = self {
            let _ = fs::remove_file(path);
        }
    }
}

enum Stream {
    Path(UnixStream),
    Loopback(TcpStream),
}

/// A client that asks for metrics.
pub struct Scrape {
    stream: Stream,
    pub since: Instant,
    asked: Vec<u8>,
    /// The answer, and how much of it was taken.
    said: Option<(Vec<u8>, usize)>,
}

/// The next event to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Read,
    Write,
    Over,
}

impl Scrape {
    /// Goes on as far as it can without waiting; `page` makes the page of metrics when it is time.
    pub fn go_on(&mut self, page: impl FnOnce() -> String) -> Next {
        match self.try_to_go_on(page) {
            Ok(next) => next,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => match self.said {
                None => Next::Read,
                Some(_) => Next::Write,
            },
            Err(_) => Next::Over,
        }
    }

    fn try_to_go_on(&mut self, page: impl FnOnce() -> String) -> io::Result<Next> {
        let mut bytes = [0; 1024];
        while self.said.is_none() {
            let got = match &mut self.stream {
                Stream::Path(stream) => stream.read(&mut bytes)?,
                Stream::Loopback(stream) => stream.read(&mut bytes)?,
            };
            self.asked.extend(&bytes[..got]);
            let whole = self.asked.windows(4).any(|end| end == b"\r\n\r\n");
            if !whole && got > 0 && self.asked.len() <= REQUEST_BYTES {
                continue;
            }
            if !whole && got == 0 {
                return Ok(Next::Over);
            }
            self.said = Some((answer(&self.asked, whole, page), 0));
            break;
        }
        if let Some((said, at)) = &mut self.said {
            while *at < said.len() {
                *at += match &mut self.stream {
                    Stream::Path(stream) => stream.write(&said[*at..])?,
                    Stream::Loopback(stream) => stream.write(&said[*at..])?,
                };
            }
        }
        Ok(Next::Over)
    }
}

fn answer(asked: &[u8], whole: bool, page: impl FnOnce() -> String) -> Vec<u8> {
    let line = asked.split(|byte| *byte == b'\r').next().unwrap_or(&[]);
    let line = String::from_utf8_lossy(line);
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let path = target.split('?').next().unwrap_or("");
    let (status, kind, body) = match (whole, method, path) {
        (false, ..) => ("431 Request Header Fields Too Large", "text/plain", "too long\n".into()),
        (_, "GET" | "HEAD", "/metrics") => ("200 OK", CONTENT_TYPE, page()),
        (_, "GET" | "HEAD", _) => ("404 Not Found", "text/plain", "metrics are at /metrics\n".to_string()),
        _ => ("405 Method Not Allowed", "text/plain", "only GET\n".into()),
    };
    let length = body.len();
    let body = if method == "HEAD" { "" } else { &body };
    format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
        .into_bytes()
}

impl AsFd for Scrape {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.stream {
            Stream::Path(stream) => stream.as_fd(),
            Stream::Loopback(stream) => stream.as_fd(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_may_ask() {
        assert_eq!("/run/m".parse(), Ok(At::Path("/run/m".into())));
        assert!(matches!("127.0.0.1:9464".parse(), Ok(At::Loopback(_))));
        assert!(matches!("[::1]:9464".parse(), Ok(At::Loopback(_))));
        for wrong in ["0.0.0.0:9464", "[::]:9464", "192.168.1.1:80", "9464", "localhost", ""] {
            assert!(wrong.parse::<At>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_page_is_asked_for_and_answered() {
        let answered = |asked: &str| String::from_utf8(answer(asked.as_bytes(), true, || "x 1\n".into())).unwrap();
        assert!(answered("GET /metrics HTTP/1.1\r\n\r\n").ends_with("\r\n\r\nx 1\n"));
        assert!(answered("GET /metrics?x HTTP/1.1\r\n\r\n").contains("Content-Length: 4\r\n"));
        assert!(answered("HEAD /metrics HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n"));
        assert!(answered("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
        assert!(answered("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
        assert!(answered("\r\n\r\n").starts_with("HTTP/1.1 405 "));
    }
}
