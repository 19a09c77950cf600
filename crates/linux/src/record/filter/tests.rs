use super::*;

/// Runs a program over a packet that begins with its IP header, as `bpf_prog_run` does (Linux
/// `Documentation/networking/filter.rst`): how much of it is kept.
fn run(program: &[Instruction], ip: &[u8]) -> u32 {
    let (mut a, mut x, mut memory, mut at) = (0_u32, 0_u32, [0_u32; 16], 0);
    let read = |place: u32, size: usize| {
        let bytes = ip.get(place as usize..place as usize + size)?;
        Some(bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte)))
    };
    loop {
        let Instruction { code, jt, jf, k } = program[at];
        let code = u32::from(code);
        let size = match code & 0x18 {
            libc::BPF_H => 2,
            libc::BPF_B => 1,
            _ => 4,
        };
        let place = k.wrapping_sub(NETWORK);
        let branch = |yes: bool| usize::from(if yes { jt } else { jf });
        at += 1;
        let loaded = match (code & 7, code & 0xe0) {
            (libc::BPF_LD, libc::BPF_IMM) => Some(k),
            (libc::BPF_LD, libc::BPF_MEM) => Some(memory[k as usize]),
            (libc::BPF_LD, libc::BPF_ABS) if k == PROTOCOL => {
                Some(if ip[0] >> 4 == 4 { ETH_P_IP } else { ETH_P_IPV6 })
            }
            (libc::BPF_LD, libc::BPF_ABS) => read(place, size),
            (libc::BPF_LD, libc::BPF_IND) => read(place + x, size),
            (libc::BPF_LDX, libc::BPF_IMM) => {
                x = k;
                continue;
            }
            (libc::BPF_LDX, libc::BPF_MSH) => {
                x = 4 * (u32::from(ip[place as usize]) & 15);
                continue;
            }
            (libc::BPF_ST, _) => {
                memory[k as usize] = a;
                continue;
            }
            (libc::BPF_ALU, _) => Some(match code & 0xf0 {
                libc::BPF_AND => a & k,
                libc::BPF_LSH => a << k,
                _ if code & 8 == libc::BPF_X => a + x,
                _ => a + k,
            }),
            (libc::BPF_MISC, _) if code & 0xf8 == libc::BPF_TAX => {
                x = a;
                continue;
            }
            (libc::BPF_MISC, _) => Some(x),
            (libc::BPF_JMP, _) => {
                at += branch(match code & 0xf0 {
                    libc::BPF_JEQ => a == k,
                    libc::BPF_JGE => a >= k,
                    _ => a & k != 0,
                });
                continue;
            }
            _ => return if code & 0x18 == libc::BPF_A { a } else { k },
        };
        // A load beyond the packet ends the program.
        let Some(loaded) = loaded else { return 0 };
        a = loaded;
    }
}

const LENGTHS: Lengths = Lengths { others: 100, names: 1500, errors: 136 };

const HERE: [u8; 4] = [192, 0, 2, 1];
const PEER: [u8; 4] = [198, 51, 100, 7];

fn v4(protocol: u8, hosts: [[u8; 4]; 2], behind: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x45, 0, 0, 0, 0, 7, 0x40, 0, 64, protocol, 0, 0];
    bytes.extend(hosts.concat());
    bytes.extend(behind);
    bytes
}

/// With an option of four bytes.
fn longer(mut v4: Vec<u8>) -> Vec<u8> {
    v4[0] = 0x46;
    v4.splice(20..20, [1; 4]);
    v4
}

/// Between `2001:db8::1` and another host there.
fn v6(protocol: u8, ends: [u8; 2], behind: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x60, 0, 0, 0, 0, 0, protocol, 64];
    for end in ends {
        bytes.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, end]);
    }
    bytes.extend(behind);
    bytes
}

/// Ports and a number.
const TO_443: &[u8] = &[0x9c, 0x40, 0x01, 0xbb, 0, 0, 0, 1];

fn error(kind: u8, quoted: &[u8]) -> Vec<u8> {
    let message = [&[kind, 0, 0, 0, 0, 0, 5, 0], quoted].concat();
    if quoted[0] >> 4 == 4 {
        v4(1, [[203, 0, 113, 1], HERE], &message)
    } else {
        v6(58, [254, 1], &message)
    }
}

fn wanted(ports: &[u16], hosts: &[&str]) -> Wanted {
    let hosts = hosts.iter().map(|host| host.parse().expect("an address")).collect();
    Wanted { ports: ports.to_vec(), hosts, names: ports.is_empty() }
}

fn kept(wanted: &Wanted, packet: &[u8]) -> u32 {
    run(&recording(wanted, LENGTHS), packet)
}

fn quoted4() -> Vec<u8> {
    v4(6, [HERE, PEER], TO_443)
}

fn quoted6() -> Vec<u8> {
    v6(6, [1, 7], TO_443)
}

#[test]
fn all_errors_are_recorded_where_all_connections_are() {
    let all = Wanted { names: true, ..Wanted::default() };
    let kinds = |quoted: &[u8]| -> Vec<u8> {
        (0..=255).filter(|kind| kept(&all, &error(*kind, quoted)) == 136).collect()
    };
    assert_eq!(kinds(&quoted4()), [3, 11, 12]);
    assert_eq!(kinds(&quoted6()), [1, 2, 3, 4], "and neither echo nor neighbours");
    assert_eq!(kept(&all, &error(3, &v4(17, [HERE, PEER], TO_443))), 136);
    assert_eq!(kept(&all, &longer(error(3, &quoted4()))), 136);
    let mut later = error(3, &quoted4());
    later[7] = 1;
    assert_eq!(kept(&all, &later), 0, "a later fragment of an error");
}

#[test]
fn of_some_connections_those_that_quote_one_are() {
    for (ports, hosts, quote4, quote6) in [
        (&[443][..], &[][..], 136, 136),
        (&[40_000], &[], 136, 136),
        (&[444], &[], 0, 0),
        (&[], &["198.51.100.7"], 136, 0),
        (&[], &["203.0.113.1"], 0, 0),
        (&[], &["2001:db8::9", "2001:db8::7"], 0, 136),
        (&[], &["2001:db8::fe"], 0, 0),
        (&[443], &["192.0.2.1", "2001:db8::1"], 136, 136),
        (&[80], &["192.0.2.1", "2001:db8::1"], 0, 0),
    ] {
        let wanted = wanted(ports, hosts);
        let wanted = Wanted { names: false, ..wanted };
        assert_eq!(kept(&wanted, &error(3, &quoted4())), quote4, "{wanted:?}");
        assert_eq!(kept(&wanted, &longer(error(3, &longer(quoted4())))), quote4, "{wanted:?}");
        assert_eq!(kept(&wanted, &error(2, &quoted6())), quote6, "{wanted:?}");
        // And the connection's packets themselves.
        assert_eq!(kept(&wanted, &quoted4()) > 0, quote4 > 0, "{wanted:?}");
        assert_eq!(kept(&wanted, &quoted6()) > 0, quote6 > 0, "{wanted:?}");
    }
}

#[test]
fn what_quotes_no_such_tcp_is_left_out() {
    let some = Wanted { ports: vec![443], ..Wanted::default() };
    assert_eq!(kept(&some, &error(3, &v4(17, [HERE, PEER], TO_443))), 0, "UDP");
    assert_eq!(kept(&some, &error(1, &v6(17, [1, 7], TO_443))), 0, "UDP");
    let mut later = quoted4();
    later[7] = 9;
    assert_eq!(kept(&some, &error(11, &later)), 0, "a later fragment has no ports");
    assert_eq!(kept(&some, &error(3, &quoted4()[..23])), 0, "cut before the second port");
    assert_eq!(kept(&some, &error(3, &quoted4()[..24])), 136);
    assert_eq!(kept(&some, &error(8, &quoted4())), 0, "an echo is no error");
    assert_eq!(kept(&some, &error(128, &quoted6())), 0, "an echo is no error");
}

#[test]
fn tcp_is_cut_and_names_are_not() {
    let all = Wanted { names: true, ..Wanted::default() };
    let to = |protocol, port: u16| {
        let ports = [&[0x9c, 0x40][..], &port.to_be_bytes(), &[0; 4]].concat();
        [v4(protocol, [HERE, PEER], &ports), v6(protocol, [1, 7], &ports)]
    };
    for packets in [to(6, 80), to(17, 443)] {
        assert_eq!(packets.map(|packet| kept(&all, &packet)), [100, 100]);
    }
    for packets in [to(6, 53), to(17, 53)] {
        assert_eq!(packets.map(|packet| kept(&all, &packet)), [1500, 1500]);
    }
    assert_eq!(to(17, 80).map(|packet| kept(&all, &packet)), [0, 0]);
}

#[test]
fn the_longest_filter_fits_its_jumps() {
    let fits = |ports: u16, hosts: u8| {
        let hosts = (0..hosts).map(|n| IpAddr::from([n; 16])).collect();
        let wanted = Wanted { ports: (0..ports).collect(), hosts, names: false };
        wanted.fits().then(|| recording(&wanted, LENGTHS).len())
    };
    let longest = (0..100).filter_map(|ports| (0..6).filter_map(|n| fits(ports, n)).max()).max();
    // What lies further than a byte counts would be cut short.
    assert!(longest.is_some_and(|length| length < 256), "{longest:?}");
}
