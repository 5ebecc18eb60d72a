//! Attached images and files.

use super::{GIF, JPEG, decoded, parts, png};
use crate::harness::{Reply, Server, Test, seconds};
use serde_json::json;

const WEBP: &[u8] = b"RIFF\x20\0\0\0WEBPVP8L\x14\0\0\0\x2f\x01\xc1\0\0\0\0";

/// The type of a file is detected from its bytes, not from its name.
#[test]
fn attached_images_reach_the_server_byte_for_byte() {
    let large = png(640, 480, 300_000);
    for stream in [true, false] {
        let reply = Reply::text("seen");
        let server = Server::start([if stream { reply.streamed() } else { reply.not_streamed() }]);
        let run = Test::new()
            .file("a.png", &large)
            .file("sub dir/b.png", JPEG)
            .file("c", GIF)
            .file("d.txt", WEBP)
            .endpoint(&server)
            .args(["-a", "a.png", "what", "--attach=sub dir/b.png", "is"])
            .args(["-a", "c", "-ad.txt", "this?"])
            .args(if stream { &[][..] } else { &["--no-stream"] })
            .run();
        run.success().stdout("seen\n");
        let requests = server.finish();
        let parts = parts(requests[0].last_message());
        assert_eq!(parts[0], json!({"type": "text", "text": "what is this?"}));
        let expected: [(&str, &[u8]); 4] =
            [("image/png", &large), ("image/jpeg", JPEG), ("image/gif", GIF), ("image/webp", WEBP)];
        assert_eq!(parts.len(), 5);
        for (part, (mime, bytes)) in parts[1..].iter().zip(expected) {
            assert_eq!(decoded(part), (mime.to_string(), bytes.to_vec()));
        }
    }
}

#[test]
fn image_address_is_sent_unchanged() {
    let server = Server::start([Reply::text("seen")]);
    let url = "HTTPS://user:pass@example.test/a.png?token=abc#x";
    let test = Test::new().endpoint(&server).args(["look", "-a", url]);
    let test = test.args(["--log", "log.jsonl"]);
    test.run().success();
    let requests = server.finish();
    let parts = parts(requests[0].last_message());
    assert_eq!(parts[1], json!({"type": "image_url", "image_url": {"url": url}}));
    let log = test.read("log.jsonl");
    assert!(log.contains("look\\n[image: HTTPS://example.test/a.png]"), "{log}");
    assert!(!log.contains("token=") && !log.contains("pass@"), "{log}");
}

#[test]
fn text_files_follow_the_prompt() {
    let server = Server::start([Reply::text("one"), Reply::text("two")]);
    let test = Test::new()
        .file("notes.md", "a\nb")
        .file("<odd> & \"quoted\"\nname", "grüße\n")
        .endpoint(&server);
    let line = "skills-runner -a notes.md -a '<odd> & \"quoted\"\nname' sum up";
    let piped = test.next_run().endpoint(&server);
    test.shell(line).stdin_null().run().success();
    piped.args(["-a", "notes.md", "sum up"]).stdin("from stdin").run().success();
    let requests = server.finish();
    assert_eq!(
        requests[0].last_message()["content"],
        "sum up\n\n<file name=\"notes.md\">\na\nb\n</file>\n\n\
         <file name=\"&lt;odd&gt; &amp; &quot;quoted&quot;\u{fffd}name\">\ngrüße\n</file>"
    );
    assert_eq!(
        requests[1].last_message()["content"],
        "sum up\n\n<stdin>\nfrom stdin\n</stdin>\n\n<file name=\"notes.md\">\na\nb\n</file>"
    );
}

/// A pipe can be attached like a file.
#[test]
fn command_output_can_be_attached() {
    let server = Server::start([Reply::text("one")]);
    Test::new()
        .endpoint(&server)
        .shell("mkfifo p; echo hello >p & exec skills-runner -a p 'sum up'")
        .stdin_null()
        .run()
        .success();
    let requests = server.finish();
    let content = &requests[0].last_message()["content"];
    assert_eq!(*content, "sum up\n\n<file name=\"p\">\nhello\n</file>");
}

/// Wrong usage with the reason, before any request.
#[test]
fn invalid_attachments_are_refused() {
    let test = Test::new()
        .file("a.pdf", b"%PDF-1.7\n1 0 obj\n")
        .file("utf16.txt", b"\xff\xfeh\0i\0")
        .file("empty.txt", b"")
        .file("broken.png", b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\0")
        .file("huge.png", png(9, 9, 5 << 20))
        .file("latin1.txt", b"one\ncaf\xe9")
        .file("late.txt", [vec![b'x'; 100_000], vec![0]].concat())
        .file("huge.txt", vec![b'x'; (16 << 20) + 1])
        .file("half.txt", vec![b'x'; 9 << 20])
        .file("other.txt", vec![b'x'; 9 << 20])
        .file("secret.txt", b"x")
        .mode("secret.txt", 0)
        .folder("folder");
    let elf = std::env::current_exe().unwrap();
    let elf = elf.to_str().unwrap();
    let table = [
        (
            "a.pdf",
            "it is a PDF document; only images (PNG, JPEG, GIF, WebP) and UTF-8 text can be attached",
        ),
        ("utf16.txt", "it is a binary file"),
        ("empty.txt", "it is empty"),
        ("/dev/null", "it is empty"),
        ("broken.png", "it starts like a PNG image, but is damaged"),
        ("huge.png", "the image is larger than 5 MiB: make it smaller, or attach an address of it"),
        ("latin1.txt", "its line 2 is not UTF-8"),
        ("late.txt", "it is a binary file"),
        ("huge.txt", "larger than 16777216 bytes"),
        ("folder", "it is a folder"),
        ("/dev/zero", "neither a file nor a pipe"),
        ("missing.png", "No such file"),
        (elf, ""),
        ("ftp://h.test/a.png", "only images can be attached by their address"),
        ("data:image/png;base64,AAAA", "only images can be attached by their address"),
        ("file:///etc/passwd", "only images can be attached by their address"),
        ("http://h.test/a b.png", "cannot contain spaces"),
        ("http://", "only images can be attached by their address"),
        ("", "the name is empty"),
    ];
    let server = Server::start([]);
    for (name, reason) in table {
        let test = test.next_run().endpoint(&server);
        let run = test.args(["hi", "-a", name]).stdin_null().run();
        run.status(2).stdout_is_empty().stderr_has(reason);
    }
    let run = test.next_run().endpoint(&server).args(["hi", "-ahalf.txt", "-aother.txt"]);
    run.run().status(2).stderr_has("the attachments would be larger than 16 MiB");
    // Root can read every file.
    if std::fs::read(test.path("secret.txt")).is_err() {
        let run = test.next_run().endpoint(&server).args(["hi", "-asecret.txt"]).run();
        run.status(2).stderr_has("Permission denied");
    }
    server.finish();
}

/// The run timeout ends the wait for a FIFO without a writer.
#[test]
fn silent_pipe_ends_at_the_run_timeout() {
    let server = Server::start([]);
    let run = Test::new()
        .endpoint(&server)
        .shell("mkfifo p; skills-runner --timeout 0.5 -a p hi")
        .stdin_null()
        .run();
    run.status(3).took_at_most(seconds(10.0));
    server.finish();
}

#[test]
fn attachment_without_a_prompt_is_wrong_usage() {
    let server = Server::start([Reply::text("fine")]);
    let test = Test::new().file("a.txt", "x").endpoint(&server);
    for args in [&["-aa.txt"][..], &["-aa.txt", "-n"], &["chat", "-n", "-aa.txt"]] {
        let run = test.next_run().endpoint(&server).args(args).stdin_null().run();
        run.status(2).stderr_has("there is no prompt");
    }
    for command in [&["demo"][..], &["doctor"], &["skills", "list"], &["tool", "x"]] {
        let run = test.next_run().args(command).args(["-a", "a.txt"]).run();
        run.status(2).stderr_has("--attach works only with a question");
    }
    let run = test.args(["-a", "a.txt"]).stdin("from a pipe").run();
    run.success().stdout("fine\n");
    let requests = server.finish();
    let content = &requests[0].last_message()["content"];
    assert_eq!(*content, "from a pipe\n\n<file name=\"a.txt\">\nx\n</file>");
}

#[test]
fn dry_run_shows_the_request_with_images() {
    let run = Test::new()
        .env("LLM_API_BASE_URL", "http://127.0.0.1:9/v1")
        .env("LLM_MODEL_NAME", "m")
        .file("a.gif", GIF)
        .args(["--dry-run", "look", "-a", "a.gif"])
        .run();
    let shown = run.success().stdout_json();
    let parts = parts(&shown["body"]["messages"][1]);
    assert_eq!(decoded(&parts[1]), ("image/gif".into(), GIF.to_vec()));
}
