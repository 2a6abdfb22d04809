//! A process of the tests that shares replicated data with the one that created it.
//!
//! `replicas-sharer PROCESS DATA WORDS WHAT [NUMBER]`: DATA and WORDS are descriptors of that process. Of WORDS, 0 is the highest
//! number whose write has returned, 1 is not 0 when all is over, 2 counts who is attached.
//! `replicas-sharer asleep` does nothing, for ever.

use std::error::Error;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::sync::atomic::Ordering::SeqCst;

use replicas::SharedReplicas;
use sys::affinity::Wanderer;
use sys::memory::PAGE;
use sys::move_pages::{self, PageError};
use sys::shared_pages::{SharedPages, SharedWords};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["asleep"] {
        loop {
            std::thread::park();
        }
    }
    let [process, data, words, what, rest @ ..] = &arguments[..] else {
        return Err("PROCESS DATA WORDS WHAT [NUMBER]".into());
    };
    let number = rest.first().map_or(Ok(0), |text| text.parse::<u64>())?;
    let open = |descriptor: &str| {
        let path = format!("/proc/{process}/fd/{descriptor}");
        File::options().read(true).write(true).open(path)
    };
    let words = SharedWords::open(&SharedPages::given(open(words)?.into())?, PAGE)?;
    let data = SharedReplicas::attach(open(data)?.into())?;
    words.word(2).fetch_add(1, SeqCst);
    match what.as_str() {
        "read" => read(&data, &words),
        "write" => write(&data, &words, number)?,
        "spread" => spread(&data, &words)?,
        "exec" => {
            return Err(std::process::Command::new("/proc/self/exe").arg("asleep").exec().into());
        }
        "node" => node(&data, number as usize)?,
        _ => return Err("WHAT is none of read, write, spread, exec, node".into()),
    }
    Ok(())
}

/// Each number is at least one whose write had returned before it was looked at, and none goes back.
///
/// Pre: numbers below 256. Larger ones can be seen half written.
fn read(data: &SharedReplicas, words: &SharedWords) {
    let count = data.len() / 8;
    let mut seen = vec![0u64; count];
    while words.word(1).load(SeqCst) == 0 {
        for (at, seen) in seen.iter_mut().enumerate() {
            let known = u64::from(words.word(0).load(SeqCst));
            // SAFETY: within the data, which is mapped.
            let number = unsafe { data.start().cast::<u64>().add(at).read_volatile() };
            assert!(number >= known.max(*seen), "{number} after {known} and {seen} at {at}");
            *seen = number;
        }
    }
}

/// Adds 1 to all numbers, so many times.
fn write(data: &SharedReplicas, words: &SharedWords, times: u64) -> Result<(), Box<dyn Error>> {
    for _ in 0..times {
        let mut written = 0;
        data.update(|bytes| {
            for word in bytes.chunks_exact_mut(8) {
                written = u64::from_ne_bytes(word.try_into().unwrap_or_default()) + 1;
                word.copy_from_slice(&written.to_ne_bytes());
            }
        })?;
        words.word(0).fetch_max(written as u32, SeqCst);
    }
    Ok(())
}

fn spread(data: &SharedReplicas, words: &SharedWords) -> Result<(), Box<dyn Error>> {
    while words.word(1).load(SeqCst) == 0 {
        data.replicate()?;
        std::thread::yield_now();
        data.collapse()?;
        data.replicate()?;
    }
    Ok(())
}

/// Prints, for each line that it is sent: the nodes of its pages, and the first number.
fn node(data: &SharedReplicas, cpu: usize) -> Result<(), Box<dyn Error>> {
    Wanderer::new()?.go(cpu)?;
    data.follow()?;
    for line in std::io::stdin().lines() {
        line?;
        let start = data.start().addr().get();
        let pages: Vec<usize> = (start..start + data.len()).step_by(PAGE).collect();
        // Between the read and the question the pages may be exchanged for those of another copy, which are not read yet.
        let mut nodes = loop {
            // SAFETY: the data is mapped. Each page is read, so that it has a frame here.
            pages.iter().enumerate().for_each(|(at, _)| unsafe {
                data.start().add(at * PAGE).read_volatile();
            });
            let nodes = move_pages::nodes_of(None, &pages)?;
            if !nodes.contains(&Err(PageError::ABSENT)) {
                break nodes
                    .into_iter()
                    .map(|page| page.map_err(|error| format!("{error:?}")))
                    .collect::<Result<Vec<u32>, _>>()?;
            }
        };
        nodes.dedup();
        // SAFETY: as above.
        let number = unsafe { data.start().cast::<u64>().read_volatile() };
        println!("{nodes:?} {number}");
    }
    Ok(())
}
