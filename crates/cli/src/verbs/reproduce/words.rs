//! Text about the papers for help and refusals, made from the papers' own files.

use clap::builder::{PossibleValue, PossibleValuesParser};
use reproduce::{About, Choice, PAPERS, Source};

/// Papers, each with its description. A file that cannot be read is reported when its paper is requested.
pub struct Papers(Vec<(Source, About)>);

impl Papers {
    pub fn new(sources: &[Source]) -> Papers {
        let read = |source: &Source| Some((*source, source.about().ok()?));
        Papers(sources.iter().filter_map(read).collect())
    }

    pub fn names(&self) -> PossibleValuesParser {
        let value = |(source, about): &(Source, About)| {
            let help = format!("{}, \"{}\" ({})", about.authors, about.title, about.year);
            PossibleValue::new(source.name).help(help)
        };
        PossibleValuesParser::new(self.0.iter().map(value))
    }

    /// The papers that an option applies to, in words.
    pub fn of(&self, choice: Choice) -> String {
        let with = self.0.iter().filter(|(_, about)| about.options.contains(&choice));
        listed(with.map(|(source, _)| source.name.to_string()), " and ")
    }

    /// Why an option does not apply to this paper; `None` if it does.
    pub fn refusal(&self, name: &str, choice: Choice) -> Option<String> {
        let (_, about) = self.0.iter().find(|(source, _)| source.name == name)?;
        if about.options.contains(&choice) {
            return None;
        }
        let (option, papers) = (choice.option(), self.of(choice));
        Some(match choice {
            Choice::Program | Choice::Cpus => {
                format!("{option} is for {papers}, whose figures are of programs and cpus")
            }
            Choice::Traces => format!("{option} is for {papers}, whose figures are of recorded traces"),
            Choice::Size | Choice::Cache => match &about.sizes {
                Some(sizes) => format!("{option} is for {papers}; the sizes of {name} are {sizes}"),
                None => format!("{option} is for {papers}"),
            },
        })
    }

    /// The items that can be drawn, in words; `any` stands for all items of a paper.
    pub fn drawn(&self, any: &str, joint: &str) -> String {
        let drawn = self.0.iter().filter(|(_, about)| !about.drawn.is_empty());
        let of = |(source, about): &(Source, About)| match source.draws_all(about) {
            true => format!("{any} of {}", source.name),
            false => format!("{} of {}", about.drawn.join(", "), source.name),
        };
        listed(drawn.map(of), joint)
    }

    fn full(&self) -> String {
        let own = self.0.iter().filter_map(|(source, about)| {
            let full = about.full.as_ref()?;
            Some(format!("; of {} {full}", source.name))
        });
        format!("More rounds of everything that is timed{}", own.collect::<String>())
    }

    fn examples(&self) -> String {
        let lines = self.0.iter().flat_map(|(source, about)| {
            let line = |example| format!("\n  domicile reproduce {} {example}", source.name);
            about.examples.iter().map(line)
        });
        format!("Examples:{}", lines.collect::<String>())
    }

    fn manual(&self) -> String {
        let notes = self.0.iter().filter_map(|(_, about)| about.note.as_ref());
        let notes: String = notes.map(|note| format!("{note} ")).collect();
        format!(
            "Reproduce the tables and figures of a paper\n\nPrints the paper's number beside ours and the ratio. Without an \
             item, all of them: the counts of references and misses at the paper's size, simulated on the paper's machine \
             (some minutes the first time; counts are kept and found again), and times measured here, at sizes scaled to \
             the cache that this process really gets. Times with cache slots are measured only where page colors are real \
             (`domicile probe`); elsewhere they are simulated, and it says so. {notes}With --json, one array of objects \
             with paper, item, row, column, paper_value, value and ratio; what cannot be had is null, with a reason.\n\n\
             The programs are those of `workloads/`: `make reproduce` builds and runs everything."
        )
    }
}

/// `a, b and c`.
fn listed(parts: impl Iterator<Item = String>, joint: &str) -> String {
    let mut parts: Vec<String> = parts.collect();
    match (parts.pop(), parts.is_empty()) {
        (Some(last), false) => format!("{}{joint}{last}", parts.join(", ")),
        (last, _) => last.unwrap_or_default(),
    }
}

pub fn papers() -> Papers {
    Papers::new(PAPERS)
}

pub fn manual() -> String {
    papers().manual()
}

pub fn examples() -> String {
    papers().examples()
}

pub fn full() -> String {
    papers().full()
}

pub fn program() -> String {
    let papers = papers().of(Choice::Program);
    format!("Only this program, of {papers}; can be repeated [default: those that take minutes]")
}

pub fn cpus() -> String {
    let papers = papers().of(Choice::Cpus);
    format!("Only this number of cpus, of {papers}; can be repeated [default: some of 1 to 16]")
}

pub fn traces() -> String {
    let papers = papers().of(Choice::Traces);
    format!("Folder of the recorded traces, of {papers} [default: the source tree's build/traces]")
}

pub fn plot() -> String {
    let drawn = papers().drawn("any", ", ");
    format!("Draw the one figure asked for into this file (SVG): {drawn}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fictitious paper: it is registered here, and no text elsewhere is changed for it.
    const INVENTED: Source = Source {
        name: "invented26",
        about: include_str!("invented26.toml"),
        items: &[("table1", ""), ("figure1", "")],
    };

    #[test]
    fn a_further_paper_is_in_help_and_refusals_by_its_registration_alone() {
        let papers = Papers::new(&[PAPERS, &[INVENTED]].concat());
        assert_eq!(papers.of(Choice::Size), "philbin96 and invented26");
        assert_eq!(
            papers.refusal("bugnion96", Choice::Cache).unwrap(),
            "--cache is for philbin96 and invented26; the sizes of bugnion96 are the paper's"
        );
        assert_eq!(papers.refusal("invented26", Choice::Cache), None);
        assert_eq!(
            papers.refusal("invented26", Choice::Cpus).unwrap(),
            "--cpus is for bugnion96, whose figures are of programs and cpus"
        );
        assert_eq!(
            papers.refusal("invented26", Choice::Traces).unwrap(),
            "--traces is for verghese96 and lee12, whose figures are of recorded traces"
        );
        assert_eq!(
            papers.drawn("one", " or "),
            "figure4 of philbin96, one of bugnion96, figure9 of lee12 or figure1 of invented26"
        );
        assert!(papers.full().ends_with("; of invented26 everything twice"));
        assert!(
            papers
                .examples()
                .ends_with("\n  domicile reproduce invented26 figure1 --plot it.svg")
        );
        assert!(papers.manual().contains("Nothing of invented26 is true. With --json"));
        let command = clap::Command::new("it").arg(clap::Arg::new("paper").value_parser(papers.names()));
        assert!(command.clone().try_get_matches_from(["it", "invented26"]).is_ok());
        let error = command.try_get_matches_from(["it", "other"]).unwrap_err().to_string();
        assert!(
            error.contains("[possible values: philbin96, ding11, bugnion96, verghese96, lee12, invented26]"),
            "{error}"
        );
    }

    #[test]
    fn every_paper_that_is_registered_can_be_read() {
        for source in PAPERS {
            source.read().unwrap();
        }
        assert_eq!(papers().0.len(), PAPERS.len());
    }
}
