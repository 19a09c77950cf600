//! Numbers read off the packets: clocks, round trips, flights, timers, pauses, TLS.

pub(crate) mod clock;
pub(crate) mod flight;
pub(crate) mod idle;
pub(crate) mod ipid;
pub(crate) mod loss;
pub(crate) mod policer;
pub(crate) mod rto;
pub(crate) mod sketch;
pub(crate) mod stack;
pub(crate) mod tls;
