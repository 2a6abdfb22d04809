//! Two regions of memory that together exceed one cache, used in turns: by one thread, and by work that is shipped to two caches.
//!
//! `regions [BYTES] [STAY_US] [ROUNDS]`: bytes of each region, microseconds of a stay, rounds. Prints a JSON object a round: nanoseconds a
//! read on one cpu and shipped, interleaved, and the cost of a hand-over beside a bare one (two threads and a flag).

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use ship::Caches;

/// A region: a cycle through its lines in random order.
struct Region(Vec<[u32; 16]>);

impl Region {
    fn new(bytes: usize) -> Region {
        let lines = (bytes / 64).max(2);
        let mut order: Vec<u32> = (0..lines as u32).collect();
        let mut state = 88_172_645_463_325_252u64;
        for last in (1..lines).rev() {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            // Sattolo's shuffle: one cycle.
            order.swap(last, (state % last as u64) as usize);
        }
        let mut region = vec![[0u32; 16]; lines];
        for at in 0..lines {
            region[order[at] as usize][0] = order[(at + 1) % lines];
        }
        Region(region)
    }

    fn read(&self, mut at: u32, reads: u64) -> u32 {
        for _ in 0..reads {
            at = self.0[at as usize][0];
        }
        at
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<u64> = std::env::args()
        .skip(1)
        .map(|text| text.parse())
        .collect::<Result<_, _>>()?;
    let argument = |at: usize, usual| arguments.get(at).copied().unwrap_or(usual);
    let (bytes, stay_us, rounds) = (argument(0, 400 << 10), argument(1, 200), argument(2, 5));
    let caches = Caches::start()?;
    let cpus = &caches
        .domains()
        .first()
        .ok_or("all cpus share each cache: nothing is to be gained")?
        .cpus;
    sys::affinity::allow(None, cpus)?;
    let regions = [Region::new(bytes as usize), Region::new(bytes as usize)];
    let homes = [caches.home(bytes), caches.home(bytes)];
    // Reads of a stay: as many as take so long at 5 ns each, which both ways then do.
    let reads = stay_us * 1000 / 5;
    let stays = (400_000 / stay_us).max(20);
    let run = |shipped: bool| {
        let mut at = [0u32; 2];
        let began = Instant::now();
        for stay in 0..stays as usize {
            let which = stay % 2;
            let (region, from) = (&regions[which], at[which]);
            at[which] = match shipped {
                true => caches.ship(&homes[which], || region.read(from, reads)),
                false => region.read(from, reads),
            };
        }
        black_box(at);
        began.elapsed().as_nanos() as f64 / (stays * reads) as f64
    };
    run(false);
    run(true);
    for _ in 0..rounds {
        let (one, shipped) = (run(false), run(true));
        println!(
            "{{\"bytes\": {bytes}, \"stay_us\": {stay_us}, \"one_cpu_ns\": {one:.3}, \"shipped_ns\": {shipped:.3}, \"gain\": {:.3}, \
             \"hand_over_ns\": {}, \"bare_ns\": {}}}",
            one / shipped,
            caches.cost().awake_ns,
            bare(&caches)
        );
    }
    eprintln!("{:?}", caches.account());
    Ok(())
}

/// There and back by two flags, with nothing else: the median, in nanoseconds.
fn bare(caches: &Caches) -> u64 {
    let other = caches
        .domains()
        .last()
        .map(|domain| domain.cpus.clone())
        .unwrap_or_default();
    let (go, done) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ = sys::affinity::allow(None, &other);
            for turn in 1..=1001 {
                while go.load(Ordering::Acquire) != turn {
                    spin_loop();
                }
                done.store(turn, Ordering::Release);
            }
        });
        std::thread::sleep(Duration::from_millis(2));
        let mut times: Vec<Duration> = (1..=1001)
            .map(|turn| {
                let began = Instant::now();
                go.store(turn, Ordering::Release);
                while done.load(Ordering::Acquire) != turn {
                    spin_loop();
                }
                began.elapsed()
            })
            .collect();
        times.sort_unstable();
        times[500].as_nanos() as u64
    })
}
