//! Timing programs against each other: in turn, pinned to one cpu, the median of several rounds.

use crate::error::ReproduceError;
use crate::programs::{Program, Said};
use crate::watch::{Step, Watch};

/// The results of one program's rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// Processor seconds, in the order of the rounds.
    pub rounds: Vec<f64>,
    pub median: f64,
    /// The output of the last round.
    pub said: Said,
}

/// Runs all programs `rounds` times, each round through all of them, so that other load on the machine affects all
/// alike.
pub fn time(programs: &[Program], rounds: usize, what: &str, watch: Watch) -> Result<Vec<Timing>, ReproduceError> {
    // Child processes inherit the mask.
    let pinned = sys::affinity::pin_to_last();
    let mut said: Vec<Vec<Said>> = vec![Vec::new(); programs.len()];
    for round in 0..rounds.max(1) {
        for (index, program) in programs.iter().enumerate() {
            watch(Step::Timing {
                what,
                run: round * programs.len() + index,
                runs: rounds.max(1) * programs.len(),
            });
            said[index].push(program.run()?);
        }
    }
    drop(pinned);
    Ok(said.into_iter().filter_map(timing).collect())
}

fn timing(mut said: Vec<Said>) -> Option<Timing> {
    let rounds: Vec<f64> = said.iter().map(Said::time).collect();
    Some(Timing {
        median: median(&mut rounds.clone())?,
        rounds,
        said: said.pop()?,
    })
}

/// The middle of some numbers, which are sorted; of an even number of them, the mean of the two in the middle.
pub fn median(numbers: &mut [f64]) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    let half = numbers.len() / 2;
    match numbers.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(numbers[half]),
        _ => Some((numbers[half - 1] + numbers[half]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&mut []), None);
        assert_eq!(median(&mut [3.0]), Some(3.0));
        assert_eq!(median(&mut [3.0, 1.0, 9.0]), Some(3.0));
        assert_eq!(median(&mut [4.0, 1.0, 9.0, 2.0]), Some(3.0));
    }
}
