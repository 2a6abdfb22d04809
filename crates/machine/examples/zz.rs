fn main() {
    let e = if std::env::args().any(|a| a == "c") {
        machine::measured::Effort::Careful
    } else {
        machine::measured::Effort::Quick
    };
    let t = std::time::Instant::now();
    let r = machine::measured::color_report(e, true);
    for f in &r.findings {
        println!("{} {:?}", f.cache, f.times);
        for s in &f.steps {
            print!(" {}:{:.2}/{:.2}", s.pages, s.same_ns, s.mixed_ns)
        }
        println!();
        for t in &f.tests {
            println!("  {:?} {:.2} {:.2} {:?}", t.bits, t.same_ns, t.flipped_ns, t.effect)
        }
        println!("  {:?}", f.verdict);
    }
    println!(
        "{:?} huge {} {:?} guest {} {:?}\n{:?} {:?}",
        r.frames,
        r.huge,
        r.translation,
        r.guest,
        t.elapsed(),
        r.validated,
        r.reason
    );
}
