//! Prints a trace's references in the serial order of the recording: `pcs TRACE`.
#![forbid(unsafe_code)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("pcs TRACE")?;
    let trace = trace::Trace::open(&path)?;
    for t in 0..trace.threads().len() as u32 {
        let mut stream = trace.thread(t)?;
        let mut batch = trace::Batch::default();
        while stream.next(&mut batch)? {
            for r in &batch.refs {
                println!("{:?} {:x},{} {:x}", r.op, r.addr, r.size, trace.sites()[r.site as usize].pc);
            }
        }
    }
    Ok(())
}
