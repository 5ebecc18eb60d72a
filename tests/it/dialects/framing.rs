//! How replies are framed: comments, line ends, packets.

use super::{
    ALPHA, FOUR, delta, finish, listed, pieces, results_of, skills, stream_of, talk, talk_with,
    whole,
};
use crate::harness::{Reply, seconds};

#[test]
fn comments_are_skipped_and_reset_the_idle_timer() {
    let comments = [
        ": OPENROUTER PROCESSING\n\n",
        ": keep-alive\n\n",
        "data: : OPENROUTER PROCESSING\n\n",
        ":\n\n",
    ];
    // In total longer than the idle limit, but each pause is shorter.
    let mut chunks = vec![(seconds(0.0), format!("data: {}\n\n", delta(r#""content":"The ""#)))];
    chunks.extend(comments.map(|comment| (seconds(0.3), comment.to_string())));
    let end = format!("data: {FOUR}\n\n: done\n\ndata: [DONE]\n\n");
    chunks.push((seconds(0.3), end));
    let test = skills().env("LLM_TIMEOUT_SECONDS", "1");
    let talk = talk_with(test, &[], [Reply::chunks(chunks)]);
    talk.run.success().stdout("The 4\n").stderr_is_empty().took_at_least(seconds(1.5));
}

#[test]
fn comments_before_the_first_event_are_not_a_reply() {
    let comments = ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n";
    let first = stream_of(format!("{comments}data: {FOUR}\n\ndata: [DONE]\n\n"));
    talk(&[], [first]).run.success().stdout("4\n");
    // A stream of comments alone counts as empty.
    let talk = talk(&[], [stream_of(comments), Reply::text("4")]);
    talk.run.success().stdout("4\n");
}

#[test]
fn blank_lines_before_a_body_are_trimmed() {
    let body = r#"{"choices":[{"message":{"content":"4"},"finish_reason":"stop"}]}"#;
    let blank = |pause, text: &str| (seconds(pause), text.to_string());
    let dripping = Reply::chunks([
        blank(0.0, "\n"),
        blank(0.4, "\r\n\n"),
        blank(0.4, " \t\n"),
        blank(0.4, &format!("\n{}", &body[..20])),
        blank(0.0, &body[20..]),
    ])
    .header("Content-Type", "application/json");
    for (args, reply) in [
        (&["--no-stream"][..], whole(&format!("\n\n\n\n{body}\n"))),
        (&["--no-stream"][..], dripping),
        (&[][..], whole(&format!("\r\n\r\n{body}"))),
        (&[][..], stream_of(format!("\n\n\ndata: {FOUR}\n\n"))),
    ] {
        let test = skills().env("LLM_TIMEOUT_SECONDS", "1");
        talk_with(test, args, [reply]).run.success().stdout("4\n");
    }
}

#[test]
fn data_without_a_space_is_read() {
    let bytes = format!(
        "data:{}\n\ndata:  {}\n\ndata:{}\n\ndata:[DONE]\n\n",
        delta(r#""content":" two  ""#),
        delta(r#""content":"blanks""#),
        finish("stop"),
    );
    talk(&[], [stream_of(bytes)]).run.success().stdout(" two  blanks\n");
    let calls =
        format!("data:{}\n\ndata:{}\n\ndata:[DONE]\n\n", pieces(ALPHA), finish("tool_calls"));
    let talk = talk(&[], [stream_of(calls), Reply::text("done")]);
    talk.run.success().stdout("done\n");
    assert_eq!(listed(results_of(&talk.requests[1])[0]), ["alpha"]);
}

#[test]
fn any_line_end_and_any_split_is_read() {
    let text = "Grüße, 世界 🦀!";
    let first = delta(&format!(r#""content":"{text}""#)).replace(r#","delta""#, "\n,\"delta\"");
    let (one, two) = first.split_once('\n').unwrap();
    // `event` and `id` lines, data in two lines.
    let body = format!(
        "event: message\nid: 1\nretry: 10\ndata: {one}\ndata: {two}\n\nevent: end\ndata: {}\n\ndata: [DONE]\n\n",
        finish("stop")
    );
    for end in ["\n", "\r\n", "\r"] {
        let bytes = body.replace('\n', end).into_bytes();
        let by_byte = bytes.iter().map(|byte| (seconds(0.0), vec![*byte]));
        for reply in [stream_of(bytes.clone()), Reply::chunks(by_byte)] {
            talk(&[], [reply]).run.success().stdout(&format!("{text}\n"));
        }
    }
    // Each part is a packet; the splits are inside `data:`, a character and `\r\n`.
    let bytes = body.replace('\n', "\r\n").into_bytes();
    let crab = bytes.windows(4).position(|four| four == "🦀".as_bytes()).unwrap();
    let data = bytes.windows(5).position(|five| five == b"data:").unwrap();
    let ends = [data + 2, crab + 1, crab + 3, bytes.len() - 3, bytes.len()];
    let mut from = 0;
    let cut = ends.map(|end| {
        let part = bytes[from..end].to_vec();
        from = end;
        (seconds(0.02), part)
    });
    talk(&[], [Reply::chunks(cut)]).run.success().stdout(&format!("{text}\n"));
}

#[test]
fn concatenated_frames_are_separated() {
    let (the, answer) = (delta(r#""content":"The ""#), delta(r#""content":"answer""#));
    let end = format!("data: {}\n\ndata: [DONE]\n\n", finish("stop"));
    let table = [
        ("one line end lost", format!("data: {the}\ndata: {answer}\n\n{end}"), "The answer\n"),
        ("both line ends lost", format!("data: {the}data: {answer}\n\n{end}"), "The answer\n"),
        ("no prefix", format!("data: {the}{answer}\n\n{end}"), "The answer\n"),
        ("prefix twice", format!("data: data: {the}\n\ndata: {answer}\n\n{end}"), "The answer\n"),
        // Z.AI: half of an old frame, left in a buffer, before the next one.
        (
            "after half a frame",
            format!(
                "data: {the}\n\ndata: {{\"id\":\"x\",\"object\":\"chat.completion.cdata: {answer}\n\n{end}"
            ),
            "The answer\n",
        ),
        (
            "no line end before the end marker",
            format!("data: {the}\n\ndata: {FOUR}data: [DONE]\n\n"),
            "The 4\n",
        ),
    ];
    for (dialect, bytes, expected) in table {
        println!("{dialect}");
        talk(&[], [stream_of(bytes)]).run.success().stdout(expected);
    }
    // In the text of an answer, `data:` is ordinary text.
    let quoting = delta(r#""content":"write data: {\"a\":1}data: {}""#);
    let bytes = format!("data: {quoting}\n\n{end}");
    talk(&[], [stream_of(bytes)]).run.success().stdout("write data: {\"a\":1}data: {}\n");
}

#[test]
fn reply_format_is_detected_from_the_first_byte() {
    let page =
        "<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body>data: {}</body></html>";
    for page in [page.to_string(), format!("\n\n  {page}")] {
        for (args, reply) in [
            (&[][..], whole(&page).header("Content-Type", "text/html")),
            (&[][..], stream_of(page.clone())),
            (&["--no-stream"][..], whole(&page)),
        ] {
            let talk = talk(args, [reply]);
            talk.run
                .status(1)
                .stdout_is_empty()
                .stderr_has("Sign in")
                .stderr_has("LLM_API_BASE_URL");
        }
    }
    // The headers contradict the body.
    let events = format!("event: message\ndata: {FOUR}\n\ndata: [DONE]\n\n");
    let body = r#"{"choices":[{"message":{"content":"4"},"finish_reason":"stop"}]}"#;
    for (args, reply) in [
        (&[][..], whole(&events)),
        (&["--no-stream"][..], whole(&events)),
        (&["--no-stream"][..], stream_of(events.clone())),
        (&["--no-stream"][..], stream_of(format!(": hello\n\n{events}"))),
        (&[][..], stream_of(body)),
        (&[][..], whole(body).header("Content-Type", "text/event-stream")),
        (&[][..], whole(&format!("\u{feff}{body}"))),
        (&[][..], whole(&format!("\u{feff}{events}"))),
    ] {
        talk(args, [reply]).run.success().stdout("4\n");
    }
}
