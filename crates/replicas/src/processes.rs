//! Replicated data for several processes that cooperate.

#[cfg(test)]
mod model;
