//! The outcomes as a table in Markdown and as JSON.

use std::fmt::{self, Display, Formatter};

use serde_json::{Value, json};

use crate::race::Outcome;
use crate::side::Side;
use crate::spread::Spread;
use crate::task::Figures;

/// The outcomes of all queries in one mode.
pub struct Table<'a> {
    /// Alluvium's opponent.
    pub other: Side,
    /// One for each query.
    pub outcomes: &'a [Outcome],
}

impl Outcome {
    /// A figure of one side, over all runs.
    fn spread(&self, side: usize, figure: impl Fn(&Figures) -> f64) -> Option<Spread> {
        Spread::of(self.times.iter().map(|figures| figure(&figures[side])))
    }

    /// The other side's figure divided by Alluvium's, over all pairs.
    fn ratio(&self, figure: impl Fn(&Figures) -> f64) -> Option<Spread> {
        Spread::of(self.times.iter().map(|[own, other]| figure(other) / figure(own)))
    }

    /// As JSON.
    pub fn to_json(&self, other: Side) -> Value {
        let sides = [Side::Alluvium, other];
        let of = |side: usize| {
            let runs = self.times.iter().map(|figures| figures[side].to_json());
            json!({
                "side": sides[side].title(),
                "answer": self.answers[side].to_json(),
                "memory_run": self.memory[side].to_json(),
                "time_runs": runs.collect::<Vec<_>>(),
            })
        };
        json!({
            "query": self.query,
            "mode": self.mode.name(),
            "memory_limit_bytes": self.limit,
            "agrees": self.agrees(),
            "sides": [of(0), of(1)],
        })
    }
}

fn shown(value: Option<impl Display>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

impl Display for Table<'_> {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        let other = self.other.title();
        writeln!(
            to,
            "| query | {other}'s time over Alluvium's | processor time | seconds: Alluvium | {other} | MiB: Alluvium | {other} \
             | rows | answers |"
        )?;
        writeln!(to, "|---|---|---|---|---|---|---|---|---|")?;
        for outcome in self.outcomes {
            let [own, theirs] = &outcome.memory;
            let mebibytes = |figures: &Figures| figures.used_bytes as f64 / f64::from(1 << 20);
            let seconds = |side| outcome.spread(side, |figures| figures.seconds);
            let median =
                |spread: Option<Spread>| shown(spread.map(|it| format!("{:.2}", it.median)));
            let [answer, _] = outcome.answers;
            writeln!(
                to,
                "| {} | {} | {} | {} | {} | {:.0} | {:.0} | {} | {} |",
                outcome.query,
                shown(outcome.ratio(|figures| figures.seconds)),
                shown(outcome.ratio(|figures| figures.processor)),
                median(seconds(0)),
                median(seconds(1)),
                mebibytes(own),
                mebibytes(theirs),
                answer.decided.rows,
                if outcome.agrees() { "equal" } else { "DIFFERENT" },
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Answer;
    use crate::mode::Mode;

    #[test]
    fn ratios_are_of_the_same_pair() {
        let figures = |seconds| Figures { seconds, processor: 1.0, used_bytes: 3 << 20 };
        let outcome = Outcome {
            query: "q4",
            mode: Mode::Kept,
            limit: None,
            answers: [Answer::default(); 2],
            memory: [figures(0.0); 2],
            times: vec![[figures(1.0), figures(2.0)], [figures(10.0), figures(5.0)]],
        };
        let table = Table { other: Side::Dbsp, outcomes: std::slice::from_ref(&outcome) };
        let line = table.to_string().lines().last().unwrap().to_owned();
        let ratios = "1.25 (0.50 to 2.00) | 1.00 (1.00 to 1.00)";
        assert_eq!(line, format!("| q4 | {ratios} | 5.50 | 3.50 | 3 | 3 | 0 | equal |"));
        assert_eq!(outcome.to_json(Side::Dbsp)["sides"][1]["time_runs"][1]["seconds"], 5.0);
    }
}
