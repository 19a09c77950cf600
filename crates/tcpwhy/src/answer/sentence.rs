//! The sentences of the answer, one for each kind of cause: who, does what, how much.

use super::held_ack::is_timers;
use super::words::{self as short, Ends};
use super::{idle, main};
use crate::find;
use crate::report::{Connection, Direction, Finding, Round, State, Sure, Transfer};
use tcpwhy_words::said::{bytes, count, grouped, percent, time};
use tcpwhy_words::units::{BitRate, Bytes, Duration};

/// Round trips that distance alone explains, at most. Ours: a handshake, TLS, and a few flights.
const FAR: i64 = 20;

/// Flights that are listed one by one. Ours.
const FLIGHTS: usize = 6;

/// A state of a smaller share of the time is not named. Ours.
const WORTH_NAMING_PERCENT: f64 = 10.0;

/// Segments below which a share of losses is no rate. Ours.
const WORTH_A_SHARE: u64 = 100;

/// What is said of a cause.
pub(crate) fn of(connection: &Connection, finding: &Finding, first: bool) -> String {
    let at = match finding.from.as_deref() {
        Some("client") => 0,
        Some(_) => 1,
        None => main(connection).map_or(1, |main| main.0),
    };
    let told = connection.directions[at].as_deref().and_then(|direction| {
        let facts = Facts { connection, direction, ends: Ends::of(at), finding, first };
        facts.told()
    });
    let told = told.unwrap_or_else(|| sentence(&finding.title));
    format!("{told}{}", doubt(finding, Ends::of(at)))
}

/// ` It may also be the server's send buffer.` where the packets allow more than one cause.
fn doubt(finding: &Finding, ends: Ends) -> String {
    let Some(sure) = finding.sure.filter(|sure| *sure < Sure::Shown) else { return String::new() };
    let others: Vec<String> =
        finding.alternative.iter().take(2).map(|state| ends.put_in(short::noun(*state))).collect();
    match (sure, &*others) {
        (_, []) => String::new(),
        (Sure::Possible, others) => format!(" The packets allow {} as well.", others.join(" and ")),
        (_, others) => format!(" It may also be {}.", others.join(" or ")),
    }
}

/// A title made a sentence.
fn sentence(title: &str) -> String {
    let mut letters = title.chars();
    let first =
        letters.next().map(|letter| letter.to_uppercase().collect::<String>()).unwrap_or_default();
    let end = if title.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}

/// What is said of something that is wrong and took no time.
pub(crate) fn of_fact(finding: &Finding) -> String {
    sentence(&finding.title)
}

/// What is said of something that did not work: its title and how we know.
pub(crate) fn of_failure(finding: &Finding) -> String {
    format!("{} {}", sentence(&finding.title), sentence(&finding.why))
}

/// For most of the time no one waited.
pub(crate) fn of_idleness(connection: &Connection, idle: Duration) -> String {
    let (length, active) = (connection.duration_ns, find::active_ns(connection));
    let idled = format!("The connection was idle for {} of {}", time(idle.0), time(length));
    match connection.exchanges.len() as u64 {
        0 => format!("{idled}. The rest took {}.", time(active)),
        number => format!("{idled}. {} took {} in all.", count(number, "request"), time(active)),
    }
}

/// What is said where no finding tells a cause.
pub(crate) fn of_no_cause(connection: &Connection) -> String {
    let Some((at, direction)) = main(connection) else { return without_data(connection) };
    let ends = Ends::of(at);
    let active = find::active_ns(connection);
    let of = |state| direction.time_in.get(state).0;
    let undecided = of(State::Unknown).saturating_add(of(State::CaptureGap));
    if undecided.saturating_mul(10) > active.saturating_mul(3) {
        return format!(
            "Not decided: the packets do not show what held the {} for {} of {}.",
            ends.sender,
            time(undecided),
            time(active)
        );
    }
    let idle = idle(connection);
    if idle.percent_of(Duration(connection.duration_ns)) > 50.0 {
        return of_idleness(connection, idle);
    }
    let rtt = connection.handshake_rtt_ns.or(direction.rtt.min_ns).filter(|rtt| *rtt > 0);
    let far = of(State::LastFlight).saturating_add(of(State::Handshake));
    match rtt {
        // More of them is no distance: an ACK was held, or a queue stood.
        Some(rtt) if far.saturating_mul(2) > active && active / rtt < FAR => {
            let trips = active as f64 / rtt as f64;
            format!(
                "No cause stands out: {} are {trips:.1} round trips of {}.",
                time(active),
                time(rtt)
            )
        }
        _ => held_last_ack(connection, direction, ends)
            .unwrap_or_else(|| most_of_the_time(direction, ends)),
    }
}

/// `Most of the time was one delayed ACK: ...`, where that is where the time went.
fn held_last_ack(connection: &Connection, direction: &Direction, ends: Ends) -> Option<String> {
    let longest =
        connection.transfers.iter().max_by_key(|each| each.end_ns.saturating_sub(each.start_ns))?;
    let waited = longest.time_in.get(State::LastFlight);
    let is_most = waited.percent_of(direction.time_in.total()) > 50.0;
    (longest.from == ends.sender && is_most && is_timers(connection, longest)).then(|| {
        format!(
            "The {} held its last ACK back for {}, as a delayed-ACK timer does. All data had been sent.",
            ends.receiver,
            time(waited.0)
        )
    })
}

/// `Most of the time went into slow start (45 %) and the server's receive window (22 %).`
fn most_of_the_time(direction: &Direction, ends: Ends) -> String {
    let total = direction.time_in.total();
    let ranked = direction
        .time_in
        .ranked()
        .into_iter()
        .filter(|(_, span)| span.percent_of(total) >= WORTH_NAMING_PERCENT)
        .take(2);
    let named: Vec<String> = ranked
        .map(|(state, span)| {
            format!("{} ({})", ends.put_in(short::noun(state)), percent(span.0, total.0))
        })
        .collect();
    match &*named {
        [] => "Where the time went is not known.".to_owned(),
        named => {
            format!("Most of the time went into {}.", named.join(" and "))
        }
    }
}

fn without_data(connection: &Connection) -> String {
    if connection.syns[1].is_some() || connection.handshake_rtt_ns.is_some() {
        return "The connection was opened and carried no data.".to_owned();
    }
    "No data was transferred: there is no transfer to explain.".to_owned()
}

/// What the sentences are made of.
struct Facts<'a> {
    connection: &'a Connection,
    direction: &'a Direction,
    ends: Ends,
    finding: &'a Finding,
    first: bool,
}

impl Facts<'_> {
    fn told(&self) -> Option<String> {
        let Ends { sender, receiver } = self.ends;
        let spent = time(self.finding.cost_ns);
        let title = || sentence(&self.finding.title);
        Some(match &*self.finding.code {
            "SLOW_START" => self.slow_start(),
            "WINDOW_CAP" => {
                let window = self.window()?;
                if find::takes_segments(window) {
                    format!(
                        "The {receiver}'s receive window is too small: {}.",
                        self.per_trip(window)?
                    )
                } else {
                    format!(
                        "The {receiver}'s receive window is tiny: {}. Parts of a segment wait for the {sender}'s timer.",
                        bytes(window)
                    )
                }
            }
            "WINDOW_GROWTH" => format!(
                "The {receiver}'s receive window, still growing, held the {sender} for {spent}."
            ),
            "WINDOW_SCALE" => {
                format!(
                    "Windows are not scaled: at most 64 KiB travel in each round trip of {}.",
                    time(self.rtt()?)
                )
            }
            "SLOW_READER" => format!(
                "The {receiver} reads too slowly: {}. Its receive window fills and reopens at that pace.",
                self.rate()?
            ),
            "ZERO_WINDOW" => format!("{} The window was zero for {spent}.", title()),
            "SEND_BUFFER" => {
                // A window of the sender's program looks alike, and so does a buffer that the kernel enlarges too late.
                let is = if self.finding.sure == Some(Sure::Shown) { "is" } else { "seems" };
                format!(
                    "The {sender}'s send buffer {is} too small: {}.",
                    self.per_trip(self.flight(State::Sndbuf)?)?
                )
            }
            _ => return self.told_of_path_or_program(),
        })
    }

    fn told_of_path_or_program(&self) -> Option<String> {
        let Ends { sender, receiver } = self.ends;
        let spent = time(self.finding.cost_ns);
        let title = || sentence(&self.finding.title);
        Some(match &*self.finding.code {
            "BOTTLENECK" => self.full_link(),
            "LOSS_RANDOM" => format!("{}, whatever was in flight. {}", self.lost("path"), CUT),
            "LOSS_CONGESTION" => {
                format!("{} when a queue on the path overflowed. {CUT}", self.lost("path"))
            }
            "LOSS_LOCAL" => {
                format!(
                    "{}, before the capture point. {CUT}",
                    self.lost(&format!("{sender}'s own host"))
                )
            }
            "LOSS_PERIODIC" => format!("{}, at even distances. {CUT}", self.lost("path")),
            "LOSS" => format!("{}. {CUT}", self.lost("path")),
            "TIMEOUT" => format!("{} The {sender} waited {spent} for timers.", title()),
            "NAGLE_DELAYED_ACK" => format!(
                "The {sender} held small writes until an ACK came, and the {receiver} delayed its ACKs: {spent}."
            ),
            "IDLE_RESTART" => {
                format!(
                    "After pauses the {sender} cut its congestion window and began again: {spent}."
                )
            }
            "SYN_RETRY" => {
                format!("Opening the connection waited {spent} for a repeated SYN or SYN-ACK.")
            }
            "SLOW_WRITER" => {
                format!(
                    "The {sender}'s program writes too slowly: TCP had room and nothing to send for {spent}."
                )
            }
            "LOCAL_QDISC" => {
                format!("A queue on the {sender}'s own host holds its packets: {spent}.")
            }
            "APP_WINDOW" => format!(
                "The protocol above TCP allows only {} in flight for each round trip.",
                bytes(self.flight(State::AppWindow)?)
            ),
            "NOT_TCP" => self.silence(),
            "TLS_ROUND_TRIPS" => format!(
                "The TLS handshake took {spent}: {} of the time.",
                percent(self.finding.cost_ns, self.finding.of_ns)
            ),
            "THINK_SERVER" => self.think()?,
            "REQUESTS_IN_TURN" => format!(
                "{} Pipelining, HTTP/2 or parallel connections would save up to {spent}.",
                title()
            ),
            "SLOW_START_ENDED_EARLY" => {
                format!("{} The congestion window crept on from there.", title())
            }
            _ => return None,
        })
    }

    fn rtt(&self) -> Option<i64> {
        self.direction.rtt.min_ns.or(self.connection.handshake_rtt_ns).filter(|rtt| *rtt > 0)
    }

    /// `64 KiB for each round trip of 20 ms is at most 26.2 Mbit/s`
    fn per_trip(&self, size: u64) -> Option<String> {
        let rtt = self.rtt()?;
        let rate = BitRate::of(Bytes(size), Duration(rtt))?;
        Some(format!("{} for each round trip of {} is at most {rate}", bytes(size), time(rtt)))
    }

    fn rounds_in(&self, state: State) -> impl Iterator<Item = &Round> {
        self.direction.rounds.iter().filter(move |round| round.limited_by == state)
    }

    /// The largest window of the rounds that waited for it.
    fn window(&self) -> Option<u64> {
        let window = |round: &Round| {
            let room = u64::try_from(round.window_room_bytes?.max(0)).ok()?;
            room.checked_add(round.in_flight_bytes)
        };
        self.rounds_in(State::RwndCap).filter_map(window).max()
    }

    /// The largest flight of the rounds that waited for `state`.
    fn flight(&self, state: State) -> Option<u64> {
        let flights = || self.rounds_in(state).map(|round| round.in_flight_bytes);
        let (least, most) = (flights().min()?, flights().max()?);
        // What changes by more than half is no buffer of one size.
        (least > most / 2).then_some(most)
    }

    /// The longest transfer of this direction.
    fn transfer(&self) -> Option<&Transfer> {
        let own = self.connection.transfers.iter().filter(|each| each.from == self.ends.sender);
        own.max_by_key(|each| each.bytes)
    }

    fn rate(&self) -> Option<BitRate> {
        let transfer = self.transfer()?;
        BitRate::of(Bytes(transfer.bytes), Duration(transfer.end_ns) - Duration(transfer.start_ns))
    }

    fn slow_start(&self) -> String {
        let sender = self.ends.sender;
        let spent = self.finding.cost_ns;
        let head = match (self.first, spent.saturating_mul(2) > self.finding.of_ns) {
            (true, true) => "Slow start took most of it.".to_owned(),
            (true, false) => format!("Slow start took {}.", percent(spent, self.finding.of_ns)),
            (false, _) => return format!("Slow start comes next: {}.", time(spent)),
        };
        let sizes: Vec<String> =
            self.rounds_in(State::CwndSlowStart).map(|round| grouped(round.segments)).collect();
        if sizes.is_empty() {
            return head;
        }
        let more = if sizes.len() > FLIGHTS { " ..." } else { "" };
        let list = sizes[..sizes.len().min(FLIGHTS)].join(", ");
        let each = if sizes.len() == 1 { "" } else { " after each" };
        let noun = if list == "1" { "segment" } else { "segments" };
        format!("{head} The {sender} sent {list}{more} {noun} and waited a round trip{each}.")
    }

    fn full_link(&self) -> String {
        let direction = self.direction;
        let link = direction.link.as_deref().filter(|link| link.rate_bps.best > 0);
        // A rate below what was delivered contradicts itself.
        let delivered = direction.delivery_rate_bps.map_or(0, |rate| rate.median);
        let guessed = direction.bottleneck_rate_bps.filter(|rate| *rate >= delivered);
        let rate = link.map(|link| link.rate_bps.best).or(guessed);
        let Some(rate) = rate else { return "The link is full.".to_owned() };
        let used = link.filter(|link| link.whole_ns > 0).map_or_else(String::new, |link| {
            format!(", in use {} of the time", percent(link.busy_ns, link.whole_ns))
        });
        let damaged = direction.events.damaged;
        let lost = match direction.events.lost {
            0 => String::new(),
            // What damage took is no queue's, and its repair has a price of its own.
            lost if damaged.saturating_mul(2) >= lost => format!(
                " {} of {} segments arrived damaged.",
                grouped(damaged),
                grouped(direction.segments)
            ),
            lost => format!(
                " The losses ({} of {} segments) cost little: the link had no more to give.",
                grouped(lost),
                grouped(direction.segments)
            ),
        };
        format!("The link is full: {}{used}.{lost}", BitRate(rate))
    }

    /// `The server's program was silent for 3.08 s of 3.96 s: TCP had nothing to send.`
    fn silence(&self) -> String {
        let of = |state| self.direction.time_in.get(state).0;
        let own = of(State::App).saturating_add(of(State::IdleAppThink));
        let peers = of(State::IdlePeerThink);
        let (who, advice) = if own.min(peers) > own.max(peers) / 10 {
            ("Both programs were".to_owned(), " See what they waited for.")
        } else {
            let who = if own > peers { self.ends.sender } else { self.ends.receiver };
            // A client may just have had nothing to ask.
            let advice = if who == "server" { " See what that program waited for." } else { "" };
            (format!("The {who}'s program was"), advice)
        };
        let (silent, all) = (time(self.finding.cost_ns), time(self.finding.of_ns));
        format!("{who} silent for {silent} of {all}: TCP had nothing to send.{advice}")
    }

    /// `The path lost 22 of 1,058 segments (2.1 %)`
    fn lost(&self, who: &str) -> String {
        let (lost, all) = (self.direction.events.lost, self.direction.segments);
        let share = match all {
            WORTH_A_SHARE.. => format!(" ({:.1} %)", lost as f64 * 100.0 / all as f64),
            _ => String::new(),
        };
        format!("The {who} lost {} of {}{share}", grouped(lost), count(all, "segment"))
    }

    fn think(&self) -> Option<String> {
        let long = |ns: &i64| *ns >= 1_000_000;
        let thought = self.connection.exchanges.iter().filter_map(|each| each.server_think_ns);
        let thought: Vec<i64> = thought.filter(long).collect();
        let sum: i64 = thought.iter().fold(0, |sum, each| sum.saturating_add(*each));
        let active = find::active_ns(self.connection);
        match thought.len() {
            0 => None,
            1 => Some(format!(
                "The server took {} to answer: {} of the time. Nothing was in flight then.",
                time(sum),
                percent(sum, active)
            )),
            number => Some(format!(
                "The server thinks {} for each of {}: {} of {}.{}",
                time(sum / number as i64),
                count(number as u64, "request"),
                time(sum),
                time(active),
                if self.first { " Then distance: a round trip each." } else { "" }
            )),
        }
    }
}

const CUT: &str = "Each loss cut the congestion window, and it grew back slowly.";
