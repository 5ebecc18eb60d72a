//! Contenders in turns: A B C A B C, so that whatever the machine does besides, it does
//! to all of them. Ratios are made within a turn, and the median of those is told.

use crate::child::{Contender, Cost};
use crate::server::{Server, Tally};

/// One contender's run in one turn.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    /// What it took.
    pub cost: Cost,
    /// What it asked of the server.
    pub tally: Tally,
}

/// All turns; in each, the contenders' runs in their order.
pub(crate) struct Block {
    turns: Vec<Vec<Run>>,
}

/// What of a run is looked at.
pub(crate) type Measure = fn(&Run) -> f64;

/// From start to end, in milliseconds.
pub(crate) fn wall(run: &Run) -> f64 {
    run.cost.wall
}

/// User and system time, in milliseconds.
pub(crate) fn cpu(run: &Run) -> f64 {
    run.cost.cpu
}

impl Block {
    /// So many turns, after some that are not counted: they fill the caches.
    pub(crate) fn run(
        contenders: &[Contender],
        turns: usize,
        server: &mut Server,
    ) -> Result<Block, String> {
        let warm_up = turns.div_ceil(10).min(5);
        let mut done = Vec::new();
        for turn in 0..warm_up + turns {
            let mut runs = Vec::new();
            for contender in contenders {
                server.tally().map_err(|error| error.to_string())?;
                let cost = contender.run()?;
                let tally = server.tally().map_err(|error| error.to_string())?;
                runs.push(Run { cost, tally });
            }
            if turn >= warm_up {
                done.push(runs);
            }
        }
        Ok(Block { turns: done })
    }

    /// The median of what this makes of a turn.
    pub(crate) fn median(&self, of: impl Fn(&[Run]) -> f64) -> f64 {
        median(self.turns.iter().map(|runs| of(runs)).collect())
    }

    /// The largest of what this counts in a turn.
    pub(crate) fn most(&self, of: impl Fn(&[Run]) -> u64) -> u64 {
        self.turns.iter().map(|runs| of(runs)).max().unwrap_or(0)
    }

    /// The median of one contender.
    pub(crate) fn typical(&self, contender: usize, measure: Measure) -> f64 {
        self.median(|runs| measure(&runs[contender]))
    }

    /// The median of the first contender's share of another in the same turn.
    pub(crate) fn ratio(&self, other: usize, measure: Measure) -> f64 {
        self.median(|runs| measure(&runs[0]) / measure(&runs[other]))
    }
}

/// The middle one, or the mean of the two.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => values[half],
        _ => f64::midpoint(values[half - 1], values[half]),
    }
}
