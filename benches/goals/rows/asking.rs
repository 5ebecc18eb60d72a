//! Rows with one question and one answer: short and long, over http and https.

use super::{Comparison, peak};
use crate::block::{cpu, wall};
use crate::child::Contender;
use crate::replies::{BURST_TOKENS, Pace, Reply, STREAMED_TOKENS};
use crate::report::{Line, MEBIBYTE, Unit};
use crate::world::World;

/// The number of skills if it is not important.
const SKILLS: usize = 10;

/// Both contenders, checked to print the whole reply.
fn checked(
    reply: &Reply,
    ours: Contender,
    curl: Result<Contender, String>,
) -> Result<(Contender, Result<Contender, String>), String> {
    let ours = ours.expect_output(format!("{}\n", reply.text.trim_end()).as_bytes())?;
    let curl = match curl {
        Ok(curl) => Ok(curl.expect_output(reply.body.as_bytes())?),
        Err(why) => Err(why),
    };
    Ok((ours, curl))
}

/// A short answer over http.
pub(super) fn answer(world: &mut World) -> Result<Vec<Line>, String> {
    let (ours, curl) = checked(&Reply::short(), world.ours("short", SKILLS)?, world.curl("short"))?;
    let mut lines = Vec::new();
    let comparison = Comparison::run(world, ours.clone(), curl.clone(), 150)?;
    lines.push(comparison.line("answer", "http, 10 skills, wall", wall).at_most_ratio(0.2));
    lines.push(comparison.line("answer", "http, 10 skills, CPU", cpu).at_most_ratio(0.2));
    lines.push(
        memory("answer", "http, 10 skills, memory", &ours, &curl, world).at_most(4.0 * MEBIBYTE),
    );
    let name = "http, 10 skills, wall, beside a no-op";
    lines.push(comparison.line_beside_no_op("answer", name, wall));
    Ok(lines)
}

/// A short answer over https, with a handshake.
pub(super) fn https(world: &mut World) -> Result<Vec<Line>, String> {
    let (ours, curl) = checked(&Reply::short(), world.ours_by_tls(SKILLS)?, world.curl_by_tls())?;
    let comparison = Comparison::run(world, ours.clone(), curl.clone(), 80)?;
    Ok(vec![
        comparison.line("https", "10 skills, wall", wall).at_most_ratio(0.5),
        comparison.line("https", "10 skills, CPU", cpu).at_most_ratio(0.5),
        memory("https", "10 skills, memory", &ours, &curl, world),
    ])
}

fn memory(
    group: &'static str,
    name: &'static str,
    ours: &Contender,
    curl: &Result<Contender, String>,
    world: &World,
) -> Line {
    let ours = peak(ours, world);
    let line = Line::new(group, name, Unit::Mebibytes, ours.clone()).with_comparable_ratio_only();
    match (ours, curl.as_ref().map(|curl| peak(curl, world))) {
        (Ok(ours), Ok(Ok(other))) => line.against("curl", other, ours / other),
        _ => line,
    }
}

/// A long answer with one write of the server per token. Into a pipe or a file this program
/// prints it once at its end, while `curl -N` writes each token; so the format that prints
/// each token has the same goal.
pub(super) fn stream(world: &mut World) -> Result<Vec<Line>, String> {
    let reply = Reply::words(STREAMED_TOKENS, Pace::ByToken);
    let (ours, curl) = checked(&reply, world.ours("stream", SKILLS)?, world.curl("stream"))?;
    let comparison = Comparison::run(world, ours, curl.clone(), 31)?;
    let mut lines = vec![
        comparison
            .line("stream", "10,000 tokens, printed at the end, wall", wall)
            .at_most_ratio(1.1),
        comparison.line("stream", "10,000 tokens, printed at the end, CPU", cpu).at_most_ratio(1.0),
    ];
    let records = world.ours("stream", SKILLS)?.args(["-o", "jsonl"]);
    let line_count = records.output()?.split(|byte| *byte == b'\n').count();
    if line_count < STREAMED_TOKENS {
        return Err(format!("-o jsonl printed {line_count} lines of {STREAMED_TOKENS} tokens"));
    }
    let comparison = Comparison::run(world, records, curl, 31)?;
    lines.push(
        comparison
            .line("stream", "10,000 tokens, each printed, -o jsonl, CPU", cpu)
            .at_most_ratio(1.0),
    );
    Ok(lines)
}

/// A very long answer, as fast as it can be read.
pub(super) fn burst(world: &mut World) -> Result<Vec<Line>, String> {
    let reply = Reply::words(BURST_TOKENS, Pace::AtOnce);
    let (ours, curl) = checked(&reply, world.ours("burst", SKILLS)?, world.curl("burst"))?;
    let text = reply.text.len();
    drop(reply);
    let comparison = Comparison::run(world, ours.clone(), curl, 21)?;
    let mut lines = vec![
        comparison.line("burst", "100,000 tokens at once, wall", wall),
        comparison.line("burst", "100,000 tokens at once, CPU", cpu).at_most_ratio(1.6),
    ];
    let name = "100,000 tokens at once, memory beyond a short answer's";
    let short = world.ours("short", SKILLS)?;
    let grown = peak(&ours, world).and_then(|most| Ok(most - peak(&short, world)?));
    let text = u32::try_from(text).map_or(f64::INFINITY, f64::from);
    let line = Line::new("burst", name, Unit::Mebibytes, grown.clone()).at_most_ratio(2.0);
    lines.push(match grown {
        Ok(grown) => line.against("text", text, grown / text),
        Err(_) => line,
    });
    Ok(lines)
}

/// The size of the request body for "hi". The model gets the name of the working folder, so
/// the program runs in the one with the shortest name.
pub(super) fn bytes(world: &mut World) -> Result<Vec<Line>, String> {
    let rows = [
        ("sent for \"hi\", 10 skills", SKILLS, 5_000.0),
        ("sent for \"hi\", 10,000 skills", 10_000, 14_000.0),
    ];
    let mut lines = Vec::new();
    for (name, skills, most) in rows {
        let ours = world.ours("short", skills)?.in_folder("/");
        world.server.stats().map_err(|error| error.to_string())?;
        ours.run()?;
        let stats = world.server.stats().map_err(|error| error.to_string())?;
        let sent = u32::try_from(stats.body_bytes).map_or(f64::INFINITY, f64::from);
        lines.push(Line::new("bytes", name, Unit::Bytes, Ok(sent)).at_most(most));
    }
    Ok(lines)
}
