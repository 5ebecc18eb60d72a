//! The rows; each measures related values in its own blocks.

mod around;
mod asking;
mod rounds;

use crate::block::{Block, Measure};
use crate::child::Contender;
use crate::report::{Line, Unit};
use crate::world::World;

/// A function that measures a row.
type Row = fn(&mut World) -> Result<Vec<Line>, String>;

/// The name and the function of each row, in the order of the table.
pub(crate) const ROWS: [(&str, Row); 10] = [
    ("start", around::start),
    ("answer", asking::answer),
    ("https", asking::https),
    ("stream", asking::stream),
    ("burst", asking::burst),
    ("loop", rounds::tool_loop),
    ("python", rounds::python),
    ("list", around::list),
    ("bytes", asking::bytes),
    ("binary", around::binary),
];

/// A comparison of this program, another program that may be missing, and one that does
/// nothing.
struct Comparison {
    block: Block,
    /// The other program's name and its index in the block, or why it is missing.
    other: Result<(&'static str, usize), String>,
}

impl Comparison {
    /// Runs them in turns.
    fn run(
        world: &mut World,
        ours: Contender,
        other: Result<Contender, String>,
        turns: usize,
    ) -> Result<Comparison, String> {
        let mut contenders = vec![ours, world.no_op()];
        let other = other.map(|other| {
            let name = other.name;
            contenders.insert(1, other);
            (name, 1)
        });
        let turns = world.turns(turns);
        let block = Block::run(&contenders, turns, &mut world.server)?;
        Ok(Comparison { block, other })
    }

    /// A time of this program compared with the other's.
    fn line(&self, group: &'static str, name: &'static str, measure: Measure) -> Line {
        match &self.other {
            Ok((other, place)) => self.compared_with(group, name, measure, other, *place),
            Err(why) => {
                let ours = self.block.typical(0, measure);
                Line::new(group, name, Unit::Milliseconds, Ok(ours)).without_comparison(why)
            }
        }
    }

    /// The same compared with the program that does nothing.
    fn line_beside_no_op(&self, group: &'static str, name: &'static str, measure: Measure) -> Line {
        let place = self.other.as_ref().map_or(1, |(_, place)| place + 1);
        self.compared_with(group, name, measure, "no-op", place)
    }

    fn compared_with(
        &self,
        group: &'static str,
        name: &'static str,
        measure: Measure,
        other: &'static str,
        place: usize,
    ) -> Line {
        let [ours, value] = [0, place].map(|place| self.block.typical(place, measure));
        let line = Line::new(group, name, Unit::Milliseconds, Ok(ours));
        line.against(other, value, self.block.ratio(place, measure))
    }
}

/// The median peak memory of some runs in bytes; the kernel counts memory in batches.
fn peak(contender: &Contender, world: &World) -> Result<f64, String> {
    let runs = (0..world.turns(5)).map(|_| contender.peak());
    Ok(crate::block::median(runs.collect::<Result<_, _>>()?))
}
