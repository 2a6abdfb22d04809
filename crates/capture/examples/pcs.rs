//! Prints what is in a trace, thread by thread: `pcs TRACE [refs]`.
#![forbid(unsafe_code)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("pcs TRACE")?;
    let refs = std::env::args().nth(2).is_some();
    let trace = trace::Trace::open(&path)?;
    if !refs {
        println!("{:?}", trace.header());
        trace.processes().iter().for_each(|p| println!("{p:?}"));
        trace.modules().iter().for_each(|p| println!("{p:x?}"));
        trace.symbols().iter().filter(|s| s.file.is_some()).take(50).for_each(|p| println!("{p:x?}"));
        trace.locations().iter().filter(|s| s.file.is_some()).take(20).for_each(|p| println!("{p:x?}"));
    }
    for t in 0..trace.threads().len() as u32 {
        println!("-- {:?}", trace.threads()[t as usize]);
        let mut stream = trace.thread(t)?;
        let mut batch = trace::Batch::default();
        while stream.next(&mut batch)? {
            if !refs {
                for e in &batch.events {
                    println!("{e:x?}");
                    if let trace::Event::Alloc { stack, kind: trace::Allocation::Heap, .. } = e.event {
                        for f in &trace.stacks()[stack as usize].frames {
                            println!("    {:?}", trace.locations().iter().find(|l| l.pc == f.pc));
                        }
                    }
                }
                continue;
            }
            for r in &batch.refs {
                println!("{:?} {:x},{} {:x}", r.op, r.addr, r.size, trace.sites()[r.site as usize].pc);
            }
        }
    }
    Ok(())
}
