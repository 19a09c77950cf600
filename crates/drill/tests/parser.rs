//! Any text is read as a script, or refused with a place.

#![expect(clippy::expect_used, reason = "tests")]

use proptest::prelude::*;
use tcpwhy_drill::{Action, Body, Definitions, Event, Script, ScriptError, When};
use tcpwhy_model::repro::{Flags, Tcp, TcpOption};

fn parsed(text: &str) -> Result<Script, String> {
    Script::parse(text, &Definitions::new()).map_err(|error| error.to_string())
}

#[test]
fn a_script_has_options_setup_events_and_cleanup() {
    let script = parsed(
        "// A comment.\n--tolerance_usecs=7000\n--local_ip=192.168.0.1 --send_omit_free\n`./defaults.sh`\n\
         0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n\
         +.1 < S 0:0(0) win 32792 <mss 1000,sackOK,nop,nop,nop,wscale 7>\n\
         +.3~+.4 > S. 0:0(0) ack 1 <...>\n\
         * > . 1:1(0) ack 1\n\
         +0...0.2 read(3, ..., 10) = -1 ECONNRESET (Connection reset by peer)\n\
         +0 %{ assert tcpi_rtt > 0 }%\n`./restore.sh`",
    )
    .expect("it is a script");
    assert_eq!(script.options[0], ("tolerance_usecs".into(), Some("7000".into())));
    assert_eq!(script.options[2], ("send_omit_free".into(), None));
    assert_eq!(script.setup.map(|command| command.text), Some("./defaults.sh".into()));
    let times: Vec<When> = script.events.iter().map(|event| event.when).collect();
    assert_eq!(
        times,
        [
            When::At(0),
            When::After(100_000_000),
            When::AfterBetween(300_000_000, 400_000_000),
            When::Any,
            When::After(0),
            When::After(0),
        ]
    );
    let Action::Call(call) = &script.events[4].action else { panic!("the fifth event is a call") };
    assert_eq!((call.until_ns, call.errno.as_deref()), (Some(200_000_000), Some("ECONNRESET")));
}

#[test]
fn names_are_replaced_by_what_they_are_defined_as() {
    let text = "--define=COOKIE=0badc0de\n0 > S 0:0(0) <FO COOKIE>\n+0 f(LEVEL) = 0";
    let script = Script::parse(text, &Definitions::from([("LEVEL".into(), "SOL_IP".into())]))
        .expect("it is a script");
    let Action::Expect(packet) = &script.events[0].action else { panic!("a packet is expected") };
    let Body::Tcp(tcp) = &packet.body else { panic!("it is TCP") };
    assert_eq!(tcp.options, Some(vec![TcpOption::FastOpen(vec![0x0b, 0xad, 0xc0, 0xde])]));
    let Action::Call(call) = &script.events[1].action else { panic!("then a call") };
    assert_eq!(format!("{:?}", call.arguments), r#"[Word("SOL_IP")]"#);
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (text, said) in [
        (
            "0 < S 0:0(1)",
            "line 1, column 7: expected sequence numbers that are as far apart as the payload is long, found 0:0(1)",
        ),
        ("0 socket(...", "line 1, column 10: expected `,` or `)`, found the end of the file"),
        (
            "0 < S 0:0(0) win 70000",
            "line 1, column 18: expected a window's field from 0 to 65535, found `70000`",
        ),
        (
            "\n 0 < Q 1:1(0)",
            "line 2, column 6: expected flags of TCP, such as `S`, `P.`, `.` or `-` for none, found `Q`",
        ),
        (
            "0~1 < S 0:0(0)",
            "line 1, column 1: expected one time, for only `>` may have a range or `*`, found a range or `*`",
        ),
        (
            "0 < S 0:0(0) <mss 10,what>",
            "line 1, column 22: expected an option of TCP, found `what`",
        ),
        (
            "-1 read() = 0",
            "line 1, column 1: expected a time in seconds, at most a year, found `-1`",
        ),
        ("0 > udp (100)", "line 1, column 5: UDP is not supported"),
    ] {
        assert_eq!(parsed(text).err().as_deref(), Some(said), "{text}");
    }
}

/// Pieces of scripts, so that random ones get far into the grammar.
const PIECES: &[&str] = &[
    "0",
    "+",
    ".1",
    "~",
    "*",
    "<",
    ">",
    "S",
    ".",
    "P",
    ".5",
    "1",
    ":",
    "1001",
    "(",
    ")",
    "1000",
    "ack",
    "win",
    "65535",
    "mss",
    "nop",
    ",",
    "sack",
    "TS",
    "val",
    "ecr",
    "wscale",
    "FO",
    "abcd",
    "...",
    "socket",
    "=",
    "-1",
    "EAGAIN",
    "[",
    "]",
    "{",
    "}",
    "|",
    "\"a\"",
    "`ls`",
    "%{ assert 1 }%",
    "--mss",
    "icmp",
    "unreachable",
    "mtu",
    "\n",
    "//",
    "/*",
    "*/",
    "0x1f",
    "ect0",
    "-",
];

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".{0,200}") {
        let _ = parsed(&text);
    }

    #[test]
    fn no_mixture_of_pieces_makes_it_panic(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..60)) {
        if let Err(ScriptError::Syntax { place, .. } | ScriptError::Unsupported { place, .. }) =
            Script::parse(&pieces.join(" "), &Definitions::new())
        {
            prop_assert!(place.line >= 1 && place.column >= 1);
        }
    }

    #[test]
    fn a_packet_reads_back_as_it_is_written(tcp in segments()) {
        let script = parsed(&format!("0 > {tcp}")).map_err(TestCaseError::fail)?;
        let [Event { action: Action::Expect(packet), .. }] = &script.events[..] else {
            return Err(TestCaseError::fail("it is not one packet"));
        };
        prop_assert_eq!(&packet.body, &Body::Tcp(tcp));
    }
}

fn segments() -> impl Strategy<Value = Tcp> {
    let flags = any::<[bool; 9]>().prop_map(|[fin, syn, rst, psh, ack, urg, ece, cwr, ae]| Flags {
        fin,
        syn,
        rst,
        psh,
        ack,
        urg,
        ece,
        cwr,
        ae,
        as_count: false,
    });
    let option = prop_oneof![
        Just(TcpOption::Nop),
        any::<u16>().prop_map(TcpOption::Mss),
        any::<u8>().prop_map(TcpOption::WindowScale),
        any::<(u32, u32)>().prop_map(|(value, echo)| TcpOption::Timestamps(value, echo)),
        any::<(u32, u32)>().prop_map(|block| TcpOption::Sack(vec![block])),
        prop::collection::vec(any::<u8>(), 0..8).prop_map(TcpOption::FastOpen),
    ];
    let options = prop_oneof![Just(None), prop::collection::vec(option, 0..4).prop_map(Some)];
    (flags, any::<u32>(), any::<u16>(), any::<u32>(), any::<Option<u16>>(), any::<u16>(), options)
        .prop_map(|(flags, seq, length, ack, window, urgent, options)| Tcp {
            flags,
            seq,
            length: length.into(),
            ack: if flags.ack { ack } else { 0 },
            window,
            urgent,
            options,
        })
}
