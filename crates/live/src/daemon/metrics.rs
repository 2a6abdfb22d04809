//! What the daemon counts, as Prometheus reads it (text format 0.0.4).

use std::fmt::Write;
use std::time::Duration;

use sys::pressure::Memory;

use super::stock::Flow;
use super::wire::{Refusal, Request};

/// Upper bounds of the histogram of latencies, in microseconds; one more stands for all beyond.
const BOUNDS: [u64; 10] = [10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000, 1_000_000];

/// How requests ended: met, or refused for one of the reasons.
const OUTCOMES: usize = 1 + Refusal::ALL.len();

#[derive(Debug, Default)]
pub struct Metrics {
    requests: [[u64; OUTCOMES]; Request::NAMES.len()],
    latencies: [u64; BOUNDS.len() + 1],
    latency_sum: Duration,
    pub connections: u64,
    /// Connections that were not taken, and such as were closed for what they said.
    pub turned_away: u64,
    pub malformed: u64,
    /// Frames looked at after they were released: arrived, or not.
    pub hits: u64,
    pub misses: u64,
    /// Frames freed by clients that the daemon did not see again.
    pub unseen: u64,
    /// Times that memory was given up.
    pub pressure: u64,
    /// Looks at clients' pages that were not done in time.
    pub given_up: u64,
}

/// What is counted elsewhere, at the moment of asking.
#[derive(Debug)]
pub struct Now {
    pub by_color: Vec<u64>,
    pub target: u64,
    pub held: u64,
    pub clients: u64,
    pub flow: Flow,
    /// Frames at hand at most, while a round of collecting is under way.
    pub most: u64,
    /// Bytes that the daemon has, and the limits of its control group.
    pub own: u64,
    pub room: Option<Memory>,
    pub up: Duration,
}

impl Metrics {
    /// A request was answered: `why` not, or met. `kind` as [`Request::kind`] gives it.
    pub fn answered(&mut self, kind: usize, why: Option<Refusal>, took: Duration) {
        self.requests[kind][why.map_or(0, |why| why as usize)] += 1;
        let micros = took.as_micros();
        let at = BOUNDS.iter().position(|bound| micros <= u128::from(*bound));
        self.latencies[at.unwrap_or(BOUNDS.len())] += 1;
        self.latency_sum += took;
    }

    /// The page that Prometheus reads.
    pub fn page(&self, now: &Now) -> String {
        let mut page = Page(String::with_capacity(8 << 10));
        page.begin("domicile_frames", "gauge", "Frames at hand by color.");
        for (color, frames) in now.by_color.iter().enumerate() {
            page.number("domicile_frames", &[("color", &color.to_string())], *frames);
        }
        page.single(
            "domicile_frames_target",
            "gauge",
            "Frames that there should be, over all colors.",
            now.target,
        );
        page.single(
            "domicile_frames_most",
            "gauge",
            "Frames that may be at hand while more of some color are collected.",
            now.most,
        );
        page.single("domicile_frames_held", "gauge", "Frames that clients hold.", now.held);
        page.single(
            "domicile_memory_bytes",
            "gauge",
            "Memory of the daemon itself, with all that it holds.",
            now.own,
        );
        if let Some(room) = now.room {
            page.single(
                "domicile_memory_limit_bytes",
                "gauge",
                "Limit of the control group that leaves it least.",
                room.total,
            );
            page.single(
                "domicile_memory_left_bytes",
                "gauge",
                "What that limit leaves.",
                room.available,
            );
        }
        let flow = &now.flow;
        let flows = [
            ("collected", flow.collected),
            ("taken_back", flow.taken_back),
            ("released", flow.released),
            ("let_go", flow.let_go),
            ("given_up", flow.given_up),
            ("lost", flow.lost),
        ];
        let help = "Frames that came from the kernel (collected) and from clients (taken_back), and that went to clients \
                    (released), to the kernel (let_go, given_up under pressure), or were moved by it (lost).";
        page.begin("domicile_frames_total", "counter", help);
        for (way, frames) in flows {
            page.number("domicile_frames_total", &[("way", way)], frames);
        }
        page.begin(
            "domicile_handed_frames_total",
            "counter",
            "Frames released for clients, by whether the client got them.",
        );
        page.number("domicile_handed_frames_total", &[("outcome", "hit")], self.hits);
        page.number("domicile_handed_frames_total", &[("outcome", "miss")], self.misses);
        page.single(
            "domicile_freed_frames_unseen_total",
            "counter",
            "Frames freed by clients that went elsewhere.",
            self.unseen,
        );
        page.begin("domicile_requests_total", "counter", "Requests by kind and outcome.");
        for (name, outcomes) in Request::NAMES.iter().zip(&self.requests) {
            let names = std::iter::once("ok").chain(Refusal::ALL.iter().map(|why| why.name()));
            for (outcome, count) in names.zip(outcomes).filter(|(_, count)| **count > 0) {
                page.number(
                    "domicile_requests_total",
                    &[("kind", name), ("outcome", outcome)],
                    *count,
                );
            }
        }
        let quota: u64 = self
            .requests
            .iter()
            .map(|outcomes| outcomes[Refusal::Quota as usize])
            .sum();
        page.single(
            "domicile_quota_refusals_total",
            "counter",
            "Requests refused for the quota.",
            quota,
        );
        self.latency(&mut page);
        page.single(
            "domicile_pressure_releases_total",
            "counter",
            "Times that frames were given up because memory was short.",
            self.pressure,
        );
        page.single(
            "domicile_looks_given_up_total",
            "counter",
            "Looks at clients' pages that were not done in time.",
            self.given_up,
        );
        page.single("domicile_connections", "gauge", "Connections now.", now.clients);
        page.begin(
            "domicile_connections_total",
            "counter",
            "Connections by what became of them at first.",
        );
        page.number("domicile_connections_total", &[("outcome", "taken")], self.connections);
        page.number(
            "domicile_connections_total",
            &[("outcome", "turned_away")],
            self.turned_away,
        );
        page.single(
            "domicile_malformed_total",
            "counter",
            "Connections closed because of what was not a message.",
            self.malformed,
        );
        page.single(
            "domicile_up_seconds",
            "gauge",
            "Seconds since the start.",
            now.up.as_secs(),
        );
        page.0
    }

    fn latency(&self, page: &mut Page) {
        let name = "domicile_request_seconds";
        page.begin(name, "histogram", "Time from reading a request to its answer.");
        let mut count = 0;
        for (bound, more) in BOUNDS.iter().zip(&self.latencies) {
            count += more;
            let bound = (*bound as f64 / 1e6).to_string();
            page.number("domicile_request_seconds_bucket", &[("le", &bound)], count);
        }
        count += self.latencies[BOUNDS.len()];
        page.number("domicile_request_seconds_bucket", &[("le", "+Inf")], count);
        page.float("domicile_request_seconds_sum", self.latency_sum.as_secs_f64());
        page.number("domicile_request_seconds_count", &[], count);
    }
}

struct Page(String);

impl Page {
    fn begin(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn single(&mut self, name: &str, kind: &str, help: &str, value: u64) {
        self.begin(name, kind, help);
        self.number(name, &[], value);
    }

    fn number(&mut self, name: &str, labels: &[(&str, &str)], value: u64) {
        self.0 += name;
        for (at, (label, value)) in labels.iter().enumerate() {
            let _ = write!(self.0, "{}{label}=\"{value}\"", if at == 0 { '{' } else { ',' });
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    fn float(&mut self, name: &str, value: f64) {
        let _ = writeln!(self.0, "{name} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_adds_up() {
        let mut metrics = Metrics::default();
        metrics.answered(1, None, Duration::from_micros(20));
        metrics.answered(1, None, Duration::from_micros(200));
        metrics.answered(1, Some(Refusal::Quota), Duration::from_secs(9));
        metrics.hits = 5;
        let page = metrics.page(&Now {
            by_color: vec![3, 4],
            target: 8,
            held: 1,
            clients: 2,
            flow: Flow::default(),
            most: 12,
            own: 4 << 20,
            room: Some(Memory {
                total: 1 << 30,
                available: 1 << 29,
            }),
            up: Duration::from_secs(60),
        });
        for line in [
            "domicile_frames{color=\"1\"} 4",
            "domicile_requests_total{kind=\"take\",outcome=\"ok\"} 2",
            "domicile_requests_total{kind=\"take\",outcome=\"quota\"} 1",
            "domicile_quota_refusals_total 1",
            "domicile_request_seconds_bucket{le=\"0.00001\"} 0",
            "domicile_request_seconds_bucket{le=\"0.00003\"} 1",
            "domicile_request_seconds_bucket{le=\"1\"} 2",
            "domicile_request_seconds_bucket{le=\"+Inf\"} 3",
            "domicile_request_seconds_count 3",
            "domicile_request_seconds_sum 9.00022",
            "domicile_handed_frames_total{outcome=\"hit\"} 5",
            "domicile_up_seconds 60",
            "domicile_memory_bytes 4194304",
            "domicile_memory_limit_bytes 1073741824",
            "domicile_memory_left_bytes 536870912",
            "domicile_looks_given_up_total 0",
        ] {
            assert!(page.lines().any(|there| there == line), "{line} is not in\n{page}");
        }
        // Every sample belongs to a family that was described before it.
        let mut family = "";
        for line in page.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                family = rest.split(' ').next().unwrap();
            } else if !line.starts_with('#') {
                assert!(line.starts_with(family), "{line} in {family}");
            }
        }
    }
}
