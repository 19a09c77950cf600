//! Totals as text: `OpenMetrics` 1.0, or the form of Prometheus that came before it (0.0.4).

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use tcpwhy::report::State;

use super::groups::Labels;
use super::host::{CAUSES, KERNEL};
use super::tally::{BUCKETS_US, Count, Histogram, TCP};
use super::totals::{Queue, Totals};

/// How a page is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Form {
    /// `OpenMetrics` 1.0.
    OpenMetrics,
    /// Prometheus 0.0.4.
    Prometheus,
}

impl Form {
    /// The best of those that a request accepts; programs that name none read the older one.
    pub fn accepted(accept: &str) -> Self {
        if accept.contains("application/openmetrics-text") {
            Self::OpenMetrics
        } else {
            Self::Prometheus
        }
    }

    /// The type of the page.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

impl Totals {
    /// The page.
    #[expect(clippy::missing_panics_doc, reason = "a String takes all that is written")]
    pub fn render(self: &Arc<Self>, form: Form) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Arc::clone(self)));
        let mut text = String::new();
        encode(&mut text, &registry).expect("a String takes all that is written");
        match form {
            Form::OpenMetrics => text,
            Form::Prometheus => older(&text),
        }
    }
}

/// The same in the older form: a counter is called what its sample is called, and there are neither units nor an end.
fn older(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut lines = text.lines().peekable();
    let mut counter = None;
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let name = help.split(' ').next().unwrap_or(help);
            let kind = format!("# TYPE {name} counter");
            counter = lines.peek().is_some_and(|next| **next == kind).then_some(name);
        }
        if line.starts_with("# UNIT ") || line == "# EOF" {
            continue;
        }
        match counter.filter(|_| line.starts_with("# ")) {
            Some(name) => out.push_str(&line.replacen(name, &format!("{name}_total"), 1)),
            None => out.push_str(line),
        }
        out.push('\n');
    }
    out
}

/// A counter of sockets: what, name without `tcpwhy_`, unit, help.
type Row = (Count, &'static str, Option<Unit>, &'static str);

const COUNTERS: [Row; 7] = [
    (Count::Acked, "acked", Some(Unit::Bytes), "Bytes that peers acknowledged."),
    (Count::Received, "received", Some(Unit::Bytes), "Bytes received in order."),
    (Count::Sent, "sent", Some(Unit::Bytes), "Bytes sent, retransmitted ones included."),
    (Count::Resent, "retransmitted", Some(Unit::Bytes), "Bytes retransmitted."),
    (Count::Retransmitted, "retransmitted_segments", None, "Segments retransmitted."),
    (
        Count::Needless,
        "needless_retransmitted_segments",
        None,
        "Segments retransmitted that the peer says it had already.",
    ),
    (Count::SynRetries, "syn_retries", None, "SYNs and SYN-ACKs retransmitted."),
];

impl Collector for Totals {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut page = Page(encoder);
        page.groups(self)?;
        page.queues(self)?;
        page.kernel(self)?;
        page.devices(self)?;
        page.itself(self)
    }
}

/// Of what there is one series.
const NONE: [(&str, &str); 0] = [];

struct Page<'a>(DescriptorEncoder<'a>);

type GroupLabels<'a> = [(&'static str, &'a str); 3];

fn labels(labels: &Labels) -> GroupLabels<'_> {
    [("network_local_port", &labels.port), ("cgroup", &labels.cgroup), ("peer", &labels.peer)]
}

/// A group's labels and one more.
fn with<'a>(of: &'a Labels, name: &'static str, value: &'a str) -> [(&'static str, &'a str); 4] {
    let [port, cgroup, peer] = labels(of);
    [port, cgroup, peer, (name, value)]
}

impl Page<'_> {
    fn groups(&mut self, totals: &Totals) -> fmt::Result {
        let all = || totals.groups.iter().filter(|(_, tally)| !tally.is_empty());
        let times = all().flat_map(|(of, tally)| {
            let seconds = |state| tally.time_ns(state) as f64 / 1e9;
            State::all()
                .filter(|state| tally.time_ns(*state) > 0)
                .map(move |state| (with(of, "state", state.name()), seconds(state)))
        });
        let help = "Time of connections by what held their senders.";
        self.seconds("tcpwhy_state", help, times)?;
        let held = all().flat_map(|(of, tally)| {
            let seen =
                State::all().filter(|s| tally.held[*s as usize] > 0 || tally.time_ns(*s) > 0);
            seen.map(move |state| (with(of, "state", state.name()), tally.held[state as usize]))
        });
        self.gauges(
            "tcpwhy_held_connections",
            "Open connections by what holds their senders now.",
            held,
        )?;
        let tcp = all().flat_map(|(of, tally)| {
            TCP.iter()
                .zip(tally.tcp)
                .filter(|((_, name), now)| *now > 0 || *name == "established")
                .map(move |((_, name), now)| (with(of, "network_connection_state", name), now))
        });
        self.gauges("tcpwhy_connections", "Open connections by state of TCP.", tcp)?;
        let lagging = all().map(|(of, tally)| (labels(of), tally.lagging));
        let help = "Open connections whose receive buffer is full because this host's program does not read, or waits for a lost segment.";
        self.gauges("tcpwhy_lagging_readers", help, lagging)?;
        for (count, name, unit, help) in COUNTERS {
            let rows = all().map(|(of, tally)| (labels(of), tally.count(count)));
            self.counters(&format!("tcpwhy_{name}"), help, unit.as_ref(), rows)?;
        }
        let rows = all().map(|(of, tally)| (labels(of), tally.opened));
        self.counters("tcpwhy_opened_connections", "Connections that began.", None, rows)?;
        let rows = all().map(|(of, tally)| (labels(of), tally.closed));
        self.counters("tcpwhy_closed_connections", "Connections that ended.", None, rows)?;
        let help = "Smoothed round trip of each connection whose data was acknowledged since the look before.";
        self.histograms("tcpwhy_rtt", help, all().map(|(of, tally)| (of, &tally.rtt)))?;
        let help = "Least round trip of each connection, when it ended.";
        self.histograms("tcpwhy_min_rtt", help, all().map(|(of, tally)| (of, &tally.min_rtt)))
    }

    fn queues(&mut self, totals: &Totals) -> fmt::Result {
        type Of = fn(&Queue) -> u64;
        let rows = |of: Of| {
            totals
                .queues
                .iter()
                .map(move |(port, queue)| ([("network_local_port", &**port)], of(queue)))
        };
        let help = "Connections that wait to be accepted.";
        self.gauges("tcpwhy_accept_queue_length", help, rows(|queue| queue.length))?;
        let help = "Connections that may wait to be accepted.";
        self.gauges("tcpwhy_accept_queue_limit", help, rows(|queue| queue.limit))?;
        let help = "Connections and SYNs that listening sockets dropped.";
        self.counters("tcpwhy_accept_queue_drops", help, None, rows(|queue| queue.drops))?;
        let help = "Length of the fullest accept queue as a share of its limit.";
        let unit = Unit::Other("ratio".to_owned());
        let name = "tcpwhy_accept_queue_use";
        let mut metric = self.0.encode_descriptor(name, help, Some(&unit), MetricType::Gauge)?;
        for (port, queue) in &totals.queues {
            let (length, limit) = queue.fullest;
            let share = length as f64 / limit.max(1) as f64;
            let labels = [("network_local_port", &**port)];
            ConstGauge::new(share).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn kernel(&mut self, totals: &Totals) -> fmt::Result {
        let rows = CAUSES.iter().zip(&totals.kernels.causes);
        let rows = rows.filter_map(|((cause, _), count)| Some(([("cause", *cause)], (*count)?)));
        let help = "Segments that the kernel retransmitted, by why; a loss probe may be new data.";
        self.counters("tcpwhy_kernel_retransmissions", help, None, rows)?;
        for (kernel, count) in KERNEL.iter().zip(&totals.kernels.all) {
            let rows = count.iter().map(|count| (NONE, *count));
            let (name, help) =
                (format!("tcpwhy_kernel_{}", kernel.metric), format!("{}.", kernel.help));
            self.counters(&name, &help, None, rows)?;
        }
        Ok(())
    }

    fn devices(&mut self, totals: &Totals) -> fmt::Result {
        let all = totals.devices.allowance.iter();
        let rows =
            all.map(|((device, of), count)| ([("device", &**device), ("allowance", of)], *count));
        let help = "Packets that the cloud held back or dropped because this size of machine may have no more.";
        self.counters("tcpwhy_device_allowance_exceeded", help, None, rows)?;
        let all = totals.devices.no_room.iter();
        let rows =
            all.map(|((device, of), count)| ([("device", &**device), ("counter", of)], *count));
        let help =
            "Times that a cloud's network card or its ring had no room, by the driver's counter.";
        self.counters("tcpwhy_device_no_room", help, None, rows)
    }

    fn itself(&mut self, totals: &Totals) -> fmt::Result {
        let one = |count: u64| core::iter::once((NONE, count));
        self.counters(
            "tcpwhy_looks",
            "Looks at the sockets of this host.",
            None,
            one(totals.looks),
        )?;
        let time_wait = totals.time_wait.into_iter().map(|count| (NONE, count));
        self.gauges("tcpwhy_time_wait_sockets", "Sockets in TIME_WAIT.", time_wait)?;
        let groups = totals.groups.iter().filter(|(_, tally)| !tally.is_empty()).count() as u64;
        self.gauges("tcpwhy_groups", "Sets of labels in use.", one(groups))?;
        let help = "Sets of labels that there may be.";
        self.gauges("tcpwhy_groups_limit", help, one(totals.groups_limit as u64))?;
        let help =
            "Connections that are counted as other because there were too many sets of labels.";
        self.counters("tcpwhy_ungrouped_connections", help, None, one(totals.ungrouped))?;
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        self.gauges(
            "tcpwhy_build_info",
            "The program that counts.",
            core::iter::once((version, 1)),
        )?;
        let help = "When the last look was, since 1970.";
        let name = "tcpwhy_last_look_timestamp";
        let metric =
            self.0.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Gauge)?;
        ConstGauge::new(totals.t_ns as f64 / 1e9).encode(metric)
    }

    fn counters<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        rows: impl Iterator<Item = (L, u64)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, unit, MetricType::Counter)?;
        for (labels, count) in rows {
            ConstCounter::new(count).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn seconds<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl Iterator<Item = (L, f64)>,
    ) -> fmt::Result {
        let unit = Some(&Unit::Seconds);
        let mut metric = self.0.encode_descriptor(name, help, unit, MetricType::Counter)?;
        for (labels, seconds) in rows {
            ConstCounter::new(seconds).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn gauges<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl Iterator<Item = (L, u64)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, count) in rows {
            ConstGauge::new(count.cast_signed()).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn histograms<'a>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl Iterator<Item = (&'a Labels, &'a Histogram)>,
    ) -> fmt::Result {
        let unit = Some(&Unit::Seconds);
        let mut metric = self.0.encode_descriptor(name, help, unit, MetricType::Histogram)?;
        for (of, histogram) in rows {
            let bounds = BUCKETS_US.iter().map(|us| *us as f64 / 1e6).chain([f64::INFINITY]);
            let buckets: Vec<_> = bounds.zip(histogram.counts).collect();
            let (sum, count) = (histogram.sum_ns as f64 / 1e9, histogram.counts.iter().sum());
            metric
                .encode_family(&labels(of))?
                .encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
        }
        Ok(())
    }
}
