//! Runs the contenders in turns (A B C A B C), so that other load on the machine affects all
//! of them. Ratios are computed within a turn; the result is their median.

use crate::child::{Contender, Cost};
use crate::server::{RequestStats, Server};

/// A run of one contender in one turn.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    /// The time it took.
    pub cost: Cost,
    /// The requests it sent to the server.
    pub stats: RequestStats,
}

/// All turns; each has the runs of the contenders in order.
pub(crate) struct Block {
    turns: Vec<Vec<Run>>,
}

/// A measured property of a run.
pub(crate) type Measure = fn(&Run) -> f64;

/// The wall time in milliseconds.
pub(crate) fn wall(run: &Run) -> f64 {
    run.cost.wall
}

/// The user and system time in milliseconds.
pub(crate) fn cpu(run: &Run) -> f64 {
    run.cost.cpu
}

impl Block {
    /// Runs `turns` turns, after some uncounted ones that fill the caches.
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
                server.stats().map_err(|error| error.to_string())?;
                let cost = contender.run()?;
                let stats = server.stats().map_err(|error| error.to_string())?;
                runs.push(Run { cost, stats });
            }
            if turn >= warm_up {
                done.push(runs);
            }
        }
        Ok(Block { turns: done })
    }

    /// The median over all turns.
    pub(crate) fn median(&self, of: impl Fn(&[Run]) -> f64) -> f64 {
        median(self.turns.iter().map(|runs| of(runs)).collect())
    }

    /// The largest count over all turns.
    pub(crate) fn most(&self, of: impl Fn(&[Run]) -> u64) -> u64 {
        self.turns.iter().map(|runs| of(runs)).max().unwrap_or(0)
    }

    /// The median of one contender.
    pub(crate) fn typical(&self, contender: usize, measure: Measure) -> f64 {
        self.median(|runs| measure(&runs[contender]))
    }

    /// The median ratio of the first contender to another in the same turn.
    pub(crate) fn ratio(&self, other: usize, measure: Measure) -> f64 {
        self.median(|runs| measure(&runs[0]) / measure(&runs[other]))
    }
}

/// The middle value, or the mean of the two middle values.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => values[half],
        _ => f64::midpoint(values[half - 1], values[half]),
    }
}
