//! What the crates of tcpwhy share.
//!
//! [`units`] are numbers with their unit, [`said`] and [`tied`] put them in words, [`page`] is the sheet that text views write
//! on, [`doc`] cuts the manual's pages out of sources, and [`printed`] reads what tools print, as data.
//!
//! Nothing here knows what it is read for.

pub mod doc;
pub mod page;
pub mod printed;
pub mod said;
pub mod tied;
pub mod units;
