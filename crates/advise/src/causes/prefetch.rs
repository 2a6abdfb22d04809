//! Decides whether prefetches help a walk: by hardware, by instructions of the program, or not at all.

use sim::Addresses;

use super::view::View;

/// In words; `None` if the walk has no step and the source of its addresses is unknown.
pub fn prefetch(view: &View) -> Option<String> {
    match (&view.place.addresses, view.step()) {
        (Addresses::Chased, _) => Some(
            "no prefetch helps: each address is known only when the load before it has come".to_string(),
        ),
        (Addresses::Loaded(_), None) => {
            let from = view.place.loaded_at.as_deref();
            let from = from.map_or_else(String::new, |at| format!(" loaded at {at}"));
            Some(format!(
                "hardware prefetchers do not foresee addresses{from}; a software prefetch some iterations ahead helps, if \
                 these can be read ahead"
            ))
        }
        (_, Some(step)) if step.bytes.unsigned_abs() >= view.machine.page_bytes && !follows(view, step.bytes) => Some(
            "each step leaves its page, and most hardware prefetchers stop at the end of one; a software prefetch some steps \
             ahead helps"
                .to_string(),
        ),
        (_, Some(step)) => {
            let modelled = view.machine.caches.iter().any(|cache| cache.prefetch.is_some());
            Some(match modelled {
                true => format!(
                    "steps of {} bytes are what hardware prefetchers foresee: what is waited here is beyond what they \
                     bring in time",
                    step.bytes
                ),
                false => format!(
                    "steps of {} bytes are what hardware prefetchers foresee: the machine waits less than this model, which \
                     has none, says",
                    step.bytes
                ),
            })
        }
        (Addresses::Computed, None) => Some(
            "hardware prefetchers do not foresee it; a software prefetch helps, since no load must come before an address is \
             known"
                .to_string(),
        ),
        (Addresses::Unknown, None) => None,
    }
}

/// True if a prefetcher of the machine follows steps of this many bytes, across pages.
fn follows(view: &View, step: i64) -> bool {
    let mut strides = view.machine.caches.iter().filter_map(|cache| cache.prefetch?.stride);
    strides.any(|stride| step.unsigned_abs() <= stride.bytes)
}
