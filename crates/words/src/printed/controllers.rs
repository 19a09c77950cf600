//! The names of congestion controllers.

/// Controllers of Linux v6.12 (`net/ipv4/tcp_*.c`) and the later versions of BBR, by the names that tools
/// print. In `ss` they stand alone among other words, so only these are taken.
pub const NAMES: [&str; 19] = [
    "cubic",
    "reno",
    "bbr",
    "bbr2",
    "bbr3",
    "bic",
    "cdg",
    "dctcp",
    "dctcp-reno",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "lp",
    "nv",
    "scalable",
    "vegas",
    "westwood",
    "yeah",
];
