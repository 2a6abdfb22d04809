//! A number of each of several repetitions: recordings of the same program, seeds of frames, or rounds by the clock.

/// A number of each repetition, or why it has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Several(pub Vec<Result<f64, String>>);

impl Several {
    /// The numbers of a result, or the reason why there is none.
    pub fn of<T>(had: Result<T, String>, numbers: impl FnOnce(T) -> Vec<f64>) -> Several {
        Several(match had {
            Ok(had) => numbers(had).into_iter().map(Ok).collect(),
            Err(reason) => vec![Err(reason)],
        })
    }

    /// The same; an invalid number (0 of 0) is missing.
    pub fn finite(mut self) -> Several {
        for value in &mut self.0 {
            if value.as_ref().is_ok_and(|value| !value.is_finite()) {
                *value = Err("it is not a finite number".to_string());
            }
        }
        self
    }

    /// Combines both, repetition by repetition, as far as both go.
    pub fn with(
        &self,
        other: &Several,
        both: impl Fn(Result<f64, String>, &Result<f64, String>) -> Result<f64, String>,
    ) -> Several {
        let pairs = self.0.iter().zip(&other.0);
        Several(pairs.map(|(one, other)| both(one.clone(), other)).collect())
    }

    /// The existing ones, the least first.
    pub fn values(&self) -> Vec<f64> {
        let mut values: Vec<f64> = self.0.iter().filter_map(|value| value.clone().ok()).collect();
        values.sort_by(f64::total_cmp);
        values
    }

    /// The lower of the two in the middle; the reason if more than half have none.
    pub fn median(&self) -> Result<f64, String> {
        let values = self.values();
        if values.len() * 2 <= self.0.len() {
            let reason = self.0.iter().find_map(|value| value.clone().err());
            return Err(reason.unwrap_or_else(|| "it was not repeated once".to_string()));
        }
        Ok(values[(values.len() - 1) / 2])
    }

    /// The least and the most.
    pub fn range(&self) -> Option<(f64, f64)> {
        let values = self.values();
        Some((*values.first()?, *values.last()?))
    }
}

/// A number in three digits.
pub fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_of_those_that_have_a_number() {
        let none = || Err("nothing".to_string());
        assert_eq!(Several(vec![Ok(3.0), Ok(1.0), Ok(2.0)]).median(), Ok(2.0));
        assert_eq!(Several(vec![Ok(3.0), Ok(1.0), none()]).median(), Ok(1.0));
        assert_eq!(
            Several(vec![Ok(3.0), none(), none()]).median(),
            Err("nothing".to_string())
        );
        assert_eq!(Several(vec![Ok(30.0), none(), Ok(2.0)]).range(), Some((2.0, 30.0)));
        assert_eq!(Several::default().range(), None);
    }
}
