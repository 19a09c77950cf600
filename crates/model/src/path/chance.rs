//! Random numbers from a seed: the same on every machine.

/// A generator (`SplitMix64`: Steele, Lea, Flood, OOPSLA 2014).
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// The sequence of a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub const fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`, which is not 0 (by multiplication, without division).
    pub const fn below(&mut self, limit: u64) -> u64 {
        ((self.draw() as u128 * limit as u128) >> 64) as u64
    }

    /// Whether something with this chance happens, in parts of a million; certainties draw nothing.
    pub const fn hits(&mut self, ppm: u32) -> bool {
        match ppm {
            0 => false,
            1_000_000.. => true,
            ppm => self.below(1_000_000) < ppm as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chance_is_hit_as_often_as_it_says() {
        let mut chance = Chance::new(7);
        let hits = (0..100_000).filter(|_| chance.hits(20_000)).count();
        assert!((1_850..2_150).contains(&hits), "{hits}");
        assert!(!chance.hits(0));
        assert!(chance.hits(1_000_000));
    }
}
