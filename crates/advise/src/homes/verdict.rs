//! Remote data, its reason, and its remedy, in words.

use results::{HomesAdvice, HomesRemedy, Outcome, RemoteReason, percent, time};

use crate::words::NOTHING;

/// The remote data and the reason; the best remedy, and whether it lasts.
pub fn of(advice: &HomesAdvice, base: &Outcome) -> String {
    if advice.remote_share < NOTHING {
        return format!(
            "Waiting for other nodes' memory is {} of the time that cpus work: where pages lie hardly matters.",
            percent(advice.remote_share)
        );
    }
    let mut text = format!(
        "{} of the time that cpus work they wait for other nodes' memory and caches; {:.0}% of what memory serves is local.",
        percent(advice.remote_share),
        advice.local_percent
    );
    if let Some(worst) = advice.structures.first() {
        text += &format!(" Most remote is {}", results::short(&worst.name));
        if let Some(main) = worst.reasons.first() {
            text += &format!(": {}", main.reason);
            if let Some(touch) = worst
                .first_touches
                .first()
                .filter(|_| main.reason == RemoteReason::FirstTouch)
            {
                text += &format!(" ({touch}, thread {} on node {})", touch.thread, touch.node);
            }
        }
        text += ".";
    }
    // Remedies are listed with the options available today: the best, and the best without changes of the program.
    let best = advice.remedies.iter().max_by(|a, b| a.gain.total_cmp(&b.gain));
    match best.filter(|best| best.gain >= NOTHING) {
        None => text += " Nothing that was simulated to bring it near gains anything over the whole run.",
        Some(best) => {
            text += &format!(
                " {}: saves {} of the run time ({} in place of {}): {}.",
                capital(&best.name),
                percent(best.gain),
                time(best.wall_ns),
                time(base.time_ns.wall),
                best.how
            );
            if let Some(later) = best.later_gain {
                text += &format!(" In the second half of the misses it saves {}.", percent(later));
            }
        }
    }
    let lasting = advice.remedies.iter().filter(|remedy| {
        let later = remedy.later_gain.unwrap_or(0.0);
        remedy.gain < NOTHING && later >= NOTHING
    });
    let later = |remedy: &&HomesRemedy| remedy.later_gain.unwrap_or(0.0);
    if let Some(lasting) = lasting.max_by(|a, b| later(a).total_cmp(&later(b))) {
        text += &format!(
            " {} saves {} of the time of the second half of the misses, and so of a longer run: the beginning of this one pays \
             for it.",
            capital(&lasting.name),
            percent(lasting.later_gain.unwrap_or_default())
        );
    }
    text
}

fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
