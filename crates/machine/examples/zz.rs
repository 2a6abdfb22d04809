use machine::measured::*;
fn main() {
    let has = |w: &str| std::env::args().any(|a| a == w);
    let e = if has("c") { Effort::Careful } else { Effort::Quick };
    for _ in 0..std::env::args().nth(1).unwrap().parse::<u32>().unwrap() {
        let t = std::time::Instant::now();
        let r = color_report(e, true);
        let w = r.translation.map(|t| format!("{:.2}/{:.2}", t.huge_ns, t.small_ns));
        print!(
            "{:?} {:?} {:.1}s ",
            r.frames.unwrap(),
            w.unwrap_or_default(),
            t.elapsed().as_secs_f64()
        );
        for f in &r.findings {
            let v = match &f.verdict {
                Verdict::Colors { .. } => "COLORS".to_string(),
                Verdict::Nothing { confidence, .. } => format!("nothing({confidence:.4})"),
                Verdict::Unclear { reason } => format!("unclear[{}]", &reason[..40.min(reason.len())]),
            };
            let t = f
                .times
                .map(|t| format!("{:.1}/{:.1}", t.inside_ns, t.outside_ns))
                .unwrap_or_default();
            print!("| {} {} {} ", f.cache, t, v);
            if has("v") {
                for s in &f.steps {
                    print!(" {}:{:.2}/{:.2}", s.pages, s.same_ns, s.mixed_ns)
                }
                for t in &f.tests {
                    print!("  {:?} {:.2} {:.2} {:?}", t.bits, t.same_ns, t.flipped_ns, t.effect)
                }
            }
        }
        println!();
    }
}
