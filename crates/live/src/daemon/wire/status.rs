//! The daemon's state, as a message reports it.

/// The daemon in numbers. Frames of 4096 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    pub process: u32,
    pub up_seconds: u64,
    pub clients: u32,
    /// Frames at hand, and as many as there should be.
    pub stock: u64,
    pub target: u64,
    /// Frames released for clients; of those looked at, how many arrived and how many went elsewhere.
    pub released: u64,
    pub hits: u64,
    pub misses: u64,
    /// Frames that came back from data sets that were freed.
    pub returned: u64,
    /// Frames that clients hold now.
    pub held: u64,
    /// The number of times that memory was given up because the machine was short of it, and the
    /// number of frames in all.
    pub pressure: u64,
    pub pressure_frames: u64,
    /// The quota of one user, in bytes.
    pub quota: u64,
    /// Bytes that the daemon has itself, with all that it holds.
    pub own: u64,
    /// The limit in bytes of the control group that leaves the daemon least, and the rest of it. The largest number if
    /// no group has a limit.
    pub limit: u64,
    pub left: u64,
    /// Looks at clients' pages that were given up because they took too long.
    pub given_up: u64,
}

impl Status {
    pub(super) const NUMBERS: usize = 15;

    pub(super) fn numbers(&self) -> [u64; Status::NUMBERS] {
        [
            self.up_seconds,
            self.stock,
            self.target,
            self.released,
            self.hits,
            self.misses,
            self.returned,
            self.held,
            self.pressure,
            self.pressure_frames,
            self.quota,
            self.own,
            self.limit,
            self.left,
            self.given_up,
        ]
    }

    pub(super) fn new(process: u32, clients: u32, numbers: [u64; Status::NUMBERS]) -> Status {
        let [
            up_seconds,
            stock,
            target,
            released,
            hits,
            misses,
            returned,
            held,
            pressure,
            pressure_frames,
            quota,
            own,
            limit,
            left,
            given_up,
        ] = numbers;
        Status {
            process,
            up_seconds,
            clients,
            stock,
            target,
            released,
            hits,
            misses,
            returned,
            held,
            pressure,
            pressure_frames,
            quota,
            own,
            limit,
            left,
            given_up,
        }
    }
}
