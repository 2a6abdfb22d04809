//! What it costs to give a data set a slot with the daemon: 32 MiB that nothing has touched, for slots of 64 KiB to
//! 2 MiB, beside faulting in 32 MiB and copying 32 MiB, in turn, as medians (Ding11, figure 13).
//!
//! As root: `DOMICILE_COLORS=force:12:4:65536 cargo run --release -p domicile-live --example handover [ROUNDS [STOCK_MIB]]`
//! (or without the variable where the probe has found colors). It starts a daemon of its own in a child process.

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use live::daemon::{Client, Config, Server, sharers};
use live::found::{Unknown, found};
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
    let colors = found(Unknown::Measure)?;
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
    println!("slot KiB  colors  slot ms (least-most)  fault ms  copy ms  slot/(fault+copy)  hit %  by daemon");
    let mut slot_bytes = 64 << 10;
    while slot_bytes <= 2 << 20 {
        let count = ((slot_bytes / colors.color_bytes) as u32).clamp(1, colors.count());
        let (mut slot, mut fault, mut copy) = (Vec::new(), Vec::new(), Vec::new());
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
            let begun = Instant::now();
            let got = client.fill(into, &want)?;
            slot.push(begun.elapsed());
            hits += got
                .iter()
                .zip(&want)
                .filter(|(got, want)| **got == Some(**want))
                .count();
            pages += got.len();
            client.give_back(into)?;
            drop(area);
            fault.push(faults()?);
            copy.push(copies()?);
        }
        let ratios: Vec<f64> = (0..rounds)
            .map(|at| slot[at].as_secs_f64() / (fault[at] + copy[at]).as_secs_f64())
            .collect();
        let status = client.status()?;
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        println!(
            "{:8}  {count:6}  {:7.2} ({:5.2}-{:5.2})  {:8.2}  {:7.2}  {:17.2}  {:5.2}  {} hits, {} misses",
            slot_bytes >> 10,
            ms(median(&slot)),
            ms(*slot.iter().min().ok_or("no rounds")?),
            ms(*slot.iter().max().ok_or("no rounds")?),
            ms(median(&fault)),
            ms(median(&copy)),
            middle(&ratios),
            hits as f64 * 100.0 / pages as f64,
            status.hits,
            status.misses,
        );
        slot_bytes *= 2;
    }
    Ok(())
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

/// Plain page faults of the same number of small pages.
fn faults() -> Result<Duration, Box<dyn Error>> {
    let area = Area::map(BYTES, Size::Small)?;
    let begun = Instant::now();
    touch(&area);
    Ok(begun.elapsed())
}

fn touch(area: &Area) {
    for page in 0..area.pages() {
        area.set_word(page, 0, 1);
    }
}

fn copies() -> Result<Duration, Box<dyn Error>> {
    let (from, mut to) = (Area::map(BYTES, Size::Small)?, Area::map(BYTES, Size::Small)?);
    touch(&from);
    populate(to.span())?;
    let begun = Instant::now();
    to.copy(0, &from, 0, BYTES / PAGE_BYTES);
    Ok(begun.elapsed())
}

fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn middle(numbers: &[f64]) -> f64 {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or_default()
}
