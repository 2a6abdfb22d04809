//! The daemon's counts, as Prometheus reads them (text format 0.0.4).

use std::fmt;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, prometheus_text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use sys::pressure::Memory;

use super::stock::Flow;
use super::wire::{Refusal, Request};

/// Upper bounds of the histogram of latencies, in microseconds; one more stands for all beyond.
const BOUNDS: [u64; 10] = [10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000, 1_000_000];

/// How requests ended: met, or refused for one of the reasons.
const OUTCOMES: usize = 1 + Refusal::ALL.len();

#[derive(Clone, Debug, Default)]
pub struct Metrics {
    requests: [[u64; OUTCOMES]; Request::NAMES.len()],
    latencies: [u64; BOUNDS.len() + 1],
    latency_sum: Duration,
    pub connections: u64,
    /// Connections that were refused, and those that were closed for their messages.
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

/// Counted elsewhere, at the moment of asking.
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
    pub fn page(&self, now: Now) -> String {
        let mut registry = Registry::default();
        let metrics = self.clone();
        registry.register_collector(Box::new(Snapshot { metrics, now }));
        let mut page = String::with_capacity(8 << 10);
        // Writing to a string cannot fail.
        let _ = prometheus_text::encode(&mut page, &registry);
        page
    }
}

/// All that is counted, at one moment.
#[derive(Debug)]
struct Snapshot {
    metrics: Metrics,
    now: Now,
}

impl Collector for Snapshot {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut page = Page(encoder);
        self.frames(&mut page)?;
        self.requests(&mut page)?;
        self.connections(&mut page)
    }
}

impl Snapshot {
    fn frames(&self, page: &mut Page<'_>) -> fmt::Result {
        let Snapshot { metrics, now } = self;
        let mut by_color = page.gauges("domicile_frames", "Frames at hand by color.")?;
        for (color, frames) in now.by_color.iter().enumerate() {
            by_color.encode_family(&[("color", color)])?.encode_gauge(frames)?;
        }
        let most = "Frames that may be at hand while more of some color are collected.";
        page.gauge(
            "domicile_frames_target",
            "Frames that there should be, over all colors.",
            now.target,
        )?;
        page.gauge("domicile_frames_most", most, now.most)?;
        page.gauge("domicile_frames_held", "Frames that clients hold.", now.held)?;
        let own = "Memory of the daemon itself, with all that it holds.";
        page.gauge("domicile_memory_bytes", own, now.own)?;
        if let Some(room) = now.room {
            let limit = "Limit of the control group that leaves it least.";
            page.gauge("domicile_memory_limit_bytes", limit, room.total)?;
            page.gauge("domicile_memory_left_bytes", "What that limit leaves.", room.available)?;
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
        page.counters("domicile_frames", help, "way", flows)?;
        let help = "Frames released for clients, by whether the client got them.";
        let handed = [("hit", metrics.hits), ("miss", metrics.misses)];
        page.counters("domicile_handed_frames", help, "outcome", handed)?;
        let unseen = "Frames freed by clients that went elsewhere.";
        page.counter("domicile_freed_frames_unseen", unseen, metrics.unseen)?;
        let pressure = "Times that frames were given up because memory was short.";
        page.counter("domicile_pressure_releases", pressure, metrics.pressure)
    }

    fn requests(&self, page: &mut Page<'_>) -> fmt::Result {
        let requests = &self.metrics.requests;
        let help = "Requests by kind and outcome.";
        let mut by_kind = page
            .0
            .encode_descriptor("domicile_requests", help, None, MetricType::Counter)?;
        for (name, outcomes) in Request::NAMES.iter().zip(requests) {
            let names = std::iter::once("ok").chain(Refusal::ALL.iter().map(|why| why.name()));
            for (outcome, count) in names.zip(outcomes).filter(|(_, count)| **count > 0) {
                let labels = [("kind", *name), ("outcome", outcome)];
                count_in(&mut by_kind.encode_family(&labels)?, *count)?;
            }
        }
        let quota = requests.iter().map(|outcomes| outcomes[Refusal::Quota as usize]).sum();
        page.counter("domicile_quota_refusals", "Requests refused for the quota.", quota)?;
        let bounds = BOUNDS.iter().map(|bound| *bound as f64 / 1e6).chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = bounds.zip(self.metrics.latencies).collect();
        let (count, sum) = (
            self.metrics.latencies.iter().sum(),
            self.metrics.latency_sum.as_secs_f64(),
        );
        let help = "Time from reading a request to its answer.";
        page.0
            .encode_descriptor("domicile_request_seconds", help, None, MetricType::Histogram)?
            .encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
        let given_up = "Looks at clients' pages that were not done in time.";
        page.counter("domicile_looks_given_up", given_up, self.metrics.given_up)
    }

    fn connections(&self, page: &mut Page<'_>) -> fmt::Result {
        let Snapshot { metrics, now } = self;
        page.gauge("domicile_connections", "Connections now.", now.clients)?;
        let help = "Connections by what became of them at first.";
        let outcomes = [("taken", metrics.connections), ("turned_away", metrics.turned_away)];
        page.counters("domicile_connections", help, "outcome", outcomes)?;
        let malformed = "Connections closed because of what was not a message.";
        page.counter("domicile_malformed", malformed, metrics.malformed)?;
        page.gauge("domicile_up_seconds", "Seconds since the start.", now.up.as_secs())
    }
}

/// Families of one kind each. The names of counters get their `_total` here.
struct Page<'a>(DescriptorEncoder<'a>);

impl Page<'_> {
    fn gauges<'s>(&'s mut self, name: &'s str, help: &str) -> Result<MetricEncoder<'s>, fmt::Error> {
        self.0.encode_descriptor(name, help, None, MetricType::Gauge)
    }

    fn gauge(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.gauges(name, help)?.encode_gauge(&value)
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        count_in(
            &mut self.0.encode_descriptor(name, help, None, MetricType::Counter)?,
            value,
        )
    }

    fn counters<const N: usize>(&mut self, name: &str, help: &str, label: &str, all: [(&str, u64); N]) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (which, value) in all {
            count_in(&mut family.encode_family(&[(label, which)])?, value)?;
        }
        Ok(())
    }
}

fn count_in(counter: &mut MetricEncoder<'_>, value: u64) -> fmt::Result {
    counter.encode_counter::<NoLabelSet, _, f64>(&value, None)
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
        let page = metrics.page(Now {
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
            "domicile_request_seconds_bucket{le=\"1e-05\"} 0",
            "domicile_request_seconds_bucket{le=\"3e-05\"} 1",
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
