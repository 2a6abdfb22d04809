//! A service's reports to the process that started it (the protocol of `sd_notify`).

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Names the socket to report to.
pub const VARIABLE: &str = "NOTIFY_SOCKET";

/// Sends a state such as `READY=1` to the process that waits for it, if any.
///
/// Errors: the socket that the environment names does not take it.
pub fn notify(state: &str) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let Some(name) = std::env::var_os(VARIABLE) else {
        return Ok(());
    };
    let to = match name.as_bytes() {
        // A name that is no file.
        [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest)?,
        _ => SocketAddr::from_pathname(&name)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &to)?;
    Ok(())
}
