//! Images of skills.

use super::{GIF, JPEG, SKILL, decoded, parts, png, read, reads, shows};
use crate::harness::{Reply, Server, Test};
use serde_json::{Value, json};

/// Several images of one step, with other calls between them, follow all results in one message,
/// and stay in the conversation.
#[test]
fn images_of_a_skill_are_shown_to_the_model() {
    let logo = png(20, 10, 5000);
    for stream in [true, false] {
        let form = |reply: Reply| {
            if stream { reply.streamed() } else { reply.not_streamed() }
        };
        let server = Server::start([
            form(reads(&["logo.png", "SKILL.md", "sub/photo", "table.csv"])),
            form(reads(&["SKILL.md"])),
            form(Reply::text("seen")),
        ]);
        let test = Test::new()
            .skill("art", SKILL)
            .file("skills/art/logo.png", &logo)
            .file("skills/art/sub/photo", JPEG)
            .file("skills/art/table.csv", "a,b\n")
            .endpoint(&server)
            .args(["look", "-o", "jsonl", "--log", "log.jsonl"])
            .args(if stream { &[][..] } else { &["--no-stream"] });
        let run = test.run().success();
        let requests = server.finish();
        for request in &requests[1..] {
            let messages = request.messages();
            let roles: Vec<&str> =
                messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
            assert_eq!(
                roles[..9],
                [
                    "system",
                    "user",
                    "assistant",
                    "tool",
                    "tool",
                    "tool",
                    "tool",
                    "assistant",
                    "user"
                ]
            );
            let size = logo.len();
            assert_eq!(
                messages[3]["content"],
                format!("[image/png, {size} bytes, 20x10: shown to you as an image]")
            );
            assert_eq!(messages[6]["content"], "a,b\n");
            let parts = parts(&messages[8]);
            assert_eq!(parts.len(), 4);
            let label = |path| format!("read_file_in_skill {}:", read(path).1);
            assert_eq!(parts[0], json!({"type": "text", "text": label("logo.png")}));
            assert_eq!(decoded(&parts[1]), ("image/png".into(), logo.clone()));
            assert_eq!(parts[2], json!({"type": "text", "text": label("sub/photo")}));
            assert_eq!(decoded(&parts[3]), ("image/jpeg".into(), JPEG.to_vec()));
        }
        // Records mention an image without its content.
        let log = test.read("log.jsonl");
        let records: Vec<String> = run.stdout_json_lines().iter().map(Value::to_string).collect();
        for text in [log, records.join("\n")] {
            assert!(text.contains("20x10: shown to you as an image"), "{text}");
            assert!(!text.contains("base64"), "{text}");
        }
    }
}

#[test]
fn image_in_the_conversation_is_not_shown_again() {
    let server = Server::start([
        reads(&["a.gif", "a.gif"]),
        reads(&["a.gif", "b.gif"]),
        Reply::text("seen"),
    ]);
    let other = [GIF, b"other"].concat();
    Test::new()
        .skill("art", SKILL)
        .file("skills/art/a.gif", GIF)
        .file("skills/art/b.gif", &other)
        .endpoint(&server)
        .args(["look"])
        .run()
        .success();
    let requests = server.finish();
    let messages = requests[2].messages();
    assert_eq!(parts(&messages[6]).len(), 2);
    assert_eq!(decoded(&parts(&messages[6])[1]).1, GIF);
    for again in [4, 8] {
        let content = messages[again]["content"].as_str().unwrap();
        assert!(content.ends_with("the same image is above in this conversation]"), "{content}");
    }
    assert_eq!(decoded(&parts(&messages[11])[1]).1, other);
}

/// A file that is not an image, or too large, is reported as before.
#[test]
fn file_that_cannot_be_shown_is_reported() {
    let huge = png(9, 9, (5 << 20) + 100);
    let huge_told = format!(
        "PNG image, {} bytes: larger than the limit of 5 MiB for images, so it is not shown; a script can work with it",
        huge.len()
    );
    let test = Test::new()
        .skill("art", SKILL)
        .file("skills/art/huge.png", huge)
        .file("skills/art/broken.png", b"\x89PNG\r\n\x1a\nxyz")
        .file("skills/art/a.gif", GIF)
        .file("skills/art/a.wav", b"RIFF\x20\0\0\0WAVEfmt \0")
        .file("skills/art/text.png", "just text\n");
    let table = [
        ("huge.png", huge_told.as_str()),
        (
            "broken.png",
            "PNG image, 11 bytes: it is damaged, so it is not shown; a script can work with it",
        ),
        (
            "a.wav",
            "RIFF file (WebP, WAV or AVI), 17 bytes: not text, so it is not shown; a script can work with it",
        ),
        ("text.png", "just text"),
        ("a.gif", "[image/gif, 13 bytes, 3x2: shown to you as an image]"),
    ];
    for (path, reported) in table {
        let run = test.next_run().args(["tool", "read_file_in_skill", &read(path).1]).run();
        run.success().stdout(&format!("{reported}\n"));
    }
}

#[test]
fn without_vision_images_are_refused_and_text_is_not() {
    let server = Server::start([reads(&["a.gif"]), Reply::text("seen"), Reply::text("two")]);
    let test = Test::new()
        .skill("art", SKILL)
        .file("skills/art/a.gif", GIF)
        .file("a.gif", GIF)
        .file("a.txt", "text")
        .env("LLM_VISION", "off");
    for image in ["a.gif", "https://h.test/a.gif"] {
        let run = test.next_run().endpoint(&server).args(["hi", "-a", image]).run();
        run.status(2)
            .stderr_has("it is an image, and vision is off (set LLM_VISION=on to send images)");
    }
    let run = test.next_run().endpoint(&server).args(["hi", "-a", "a.txt"]).run();
    run.success().stdout("seen\n");
    let run = test.endpoint(&server).args(["chat"]).stdin("/attach a.gif\nquestion\n").run();
    run.status(1).stdout("two\n").stderr_has("vision is off");
    let requests = server.finish();
    let reported = requests[1].last_message()["content"].as_str().unwrap();
    assert_eq!(
        reported,
        "GIF image, 13 bytes: vision is off (LLM_VISION), so it is not shown; a script can work with it"
    );
    assert!(!requests.iter().any(shows));
}
