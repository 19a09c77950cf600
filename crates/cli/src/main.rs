//! dev driver
#![allow(clippy::all)]
fn main() {
    let mut s = tcpwhy::session::Session::new(tcpwhy::tracker::Config { detail: true });
    for f in std::env::args().skip(1) {
        s.begin(&f);
        let bytes = std::fs::read(&f).expect("file");
        for c in bytes.chunks(1 << 20) {
            if let Err(e) = s.push(c) {
                eprintln!("{e}");
                break;
            }
        }
        if let Err(e) = s.end() {
            eprintln!("{e}");
        }
    }
    println!("{}", serde_json::to_string_pretty(&s.finish()).expect("json"));
}
