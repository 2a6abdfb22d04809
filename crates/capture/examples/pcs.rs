//! Where a trace's references were made: `pcs TRACE` prints the busiest pages of code.
#![forbid(unsafe_code)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("pcs TRACE")?;
    let trace = trace::Trace::open(&path)?;
    let mut count = std::collections::BTreeMap::<u64, u64>::new();
    for t in 0..trace.threads().len() as u32 {
        let mut stream = trace.thread(t)?;
        let mut batch = trace::Batch::default();
        while stream.next(&mut batch)? {
            for r in &batch.refs {
                *count.entry(trace.sites()[r.site as usize].pc >> 6).or_default() += 1;
            }
        }
    }
    let mut v: Vec<_> = count.into_iter().collect();
    v.sort_by_key(|x| std::cmp::Reverse(x.1));
    for (p, n) in v.iter().take(20) {
        println!("{:#x} {n}", p << 6);
    }
    for m in trace.modules() {
        println!("{m:x?}");
    }
    Ok(())
}
