//! What it costs to give a data set a slot with the daemon: 32 MiB that nothing has touched, for slots of 64 KiB to
//! 2 MiB, beside faulting in 32 MiB and copying 32 MiB, in turn, as medians (Ding11, figure 13). On a busy machine the
//! times on the cpu say more than those on the clock; of a slot, they are the program's and the daemon's together.
//!
//! As root: `DOMICILE_COLORS=force:12:4:65536 cargo run --release -p domicile-live --example handover [ROUNDS [STOCK_MIB]]`
//! (or without the variable where the probe has found colors). It starts a daemon of its own in a child process.

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use live::daemon::{Client, Config, Server, sharers};
use live::discovery::{Unknown, discover};
use live::{PAGE_BYTES, Pages, Supply};
use sys::memory::{Area, Size, populate};

const BYTES: usize = 32 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|word| word == "daemon") {
        return daemon(&arguments[2], arguments[3].parse()?);
    }
    let number = |at: usize, usual: u64| arguments.get(at).map_or(Ok(usual), |text| text.parse());
    let (rounds, stock) = (number(1, 9)?, number(2, 1536)? << 20);
    let socket = std::env::temp_dir().join(format!("domicile-handover-{}.sock", std::process::id()));
    let mut child = Command::new(std::env::current_exe()?)
        .args(["daemon".as_ref(), socket.as_os_str(), stock.to_string().as_ref()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let done = (|| -> Result<(), Box<dyn Error>> {
        let mut line = String::new();
        if BufReader::new(child.stdout.take().ok_or("no pipe")?).read_line(&mut line)? == 0 {
            return Err("the daemon did not start".into());
        }
        measure(&mut Client::connect(&socket)?, rounds as usize)
    })();
    // The daemon ends when its standard input does.
    drop(child.stdin.take());
    child.wait()?;
    done
}

fn daemon(socket: &str, stock: u64) -> Result<(), Box<dyn Error>> {
    let colors = discover(Unknown::Measure)?;
    let caches = sharers(&sys::Root::default(), &colors.cache)?;
    let mut config = Config::new(socket.into(), colors, caches, stock);
    // This measures the way of the frames, not how fast a user may take them.
    config.quota = 1 << 40;
    let mut server = Server::start(config)?;
    println!("ready");
    use std::os::fd::AsFd;
    server.run(std::io::stdin().as_fd())?;
    Ok(())
}

fn measure(client: &mut Client, rounds: usize) -> Result<(), Box<dyn Error>> {
    let colors = client.colors().clone();
    println!(
        "{} colors of {} KiB of {} ({:?}); data set {} MiB, untouched; medians of {rounds}, least and most",
        colors.count(),
        colors.color_bytes >> 10,
        colors.cache,
        colors.source,
        BYTES >> 20
    );
    println!("                  by the clock: ms                                 on the cpu: ms");
    println!(
        "slot KiB  colors  slot (least-most)     fault   copy  slot/(f+c)   slot  fault   copy  slot/(f+c)  hit %"
    );
    let daemon = client.status()?.process;
    let mut slot_bytes = 64 << 10;
    while slot_bytes <= 2 << 20 {
        let count = ((slot_bytes / colors.color_bytes) as u32).clamp(1, colors.count());
        let mut times: [Vec<Took>; 3] = Default::default();
        let (mut hits, mut pages) = (0, 0);
        for _ in 0..rounds {
            wait_for_stock(client)?;
            let chosen = fullest(&client.stock()?, count);
            let area = Area::map(BYTES, Size::Small)?;
            let want: Vec<u16> = (0..area.pages()).map(|page| chosen[page % chosen.len()]).collect();
            let into = Pages {
                start: area.start(),
                count: area.pages(),
            };
            let mut got = Ok(Vec::new());
            // SAFETY: the area is ours, and nobody has touched it.
            times[0].push(Took::by(Some(daemon), || got = unsafe { client.fill(into, &want) })?);
            let got = got?;
            hits += got
                .iter()
                .zip(&want)
                .filter(|(got, want)| **got == Some(**want))
                .count();
            pages += got.len();
            // SAFETY: the area goes.
            unsafe { client.give_back(into) }?;
            drop(area);
            let mut area = Area::map(BYTES, Size::Small)?;
            times[1].push(Took::by(None, || touch(&area))?);
            let mut to = Area::map(BYTES, Size::Small)?;
            populate(to.span())?;
            times[2].push(Took::by(None, || to.copy(0, &mut area, 0, BYTES / PAGE_BYTES))?);
        }
        let of = |which: usize, what: fn(&Took) -> f64| -> Vec<f64> { times[which].iter().map(what).collect() };
        let ratio = |what: fn(&Took) -> f64| {
            let (slot, fault, copy) = (of(0, what), of(1, what), of(2, what));
            median((0..rounds).map(|at| slot[at] / (fault[at] + copy[at])).collect())
        };
        let clock: fn(&Took) -> f64 = |took| took.clock;
        let cpu: fn(&Took) -> f64 = |took| took.cpu;
        let slots = of(0, clock);
        println!(
            "{:8}  {count:6}  {:5.2} ({:5.2}-{:6.2})  {:6.2} {:6.2}  {:10.2} {:6.2} {:6.2} {:6.2}  {:10.2} {:6.2}",
            slot_bytes >> 10,
            median(slots.clone()),
            slots.iter().copied().fold(f64::MAX, f64::min),
            slots.iter().copied().fold(0.0, f64::max),
            median(of(1, clock)),
            median(of(2, clock)),
            ratio(clock),
            median(of(0, cpu)),
            median(of(1, cpu)),
            median(of(2, cpu)),
            ratio(cpu),
            hits as f64 * 100.0 / pages as f64,
        );
        slot_bytes *= 2;
    }
    let status = client.status()?;
    println!(
        "of frames released, {} arrived at the first try or a later one and {} did not",
        status.hits, status.misses
    );
    Ok(())
}

/// Milliseconds that something took.
struct Took {
    clock: f64,
    cpu: f64,
}

impl Took {
    /// By the clock, and on the cpu by this thread and a process that sleeps before and after.
    fn by(other: Option<u32>, work: impl FnOnce()) -> Result<Took, Box<dyn Error>> {
        let cpu = || -> Result<u64, Box<dyn Error>> {
            let mut sum = sys::clock::thread_time().as_nanos() as u64;
            if let Some(process) = other {
                for thread in std::fs::read_dir(format!("/proc/{process}/task"))? {
                    let text = std::fs::read_to_string(thread?.path().join("schedstat"))?;
                    sum += text.split(' ').next().unwrap_or("").parse::<u64>()?;
                }
            }
            Ok(sum)
        };
        let (begun, before) = (Instant::now(), cpu()?);
        work();
        let (took, after) = (begun.elapsed(), cpu()?);
        Ok(Took {
            clock: took.as_secs_f64() * 1e3,
            cpu: (after - before) as f64 / 1e6,
        })
    }
}

/// The colors with the most frames.
fn fullest(stock: &[u64], count: u32) -> Vec<u16> {
    let mut colors: Vec<u16> = (0..stock.len() as u16).collect();
    colors.sort_by_key(|color| std::cmp::Reverse(stock[usize::from(*color)]));
    colors.truncate(count as usize);
    colors
}

/// Waits until the daemon has what it wants to have, within reason.
fn wait_for_stock(client: &mut Client) -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    loop {
        let status = client.status()?;
        let short = client
            .stock()?
            .iter()
            .any(|frames| *frames < status.target * 3 / 4 / client.colors().count() as u64);
        if !short || begun.elapsed() > Duration::from_secs(20) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn touch(area: &Area) {
    for page in 0..area.pages() {
        area.set_word(page, 0, 1);
    }
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_unstable_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or_default()
}
