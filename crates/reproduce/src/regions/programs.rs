//! Programs from Debian under policy `regions`, each recorded several times (sections 5.3 and 5.4 of the paper use SPEC
//! 2006).
//!
//! `make traces` prepares the programs: a command for each, in `inputs/single-NAME-small/command`. Recordings differ in
//! the environment's size, the path of the program, the step by which the heap grows and the seed of Perl's hashes.

use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};

use results::{Outcome, RegionsVerdict};
use serde::{Deserialize, Serialize};
use sim::Config;

use super::spec;
use crate::error::ReproduceError;
use crate::paper::Item;
use crate::programs::Program;
use crate::record::{Recording, hash_file};
use crate::region_items::Regions;
use crate::reproduce::{Reproduction, Section};
use crate::several::Several;
use crate::watch::Step;
use machine::Machine;

/// The folder of `make traces` for its inputs, in the source tree that this was built from.
const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../build/traces");
/// Claims about this row are about all rows.
const ALL: &str = "all";

/// The result of one recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Ran {
    references: u64,
    first_ns: u64,
    regions_ns: u64,
    in_use_bytes: u64,
    moves: u64,
    phases: u64,
    verdict: String,
}

impl Reproduction<'_> {
    /// A row for each program and machine.
    pub(super) fn programs(
        &mut self,
        item: &Item,
        regions: &Regions,
        section: &mut Section,
    ) -> Result<(), ReproduceError> {
        let only = &self.options.only;
        let mut rows: Vec<(String, Vec<Ran>)> = Vec::new();
        for program in &regions.programs {
            if !only.is_empty() && !only.contains(&program.name) {
                continue;
            }
            match self.recordings_of(&program.name, regions) {
                Ok(found) => rows.extend(found),
                Err(error) => section.failures.push(format!("{}: {error}", program.name)),
            }
        }
        let several = |row: &str, column: &str| {
            let mut all = Vec::new();
            for (_, ran) in rows.iter().filter(|(name, _)| row == ALL || name == row) {
                all.extend(numbers(ran, column));
            }
            Several(all)
        };
        let names = rows.iter().map(|(name, _)| name.as_str());
        for name in names.chain((!rows.is_empty()).then_some(ALL)) {
            self.several(item, name, section, |column| (unit(column), several(name, column)));
        }
        for (name, ran) in &rows {
            section.notes.push(format!("{name}: {}", verdicts(ran)));
        }
        section.notes.push(format!(
            "Debian's programs, prepared by `make traces`; policy `regions` with {}, whose times are cut as the runs are; recordings of a program, {} \
             of each, differ in environment, path, growth of the heap and Perl's seed",
            regions.set.join(" "),
            self.recordings()
        ));
        Ok(())
    }

    /// The recordings of a program, by machine.
    fn recordings_of(&self, name: &str, regions: &Regions) -> Result<Vec<(String, Vec<Ran>)>, ReproduceError> {
        let command = self.prepared().join(format!("inputs/single-{name}-small/command"));
        let words = lines_of(&command)?;
        let machines = regions.machines.iter();
        let machines: Vec<(&str, Machine)> = machines
            .map(|variant| Ok((variant.name.as_str(), machine::load(&variant.preset)?)))
            .collect::<Result<_, ReproduceError>>()?;
        let mut all: Vec<(String, Vec<Ran>)> = machines
            .iter()
            .map(|(machine, _)| (format!("{name}, {machine}"), Vec::new()))
            .collect();
        let inputs = hashed(&words)?;
        for recording in 0..self.recordings() {
            (self.watch)(Step::Simulating {
                what: name,
                done: recording,
                total: self.recordings(),
            });
            let texts: Vec<String> = machines.iter().map(|(_, machine)| machine.to_toml()).collect();
            let key = format!("{words:?} {inputs:x} {recording} {:?}\n{}", regions.set, texts.concat());
            let found = self.kept(&key, || {
                self.record_and_run(name, &words, &machines, &regions.set, recording)
            })?;
            for ((_, of_machine), ran) in all.iter_mut().zip(found) {
                of_machine.push(ran);
            }
        }
        Ok(all)
    }

    fn record_and_run(
        &self,
        name: &str,
        words: &[String],
        machines: &[(&str, Machine)],
        set: &[String],
        recording: u64,
    ) -> Result<Vec<Ran>, ReproduceError> {
        let varied = Varied {
            name,
            words,
            recording,
            inputs: None,
        };
        self.with_recording(&varied, |recorder, trace| {
            let mut ran = Vec::new();
            for (_, machine) in machines {
                let specs = [("first-touch", &[][..]), ("regions", set)].map(|(policy, set)| spec(policy, set));
                let config = Config {
                    classes: false,
                    ..Config::new(machine.clone(), specs.into_iter().collect::<Result<_, _>>()?)
                };
                let runs = recorder.simulate(trace, &config)?;
                let [first, regions] = &runs[..] else {
                    return Err(ReproduceError::Host(format!("{name} was not simulated")));
                };
                ran.push(Ran::of(&first.outcome, &regions.outcome));
            }
            Ok(ran)
        })
    }

    /// The folder of `make traces` for its traces and inputs.
    pub(super) fn prepared(&self) -> PathBuf {
        self.options.traces.clone().unwrap_or_else(|| PathBuf::from(RECORDED))
    }

    /// Records a program and examines the trace, which is deleted afterwards.
    pub(super) fn with_recording<T>(
        &self,
        varied: &Varied,
        look: impl FnOnce(&Recording, &Path) -> Result<T, ReproduceError>,
    ) -> Result<T, ReproduceError> {
        // Always of the same length: a program's memory contains its path.
        let own = format!("recording-{:010}", std::process::id());
        let room = Room(self.options.keeping.folder.join(own));
        let program = varied
            .program(&room.0)
            .map_err(|error| ReproduceError::Host(format!("cannot record {}: {error}", varied.name)))?;
        let trace = room.0.join("trace");
        let recorder = Recording {
            program: &program,
            machine: &self.machine,
            keeping: &self.options.keeping,
            what: varied.name,
            expected: 0,
            prefetches: false,
            children: varied.inputs.is_some(),
            watch: self.watch,
        };
        recorder.record(&trace)?;
        look(&recorder, &trace)
    }
}

/// A file that `make traces` wrote, by lines.
pub(super) fn lines_of(path: &Path) -> Result<Vec<String>, ReproduceError> {
    let text = std::fs::read_to_string(path).map_err(|source| ReproduceError::File {
        path: path.to_path_buf(),
        what: "is not prepared, which `make traces` does",
        source,
    })?;
    Ok(text.lines().map(str::to_string).collect())
}

/// A folder that is deleted afterwards.
struct Room(PathBuf);

impl Drop for Room {
    fn drop(&mut self) {
        // If it cannot be removed, an unneeded trace stays.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Ran {
    fn of(first: &Outcome, ours: &Outcome) -> Ran {
        let regions = ours.regions.clone().unwrap_or_default();
        let process = regions.processes.first();
        Ran {
            references: first.references,
            first_ns: first.time_ns.wall,
            regions_ns: ours.time_ns.wall,
            in_use_bytes: process.map_or(0, |process| process.working_set_bytes),
            moves: regions.switches,
            phases: regions.phases,
            verdict: process.map_or("no process".to_string(), |process| word(process.verdict)),
        }
    }
}

/// A program with the settings of one of its recordings.
pub(super) struct Varied<'a> {
    /// In messages.
    pub name: &'a str,
    pub words: &'a [String],
    pub recording: u64,
    /// For a script: the folder of its inputs. The programs that it starts are recorded with it.
    pub inputs: Option<PathBuf>,
}

impl Varied<'_> {
    /// The program, through a link with its name.
    fn program(&self, folder: &Path) -> std::io::Result<Program> {
        let (program, arguments) = self.words.split_first().ok_or(std::io::ErrorKind::InvalidInput)?;
        let recording = self.recording;
        let folder = folder.join("r".repeat(1 + recording as usize % 7));
        std::fs::create_dir_all(&folder)?;
        let path = folder.join(Path::new(program).file_name().unwrap_or_default());
        std::os::unix::fs::symlink(program, &path)?;
        let mut environment = vec![
            ("RECORDING".to_string(), "x".repeat(recording as usize * 150)),
            // glibc's malloc requests this much more at a time.
            ("MALLOC_TOP_PAD_".to_string(), ((32 + recording * 3) * 4096).to_string()),
            ("PERL_HASH_SEED".to_string(), recording.to_string()),
        ];
        let inputs = self.inputs.iter();
        environment.extend(inputs.map(|inputs| ("TRACES_INPUTS".to_string(), inputs.display().to_string())));
        Ok(Program {
            path,
            arguments: arguments.to_vec(),
            environment,
        })
    }
}

/// A hash of the program and all of its inputs that are files.
pub(super) fn hashed(words: &[String]) -> Result<u64, ReproduceError> {
    let mut hasher = DefaultHasher::new();
    for word in words.iter().map(Path::new).filter(|path| path.is_file()) {
        hash_file(word, &mut hasher)?;
    }
    Ok(hasher.finish())
}

fn numbers(ran: &[Ran], column: &str) -> Vec<Result<f64, String>> {
    let times = Several(ran.iter().map(|ran| Ok(ran.regions_ns as f64)).collect());
    let Ok(median) = times.median() else { return Vec::new() };
    ran.iter().map(|ran| ran.number(column, median)).collect()
}

impl Ran {
    /// `median`: of the times of this program's recordings.
    fn number(&self, column: &str, median: f64) -> Result<f64, String> {
        let (first, ours) = (self.first_ns as f64, self.regions_ns as f64);
        match column {
            "references" => Ok(self.references as f64 / 1e6),
            "in use" => Ok(self.in_use_bytes as f64 / f64::from(1 << 20)),
            "first touch" => Ok(first / 1e6),
            "regions" => Ok(ours / 1e6),
            "off the median" => Ok((ours / median - 1.0).abs() * 100.0),
            "above" => Ok((ours / first - 1.0) * 100.0),
            "gain" => Ok((first / ours - 1.0) * 100.0),
            "moves" => Ok(self.moves as f64 * 1e9 / ours),
            other => Err(format!("`{other}` is not counted")),
        }
    }
}

fn unit(column: &str) -> &'static str {
    match column {
        "references" => "millions",
        "in use" => "MB",
        "first touch" | "regions" => "ms",
        "moves" => "a second",
        _ => "percent",
    }
}

/// A verdict as results have it.
pub(super) fn word(verdict: RegionsVerdict) -> String {
    let word = serde_json::to_value(verdict).unwrap_or_default();
    word.as_str().unwrap_or("unknown").to_string()
}

/// The policy's verdicts, each with how many recordings have it.
fn verdicts(ran: &[Ran]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for ran in ran {
        match counts.iter_mut().find(|(verdict, _)| *verdict == ran.verdict) {
            Some((_, count)) => *count += 1,
            None => counts.push((&ran.verdict, 1)),
        }
    }
    let words = counts.iter().map(|(verdict, count)| match count == &ran.len() {
        true => format!("`{verdict}`"),
        false => format!("`{verdict}` ({count} of {})", ran.len()),
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(first_ns: u64, regions_ns: u64, verdict: &str) -> Ran {
        Ran {
            first_ns,
            regions_ns,
            verdict: verdict.to_string(),
            moves: 3,
            ..Ran::default()
        }
    }

    #[test]
    fn each_recording_is_held_against_the_median_and_against_first_touch() {
        let all = [
            ran(100, 100, "pays"),
            ran(100, 104, "pays"),
            ran(100, 96, "still-found"),
        ];
        let of = |column| Several(numbers(&all, column)).range().unwrap();
        assert_eq!(of("off the median"), (0.0, 4.0000000000000036));
        assert_eq!(of("above"), (-4.0000000000000036, 4.0000000000000036));
        assert!(numbers(&all, "below")[0].is_err());
        assert_eq!(verdicts(&all), "`pays` (2 of 3), `still-found` (1 of 3)");
        assert_eq!(verdicts(&all[..2]), "`pays`");
    }

    #[test]
    fn recordings_differ_in_path_and_environment() {
        let room = tempfile::tempdir().unwrap();
        let words = ["/bin/true".to_string(), "a".to_string()];
        let varied = |words, recording, inputs| Varied {
            name: "true",
            words,
            recording,
            inputs,
        };
        let [one, other] = [0, 1].map(|recording| varied(&words, recording, None).program(room.path()).unwrap());
        assert_eq!(one.path.file_name(), other.path.file_name());
        assert!(one.path.is_file() && one.path.as_os_str().len() < other.path.as_os_str().len());
        assert_eq!(one.arguments, ["a"]);
        let environment = one.environment.iter().zip(&other.environment);
        assert!(environment.into_iter().all(|(one, other)| one != other));
        let script = varied(&words, 2, Some("/inputs".into())).program(room.path()).unwrap();
        let inputs = ("TRACES_INPUTS".to_string(), "/inputs".to_string());
        assert!(script.environment.contains(&inputs) && !one.environment.contains(&inputs));
        assert!(varied(&[], 0, None).program(room.path()).is_err());
    }
}
