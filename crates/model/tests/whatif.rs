//! What-ifs: a capture is repeated before anything is said of it, and what is said then is what
//! comes of the change.

use tcpwhy::report::{Answers, Connection, Passed, Report, State};
use tcpwhy::session::Session;
use tcpwhy::tracker::Config;
use tcpwhy_model::fit::{Fit, Unfit};
use tcpwhy_model::profile::{KernelProfile, ReceiveCharge, Version};
use tcpwhy_model::scenario::Scenario;
use tcpwhy_model::whatif::{Branch, MOST_WORK, Refusal, Study};
use tcpwhy_model::world::{Keep, Kernels, Side, Tap, World};

fn explained(bytes: &[u8]) -> Report {
    let mut session = Session::new(Config { detail: true, passed: true, ..Config::default() });
    session.begin("test");
    session.push(bytes).expect("a capture");
    session.end().expect("its end");
    session.finish()
}

fn article() -> Connection {
    let listing =
        include_bytes!("../../../testdata/listings/articles/download-512k-rtt7ms.tcpdump.txt");
    explained(listing).connections.remove(0)
}

/// What is captured at the server when the model runs a scenario.
fn captured(text: &str, changes: &[&str]) -> Connection {
    let changes: Vec<String> = changes.iter().map(|&change| change.to_owned()).collect();
    let scenario = Scenario::read("test", text, &changes).expect("a scenario");
    let kernels = Kernels::both(KernelProfile::of(Version::new(6, 1)));
    let keep = Keep { segments: true, ..Keep::default() };
    let world = World::new(&scenario.variants[0], kernels, keep).expect("the model has all of it");
    let (outcome, trace) = world.run();
    assert!(outcome.done, "{outcome:?}");
    explained(&trace.pcapng(Tap::Server, false)).connections.remove(0)
}

fn changed(change: &str) -> Vec<String> {
    vec![change.to_owned()]
}

#[test]
fn the_article_capture_is_repeated_by_the_kernel_that_it_was_taken_on() {
    let study = Study::of(&article()).expect("all is there");
    assert!(study.repeats());
    let replay = study.nearest().expect("one repeats it");
    assert_eq!(replay.kernels.server.version, Version::new(4, 18));
    assert_eq!(
        (study.near, replay.account.rounds),
        (1, 7),
        "the growth rule of later kernels needs 6 rounds"
    );
    let off = (replay.account.ns - study.fit.seen.ns).abs();
    assert!(off * 20 <= study.fit.seen.ns, "within 5 %: {off} ns");
    assert!(replay.gap(&study.fit).percent <= 5, "{:?}", replay.gap(&study.fit));
}

#[test]
fn the_article_receiver_is_found_by_its_windows() {
    let study = Study::of(&article()).expect("all is there");
    let receiver = study.nearest().expect("one repeats it").kernels.client;
    // 64,256 B fell to 55,808 with ten packets unread, to 46,080 with twenty: 1920 B each, 256 B a buffer. They
    // grew by what 22,672 B make, 8 KiB into the third flight: no round trip was known before that.
    let e1000 = ReceiveCharge::Pages { buffer: 256, packet: 1920 };
    assert_eq!((receiver.version, receiver.memory.receive), (Version::new(5, 4), e1000));
    assert!(
        study.fit.scenario(1).contains("\"read 524583B by 8192B\""),
        "{}",
        study.fit.scenario(1)
    );
}

#[test]
fn a_larger_first_flight_fills_the_first_window_with_whole_segments() {
    let study = Study::of(&article()).expect("all is there");
    let answer = study.ask(&changed("server.route.initcwnd=100")).expect("an answer");
    assert_eq!(answer.best.first_flight, 64_256 / 1448 * 1448);
    let width = answer.high_ns - answer.low_ns;
    assert!(width * 4 <= answer.best.ns, "{answer:?}");
    assert!(answer.low_ns <= answer.best.ns && answer.best.ns <= answer.high_ns);
    assert!(answer.high_ns < study.fit.seen.ns, "it gains whatever the path holds");
}

#[test]
fn remedies_are_ranked_and_none_asks_for_more_than_the_first_window() {
    let study = Study::of(&article()).expect("all is there");
    let remedies = study.remedies().tried;
    assert!(remedies.windows(2).all(|pair| pair[0].answer.best.ns <= pair[1].answer.best.ns));
    let named: Vec<_> = remedies.iter().map(|each| each.what.as_str()).collect();
    let flight = named.iter().find_map(|what| what.strip_prefix("server: initcwnd "));
    let flight: u64 = flight.and_then(|n| n.parse().ok()).expect("slow start dominates");
    assert!((11..=64_256 / 1448).contains(&flight), "{named:?}");
    assert!(named[0].starts_with("application: on a connection"), "{named:?}");
}

const SMALL_WRITES: &str = "
[path]
rtt = \"20ms\"
rate = \"100mbit\"
[application]
client = [{ repeat = 8, steps = [\"write head 60\", \"read 900\"] }]
server = [{ repeat = 8, steps = [\"read head\", \"write 300\", \"write 600\"] }]
";

#[test]
fn what_nagles_algorithm_held_is_tried_without_it() {
    let study = Study::of(&captured(SMALL_WRITES, &[])).expect("all is there");
    assert!(study.repeats(), "{:?}", study.nearest().map(|replay| replay.gap(&study.fit)));
    let tried = study.remedies().tried;
    let named: Vec<_> = tried.iter().map(|each| each.what.as_str()).collect();
    assert!(named.contains(&"server: TCP_NODELAY"), "{named:?}");
    let open = Study::of(&captured(SMALL_WRITES, &["server.socket.nodelay=true"]));
    let tried = open.expect("all is there").remedies().tried;
    assert!(tried.iter().all(|each| !each.what.contains("NODELAY")), "nothing was held");
}

const DOWNLOAD: &str = "
[path]
rtt = \"30ms\"
rate = \"100mbit\"
[application]
download = \"700KiB\"
think = \"25ms\"
";

#[test]
fn what_is_answered_is_what_comes_of_the_change() {
    let study = Study::of(&captured(DOWNLOAD, &[])).expect("all is there");
    assert!(study.repeats(), "{:?}", study.nearest().map(|replay| replay.gap(&study.fit)));
    for change in [
        "server.route.initcwnd=30",
        "path.rtt=9ms",
        "client.sysctl.net.ipv4.tcp_rmem=4096 32768 32768",
        "server.socket.sndbuf=40000B",
    ] {
        let answer = study.ask(&changed(change)).expect("an answer");
        let truth = Fit::of(&captured(DOWNLOAD, &[change])).expect("all is there").seen;
        let range = answer.low_ns * 95 / 100..=answer.high_ns * 105 / 100;
        assert!(range.contains(&truth.ns), "{change}: {answer:?} for {}", truth.ns);
        let off = (answer.best.ns - truth.ns).abs();
        assert!(off * 10 <= truth.ns, "{change}: {} for {}", answer.best.ns, truth.ns);
    }
}

/// What is asked of a capture, its answer, and what the change does to the model that was captured.
fn answered(text: &str, change: &str) -> (Study, i64, i64) {
    let study = Study::of(&captured(text, &[])).expect("all is there");
    assert!(
        study.repeats(),
        "{:?} {:?}\n{}",
        study.nearest().map(|replay| replay.gap(&study.fit)),
        study.doubt(),
        study.fit.scenario(1)
    );
    let answer = study.ask(&changed(change)).expect("an answer").best.ns;
    let truth = Fit::of(&captured(text, &[change])).expect("all is there").seen.ns;
    (study, answer, truth)
}

#[test]
fn requests_in_two_pieces_wait_for_delayed_acknowledgments_until_nagle_is_off() {
    let text = "
[path]
rtt = \"28ms\"
rate = \"11mbit\"
[application]
client = [{ repeat = 6, steps = [\"write 39B\", \"write 541B\", \"read 170B\"] }]
server = [{ repeat = 6, steps = [\"read 580B\", \"sleep 6ms\", \"write 170B\"] }]
";
    for change in ["client.socket.nodelay=true", "path.rtt=60ms"] {
        let (study, answer, truth) = answered(text, change);
        assert!(
            study.fit.seen.time_in.get(State::NagleDelack).0 > 0,
            "{:?}",
            study.fit.seen.time_in
        );
        assert!((answer - truth).abs() * 50 <= truth, "{change}: {answer} for {truth}");
    }
}

#[test]
fn a_bucket_at_the_senders_way_out_is_found_by_what_came_beyond_its_rate() {
    let text = "
[server]
egress = { rate = \"9mbit\", burst = \"20kB\", queue = \"300kB\" }
[path]
rtt = \"20ms\"
[application]
download = \"900KiB\"
";
    let (study, answer, truth) = answered(text, "path.rtt=60ms");
    assert!(
        study.fit.scenario(1).contains("bucket =") || study.fit.scenario(1).contains("egress =")
    );
    assert!((answer - truth).abs() * 50 <= truth, "{answer} for {truth}");
}

#[test]
fn answers_one_after_another_keep_the_time_that_the_programs_took() {
    let text = "
[path]
rtt = \"20ms\"
rate = \"40mbit\"
[application]
download = \"120KiB\"
times = 5
think = \"14ms\"
idle = \"30ms\"
";
    for change in ["path.rtt=55ms", "server.route.initcwnd=30"] {
        let (_, answer, truth) = answered(text, change);
        assert!((answer - truth).abs() * 50 <= truth, "{change}: {answer} for {truth}");
    }
}

#[test]
fn a_readers_pauses_are_those_in_which_its_window_opens() {
    let text = "
[path]
rtt = \"15ms\"
rate = \"137mbit\"
[application]
download = \"407KiB\"
read = \"6KiB\"
read_pause = \"25ms\"
";
    let study = Study::of(&captured(text, &[])).expect("all is there");
    let scenario = study.fit.scenario(1);
    assert!(scenario.contains("B pause 25000"), "{scenario}");
}

#[test]
fn a_window_that_the_system_keeps_small_grows_with_its_setting_and_not_with_another() {
    let text = "
[path]
rtt = \"40ms\"
rate = \"100mbit\"
[client.sysctl]
net.ipv4.tcp_rmem = \"4096 16384 16384\"
[application]
download = \"1MB\"
";
    let larger = "client.sysctl.net.ipv4.tcp_rmem=4096 131072 6291456";
    let (study, answer, truth) = answered(text, larger);
    assert!((answer - truth).abs() * 5 <= truth, "{answer} for {truth}");
    assert!(study.fit.gives_way(&changed(larger)));
    let as_before = study.ask(&changed("client.route.quickack=1")).expect("an answer").best.ns;
    assert!(as_before > 5 * truth, "the window is as small: {as_before}");
    let both = [larger.to_owned(), "client.socket.rcvbuf=16384B".to_owned()];
    assert!(!study.fit.gives_way(&both), "a program's own buffer stays");
}

#[test]
fn windows_of_a_slow_reader_prove_nothing_without_the_reader() {
    let mut connection =
        captured(DOWNLOAD, &["application.read=8KiB", "application.read_pause=21ms"]);
    // Without the packets one by one nothing tells how it read.
    for direction in connection.directions.iter_mut().flatten() {
        direction.passed = Passed::default();
        direction.answers = Answers::default();
    }
    let study = Study::of(&connection).expect("all is there");
    assert!(!study.repeats(), "{:?}", study.fit.scenario(1));
    assert!(study.ask(&changed("path.rtt=9ms")).is_err() || study.near == 0);
}

#[test]
fn losses_are_repeated_segment_by_segment() {
    let losses = "path.down.loss=exact 100 300";
    let study = Study::of(&captured(DOWNLOAD, &[losses])).expect("all is there");
    assert_eq!(study.fit.recorded.lost[1].len(), 2, "{:?}", study.fit.recorded.lost);
    assert!(study.repeats(), "{:?}", study.nearest().map(|replay| replay.gap(&study.fit)));
    let without = study.ask(&changed("path.loss=none")).expect("an answer");
    let truth = Fit::of(&captured(DOWNLOAD, &[])).expect("all is there").seen;
    // Nothing filled the link, so that its rate is known within the range only.
    assert!(
        without.low_ns <= truth.ns && truth.ns <= without.high_ns,
        "{without:?} for {}",
        truth.ns
    );
    assert!(without.best.ns < study.fit.seen.ns);
}

#[test]
fn where_chance_decides_the_dice_are_thrown_many_times() {
    let study = Study::of(&captured(DOWNLOAD, &[])).expect("all is there");
    let ask = |changes: &[&str]| {
        let changes: Vec<String> = changes.iter().map(|&change| change.to_owned()).collect();
        study.ask(&changes).expect("an answer")
    };
    let by_chance = ask(&["path.down.loss=1%"]);
    assert_eq!(by_chance.throws, 21);
    assert!(by_chance.because.contains(&Branch::Chance), "{by_chance:?}");
    for (changes, throws) in [
        (&["path.up.jitter=1ms"] as &[_], 21),
        (&["path.down.loss=none"], 1),
        (&["path.down.loss=exact 100"], 1),
        // One throw was asked for.
        (&["path.down.loss=1%", "seed=9"], 1),
    ] {
        let answer = ask(changes);
        assert_eq!(answer.throws, throws, "{changes:?}");
        assert!(!(throws == 1 && answer.because.contains(&Branch::Chance)), "{changes:?}");
    }
}

#[test]
fn what_the_model_does_not_repeat_is_not_answered() {
    // The application holds back so that no rule of TCP could: the wait is cut out of the fit.
    let mut connection = captured(DOWNLOAD, &[]);
    let sent = connection.directions[1].as_deref_mut().expect("a download");
    sent.time_in.add(State::RtoWait, tcpwhy::units::Duration(400_000_000));
    let study = Study::of(&connection).expect("all is there");
    assert!(!study.repeats());
    assert!(study.ask(&changed("path.rtt=9ms")).is_err());
    assert!(study.remedies().tried.is_empty());
}

/// A download, of whose time `percent` are called avoidance instead of slow start.
fn called_otherwise(percent: i64) -> Connection {
    let mut connection = captured(DOWNLOAD, &[]);
    let sent = connection.directions[1].as_deref_mut().expect("a download");
    let busy = Fit::of(&captured(DOWNLOAD, &[])).expect("all is there").seen.busy_ns();
    let moved = busy / 100 * percent;
    sent.time_in.add(State::CwndSlowStart, tcpwhy::units::Duration(-moved));
    sent.time_in.add(State::CwndAvoidance, tcpwhy::units::Duration(moved));
    connection
}

#[test]
fn a_share_that_parts_makes_the_range_wider_up_to_a_fifth_of_the_time() {
    let study = |percent| Study::of(&called_otherwise(percent)).expect("all is there");
    let of = |study: &Study| study.ask(&changed("path.rtt=9ms")).expect("an answer");
    let (near, apart) = (study(3), study(12));
    assert!(near.repeats() && near.parts().is_none(), "{:?}", near.parts());
    let gap = apart.parts().expect("it takes as long");
    assert!(apart.repeats() && (11..=13).contains(&gap.percent), "{gap:?}");
    let (near, apart) = (of(&near), of(&apart));
    assert!(apart.because.contains(&Branch::Shares) && !near.because.contains(&Branch::Shares));
    assert_eq!(near.best.ns, apart.best.ns);
    assert!((apart.high_ns - near.high_ns) * 9 > near.best.ns, "a ninth and more: {apart:?}");
    let other = study(24);
    assert!(!other.repeats() && other.parts().is_none());
}

#[test]
fn a_run_of_too_many_events_is_given_up() {
    let scenario = Scenario::read("test", DOWNLOAD, &[]).expect("a scenario");
    let kernels = Kernels::both(KernelProfile::of(Version::new(6, 1)));
    let world = World::new(&scenario.variants[0], kernels, Keep::default()).expect("a world");
    let (outcome, _) = world.at_most(50).run();
    assert_eq!((outcome.events, outcome.done), (50, false));
}

#[test]
fn work_ends_at_its_limit_and_that_is_told() {
    let connection = article();
    let whole = Study::of(&connection).expect("all is there");
    assert!(whole.repeats() && !whole.was_cut_short && whole.work <= MOST_WORK);
    for part in [2, 4, 16] {
        let most = whole.work / part;
        let study = Study::within(&connection, most).expect("all is there");
        assert!(study.was_cut_short && study.work <= most, "{} of {most}", study.work);
    }
}

#[test]
fn questions_that_share_their_work_have_answers_until_it_is_done() {
    let study = Study::of(&captured(DOWNLOAD, &[])).expect("all is there");
    let (change, whole) = (changed("server.route.initcwnd=20"), 1_000_000);
    let mut left = whole;
    let answer = study.ask_of(&mut left, &change).expect("there is work for one");
    assert_eq!(answer.best.ns, study.ask(&change).expect("the same").best.ns);
    let took = whole - left;
    let mut left = took + took / 2;
    assert!(study.ask_of(&mut left, &change).is_ok());
    assert_eq!(study.ask_of(&mut left, &change).err(), Some(Refusal::NoWorkLeft));
    assert_eq!(left, 0);
}

#[test]
fn what_the_model_refuses_is_not_repeated() {
    let mut connection = captured(DOWNLOAD, &[]);
    // No host takes segments of one byte.
    connection.syns.iter_mut().flatten().for_each(|syn| syn.mss = Some(1));
    let study = Study::of(&connection).expect("all is there");
    assert!(!study.repeats() && study.replays.is_empty());
}

#[test]
fn what_cannot_be_fitted_says_why() {
    let of = |change: fn(&mut Connection)| {
        let mut connection = captured(DOWNLOAD, &[]);
        change(&mut connection);
        Fit::of(&connection).map(|fit| fit.sender)
    };
    assert_eq!(of(|_| {}), Ok(Side::Server));
    assert_eq!(of(|it| it.syns[0] = None), Err(Unfit::NoHandshake));
    assert_eq!(of(|it| it.directions = [None, None]), Err(Unfit::NoData));
    assert_eq!(
        of(|it| it.sender_stack[1].name = "windows".into()),
        Err(Unfit::NotLinux("windows".to_owned()))
    );
    assert_eq!(of(|it| it.sender_stack[0].name = "windows".into()), Ok(Side::Server));
    let missing = |it: &mut Connection| {
        let sent = it.directions[1].as_deref_mut().expect("a download");
        sent.events.not_captured = sent.segments / 20 + 1;
    };
    assert_eq!(of(missing), Err(Unfit::Gaps));
    assert_eq!(of(|it| it.transfers[1].start_ns = 0), Err(Unfit::BothAtOnce));
    assert_eq!(
        of(|it| it.directions[1].as_deref_mut().expect("a download").bytes = 1 << 30),
        Err(Unfit::TooLarge)
    );
}
