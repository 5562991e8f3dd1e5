//! The least, the median and the greatest of some figures.

use std::fmt::{self, Display, Formatter};

/// Some figures in short.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The least.
    pub least: f64,
    /// The one in the middle; of an even number the mean of the two.
    pub median: f64,
    /// The greatest.
    pub greatest: f64,
}

impl Spread {
    /// The spread of these figures; `None` without any.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut figures: Vec<f64> = figures.into_iter().collect();
        figures.sort_unstable_by(f64::total_cmp);
        let (least, greatest) = (*figures.first()?, *figures.last()?);
        let (lower, upper) = (figures[(figures.len() - 1) / 2], figures[figures.len() / 2]);
        Some(Self { least, median: (lower + upper) / 2.0, greatest })
    }
}

impl Display for Spread {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let Self { least, median, greatest } = self;
        write!(formatter, "{median:.2} ({least:.2} to {greatest:.2})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        let spread = |figures: &[f64]| Spread::of(figures.iter().copied());
        assert_eq!(spread(&[]), None);
        let three = Spread { least: 1.0, median: 2.0, greatest: 9.0 };
        assert_eq!(spread(&[9.0, 1.0, 2.0]), Some(three));
        assert_eq!(spread(&[4.0, 1.0, 9.0, 2.0]).map(|it| it.median), Some(3.0));
        assert_eq!(three.to_string(), "2.00 (1.00 to 9.00)");
    }
}
