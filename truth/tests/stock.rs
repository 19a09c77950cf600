//! What a stock kernel's records tell of a sender, and when they must not.

use std::fs;

use truth::{State, of_folder};

const MS: u64 = 1_000_000;
const SEGMENT: u64 = 1448;

/// Records of one server that sends, written line by line.
#[derive(Default)]
struct Tape {
    kernel: Vec<String>,
    applications: Vec<String>,
    tcp_info: Vec<String>,
    server: &'static str,
    congestion: &'static str,
}

impl Tape {
    /// A segment comes in at `ms`: what the kernel has before it looks at it.
    fn probe(&mut self, ms: u64, (una, nxt): (u64, u64), (wnd, cwnd): (u64, u64)) -> &mut Self {
        self.kernel.push(format!(
            "{{\"t\":{},\"event\":\"tcp_probe\",\"saddr\":\"10.0.0.1:8000\",\"daddr\":\"10.0.0.2:5000\",\
             \"sport\":8000,\"dport\":5000,\"snd_una\":{},\"snd_nxt\":{},\"snd_wnd\":{wnd},\
             \"snd_cwnd\":{cwnd},\"ssthresh\":2147483647,\"srtt\":20000}}\n",
            ms * MS,
            1000 + una,
            1000 + nxt,
        ));
        self
    }

    fn event(&mut self, ms: u64, name: &str, more: &str) -> &mut Self {
        self.kernel.push(format!(
            "{{\"t\":{},\"event\":\"{name}\",\"sport\":8000,\"dport\":5000{more}}}\n",
            ms * MS
        ));
        self
    }

    fn write(&mut self, (from, to): (u64, u64), bytes: u64) -> &mut Self {
        let sleeps = u64::from(to > from);
        self.applications.push(format!(
            "{{\"who\":\"server\",\"flow\":0,\"connection\":1,\"step\":\"write\",\"from\":{},\"to\":{},\
             \"bytes\":{bytes},\"sleeps\":{sleeps}}}\n",
            from * MS,
            to * MS + 1000,
        ));
        self
    }

    fn sample(&mut self, ms: u64, unsent: u64, unacked: u64) -> &mut Self {
        self.tcp_info.push(format!(
            "{{\"t\":{},\"local\":\"10.0.0.1:8000\",\"peer\":\"10.0.0.2:5000\",\
             \"info\":{{\"notsent_bytes\":{unsent},\"unacked\":{unacked},\"snd_mss\":1448}}}}\n",
            ms * MS,
        ));
        self
    }

    /// What held at that instant.
    fn at(&self, ms: u64) -> State {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let accept = format!(
            "{{\"who\":\"server\",\"flow\":0,\"connection\":1,\"step\":\"accept\",\"from\":0,\"to\":1,\"socket\":\
             {{\"local\":\"10.0.0.1:8000\",\"peer\":\"10.0.0.2:5000\",\"mss\":1448,\"congestion\":\"{}\"}}}}\n",
            self.congestion
        );
        let plan = format!("{{\"flows\":[{{\"port\":8000}}],\"server\":{{{}}}}}", self.server);
        for (file, text) in [
            ("plan.json", plan),
            ("kernel.jsonl", self.kernel.concat()),
            ("applications.jsonl", accept + &self.applications.concat()),
            ("tcp_info.jsonl", self.tcp_info.concat()),
        ] {
            fs::write(folder.path().join(file), text).expect("written");
        }
        let truth = of_folder(folder.path()).expect("a truth");
        let server = truth.connections[0].directions[1].as_ref().expect("it sent");
        let interval = server.intervals.iter().find(|i| i.end_ns > ms * MS).expect("in time");
        interval.state
    }
}

/// Ten segments under way for a round trip of 20 ms, and a call of write that began with them and is
/// blocked all the while; the windows have room for more.
fn blocked() -> Tape {
    let mut tape = Tape { congestion: "cubic", ..Tape::default() };
    tape.probe(100, (0, 0), (65_535, 40));
    tape.probe(120, (0, 10 * SEGMENT), (65_535, 40));
    tape.write((100, 500), 100 * SEGMENT);
    tape
}

#[test]
fn a_blocked_writer_alone_tells_nothing() {
    assert_eq!(blocked().at(110), State::Unrecorded);
}

#[test]
fn a_blocked_writer_with_nothing_unsent_fills_its_buffer() {
    assert_eq!(blocked().sample(110, 0, 10).at(110), State::Sndbuf);
}

#[test]
fn a_sample_that_may_be_of_the_next_segments_time_tells_nothing() {
    // Taken at most 1 ms after its stamp.
    assert_eq!(blocked().sample(119, 0, 10).at(110), State::Sndbuf);
    let mut tape = blocked();
    tape.kernel.clear();
    tape.probe(100, (0, 0), (65_535, 40)).probe(119, (0, 10 * SEGMENT), (65_535, 40));
    assert_eq!(tape.sample(119, 0, 10).at(110), State::Unrecorded);
}

#[test]
fn a_blocked_writer_behind_a_queue_of_its_host_is_not_told() {
    let mut tape = blocked();
    tape.server = "\"egress\":{\"token_bucket\":{}}";
    assert_eq!(tape.sample(110, 5 * SEGMENT, 10).at(110), State::Unrecorded);
}

#[test]
fn a_sender_that_paces_waits_for_no_window_that_we_know_of() {
    let mut tape = blocked();
    tape.kernel.clear();
    tape.probe(100, (0, 0), (65_535, 10)).probe(120, (0, 10 * SEGMENT), (65_535, 10));
    tape.sample(110, 5 * SEGMENT, 10);
    assert_eq!(tape.at(110), State::CwndSlowStart);
    tape.congestion = "bbr";
    assert_eq!(tape.at(110), State::Unrecorded);
}

#[test]
fn a_window_is_named_by_what_it_has_no_room_for() {
    for (wnd, cwnd, unacked, expected) in [
        // Ten segments fill it.
        (65_535, 10, 10, State::CwndSlowStart),
        (10 * SEGMENT, 40, 10, State::Rwnd),
        // Both: the kernel asks for the congestion window first.
        (10 * SEGMENT, 10, 10, State::CwndSlowStart),
        // Short ones among them: as many segments as the window allows, in fewer bytes.
        (65_535, 12, 12, State::CwndSlowStart),
        // Room for one in both: it waits for a super-segment, where there is less room.
        (12 * SEGMENT, 40, 10, State::Rwnd),
    ] {
        let mut tape = blocked();
        tape.kernel.clear();
        tape.probe(100, (0, 0), (wnd, cwnd)).probe(120, (0, 10 * SEGMENT), (wnd, cwnd));
        tape.sample(110, 20 * SEGMENT, unacked);
        assert_eq!(tape.at(110), expected, "{wnd} {cwnd} {unacked}");
    }
}

#[test]
fn which_window_has_less_room_is_told_only_if_it_is_so_for_all_that_may_be_under_way() {
    for (wnd, cwnd, expected) in [
        // Ten to twelve segments are under way, room for two more.
        (12 * SEGMENT, 15, State::Rwnd),
        (12 * SEGMENT, 14, State::Unrecorded),
        (12 * SEGMENT, 12, State::CwndSlowStart),
    ] {
        let mut tape = Tape { congestion: "cubic", ..Tape::default() };
        tape.write((99, 99), 100 * SEGMENT);
        tape.probe(100, (0, 0), (wnd, cwnd)).probe(120, (0, 10 * SEGMENT), (wnd, cwnd));
        assert_eq!(tape.at(110), expected, "{wnd} {cwnd}");
    }
}

#[test]
fn a_window_nearly_shut_with_nothing_under_way_is_shut() {
    let mut tape = Tape { congestion: "cubic", ..Tape::default() };
    tape.probe(100, (0, SEGMENT), (SEGMENT, 10));
    tape.probe(400, (SEGMENT, SEGMENT), (600, 10));
    tape.write((99, 99), 10 * SEGMENT);
    assert_eq!(tape.at(300), State::ZeroWindow);
}

#[test]
fn what_a_timer_may_have_sent_is_not_told() {
    // 50 ms after the ACK: the timer for the tail (two round trips of 20 ms) may have sent the last one.
    let mut tape = Tape { congestion: "cubic", ..Tape::default() };
    tape.write((90, 90), 10 * SEGMENT).write((91, 91), 10 * SEGMENT);
    tape.probe(100, (0, 10 * SEGMENT), (65_535, 10));
    tape.probe(150, (SEGMENT, 12 * SEGMENT), (65_535, 11));
    assert_eq!(tape.at(120), State::Unrecorded);
    tape.kernel.clear();
    tape.probe(100, (0, 10 * SEGMENT), (65_535, 10));
    tape.probe(130, (SEGMENT, 12 * SEGMENT), (65_535, 11));
    assert_eq!(tape.at(120), State::CwndSlowStart);
}

#[test]
fn what_an_ack_repeats_waited_for_no_timer() {
    let mut tape = blocked();
    tape.event(120, "tcp_cong_state_set", ",\"cong_state\":3");
    tape.event(120, "tcp_retransmit_skb", "");
    tape.probe(140, (SEGMENT, 10 * SEGMENT), (65_535, 5));
    assert_eq!(tape.at(110), State::Unrecorded);
}

#[test]
fn a_timer_that_repeats_is_named_by_what_it_makes_of_the_state() {
    for (state, expected) in [(0, State::TlpWait), (4, State::RtoWait), (3, State::Unrecorded)] {
        let mut tape = blocked();
        tape.kernel.clear();
        tape.probe(100, (0, 0), (65_535, 40));
        tape.event(360, "tcp_cong_state_set", &format!(",\"cong_state\":{state}"));
        tape.event(360, "tcp_retransmit_skb", "");
        tape.probe(380, (0, 10 * SEGMENT), (65_535, 5));
        assert_eq!(tape.at(200), expected, "{state}");
    }
}
