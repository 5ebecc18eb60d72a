//! The rows: each measures what belongs together, in blocks of its own.

mod around;
mod asking;
mod rounds;

use crate::block::{Block, Measure};
use crate::child::Contender;
use crate::report::{Line, Unit};
use crate::world::World;

/// What a row makes of the world.
type Row = fn(&mut World) -> Result<Vec<Line>, String>;

/// The word that chooses a row, and the row; in the order of the table.
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

/// Ours, another that may be lacking, and a program that does nothing.
struct Contest {
    block: Block,
    /// The other's name and its place in the block, or why it is not there.
    other: Result<(&'static str, usize), String>,
}

impl Contest {
    /// Puts them in turns.
    fn run(
        world: &mut World,
        ours: Contender,
        other: Result<Contender, String>,
        turns: usize,
    ) -> Result<Contest, String> {
        let mut contenders = vec![ours, world.no_op()];
        let other = other.map(|other| {
            let name = other.name;
            contenders.insert(1, other);
            (name, 1)
        });
        let turns = world.turns(turns);
        let block = Block::run(&contenders, turns, &mut world.server)?;
        Ok(Contest { block, other })
    }

    /// A time of ours beside the other's.
    fn line(&self, group: &'static str, name: &'static str, measure: Measure) -> Line {
        match &self.other {
            Ok((other, place)) => self.beside(group, name, measure, other, *place),
            Err(why) => {
                let ours = self.block.typical(0, measure);
                Line::new(group, name, Unit::Milliseconds, Ok(ours)).alone(why)
            }
        }
    }

    /// The same beside the program that does nothing.
    fn line_beside_no_op(&self, group: &'static str, name: &'static str, measure: Measure) -> Line {
        let place = self.other.as_ref().map_or(1, |(_, place)| place + 1);
        self.beside(group, name, measure, "no-op", place)
    }

    fn beside(
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

/// The most memory of some runs, in bytes: the median, as the kernel counts in batches.
fn peak(contender: &Contender, world: &World) -> Result<f64, String> {
    let runs = (0..world.turns(5)).map(|_| contender.peak());
    Ok(crate::block::median(runs.collect::<Result<_, _>>()?))
}
