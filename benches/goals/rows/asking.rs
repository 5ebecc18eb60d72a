//! One question, one answer: short and long, plain and by TLS.

use super::{Contest, peak};
use crate::block::{cpu, wall};
use crate::child::Contender;
use crate::replies::{BURST_TOKENS, Pace, Reply, STREAMED_TOKENS};
use crate::report::{KIBIBYTE, Line, MEBIBYTE, Unit};
use crate::world::World;

/// Skills in the folder where their number is not the point.
const SKILLS: usize = 10;

/// Both contenders, proven to get and to tell the whole reply.
fn proven(
    reply: &Reply,
    ours: Contender,
    curl: Result<Contender, String>,
) -> Result<(Contender, Result<Contender, String>), String> {
    let ours = ours.demand(format!("{}\n", reply.text.trim_end()).as_bytes())?;
    let curl = match curl {
        Ok(curl) => Ok(curl.demand(reply.body.as_bytes())?),
        Err(why) => Err(why),
    };
    Ok((ours, curl))
}

/// A short answer over http.
pub(super) fn answer(world: &mut World) -> Result<Vec<Line>, String> {
    let (ours, curl) = proven(&Reply::short(), world.ours("short", SKILLS)?, world.curl("short"))?;
    let mut lines = Vec::new();
    let contest = Contest::run(world, ours.clone(), curl.clone(), 150)?;
    lines.push(contest.line("answer", "http, 10 skills, wall", wall).at_most_ratio(0.2));
    lines.push(contest.line("answer", "http, 10 skills, CPU", cpu).at_most_ratio(0.2));
    lines.push(
        memory("answer", "http, 10 skills, memory", &ours, &curl, world).at_most(4.0 * MEBIBYTE),
    );
    let name = "http, 10 skills, wall, beside a no-op";
    lines.push(contest.line_beside_no_op("answer", name, wall));
    Ok(lines)
}

/// A short answer over https, with a handshake.
pub(super) fn https(world: &mut World) -> Result<Vec<Line>, String> {
    let (ours, curl) = proven(&Reply::short(), world.ours_by_tls(SKILLS)?, world.curl_by_tls())?;
    let contest = Contest::run(world, ours.clone(), curl.clone(), 80)?;
    Ok(vec![
        contest.line("https", "10 skills, wall", wall).at_most_ratio(0.5),
        contest.line("https", "10 skills, CPU", cpu).at_most_ratio(0.5),
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
    let line = Line::new(group, name, Unit::Mebibytes, ours.clone()).by_ratio();
    match (ours, curl.as_ref().map(|curl| peak(curl, world))) {
        (Ok(ours), Ok(Ok(other))) => line.against("curl", other, ours / other),
        _ => line,
    }
}

/// A long answer, each token of it a write of the server's. Into a pipe or a file ours prints
/// it once, at its end, while `curl -N` writes each token; so what is written alike, token by
/// token, has the same goal.
pub(super) fn stream(world: &mut World) -> Result<Vec<Line>, String> {
    let reply = Reply::words(STREAMED_TOKENS, Pace::ByToken);
    let (ours, curl) = proven(&reply, world.ours("stream", SKILLS)?, world.curl("stream"))?;
    let contest = Contest::run(world, ours, curl.clone(), 31)?;
    let mut lines = vec![
        contest.line("stream", "10,000 tokens, printed at the end, wall", wall).at_most_ratio(1.1),
        contest.line("stream", "10,000 tokens, printed at the end, CPU", cpu).at_most_ratio(1.0),
    ];
    let records = world.ours("stream", SKILLS)?.args(["-o", "jsonl"]);
    let told = records.output()?.split(|byte| *byte == b'\n').count();
    if told < STREAMED_TOKENS {
        return Err(format!("-o jsonl told {told} lines of {STREAMED_TOKENS} tokens"));
    }
    let contest = Contest::run(world, records, curl, 31)?;
    lines.push(
        contest
            .line("stream", "10,000 tokens, each printed, -o jsonl, CPU", cpu)
            .at_most_ratio(1.0),
    );
    Ok(lines)
}

/// A very long answer, as fast as it can be read.
pub(super) fn burst(world: &mut World) -> Result<Vec<Line>, String> {
    let reply = Reply::words(BURST_TOKENS, Pace::AtOnce);
    let (ours, curl) = proven(&reply, world.ours("burst", SKILLS)?, world.curl("burst"))?;
    let text = reply.text.len();
    drop(reply);
    let contest = Contest::run(world, ours.clone(), curl, 21)?;
    let mut lines = vec![
        contest.line("burst", "100,000 tokens at once, wall", wall),
        contest.line("burst", "100,000 tokens at once, CPU", cpu).at_most_ratio(1.6),
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

/// What is sent for "hi": the body of the request, as the server got it. The model is told
/// in which folder the program was started, so that is the one with the shortest name.
pub(super) fn bytes(world: &mut World) -> Result<Vec<Line>, String> {
    let rows = [
        ("sent for \"hi\", 10 skills", SKILLS, 3.0 * KIBIBYTE),
        ("sent for \"hi\", 10,000 skills", 10_000, 12.0 * KIBIBYTE),
    ];
    let mut lines = Vec::new();
    for (name, skills, most) in rows {
        let ours = world.ours("short", skills)?.in_folder("/");
        world.server.tally().map_err(|error| error.to_string())?;
        ours.run()?;
        let tally = world.server.tally().map_err(|error| error.to_string())?;
        let sent = u32::try_from(tally.body_bytes).map_or(f64::INFINITY, f64::from);
        lines.push(Line::new("bytes", name, Unit::Bytes, Ok(sent)).at_most(most));
    }
    Ok(lines)
}
