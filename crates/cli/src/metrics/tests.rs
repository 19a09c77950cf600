//! Looks go in; pages come out, and each is read by a reader of our own that knows the grammar and nothing else.
#![expect(clippy::float_cmp, reason = "counts are whole, and seconds are as they were written")]

use core::net::SocketAddr;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use tcpwhy::host::snapshot::{Info, Link, Listener, Memory, Socket, State as Tcp, Timer};
use tcpwhy::live::Course;

use super::*;

const MS: u64 = 1_000_000;

/// A page's samples, by name and labels as they are written.
type Page = BTreeMap<String, f64>;

/// Reads a page of either form, and fails where it breaks the grammar of `OpenMetrics` 1.0 (section 3.3) or of Prometheus' text form.
fn read(text: &str, form: Form) -> Result<Page, String> {
    let mut page = Page::new();
    let (mut families, mut family) = (BTreeSet::new(), (String::new(), String::new()));
    let mut lines: Vec<&str> = text.split('\n').collect();
    if lines.pop() != Some("") || (form == Form::OpenMetrics && lines.pop() != Some("# EOF")) {
        return Err("it has no end".to_owned());
    }
    for line in lines {
        let wrong = |what: &str| Err(format!("{what}: {line}"));
        if let Some(about) = line.strip_prefix("# ") {
            let words: Vec<&str> = about.splitn(3, ' ').collect();
            let [kind, name, value] = words[..] else { return wrong("three words") };
            match kind {
                "HELP" if !families.insert(name.to_owned()) => return wrong("twice"),
                "HELP" if value.contains(['\\', '"']) => return wrong("unescaped"),
                "HELP" => {}
                "TYPE" => family = (name.to_owned(), value.to_owned()),
                "UNIT" if form == Form::OpenMetrics && name.ends_with(&format!("_{value}")) => {}
                _ => return wrong("unknown"),
            }
            continue;
        }
        let (name, value) = sample(line).ok_or_else(|| format!("no sample: {line}"))?;
        let bare = name.split('{').next().unwrap_or_default();
        let suffix =
            bare.strip_prefix(&family.0).ok_or(format!("{line} is not of {}", family.0))?;
        let fits = match (family.1.as_str(), form) {
            ("counter", Form::OpenMetrics) => suffix == "_total",
            ("counter", Form::Prometheus) => suffix.is_empty() && bare.ends_with("_total"),
            ("gauge", _) => suffix.is_empty(),
            ("histogram", _) => ["_sum", "_count", "_bucket"].contains(&suffix),
            _ => false,
        };
        if !fits || value.is_nan() || family.1 != "gauge" && value < 0.0 {
            return wrong("does not fit its type");
        }
        if page.insert(name, value).is_some() {
            return wrong("a series twice");
        }
    }
    Ok(page)
}

/// `name{label="value",...} number`.
fn sample(line: &str) -> Option<(String, f64)> {
    let is_name = |word: &str| {
        word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            && word.starts_with(|c: char| c.is_ascii_lowercase())
    };
    let at = line.find(['{', ' '])?;
    if !is_name(&line[..at]) {
        return None;
    }
    let mut rest = &line[at..];
    if let Some(labels) = rest.strip_prefix('{') {
        rest = labels;
        loop {
            let (name, value) = rest.split_once("=\"")?;
            if !is_name(name) {
                return None;
            }
            let mut escaped = false;
            let end = value.char_indices().find(|(_, c)| {
                let is_end = *c == '"' && !escaped;
                escaped = *c == '\\' && !escaped;
                is_end
            })?;
            let (of, after) = value.split_at(end.0);
            if of.replace("\\\\", "").replace("\\\"", "").replace("\\n", "").contains(['\\', '"']) {
                return None;
            }
            match after.strip_prefix("\",") {
                Some(more) => rest = more,
                None => break rest = after.strip_prefix("\"}")?,
            }
        }
    }
    let number = rest.strip_prefix(' ')?;
    Some((line[..line.len() - rest.len()].to_owned(), number.parse().ok()?))
}

fn end(text: &str) -> SocketAddr {
    text.parse().expect("an end")
}

/// An open socket with this cookie, by its ends, that `set` says more of.
fn socket(cookie: u64, local: &str, remote: &str, set: impl Fn(&mut Info)) -> Socket {
    let mut socket = Socket::new(Tcp::Established, end(local), end(remote));
    let mut info = Info::default();
    set(&mut info);
    (socket.cookie, socket.info) = (cookie, Some(Box::new(info)));
    socket
}

fn listener(local: &str, queue: u32, drops: u32) -> Listener {
    Listener {
        local: end(local),
        accept_queue: queue,
        accept_max: 128,
        drops: Some(drops),
        inode: 7,
        inode_unseen: false,
        owner: None,
    }
}

/// A host that is looked at each second.
struct Host {
    course: Course,
    metrics: Metrics,
    listeners: Vec<Listener>,
    t_ns: u64,
}

impl Host {
    fn new(rules: &str) -> Self {
        let rules = Rules::read(rules).expect("rules");
        let (course, metrics) = (Course::new(0), Metrics::new(rules));
        Self { course, metrics, listeners: vec![listener("0.0.0.0:443", 0, 5)], t_ns: 0 }
    }

    fn look(&mut self, sockets: Vec<Socket>) -> Page {
        self.course.take(self.t_ns, sockets);
        let ended = self.course.take_ended();
        let groups = BTreeMap::from([(1, "/system.slice/web.service/x".to_owned())]);
        let seen = Seen {
            listeners: &self.listeners,
            cgroups: Some(&groups),
            ..Seen::new(&self.course, &ended, self.t_ns)
        };
        self.metrics.take(&seen);
        self.t_ns += 1_000 * MS;
        let totals = Arc::new(self.metrics.totals().clone());
        let text = totals.render(Form::Prometheus);
        let page = read(&text, Form::Prometheus).expect("a page of Prometheus");
        let text = totals.render(Form::OpenMetrics);
        assert_eq!(read(&text, Form::OpenMetrics).expect("a page of OpenMetrics"), page);
        page
    }
}

const WEB: &str = "network_local_port=\"443\",cgroup=\"\",peer=\"private\"";
const OUT: &str = "network_local_port=\"ephemeral\",cgroup=\"\",peer=\"public\"";

fn at(page: &Page, name: &str, labels: &str) -> f64 {
    let name = if labels.is_empty() { name.to_owned() } else { format!("{name}{{{labels}}}") };
    *page.get(&name).unwrap_or_else(|| panic!("{name} in {page:#?}"))
}

fn web(cookie: u64, acked: u64, retransmitted: u32) -> Socket {
    socket(cookie, "10.0.0.1:443", "10.0.0.2:4000", |info| {
        (info.bytes_acked, info.bytes_received) = (Some(acked), Some(0));
        (info.total_retrans, info.dsack_dups) = (Some(retransmitted), Some(retransmitted / 2));
        (info.rtt_ns, info.min_rtt_ns) = (Some(20 * MS), Some(2 * MS));
    })
}

#[test]
fn no_sum_begins_with_what_was_before_the_first_look() {
    let mut host = Host::new("");
    assert_eq!(at(&host.look(vec![web(1, 5_000, 10)]), "tcpwhy_acked_bytes_total", WEB), 0.0);
    let page = host.look(vec![web(1, 7_000, 14), web(2, 100, 1)]);
    assert_eq!(at(&page, "tcpwhy_acked_bytes_total", WEB), 2_100.0);
    assert_eq!(at(&page, "tcpwhy_retransmitted_segments_total", WEB), 5.0);
    assert_eq!(at(&page, "tcpwhy_needless_retransmitted_segments_total", WEB), 2.0);
    assert_eq!(at(&page, "tcpwhy_opened_connections_total", WEB), 1.0);
    let page = host.look(Vec::new());
    assert_eq!(at(&page, "tcpwhy_acked_bytes_total", WEB), 2_100.0);
    assert_eq!(at(&page, "tcpwhy_closed_connections_total", WEB), 2.0);
    assert_eq!(at(&page, "tcpwhy_min_rtt_seconds_bucket", &format!("le=\"0.0025\",{WEB}")), 2.0);
    assert_eq!(at(&page, "tcpwhy_min_rtt_seconds_bucket", &format!("le=\"0.001\",{WEB}")), 0.0);
}

#[test]
fn a_sum_never_goes_back_and_grows_on_from_there() {
    let mut host = Host::new("");
    host.look(vec![web(1, 1_000, 0)]);
    let acked = |page: &Page| at(page, "tcpwhy_acked_bytes_total", WEB);
    let again = |page: &Page| at(page, "tcpwhy_retransmitted_segments_total", WEB);
    assert_eq!(again(&host.look(vec![web(1, 3_000, 9)])), 9.0);
    let page = host.look(vec![web(1, 3_000, 4)]);
    assert_eq!(again(&page), 9.0, "the counter went back");
    assert_eq!(again(&host.look(vec![web(1, 3_000, 6)])), 11.0);
    assert_eq!(
        acked(&host.look(vec![web(1, 500, 6)])),
        2_000.0,
        "another with its cookie, or a lie"
    );
    assert_eq!(acked(&host.look(vec![web(1, 800, 6)])), 2_300.0);
}

#[test]
fn one_that_a_dump_left_out_is_not_counted_twice() {
    let mut host = Host::new("");
    host.look(Vec::new());
    host.look(vec![web(1, 1_000, 3)]);
    host.look(Vec::new());
    let page = host.look(vec![web(1, 1_400, 3)]);
    assert_eq!(at(&page, "tcpwhy_acked_bytes_total", WEB), 1_400.0);
    assert_eq!(at(&page, "tcpwhy_opened_connections_total", WEB), 1.0);
}

#[test]
fn a_round_trip_counts_where_data_was_acknowledged() {
    let mut host = Host::new("");
    host.look(vec![web(1, 1_000, 0)]);
    let count = |page: &Page| at(page, "tcpwhy_rtt_seconds_count", WEB);
    assert_eq!(count(&host.look(vec![web(1, 1_000, 0)])), 0.0);
    let page = host.look(vec![web(1, 2_000, 0)]);
    assert_eq!(count(&page), 1.0);
    assert_eq!(at(&page, "tcpwhy_rtt_seconds_sum", WEB), 0.02);
}

/// A sender behind a full window of the receiver.
fn held(cookie: u64, busy_ms: u64) -> Socket {
    let mut socket = socket(cookie, "10.0.0.1:443", "10.0.0.2:4000", |info| {
        (info.snd_mss, info.snd_wnd) = (Some(1_000), Some(20_000));
        (info.unacked, info.notsent_bytes) = (Some(20), Some(50_000));
        (info.bytes_acked, info.snd_cwnd) = (Some(busy_ms), Some(90));
        (info.rtt_ns, info.min_rtt_ns) = (Some(20 * MS), Some(19 * MS));
        (info.busy_ns, info.rwnd_limited_ns) = (Some(busy_ms * MS), Some(busy_ms * MS));
    });
    socket.send_queue = 70_000;
    socket
}

#[test]
fn time_is_summed_by_what_held_the_sender() {
    let mut host = Host::new("");
    let state = format!("{WEB},state=\"rwnd.reader\"");
    host.look(vec![held(1, 5_000)]);
    let page = host.look(vec![held(1, 6_000)]);
    assert_eq!(at(&page, "tcpwhy_state_seconds_total", &state), 1.0);
    assert_eq!(at(&page, "tcpwhy_held_connections", &state), 1.0);
    let page = host.look(Vec::new());
    assert_eq!(at(&page, "tcpwhy_state_seconds_total", &state), 1.0, "it stays when it has ended");
    assert_eq!(at(&page, "tcpwhy_held_connections", &state), 0.0);
}

#[test]
fn a_syn_retransmitted_is_counted_once_whatever_becomes_of_it() {
    let mut host = Host::new("");
    host.look(Vec::new());
    let opening = |retransmits: u8| {
        let mut socket = socket(1, "10.0.0.1:40000", "203.0.113.1:80", |_| {});
        socket.state = Tcp::SynSent;
        socket.timer = Some(Timer { kind: 1, retransmits, expires_ms: 900 });
        socket
    };
    let count = |page: &Page| at(page, "tcpwhy_syn_retries_total", OUT);
    assert_eq!(count(&host.look(vec![opening(1)])), 1.0);
    assert_eq!(count(&host.look(vec![opening(2)])), 2.0);
    let page = host.look(vec![socket(1, "10.0.0.1:40000", "203.0.113.1:80", |_| {})]);
    assert_eq!(count(&page), 2.0);
    let open = |state: &str| format!("{OUT},network_connection_state=\"{state}\"");
    assert_eq!(at(&page, "tcpwhy_connections", &open("established")), 1.0);
    assert_eq!(count(&host.look(Vec::new())), 2.0);
}

#[test]
fn ports_that_the_kernel_chose_and_long_paths_are_no_labels() {
    let mut host = Host::new("[ports]\ngrpc = 50051\n");
    host.listeners.push(listener("127.0.0.1:33333", 0, 0));
    let mut sockets: Vec<Socket> = (0..1_000)
        .map(|n| {
            let local = format!("10.0.0.1:{}", 32_768 + n);
            let mut socket = socket(1 + n, &local, "198.51.100.7:443", |_| {});
            socket.cgroup = Some(1);
            socket
        })
        .collect();
    sockets.push(socket(2_000, "127.0.0.1:33333", "127.0.0.1:5", |_| {}));
    sockets.push(socket(2_001, "10.0.0.1:50051", "10.0.0.2:5", |_| {}));
    let page = host.look(sockets);
    let ports: BTreeSet<&str> = page
        .keys()
        .filter_map(|name| name.split_once("network_local_port=\"")?.1.split('"').next())
        .collect();
    assert_eq!(ports.into_iter().collect::<Vec<_>>(), ["443", "ephemeral", "grpc"]);
    let of =
        "network_local_port=\"ephemeral\",cgroup=\"/system.slice/web.service\",peer=\"public\"";
    let open = format!("{of},network_connection_state=\"established\"");
    assert_eq!(at(&page, "tcpwhy_connections", &open), 1_000.0);
}

#[test]
fn beyond_the_limit_everything_is_other() {
    let peers: Vec<_> = (0..50).map(|n| format!("p{n} = \"10.0.{n}.0/24\"")).collect();
    let mut host = Host::new(&format!("groups = 10\n[peers]\n{}\n", peers.join("\n")));
    let sockets = (0..50).map(|n| socket(1 + n, "10.9.9.9:443", &format!("10.0.{n}.1:9"), |_| {}));
    let page = host.look(sockets.collect());
    assert_eq!(at(&page, "tcpwhy_groups", ""), 11.0);
    assert_eq!(at(&page, "tcpwhy_ungrouped_connections_total", ""), 40.0);
    let other = "network_local_port=\"other\",cgroup=\"other\",peer=\"other\",network_connection_state=\"established\"";
    assert_eq!(at(&page, "tcpwhy_connections", other), 40.0);
}

#[test]
fn accept_queues_are_summed_by_port_and_the_fullest_is_told() {
    let mut host = Host::new("");
    host.look(Vec::new());
    host.listeners = vec![
        listener("0.0.0.0:443", 3, 9),
        listener("[::]:443", 128, 2),
        listener("0.0.0.0:22", 0, 0),
    ];
    let page = host.look(Vec::new());
    let of = "network_local_port=\"443\"";
    assert_eq!(at(&page, "tcpwhy_accept_queue_length", of), 131.0);
    assert_eq!(at(&page, "tcpwhy_accept_queue_limit", of), 256.0);
    assert_eq!(at(&page, "tcpwhy_accept_queue_use_ratio", of), 1.0);
    assert_eq!(at(&page, "tcpwhy_accept_queue_drops_total", of), 4.0, "9, without the 5 of before");
    host.listeners.clear();
    let page = host.look(Vec::new());
    assert_eq!(at(&page, "tcpwhy_accept_queue_drops_total", of), 4.0);
    assert_eq!(at(&page, "tcpwhy_accept_queue_length", of), 0.0);
}

#[test]
fn a_hundred_thousand_sockets_make_a_page_of_a_few_series() {
    let mut host = Host::new("");
    let sockets = |acked: u64| -> Vec<Socket> {
        (0..100_000_u64)
            .map(|n| {
                let remote =
                    format!("10.{}.{}.{}:{}", n >> 16, n >> 8 & 255, n & 255, 1_024 + n % 60_000);
                let mut socket =
                    socket(1 + n, "10.200.0.1:443", &remote, |info| info.bytes_acked = Some(acked));
                socket.memory = Some(Memory::default());
                socket
            })
            .collect()
    };
    host.look(sockets(1_000));
    let page = host.look(sockets(1_500));
    assert_eq!(at(&page, "tcpwhy_acked_bytes_total", WEB), 50_000_000.0);
    assert!(page.len() < 200, "{} series", page.len());
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[\"\\\\\n\r{},=# ]{0,20}", "/[a-z/.\"\\\\]{0,150}"]
}

proptest! {
    #[test]
    fn no_name_breaks_the_page(cgroup in word(), device in word(), counter in word(), many in 1_usize..4) {
        let mut course = Course::new(0);
        let sockets = (0..many).map(|n| {
            let mut socket = socket(1 + n as u64, "10.0.0.1:443", "10.0.0.2:4000", |_| {});
            socket.cgroup = Some(n as u64);
            socket
        });
        course.take(0, sockets.collect());
        let cgroups: BTreeMap<u64, String> = (0..many as u64).map(|n| (n, format!("{cgroup}{n}"))).collect();
        let counters = BTreeMap::from([(format!("{counter}_allowance_exceeded"), 4), ("rx_queue_drop_cnt[0]".to_owned(), 1)]);
        let links = [Link { name: device, driver_counters: Some(counters), ..Link::default() }];
        let mut metrics = Metrics::new(Rules::default());
        metrics.take(&Seen { cgroups: Some(&cgroups), links: &links, ..Seen::new(&course, &[], 5) });
        let totals = Arc::new(metrics.totals().clone());
        for form in [Form::OpenMetrics, Form::Prometheus] {
            let text = totals.render(form);
            if let Err(wrong) = read(&text, form) {
                prop_assert!(false, "{wrong}\n{text}");
            }
        }
    }

    #[test]
    fn no_counter_of_a_page_goes_back(looks in prop::collection::vec(prop::collection::vec((1_u64..5, 0_u64..1_000, 0_u32..50), 0..5), 1..8)) {
        let mut host = Host::new("");
        let mut before = Page::new();
        for look in looks {
            let page = host.look(look.into_iter().map(|(cookie, acked, again)| web(cookie, acked, again)).collect());
            for (name, value) in before.iter().filter(|(name, _)| name.contains("_total") || name.contains("_bucket")) {
                prop_assert!(page.get(name).is_some_and(|now| now >= value), "{name} went back from {value}");
            }
            before = page;
        }
    }
}
