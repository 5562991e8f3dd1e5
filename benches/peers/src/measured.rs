//! The results of several rounds of a store, and the table of several stores.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use crate::round::Round;

/// The least, the median and the greatest of some figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The least.
    pub least: f64,
    /// The one in the middle; of an even number the greater of the two.
    pub median: f64,
    /// The greatest.
    pub greatest: f64,
}

impl Spread {
    /// The spread of these figures, of which there is one at least.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut figures: Vec<f64> = figures.into_iter().collect();
        figures.sort_unstable_by(f64::total_cmp);
        let (least, greatest) = (*figures.first()?, *figures.last()?);
        Some(Self { least, median: figures[figures.len() / 2], greatest })
    }
}

impl Display for Spread {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let Self { least, median, greatest } = self;
        let digits = if *median < 100.0 { 2 } else { 0 };
        write!(formatter, "{median:.digits$} ({least:.digits$} to {greatest:.digits$})")
    }
}

/// The rounds of one store.
pub struct Measured {
    /// The name of the store.
    pub name: &'static str,
    rates: Vec<f64>,
    latencies: Vec<u32>,
    processor: Duration,
}

impl Measured {
    /// A store that was not measured yet.
    pub fn new(name: &'static str) -> Self {
        Self { name, rates: Vec::new(), latencies: Vec::new(), processor: Duration::ZERO }
    }

    /// Adds a round.
    pub fn add(&mut self, round: Round) {
        self.rates.push(round.rate);
        self.latencies.extend(round.latencies);
        self.processor += round.processor;
    }

    /// Its rates, in times a second.
    pub fn rate(&self) -> Option<Spread> {
        Spread::of(self.rates.iter().copied())
    }

    /// Its rate divided by that of another store in the same round.
    pub fn ratio(&self, other: &Self) -> Option<Spread> {
        Spread::of(self.rates.iter().zip(&other.rates).map(|(own, other)| own / other))
    }

    /// The processor time of a step, in microseconds, with what the store does in the background meanwhile.
    pub fn processor(&self) -> f64 {
        self.processor.as_secs_f64() * 1e6 / self.latencies.len().max(1) as f64
    }

    /// The time, in microseconds, that this share of all steps took at most.
    fn at(&mut self, share: f64) -> f64 {
        let place = (self.latencies.len() as f64 * share) as usize;
        let place = place.min(self.latencies.len().saturating_sub(1));
        if self.latencies.is_empty() {
            return 0.0;
        }
        f64::from(*self.latencies.select_nth_unstable(place).1) / 1000.0
    }
}

/// Prints a line for each store, with the ratio of the first store to it.
pub fn print(measured: &mut [Measured], what: &str) {
    let first = measured.first().map_or("", |first| first.name);
    let per_second = format!("{what}/s");
    let ratio = format!("{first} is … times as fast");
    println!(
        "{:10} {per_second:>28} {:>10} {:>10} {:>8}   {ratio}",
        "", "p50 µs", "p99 µs", "CPU µs"
    );
    for number in 0..measured.len() {
        let (p50, p99) = (measured[number].at(0.5), measured[number].at(0.99));
        let one = &measured[number];
        let show = |spread: Option<Spread>| spread.map(|it| it.to_string()).unwrap_or_default();
        let ratio = if number > 0 { measured[0].ratio(one) } else { None };
        let (rate, ratio) = (show(one.rate()), show(ratio));
        let processor = one.processor();
        println!("{:10} {rate:>28} {p50:10.1} {p99:10.1} {processor:8.1}   {ratio}", one.name);
    }
    println!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_the_same_round() {
        let measured = |rates: [f64; 3]| {
            let mut measured = Measured::new("");
            rates.map(|rate| {
                measured.add(Round {
                    latencies: vec![rate as u32],
                    rate,
                    processor: Duration::ZERO,
                })
            });
            measured
        };
        let (own, other) = (measured([2.0, 40.0, 600.0]), measured([1.0, 10.0, 100.0]));
        let expected = Spread { least: 2.0, median: 4.0, greatest: 6.0 };
        assert_eq!(own.ratio(&other), Some(expected));
    }

    #[test]
    fn percentiles_are_of_all_rounds() {
        let mut measured = Measured::new("");
        for round in 0..4 {
            let latencies = (0..250).map(|step| (round + 4 * step) * 1000).collect();
            measured.add(Round { latencies, rate: 1.0, processor: Duration::ZERO });
        }
        assert_eq!((measured.at(0.5), measured.at(0.99), measured.at(1.0)), (500.0, 990.0, 999.0));
    }
}
