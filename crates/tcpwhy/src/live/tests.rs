//! What `ss` prints goes in; what holds each connection comes out.

use core::net::SocketAddr;

use super::*;
use crate::host::paste;
use crate::host::snapshot::{Info, Memory};

/// A socket with its memory, whose received bytes alone are known.
pub(super) fn socket(what: &str, set: impl Fn(&mut Info, &mut Memory)) -> Socket {
    let end = |port| SocketAddr::from(([192, 0, 2, 1], port));
    let mut socket = Socket::new(crate::host::snapshot::State::Established, end(1), end(2));
    let (mut info, mut memory) = (Info::default(), Memory::default());
    if what == "received" {
        info.bytes_received = Some(1);
    }
    set(&mut info, &mut memory);
    (socket.info, socket.memory) = (Some(Box::new(info)), Some(memory));
    socket
}

/// What holds the senders in what `ss` printed, the state and how sure, with the local port.
fn told(text: &str) -> Vec<(u16, State, Sure)> {
    let course = over(&paste::read(text).snapshot);
    let held = |each: &Connection| {
        let held = each.held.as_ref()?;
        Some((each.socket.local.port(), held.state, held.sure))
    };
    course.ranked().into_iter().filter_map(held).collect()
}

/// A sender with these words of `ss` behind a round trip of 20 ms and segments of 1,000 bytes.
fn sender(send_queue: u32, words: &str) -> Option<(State, Sure)> {
    let text = format!(
        "ESTAB 0 {send_queue} 192.0.2.1:80 192.0.2.2:4000\n\t cubic wscale:7,7 rto:220 rtt:20/1 mss:1000 cwnd:40 \
         {words} minrtt:19\n"
    );
    told(&text).first().map(|(_, state, sure)| (*state, *sure))
}

#[test]
fn nothing_to_send_is_held_by_nothing() {
    assert_eq!(sender(0, "bytes_acked:100"), None);
}

#[test]
fn a_window_without_room_for_a_segment_holds_what_waits_behind_it() {
    let full = "unacked:20 notsent:50000 snd_wnd:20999";
    assert_eq!(sender(70_000, full), Some((State::RwndReader, Sure::Possible)));
    let room = "unacked:20 notsent:50000 snd_wnd:21000";
    assert_eq!(sender(70_000, room).expect("held").0, State::Unknown, "a segment fits in");
    let all_sent = "unacked:20 snd_wnd:20999";
    assert_eq!(sender(20_000, all_sent).expect("held").0, State::Unknown, "nothing waits");
}

#[test]
fn what_lies_below_it_holds_a_sender_with_room() {
    let words = |below: u32, notsent: u32| {
        format!(
            "skmem:(r0,rb131072,t{below},tb267264,f0,w180000,o0,bl0,d0) pacing_rate 32768000bps unacked:20 notsent:{notsent} snd_wnd:900000"
        )
    };
    let own = Some((State::LocalQdisc, Sure::Likely));
    assert_eq!(sender(170_000, &words(4_000, 150_000)), own);
    let state = |below, notsent| sender(170_000, &words(below, notsent)).expect("held").0;
    assert_eq!(state(3_999, 150_000), State::Unknown, "less than a 1,024th of its pace");
    assert_ne!(state(4_000, 999), State::LocalQdisc, "less than a segment waits");
    let slow = words(2_000, 150_000).replace("32768000", "8000");
    assert_eq!(sender(170_000, &slow), own, "two segments");
    let slow = words(1_999, 150_000).replace("32768000", "8000");
    assert_eq!(sender(170_000, &slow).expect("held").0, State::Unknown, "less than two segments");
}

#[test]
fn on_the_loopback_device_a_long_round_trip_is_no_links() {
    let told = |peer: &str| {
        let text = format!(
            "ESTAB 0 70000 {peer}:80 {peer}:4000\n\t cubic wscale:7,7 rto:220 rtt:20/1 mss:1000 cwnd:40 unacked:20 notsent:50000 \
             snd_wnd:20000 minrtt:9\n"
        );
        told(&text)[0].1
    };
    assert_eq!(told("192.0.2.1"), State::BandwidthSelfQueue);
    assert_eq!(told("127.0.0.1"), State::RwndReader);
    assert_eq!(told("[::1]"), State::RwndReader);
}

#[test]
fn an_old_ss_that_shows_no_size_of_segments_leaves_it_open_what_holds() {
    let text = "ESTAB 0 70000 192.0.2.1:80 192.0.2.2:4000\n\t sack cubic wscale:7,7 rto:204 rtt:0.5/0.25 cwnd:10 ssthresh:7 \
                send 231.7Mbps rcv_space:14600\n";
    assert_eq!(told(text), [(80, State::Unknown, Sure::Possible)]);
}

#[test]
fn a_full_window_behind_a_long_round_trip_is_a_queue_or_a_reader() {
    let queued = "unacked:20 notsent:50000 snd_wnd:20000";
    let text = format!(
        "ESTAB 0 70000 192.0.2.1:80 192.0.2.2:4000\n\t rto:220 rtt:40/1 mss:1000 cwnd:90 {queued} minrtt:20\n"
    );
    assert_eq!(told(&text), [(80, State::BandwidthSelfQueue, Sure::Possible)]);
    let text = text.replace("rtt:40/1", "rtt:39/1");
    assert_eq!(told(&text), [(80, State::RwndReader, Sure::Possible)]);
}

#[test]
fn a_full_congestion_window_is_named_by_its_threshold() {
    let full = "unacked:40 notsent:50000 snd_wnd:900000";
    assert_eq!(sender(90_000, full), Some((State::CwndSlowStart, Sure::Likely)));
    let below = format!("ssthresh:41 {full}");
    assert_eq!(sender(90_000, &below).expect("held").0, State::CwndSlowStart);
    let beyond = format!("ssthresh:40 {full}");
    assert_eq!(sender(90_000, &beyond), Some((State::CwndAvoidance, Sure::Likely)));
}

/// A sender of BBR has room, and 50,000 bytes wait: its pace is what these words of `ss` say.
fn paced(words: &str) -> (State, Sure) {
    let text = format!(
        "ESTAB 0 70000 192.0.2.1:80 192.0.2.2:4000\n\t bbr rto:220 rtt:20/1 mss:1000 cwnd:60 unacked:20 notsent:50000 \
         snd_wnd:900000 {words} minrtt:19\n"
    );
    let (_, state, sure) = told(&text)[0];
    (state, sure)
}

#[test]
fn bbr_paces_at_what_it_takes_for_the_paths_rate_unless_its_gain_says_otherwise() {
    let gain =
        |gain: &str| paced(&format!("bbr:(bw:12Mbps,mrtt:19,pacing_gain:{gain},cwnd_gain:2)"));
    for cycles in ["1", "1.25", "0.75", "0.34375", "1.99"] {
        assert_eq!(gain(cycles), (State::BandwidthSelfQueue, Sure::Possible), "{cycles}");
    }
    for starts in ["2", "2.88672"] {
        assert_eq!(gain(starts), (State::CwndSlowStart, Sure::Likely), "{starts}");
    }
    let limited = "app_limited bbr:(bw:12Mbps,mrtt:19,pacing_gain:1,cwnd_gain:2)";
    assert_eq!(paced(limited).0, State::Pacing, "the program's rate, perhaps, not the path's");
}

#[test]
fn without_its_gain_the_pace_over_what_arrived_tells_it() {
    let rates = |pace: &str| paced(&format!("pacing_rate {pace}Mbps delivery_rate 10Mbps"));
    assert_eq!(rates("20").0, State::CwndSlowStart);
    assert_eq!(rates("19.9"), (State::BandwidthSelfQueue, Sure::Possible));
    assert_eq!(rates("8.9").0, State::BandwidthSelfQueue, "it empties a queue of its own");
    assert_eq!(paced(""), (State::Pacing, Sure::Likely), "nothing more is known");
}

#[test]
fn a_pace_at_its_programs_limit_is_that_limits() {
    let limit = |pace: &str| {
        sender(70_000, &format!("unacked:20 notsent:50000 snd_wnd:900000 pacing_rate {pace}"))
    };
    assert_eq!(limit("8Mbps/8Mbps"), Some((State::Pacing, Sure::Likely)));
    assert_eq!(limit("7.9Mbps/8Mbps").expect("held").0, State::Unknown);
}

#[test]
fn a_full_window_of_bbr_is_the_paths_or_measures_the_round_trip() {
    let full = |cwnd: u32| {
        let text = format!(
            "ESTAB 0 90000 192.0.2.1:80 192.0.2.2:4000\n\t bbr rto:220 rtt:20/1 mss:1000 cwnd:{cwnd} unacked:{cwnd} notsent:50000 \
             snd_wnd:900000 bbr:(bw:12Mbps,mrtt:19,pacing_gain:1,cwnd_gain:2) minrtt:19\n"
        );
        told(&text)[0].1
    };
    assert_eq!((full(40), full(4)), (State::BandwidthSelfQueue, State::Pacing));
}

#[test]
fn a_full_buffer_behind_a_full_congestion_window_is_that_windows() {
    let of = |cwnd: u32, wqueued: u32| {
        let text = format!(
            "ESTAB 0 40000 192.0.2.1:80 192.0.2.2:4000\n\t skmem:(r0,rb131072,t0,tb50000,f0,w{wqueued},o0,bl0,d0) rto:220 \
             rtt:20/1 mss:1000 cwnd:{cwnd} unacked:40 snd_wnd:900000 minrtt:19\n"
        );
        told(&text)[0].1
    };
    assert_eq!(of(40, 50_000), State::CwndSlowStart);
    assert_eq!(of(41, 50_000), State::Sndbuf);
    assert_eq!(of(41, 33_334), State::Sndbuf, "a third of it is not free: who waits is not woken");
    assert_eq!(of(40, 33_332), State::App, "the buffer takes more, and nothing comes");
}

#[test]
fn timers_tell_what_stands_still() {
    let still = |timer: &str, words: &str| {
        let text = format!(
            "ESTAB 0 5000 192.0.2.1:80 192.0.2.2:4000 timer:({timer})\n\t rto:220 rtt:20/1 mss:1000 cwnd:10 {words} minrtt:19\n"
        );
        told(&text).first().map(|told| told.1)
    };
    assert_eq!(still("persist,1.9sec,2", "notsent:5000"), Some(State::ZeroWindow));
    assert_eq!(still("on,1.9sec,3", "unacked:5 lost:1"), Some(State::RtoWait));
    assert_eq!(
        still("on,190ms,0", "unacked:5 lost:1"),
        Some(State::RecoveryLoss),
        "it has not run out"
    );
    assert_eq!(still("on,190ms,0", "unacked:5"), Some(State::Unknown), "its buffer was not seen");
}

#[test]
fn a_syn_that_nobody_answers_is_no_handshake() {
    let syn = |timer: &str| {
        told(&format!("SYN-SENT 0 1 192.0.2.1:4000 192.0.2.2:80 timer:({timer})\n"))[0].1
    };
    assert_eq!(syn("on,900ms,0"), State::Handshake);
    assert_eq!(syn("on,3.2sec,2"), State::SynRetry);
}

const READER: &str = include_str!("../../../../testdata/host/pasted/reader-and-sender.txt");
const SMALL_BUFFER: &str = include_str!("../../../../testdata/host/pasted/small-send-buffer.txt");
const SMALL_WINDOW: &str =
    include_str!("../../../../testdata/host/pasted/small-receive-buffer.txt");

#[test]
fn a_receiver_in_the_same_paste_says_whose_the_window_is() {
    assert_eq!(told(READER), [(8000, State::RwndReader, Sure::Shown)]);
    assert_eq!(told(SMALL_WINDOW), [(8000, State::RwndCap, Sure::Likely)]);
}

#[test]
fn a_buffer_that_holds_all_that_is_in_flight_is_full_though_its_counter_says_a_millisecond() {
    assert_eq!(told(SMALL_BUFFER), [(8000, State::Sndbuf, Sure::Likely)]);
    let with = |size: &str| told(&SMALL_BUFFER.replace("tb4096", size))[0];
    assert_eq!(with("tb99660"), (8000, State::App, Sure::Possible), "a third of it is free");
    assert_eq!(with("tb99658").1, State::Sndbuf, "less than that wakes nobody");
}
