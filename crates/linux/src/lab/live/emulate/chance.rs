//! Seeded choices of a path: which packets are lost, held back, doubled, damaged.
//!
//! Each kind of choice draws from a stream of its own and draws once a packet, asked for or not,
//! so that a plan with another loss reorders just the same packets.

use tcpwhy_model::scenario::plan::{Loss, Ppm};

/// A stream of numbers that its seed decides: `SplitMix64` (Steele, Lea, Flood: Fast splittable
/// pseudorandom number generators, OOPSLA 2014, figure 17).
#[derive(Clone, Debug)]
pub(super) struct Stream(u64);

impl Stream {
    /// The stream for one `purpose` under a seed; other purposes give unrelated streams.
    pub(super) fn new(seed: u64, purpose: u64) -> Self {
        let mut first = Self(seed ^ purpose.wrapping_mul(0xd134_2543_de82_ef95));
        Self(first.draw())
    }

    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to less than `limit`; 0 if that is 0. Its bias is below `limit` / 2^64.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(limit)) >> 64) as u64
    }

    /// Whether something of that chance happens.
    pub(super) fn hits(&mut self, chance: Ppm) -> bool {
        self.below(1_000_000) < u64::from(chance)
    }
}

/// Which packets are lost behind the link, with the memory that this takes.
#[derive(Clone, Debug)]
pub(super) struct Losses {
    stream: Stream,
    /// Gilbert's bad state.
    bad: bool,
    /// Packets with data seen so far, over the whole run.
    with_data: u64,
}

impl Losses {
    pub(super) fn new(stream: Stream) -> Self {
        Self { stream, bad: false, with_data: 0 }
    }

    /// Whether the next packet is lost under `loss`, which may differ from packet to packet.
    ///
    /// Gilbert's state changes before the packet is judged, so `enter` of a million and `bad` of
    /// a million lose from the first packet on.
    pub(super) fn takes(&mut self, loss: &Loss, has_data: bool) -> bool {
        self.with_data += u64::from(has_data);
        let (turn, hit) = (self.stream.below(1_000_000), self.stream.below(1_000_000));
        match loss {
            Loss::None => false,
            Loss::Random(chance) => hit < u64::from(*chance),
            Loss::Gilbert { enter, leave, bad } => {
                let turns = turn < u64::from(if self.bad { *leave } else { *enter });
                self.bad ^= turns;
                self.bad && hit < u64::from(*bad)
            }
            Loss::Exact(numbers) => has_data && numbers.contains(&self.with_data),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(loss: &Loss) -> (f64, f64) {
        let mut losses = Losses::new(Stream::new(7, 1));
        let taken: Vec<bool> = (0..200_000).map(|_| losses.takes(loss, true)).collect();
        let lost = taken.iter().filter(|lost| **lost).count() as f64;
        let bursts = taken.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        (lost / taken.len() as f64, lost / bursts.max(1.0))
    }

    #[test]
    fn the_known_sequence_of_split_mix_64() {
        let mut stream = Stream(1_234_567);
        assert_eq!(stream.draw(), 6_457_827_717_110_365_317);
        assert_eq!(stream.draw(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn random_loss_takes_its_share_one_by_one() {
        let (share, burst) = share(&Loss::Random(20_000));
        assert!((0.018..0.022).contains(&share), "{share}");
        assert!((1.0..1.05).contains(&burst), "{burst}");
    }

    #[test]
    fn gilbert_loses_in_bursts() {
        // Time in the bad state is enter / (enter + leave); a burst lasts 1 / leave packets.
        let loss = Loss::Gilbert { enter: 5_000, leave: 250_000, bad: 1_000_000 };
        let (share, burst) = share(&loss);
        assert!((0.017..0.022).contains(&share), "{share}");
        assert!((3.6..4.4).contains(&burst), "{burst}");
    }

    #[test]
    fn exact_losses_count_packets_with_data_alone() {
        let mut losses = Losses::new(Stream::new(1, 1));
        let loss = Loss::Exact(vec![2, 3]);
        let taken: Vec<bool> = [true, false, true, false, true, true]
            .iter()
            .map(|has_data| losses.takes(&loss, *has_data))
            .collect();
        assert_eq!(taken, [false, false, true, false, true, false]);
    }

    #[test]
    fn purposes_do_not_share_their_numbers() {
        let (mut one, mut other) = (Stream::new(5, 1), Stream::new(5, 2));
        assert!((0..100).all(|_| one.draw() != other.draw()));
    }
}
