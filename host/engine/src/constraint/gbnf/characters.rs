//! Sets of characters.

/// A set of characters: ranges of code points, sorted, with gaps between them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Characters(Vec<(u32, u32)>);

/// Code points that are no characters.
const SURROGATES: (u32, u32) = (0xD800, 0xDFFF);
const LAST: u32 = char::MAX as u32;

impl Characters {
    /// All characters of some ranges.
    pub(super) fn of(ranges: &[(char, char)]) -> Self {
        let mut ranges: Vec<(u32, u32)> = ranges.iter().map(|&(from, to)| (from.into(), to.into())).collect();
        ranges.sort_unstable();
        let mut joined: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (from, to) in ranges {
            match joined.last_mut() {
                Some(last) if from <= last.1.saturating_add(1) => last.1 = last.1.max(to),
                _ => joined.push((from, to)),
            }
        }
        Self(joined).without_surrogates()
    }

    pub(super) fn all() -> Self {
        Self(vec![(0, LAST)]).without_surrogates()
    }

    /// All other characters.
    pub(super) fn others(&self) -> Self {
        let mut others = Vec::with_capacity(self.0.len() + 1);
        let mut next = 0;
        for &(from, to) in &self.0 {
            if from > next {
                others.push((next, from - 1));
            }
            next = to + 1;
        }
        if next <= LAST {
            others.push((next, LAST));
        }
        Self(others).without_surrogates()
    }

    fn without_surrogates(self) -> Self {
        let mut ranges = Vec::with_capacity(self.0.len() + 1);
        for (from, to) in self.0 {
            let (low, high) = ((from, to.min(SURROGATES.0 - 1)), (from.max(SURROGATES.1 + 1), to));
            ranges.extend([low, high].into_iter().filter(|(from, to)| from <= to));
        }
        Self(ranges)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn ranges(&self) -> &[(u32, u32)] {
        &self.0
    }

    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let (mut a, mut b) = (self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
            if x.1 < y.0 {
                a.next();
            } else if y.1 < x.0 {
                b.next();
            } else {
                return true;
            }
        }
        false
    }

    /// The bytes that their UTF-8 can begin with, one bit each.
    pub(super) fn first_bytes(&self) -> [u128; 2] {
        let mut bits = [0_u128; 2];
        let first = |point: u32| {
            let mut buffer = [0; 4];
            char::from_u32(point).and_then(|c| c.encode_utf8(&mut buffer).bytes().next()).unwrap_or(0xFF)
        };
        for &(from, to) in &self.0 {
            // First bytes ascend with the code points.
            for byte in first(from)..=first(to) {
                let [low, high] = &mut bits;
                let half = if byte < 128 { low } else { high };
                *half |= 1 << (byte % 128);
            }
        }
        bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_what_their_ranges_say() {
        let letters = Characters::of(&[('x', 'z'), ('a', 'c'), ('b', 'd'), ('e', 'e')]);
        assert_eq!(letters.ranges(), [(97, 101), (120, 122)]);
        let others = letters.others();
        assert!(!others.overlaps(&letters) && others.overlaps(&Characters::of(&[('z', '{')])));
        assert_eq!(others.others(), letters);
        assert_eq!(Characters::all().ranges(), [(0, 0xD7FF), (0xE000, 0x10_FFFF)]);
        assert!(Characters::all().others().is_empty());
        assert_eq!(Characters::of(&[('a', 'a'), ('é', 'é')]).first_bytes(), [1 << 97, 1 << (0xC3 - 128)]);
    }
}
