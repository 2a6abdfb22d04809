//! The reasons for a refusal.

/// Why a request was not met. The connection stays usable, but for [`Refusal::Protocol`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Refusal {
    /// The bytes are no message, or the message came out of turn: the daemon hangs up.
    Protocol = 1,
    /// The bytes are a message, but its fields cannot be.
    Invalid = 2,
    /// The user would hold more than the quota.
    Quota = 3,
    /// Too much in too short a time.
    Pace = 4,
    /// Too many connections, slots or data sets.
    Crowded = 5,
    /// The allocator has no such cache to give; the text says what is free.
    Cache = 6,
    /// Something failed on the daemon's side.
    Failed = 7,
    /// The client's own pages could not be looked at in time.
    Slow = 8,
}

impl Refusal {
    pub const ALL: [Refusal; 8] = [
        Refusal::Protocol,
        Refusal::Invalid,
        Refusal::Quota,
        Refusal::Pace,
        Refusal::Crowded,
        Refusal::Cache,
        Refusal::Failed,
        Refusal::Slow,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Refusal::Protocol => "protocol",
            Refusal::Invalid => "invalid",
            Refusal::Quota => "quota",
            Refusal::Pace => "pace",
            Refusal::Crowded => "crowded",
            Refusal::Cache => "cache",
            Refusal::Failed => "failed",
            Refusal::Slow => "slow",
        }
    }
}
