//! What can go wrong, said so that a user knows what to do.

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A facility that is needed does not work here; what to change is in the text.
    #[error("{what}: {why}")]
    Unavailable { what: String, why: String },
}
