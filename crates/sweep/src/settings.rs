//! Several values for parameters of policies: `migrate.trigger=16,64` or `migrate.trigger=16..128..16`, and the runs that follow.

use policy::Name;

/// Why a text gives no values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotSettings(String);

/// A run of a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// As the policy takes them, `policy.parameter=value`.
    pub sets: Vec<String>,
    /// Those with several values, `parameter=value`: they tell this run from the others.
    pub swept: Vec<String>,
}

/// One command makes at most this many runs: each has its counts in memory while it runs, and a line of the result.
const MOST: usize = 10_000;

/// Every combination of the values that are given for a policy, in their order, the last parameter changing fastest.
pub fn settings(policy: &Name, sets: &[String]) -> Result<Vec<Setting>, NotSettings> {
    let mut all = vec![Setting::default()];
    for set in sets {
        let values = values(set)?;
        if let [value] = &values[..] {
            all.iter_mut().for_each(|setting| setting.sets.push(value.clone()));
            continue;
        }
        let (part, _) = set.split_once('.').unwrap_or((set, ""));
        if !policy.has(part) {
            continue;
        }
        if all.len() * values.len() > MOST {
            return Err(NotSettings(format!(
                "`--set {set}` makes more than {MOST} runs of `{policy}`; give fewer values, or sweep in several commands"
            )));
        }
        let with = |setting: &Setting, value: &String| {
            let mut setting = setting.clone();
            let (_, own) = value.split_once('.').unwrap_or(("", value));
            setting.swept.push(own.to_string());
            setting.sets.push(value.clone());
            setting
        };
        all = all
            .iter()
            .flat_map(|setting| values.iter().map(move |value| with(setting, value)))
            .collect();
    }
    Ok(all)
}

/// The values of a `--set`, each as one of its own. A value that is no list is left to the policy to judge.
fn values(set: &str) -> Result<Vec<String>, NotSettings> {
    let Some((key, values)) = set.split_once('=') else {
        return Ok(vec![set.to_string()]);
    };
    let mut all = Vec::new();
    for value in values.split(',') {
        match &value.split("..").collect::<Vec<_>>()[..] {
            [one] => all.push(format!("{key}={one}")),
            [from, to, step] => all.extend(range(set, from, to, step)?.map(|value| format!("{key}={value}"))),
            _ => return Err(form(set, "a range is FROM..TO..STEP")),
        }
    }
    Ok(all)
}

fn range(set: &str, from: &str, to: &str, step: &str) -> Result<impl Iterator<Item = u64> + use<>, NotSettings> {
    let number = |text: &str| results::quantities::count(text).map_err(|error| form(set, &error));
    let (from, to, step) = (number(from)?, number(to)?, number(step)?);
    if step == 0 || from > to {
        return Err(form(set, "a range goes up from FROM to TO in steps of 1 or more"));
    }
    if (to - from) / step >= MOST as u64 {
        return Err(form(set, &format!("these are more than {MOST} values")));
    }
    Ok((0..=(to - from) / step).map(move |number| from + number * step))
}

fn form(set: &str, why: &str) -> NotSettings {
    NotSettings(format!(
        "`--set {set}`: {why}, as in `migrate.trigger=16,64` or `migrate.trigger=16..128..16`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn swept(policy: &str, sets: &[&str]) -> Vec<String> {
        let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
        let settings = settings(&policy.parse().unwrap(), &sets).unwrap();
        settings.iter().map(|setting| setting.swept.join(" ")).collect()
    }

    #[test]
    fn all_combinations_come_in_the_order_given() {
        assert_eq!(swept("migrate", &[]), [""]);
        assert_eq!(swept("migrate", &["migrate.trigger=16"]), [""]);
        assert_eq!(
            swept("migrate", &["migrate.trigger=16,64"]),
            ["trigger=16", "trigger=64"]
        );
        assert_eq!(
            swept(
                "migrate",
                &["migrate.trigger=1..8..3,20", "migrate.batch=5", "migrate.hold=2,1"]
            ),
            [
                "trigger=1 hold=2",
                "trigger=1 hold=1",
                "trigger=4 hold=2",
                "trigger=4 hold=1",
                "trigger=7 hold=2",
                "trigger=7 hold=1",
                "trigger=20 hold=2",
                "trigger=20 hold=1"
            ]
        );
        // Another policy's parameter is left out, even where it belongs to a part of this one.
        assert_eq!(swept("migrate", &["replicate.trigger=1,2"]), [""]);
        assert_eq!(
            swept("migrate+page-coloring", &["migrate.trigger=1,2"]),
            ["trigger=1", "trigger=2"]
        );
    }

    #[test]
    fn a_run_has_what_was_set_once_and_its_own() {
        let sets = ["migrate.batch=5".to_string(), "migrate.trigger=16,64".to_string()];
        let all = settings(&"migrate".parse().unwrap(), &sets).unwrap();
        assert_eq!(all[1].sets, ["migrate.batch=5", "migrate.trigger=64"]);
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for set in [
            "migrate.trigger=1..5",
            "migrate.trigger=5..1..1",
            "migrate.trigger=1..5..0",
            "migrate.trigger=1..x..1",
            "migrate.trigger=1..1e9..1",
        ] {
            assert!(
                settings(&"migrate".parse().unwrap(), &[set.to_string()]).is_err(),
                "{set}"
            );
        }
        let sets = ["trigger", "hold"].map(|param| format!("migrate.{param}=1..1000..1"));
        assert!(settings(&"migrate".parse().unwrap(), &sets).is_err());
    }
}
