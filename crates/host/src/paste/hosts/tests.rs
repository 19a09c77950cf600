use super::*;

fn hosts(texts: &[&str]) -> Vec<Host> {
    super::hosts(texts, |_| false)
}

const SOCKETS: &str = "ESTAB 0 0 10.0.0.1:80 10.0.0.7:5000\n";
const SETTINGS: &str = "net.ipv4.tcp_sack = 1\n";

/// Of each host: its name, the texts it is in, and whether that is supposed.
fn told(texts: &[&str]) -> Vec<(Option<String>, Vec<usize>, bool)> {
    let each = |host: Host| {
        (host.name, host.parts.iter().map(|part| part.text).collect(), host.is_supposed)
    };
    hosts(texts).into_iter().map(each).collect()
}

#[test]
fn texts_that_nothing_tells_apart_are_of_one_host() {
    assert_eq!(told(&[SOCKETS, SETTINGS]), [(None, vec![0, 1], true)]);
    let host = &hosts(&[SOCKETS, SETTINGS])[0].snapshot;
    assert!(host.settings.is_some() && host.looks[0].sockets.is_some());
    assert_eq!(host.looks.len(), 1);
    assert_eq!(told(&["Dear all\n", SETTINGS]), [(None, vec![1], false), (None, vec![0], false)]);
    assert_eq!(told(&[]), []);
}

#[test]
fn names_kernels_addresses_and_settings_tell_hosts_apart() {
    let other = "ESTAB 0 0 10.0.0.2:80 10.0.0.7:5000\n";
    assert_eq!(told(&[SOCKETS, other]).len(), 2);
    assert_eq!(told(&[SETTINGS, "net.ipv4.tcp_sack = 0\n"]).len(), 2);
    let kernel = |name: &str, release: &str| format!("Linux {name} {release} #1 SMP x86_64\n");
    let [one, two] = [kernel("a", "6.1.0"), kernel("b", "6.1.0")];
    assert_eq!(told(&[&one, &two]).len(), 2);
    let (one, two) = (kernel("localhost", "6.1.0"), kernel("localhost", "6.1.1"));
    assert_eq!(told(&[&one, &two]).len(), 2);
    let at = |address: &str| {
        format!(
            "2: eth0: <UP> mtu 1500 qdisc fq state UP\n    inet {address}/24 scope global eth0\n"
        )
    };
    assert_eq!(told(&[&at("10.0.0.1"), &at("10.0.0.2")]).len(), 2);
    assert_eq!(told(&[&at("10.0.0.1"), SOCKETS]), [(None, vec![0, 1], false)]);
}

#[test]
fn with_two_hosts_a_text_that_nothing_ties_stays_alone() {
    let other = "ESTAB 0 0 10.0.0.2:80 10.0.0.7:5000\n";
    assert_eq!(told(&[SOCKETS, other, SETTINGS]).len(), 3);
    let tied = format!("root@a:~# ss -tn\n{SOCKETS}");
    let settings = format!("[ada@a ~]$ sysctl -a\n{SETTINGS}");
    let hosts = told(&[&tied, other, &settings]);
    assert_eq!(hosts, [(Some("a".to_owned()), vec![0, 2], false), (None, vec![1], false)]);
}

#[test]
fn a_text_of_two_hosts_is_cut_at_the_prompts() {
    let text = format!(
        "odd line\nroot@a:~# ss -tn\n{SOCKETS}[ada@b.example ~]$ sysctl -a\n{SETTINGS}root@a:~# sysctl -a\n\
         net.ipv4.tcp_sack = 0\n$ nstat\nwhat is this\n"
    );
    let hosts = hosts(&[&text]);
    let names: Vec<_> = hosts.iter().map(|host| host.name.as_deref()).collect();
    assert_eq!(names, [Some("a"), Some("b")]);
    let sack = |host: &Host| {
        let settings = host.snapshot.settings.as_ref().expect("settings");
        settings.values["net.ipv4.tcp_sack"].clone()
    };
    assert_eq!([sack(&hosts[0]), sack(&hosts[1])], ["0", "1"]);
    let notes = &hosts[0].parts[0].notes;
    assert_eq!((notes.differ, notes.first[0].line), (0, 9), "lines keep their numbers");
}

#[test]
fn both_ends_of_a_connection_by_name_are_of_two_hosts() {
    let [one, other] =
        ["ESTAB 0 9 web1:37064 db1:postgresql\n", "ESTAB 9 0 db1:postgresql web1:37064\n"];
    assert_eq!(told(&[one, other]).len(), 2);
    assert_eq!(told(&[one, "ESTAB 9 0 web1:37066 db1:postgresql\n"]).len(), 1);
}

#[test]
fn a_text_given_twice_is_one_look() {
    let text = "ESTAB 0 0 10.0.0.1:80 10.0.0.7:5000\n\t cubic cwnd:10 bytes_sent:900 bytes_retrans:90 retrans:0/7\n";
    let looks = |texts: &[&str]| hosts(texts)[0].snapshot.looks.len();
    assert_eq!(looks(&[text, text]), 1);
    let later = text.replace("900", "901");
    assert_eq!(looks(&[text, &later]), 2);
    assert_eq!(looks(&[&format!("1610612736\n{text}"), &format!("1610612737\n{text}")]), 2);
}

#[test]
fn what_a_command_prints_elsewhere_is_not_of_the_host_that_ran_it() {
    let [sent, more] = ["Tcp: OutSegs\nTcp: 100\n", "Tcp: OutSegs\nTcp: 900\n"];
    let of = |text: &str| {
        let hosts = hosts(&[text]);
        let each = hosts.iter().map(|host| {
            let looks = host.snapshot.looks.iter();
            let sent = looks.filter_map(|look| look.counters.as_ref()?["Tcp"].get("OutSegs"));
            (host.name.clone().unwrap_or_default(), sent.copied().collect())
        });
        each.collect::<Vec<(String, Vec<i64>)>>()
    };
    let told = |name: &str, sent: &[i64]| (name.to_owned(), sent.to_vec());
    let snmp = "cat /proc/net/snmp";
    let once = format!("$ ssh b {snmp}\n{sent}$ {snmp}\n{more}");
    assert_eq!(of(&once), [told("", &[900]), told("b", &[100])]);
    let within = format!(
        "$ kubectl exec -it a -- sh\n/ # {snmp}\n{sent}/ # exit\n$ kubectl exec -it b -- sh\n/ # {snmp}\n{more}"
    );
    assert_eq!(of(&within), [told("a", &[100]), told("b", &[900])]);
    let back = format!("$ docker exec -it a sh\n/ # {snmp}\n{sent}/ # exit\n$ {snmp}\n{more}");
    assert_eq!(of(&back), [told("", &[900]), told("a", &[100])]);
    assert_eq!(
        of("a: Tcp: OutSegs\nb: Tcp: OutSegs\nb: Tcp: 900\na: Tcp: 100\n"),
        [told("a", &[100]), told("b", &[900])]
    );
    let headed = format!("a | CHANGED | rc=0 >>\n{sent}b | CHANGED | rc=0 >>\n{more}");
    assert_eq!(of(&headed), [told("a", &[100]), told("b", &[900])]);
    // Nothing was asked here.
    assert_eq!(of(&format!("$ ssh b {snmp}\n{sent}")), [told("b", &[100])]);
}

#[test]
fn hosts_beyond_the_most_are_named_as_unread() {
    let each = |at| format!("root@h{at}:~# sysctl -a\n{SETTINGS}");
    let text = |number: usize| (0..number).map(each).collect::<Vec<_>>().concat();
    let of = |number| hosts(&[&text(number)]);
    assert!(of(MOST).len() == MOST && of(MOST)[0].parts[0].notes.first.is_empty());
    let more = of(MOST + 1);
    assert_eq!(more.len(), MOST);
    assert_eq!(more[0].parts[0].notes.first[0].line, 201);
}

#[test]
fn what_stands_above_the_first_prompt_of_two_hosts_is_of_neither() {
    let text = format!("{SOCKETS}root@a:~# sysctl -a\n{SETTINGS}root@b:~# sysctl -a\n{SETTINGS}");
    let hosts = hosts(&[&text]);
    assert_eq!(hosts.len(), 3);
    assert!(hosts[0].parts[0].is_above_prompts && hosts[0].name.is_none());
    let one = format!("{SOCKETS}root@a:~# sysctl -a\n{SETTINGS}");
    assert_eq!(told(&[&one]), [(Some("a".to_owned()), vec![0], false)]);
}

#[test]
fn counters_are_read_in_their_order_and_those_of_two_hosts_are_not_mixed() {
    let counted = |retransmitted: u32, out: u32| {
        format!("Tcp: InSegs OutSegs RetransSegs\nTcp: 5000 {out} {retransmitted}\n")
    };
    let [before, after] = [counted(7, 100), counted(9, 300)];
    for texts in [[&*before, &*after], [&*after, &*before]] {
        let hosts = hosts(&texts);
        assert_eq!(hosts.len(), 1);
        let of = |look: &Look| look.counters.as_ref().expect("counters")["Tcp"]["OutSegs"];
        let [first, last] = &hosts[0].snapshot.looks[..] else { panic!("two looks") };
        assert_eq!([of(first), of(last)], [100, 300]);
    }
    assert_eq!(told(&[&counted(7, 300), &counted(9, 100)]).len(), 2, "one grew, one went back");
}
