//! What coloring costs: recoloring 16 MiB under a writer (pages a second, and the longest that any
//! access waited), and giving 32 MiB a slot of 64 KiB to 2 MiB without a daemon beside faulting and
//! copying 32 MiB.
//!
//! `cargo run --release -p domicile-live --example recolor`; `DOMICILE_COLORS` is not asked, colors
//! are forced: 6 bits from 12, 32 KiB each. Rates and waits are wall-clock, costs the thread's
//! CPU time, medians of interleaved rounds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use live::{Colors, Config, Done, Engine, Lock, Others, Pages, Source, Wish};
use policy::slots::ColorSet;
use sys::clock::thread_time;
use sys::memory::{self, Area, Size};

const MIB: usize = 1 << 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(2);
    let colors = Colors {
        first_bit: 12,
        bits: 6,
        color_bytes: 32 << 10,
        cache: "forced".into(),
        source: Source::Forced,
    };
    println!("{}", Engine::open(Config::new(colors.clone()))?.means());
    under_writers(&colors, Duration::from_secs(seconds))?;
    slots(&colors)
}

fn pages(area: &Area) -> Pages {
    Pages {
        start: area.start(),
        count: area.pages(),
    }
}

/// A writer for each number of pages in flight.
fn under_writers(colors: &Colors, time: Duration) -> Result<(), Box<dyn std::error::Error>> {
    println!("16 MiB recolored under two writers; the longest wait is over both");
    println!(
        "{:>8} {:>12} {:>12} {:>14} {:>16} {:>14} {:>16}",
        "batch", "pages/s", "CPU us/page", "longest wait", "idle's longest", "longest flight", "median flight"
    );
    for batch in [1, 8, 16, 32, 64, 128, 256] {
        let mut config = Config::new(colors.clone());
        (config.batch, config.lock) = (batch, Lock::Never);
        let mut engine = Engine::open(config)?;
        if !engine.means().running {
            println!("refused here: {}", engine.means());
            return Ok(());
        }
        let area = Area::map(16 * MIB, Size::Small)?;
        memory::populate(area.span())?;
        let halves: [ColorSet; 2] = [(0..32).collect(), (32..64).collect()];
        // Once without the clock: collects the frames.
        for half in &halves {
            color(&mut engine, &area, half, Others::Running)?;
        }
        let idle = written(&area, || {
            std::thread::sleep(time / 4);
            Ok(0)
        })?;
        // The longest flight of each call.
        let mut flights: Vec<Duration> = Vec::new();
        let busy = written(&area, || {
            let (start, mut exchanged) = (Instant::now(), 0);
            for half in halves.iter().cycle() {
                if start.elapsed() > time {
                    break;
                }
                let done = color(&mut engine, &area, half, Others::Running)?;
                exchanged += done.exchanged;
                flights.push(done.longest);
            }
            Ok(exchanged)
        })?;
        flights.sort_unstable();
        println!(
            "{batch:>8} {:>12.0} {:>12.2} {:>14} {:>16} {:>14} {:>16}",
            busy.done as f64 / busy.seconds,
            busy.cpu * 1e6 / busy.done as f64,
            micros(busy.longest),
            micros(idle.longest),
            micros(flights.last().copied().unwrap_or_default()),
            micros(flights.get(flights.len() / 2).copied().unwrap_or_default())
        );
    }
    Ok(())
}

fn color(engine: &mut Engine, area: &Area, set: &ColorSet, others: Others) -> Result<Done, live::Error> {
    // SAFETY: the area is ours; while writers run, the caller says so.
    unsafe { engine.color(pages(area), &Wish::Set(set.clone()), others) }
}

struct Written {
    done: usize,
    seconds: f64,
    /// Of the thread that colors.
    cpu: f64,
    longest: Duration,
}

/// Does something while two threads increment words at random and clock each increment.
fn written(
    area: &Area,
    work: impl FnOnce() -> Result<usize, Box<dyn std::error::Error>>,
) -> Result<Written, Box<dyn std::error::Error>> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2u64)
            .map(|thread| {
                let stop = &stop;
                scope.spawn(move || {
                    let mut longest = Duration::ZERO;
                    let mut random = thread * 7919 + 88172645463325252;
                    let mut before = Instant::now();
                    while !stop.load(Ordering::Relaxed) {
                        random ^= random << 13;
                        random ^= random >> 7;
                        random ^= random << 17;
                        let (page, word) = (random as usize % area.pages(), random as usize / 4096 % 256);
                        let word = word * 2 + thread as usize;
                        area.set_word(page, word, area.word(page, word) + 1);
                        let now = Instant::now();
                        let took = now - before;
                        longest = longest.max(took);
                        before = now;
                    }
                    longest
                })
            })
            .collect();
        let (start, cpu) = (Instant::now(), thread_time());
        let done = work();
        let cpu = (thread_time() - cpu).as_secs_f64();
        let seconds = start.elapsed().as_secs_f64();
        stop.store(true, Ordering::Relaxed);
        let mut longest = Duration::ZERO;
        for writer in writers {
            longest = longest.max(writer.join().map_err(|_| "a writer failed")?);
        }
        Ok(Written {
            done: done?,
            seconds,
            cpu,
            longest,
        })
    })
}

/// 32 MiB into slots, touched and untouched, beside plain faults and a copy.
fn slots(colors: &Colors) -> Result<(), Box<dyn std::error::Error>> {
    const ROUNDS: usize = 7;
    println!("32 MiB into a slot without a daemon, ms of CPU: medians of {ROUNDS}");
    println!(
        "{:>9} {:>8} {:>8} {:>12} {:>10} {:>12} {:>10}",
        "slot KiB", "faults", "copy", "untouched", "ratio", "touched", "ratio"
    );
    for slot in [64, 128, 256, 512, 1024, 2048] {
        let set: ColorSet = (0..(slot << 10) as u64 / colors.color_bytes)
            .map(|color| color as u32)
            .collect();
        let mut times: [Vec<Duration>; 4] = Default::default();
        for _ in 0..ROUNDS {
            let clock = |into: &mut Vec<Duration>, work: &mut dyn FnMut() -> Result<(), Box<dyn std::error::Error>>| {
                let start = thread_time();
                work()?;
                into.push(thread_time() - start);
                Ok::<(), Box<dyn std::error::Error>>(())
            };
            let mut source = Area::map(32 * MIB, Size::Small)?;
            let mut copy = Area::map(32 * MIB, Size::Small)?;
            clock(&mut times[0], &mut || {
                for page in 0..source.pages() {
                    source.set_word(page, 0, 1);
                }
                Ok(())
            })?;
            memory::populate(copy.span())?;
            clock(&mut times[1], &mut || {
                let pages = source.pages();
                copy.copy(0, &mut source, 0, pages);
                Ok(())
            })?;
            drop((source, copy));
            for (place, touched) in [(2, false), (3, true)] {
                let mut config = Config::new(colors.clone());
                config.reserve_bytes = 0;
                let mut engine = Engine::open(config)?;
                let area = Area::map(32 * MIB, Size::Small)?;
                if touched {
                    memory::populate(area.span())?;
                }
                clock(&mut times[place], &mut || {
                    let done = color(&mut engine, &area, &set, Others::Absent)?;
                    if done.complete() {
                        Ok(())
                    } else {
                        Err(format!("{done:?}").into())
                    }
                })?;
            }
        }
        let [faults, copy, untouched, touched] = times.map(|mut times| {
            times.sort_unstable();
            times[times.len() / 2].as_secs_f64() * 1e3
        });
        println!(
            "{slot:>9} {faults:>8.2} {copy:>8.2} {untouched:>12.2} {:>10.1} {touched:>12.2} {:>10.1}",
            untouched / (faults + copy),
            touched / (faults + copy)
        );
    }
    Ok(())
}

fn micros(time: Duration) -> String {
    format!("{:.0} us", time.as_secs_f64() * 1e6)
}
