//! Looks and keys go in; what the screen shows comes out.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tcpwhy::host::paste;
use tcpwhy::host::snapshot::{Listener, Owner, Socket};
use tcpwhy::live::Course;

use super::{Screen, Seen, Turn};

const MS: u64 = 1_000_000;

/// What `ss` printed.
fn sockets(text: &str) -> Vec<Socket> {
    let look = paste::read(text).snapshot.looks.pop().expect("a look");
    let mut sockets = look.sockets.expect("sockets");
    for (nth, socket) in sockets.iter_mut().enumerate() {
        socket.owner = Some(Owner { pid: 100 + nth as u32 % 2, fd: None });
    }
    sockets
}

/// Ten looks of a second: a slow reader's sender, a slow start, a timeout, and an idle connection.
fn course() -> Course {
    let mut course = Course::new(60);
    for look in 1..=10_u64 {
        let (busy, held) = (look * 1_000, look * 950);
        let (acked, cwnd) = (look * 1_000_000, 10 + look * 8);
        let text = format!(
            "ESTAB 0 90000 10.0.0.1:443 10.0.0.2:50001\n\t cubic wscale:7,7 rto:220 rtt:20/1 mss:1000 cwnd:90 bytes_acked:{acked} \
             busy:{busy}ms rwnd_limited:{held}ms(95%) unacked:30 notsent:60000 snd_wnd:30000 minrtt:19\n\
             ESTAB 0 200000 10.0.0.1:443 [2001:db8::aaaa:bbbb:cccc:dddd]:50002\n\t cubic wscale:7,7 rto:220 rtt:80/1 mss:1000 cwnd:{cwnd} \
             bytes_acked:{acked} busy:{busy}ms unacked:{cwnd} notsent:90000 snd_wnd:900000 minrtt:79\n\
             ESTAB 0 5000 10.0.0.1:443 10.0.0.4:50003 timer:(on,4.5sec,6)\n\t cubic wscale:7,7 rto:12800 backoff:6 rtt:20/1 mss:1000 \
             cwnd:1 ssthresh:7 bytes_acked:900 unacked:5 lost:5 retrans:1/6 minrtt:19\n\
             ESTAB 0 0 10.0.0.1:443 10.0.0.5:50004\n\t cubic wscale:7,7 rto:220 rtt:20/1 mss:1000 cwnd:10 bytes_acked:77 minrtt:19\n"
        );
        course.take(look * 1_000 * MS, sockets(&text));
    }
    course
}

fn processes() -> BTreeMap<u32, String> {
    BTreeMap::from([(100, "nginx".to_owned()), (101, "evil\u{1b}[2Jname".to_owned())])
}

/// What is drawn at this size after these keys.
fn drawn(size: (u16, u16), keys: &[KeyCode]) -> String {
    let (course, processes) = (course(), processes());
    let listeners =
        paste::read("LISTEN 129 128 0.0.0.0:443 0.0.0.0:*\nLISTEN 0 128 0.0.0.0:22 0.0.0.0:*\n");
    let listeners: Vec<Listener> =
        listeners.snapshot.looks.last().and_then(|look| look.listeners.clone()).expect("listeners");
    let seen = Seen {
        connections: course.ranked(),
        listeners: &listeners,
        processes: &processes,
        title: "web-1  12:00:10".to_owned(),
        said: &[],
    };
    let mut screen = Screen::default();
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).expect("a terminal");
    terminal.draw(|frame| screen.draw(frame, &seen)).expect("a frame");
    for key in keys {
        assert_eq!(screen.key(KeyEvent::new(*key, KeyModifiers::NONE), &seen), Turn::Stay);
        terminal.draw(|frame| screen.draw(frame, &seen)).expect("a frame");
    }
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    for row in 0..size.1 {
        let line: String = (0..size.0).map(|column| buffer[(column, row)].symbol()).collect();
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

#[test]
fn what_stands_still_is_first_then_what_is_held() {
    insta::assert_snapshot!(drawn((80, 12), &[]));
}

#[test]
fn forty_columns_have_the_peer_and_what_holds_it() {
    insta::assert_snapshot!(drawn((40, 8), &[KeyCode::Char('i')]));
}

#[test]
fn a_wide_screen_has_all_columns() {
    insta::assert_snapshot!(drawn((140, 8), &[]));
}

#[test]
fn a_connection_has_its_reasons_and_its_graphs() {
    insta::assert_snapshot!(drawn((120, 30), &[KeyCode::Down, KeyCode::Enter]));
}

#[test]
fn a_small_screen_has_the_reasons_and_the_strip() {
    let text = drawn((40, 12), &[KeyCode::Down, KeyCode::Enter]);
    assert!(text.contains("held by") && text.contains("receiver"), "{text}");
}

#[test]
fn nothing_scrolls_beyond_its_last_line() {
    let scrolled = |size, keys: &[KeyCode]| {
        let far = keys.iter().copied().chain([KeyCode::PageDown; 9]).collect::<Vec<_>>();
        (drawn(size, keys), drawn(size, &far))
    };
    for view in ['l', 't', '?'] {
        let (first, far) = scrolled((80, 30), &[KeyCode::Char(view)]);
        assert_eq!(first, far, "{view} fits");
    }
    let (first, far) = scrolled((80, 30), &[KeyCode::Enter]);
    assert_eq!(first, far);
    let (_, far) = scrolled((40, 12), &[KeyCode::Char('?')]);
    // The last line of the help is at the foot, above that of the keys.
    let rows: Vec<&str> = far.lines().collect();
    assert!(rows[9].ends_with("A program  - not") && rows[10] == "seen", "{far}");
}

#[test]
fn a_stall_is_drawn_as_one() {
    let mut course = Course::new(60);
    for look in 1..=10_u64 {
        let acked = look.min(5) * 1_000_000;
        let text = format!(
            "ESTAB 0 90000 10.0.0.1:443 10.0.0.2:50001\n\t cubic wscale:7,7 rto:220 rtt:20/1 mss:1000 cwnd:90 \
             bytes_acked:{acked} busy:{look}000ms unacked:30 notsent:60000 snd_wnd:0 minrtt:19\n"
        );
        course.take(look * 1_000 * MS, sockets(&text));
    }
    let cells = &course.ranked()[0].strip;
    let rates: Vec<Option<u64>> = cells.iter().map(|cell| cell.sent_bps).collect();
    assert_eq!((rates[0], rates[1], rates[9]), (None, Some(8_000_000), Some(0)));
    assert_eq!(cells[9].peer_window, Some(0));
}

#[test]
fn what_a_capture_told_is_below_the_first_line() {
    let course = course();
    let seen = Seen {
        connections: course.ranked(),
        listeners: &[],
        processes: &processes(),
        title: "web-1  12:00:10".to_owned(),
        said: &["10.0.0.1:443 -> 10.0.0.4:50003 is in ./tcpwhy-20261129-120010-10.0.0.4-50003-443.pcapng: The \
                 client reads too slowly."
            .to_owned()],
    };
    let mut terminal = Terminal::new(TestBackend::new(80, 12)).expect("a terminal");
    terminal.draw(|frame| Screen::default().draw(frame, &seen)).expect("a frame");
    let buffer = terminal.backend().buffer();
    let line = |row| -> String { (0..80).map(|column| buffer[(column, row)].symbol()).collect() };
    assert!(line(0).starts_with("web-1  12:00:10  "), "{}", line(0));
    assert!(line(2).contains("reads too slowly."), "{}", line(2));
    assert!(line(3).starts_with("peer"), "{}", line(3));
}

#[test]
fn listeners_totals_and_help_have_their_places() {
    insta::assert_snapshot!(drawn((80, 6), &[KeyCode::Char('l')]));
    insta::assert_snapshot!(drawn((80, 8), &[KeyCode::Char('t'), KeyCode::Char('t')]));
    insta::assert_snapshot!(drawn((80, 30), &[KeyCode::Char('?')]));
}

#[test]
fn a_filter_leaves_what_it_names() {
    let typed = |word: &str| {
        let mut keys = vec![KeyCode::Char('/')];
        keys.extend(word.chars().map(KeyCode::Char));
        keys.push(KeyCode::Enter);
        drawn((80, 8), &keys)
    };
    assert!(typed("slow st").contains("50002"));
    assert!(!typed("slow st").contains("50001"));
    assert!(typed("nowhere").contains("No connection matches"), "{}", typed("nowhere"));
}

#[test]
fn a_name_of_a_process_draws_nothing_but_itself() {
    let text = drawn((140, 8), &[KeyCode::Char('i')]);
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

#[test]
fn no_size_is_too_small() {
    for width in [1, 2, 7, 20, 39] {
        for height in [1, 2, 3, 5] {
            for view in ['i', 'l', 't', '?'] {
                drawn((width, height), &[KeyCode::Char(view)]);
            }
            drawn((width, height), &[KeyCode::Enter, KeyCode::End]);
        }
    }
}
