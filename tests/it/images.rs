//! Images and other attachments, from `--attach`, `/attach` and a skill's files to the server, and
//! endpoints that refuse them.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::harness::{Reply, Request, Server, Test, seconds};

const SKILL: &str = "---\nname: art\ndescription: Pictures.\n---\nLook at them.\n";

/// An image of this size with `filler` bytes of all values after its header.
fn png(width: u32, height: u32, filler: usize) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
    bytes.extend(width.to_be_bytes());
    bytes.extend(height.to_be_bytes());
    bytes.extend((0..filler).map(|number| (number * 7 + number / 256) as u8));
    bytes
}

const JPEG: &[u8] = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x11\x08\0\x05\0\x06\x03\xff\xd9";
const GIF: &[u8] = b"GIF89a\x03\0\x02\0\x80\0\0";
const WEBP: &[u8] = b"RIFF\x20\0\0\0WEBPVP8L\x14\0\0\0\x2f\x01\xc1\0\0\0\0";

/// Type and bytes of an inline image.
#[track_caller]
fn decoded(part: &Value) -> (String, Vec<u8>) {
    assert_eq!(part["type"], "image_url", "{part}");
    let url = part["image_url"]["url"].as_str().unwrap();
    let (mime, data) = url.strip_prefix("data:").unwrap().split_once(";base64,").unwrap();
    (mime.into(), BASE64_STANDARD.decode(data).unwrap())
}

#[track_caller]
fn parts(message: &Value) -> &[Value] {
    message["content"].as_array().unwrap_or_else(|| panic!("no parts: {message}"))
}

fn read(path: &str) -> (&'static str, String) {
    let arguments = json!({"skill_name": "art", "file_path": path});
    ("read_file_in_skill", arguments.to_string())
}

fn reads(paths: &[&str]) -> Reply {
    let calls: Vec<(&str, String)> = paths.iter().map(|path| read(path)).collect();
    Reply::calls(calls.iter().map(|(name, json)| (*name, json.as_str())))
}

/// Whether the request contains a part of an image.
fn shows(request: &Request) -> bool {
    String::from_utf8_lossy(&request.body).contains("image_url")
}

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

/// Refusals of images by real endpoints: status and body.
const REFUSALS: [(u16, &str); 17] = [
    (
        400,
        r#"{"error":{"message":"prompting with images is incompatible with system messages","type":"invalid_request_error"}}"#,
    ),
    (404, r#"{"error":{"message":"No endpoints found that support image input","code":404}}"#),
    (
        400,
        r#"{"error":{"message":"Invalid content type. image_url is only supported by certain models.","type":"invalid_request_error","param":"messages.[0].content.[1].type","code":null}}"#,
    ),
    (
        400,
        r#"{"error":{"message":"Failed to deserialize the JSON body into the target type: messages[1]: unknown variant `image_url`, expected `text` at line 1 column 9","type":"invalid_request_error","param":null}}"#,
    ),
    (422, r#"{"error":"unknown variant \"image_url\", expected \"text\""}"#),
    (
        400,
        r#"{"message":"this model does not support image input (ref: 1)","type":"invalid_request_error","param":null,"code":null}"#,
    ),
    (
        500,
        r#"{"error":{"code":500,"message":"image input is not supported - hint: if this is unexpected, you may need to provide the mmproj","type":"server_error"}}"#,
    ),
    (
        400,
        r#"{"object":"error","message":"test-model is not a multimodal model","type":"BadRequestError","code":400}"#,
    ),
    (
        400,
        r#"{"object":"error","message":"At most 0 image(s) may be provided in one request.","code":400}"#,
    ),
    (
        400,
        r#"{"error":{"message":"'messages.0' : for 'role:user' the following must be satisfied[('messages.0.content' : value must be a string)]","type":"invalid_request_error"}}"#,
    ),
    (
        422,
        r#"{"detail":[{"type":"string_type","loc":["body","messages",1,"content","str"],"msg":"Input should be a valid string"}]}"#,
    ),
    (
        400,
        r#"{"code":20041,"message":"The model is not a VLM (Vision Language Model). Please use text-only prompts.","data":null}"#,
    ),
    (400, r#"{"error":"Model does not support images. Please use a model that does."}"#),
    (415, r#"{"error":{"message":"Image input modality is not enabled for models/x"}}"#),
    (
        400,
        r#"{"error":{"message":"Invalid value: 'image_url'. Supported values are: 'text'.","param":"messages[1].content[1].type"}}"#,
    ),
    (400, r#"{"message":"This model doesn't support the image content block that you provided."}"#),
    (200, r#"{"error":{"message":"image inputs are not supported by this model","code":400}}"#),
];

/// Images from tools are omitted once an endpoint has refused one.
#[test]
fn refused_image_of_a_tool_is_omitted() {
    for (status, words) in REFUSALS {
        let server = Server::always(move |request| match request.messages().len() {
            _ if shows(request) => Reply::status(status).body(words),
            2 => reads(&["a.gif"]),
            _ => Reply::text("done"),
        });
        let run = Test::new()
            .skill("art", SKILL)
            .file("skills/art/a.gif", GIF)
            .endpoint(&server)
            .args(["chat"])
            .stdin("look\nand now\n")
            .run();
        run.success()
            .stdout("done\ndone\n")
            .stderr_has("refuses images: they are left out from now on");
        let requests = server.finish();
        let refused = requests.iter().filter(|request| shows(request)).count();
        // The message may also refer to an empty content, which is changed first.
        assert!(refused == 1 || refused == 2 && words.contains("string"), "{words}");
        assert_eq!(requests.len(), 3 + refused, "{words}");
        let last = requests.last().unwrap();
        let reported = last.tool_result("call_1");
        assert!(
            reported.ends_with("as an image]\n[image left out: the model is shown none]"),
            "{words}: {reported}"
        );
    }
}

/// An image attached by the user is not omitted silently.
#[test]
fn refused_image_of_the_question_is_an_error_with_a_remedy() {
    for (status, words) in REFUSALS {
        let server = Server::start([Reply::status(status).body(words)]);
        let run = Test::new()
            .file("a.gif", GIF)
            .endpoint(&server)
            .args(["-o", "json", "-aa.gif", "look"])
            .run();
        let run = run
            .status(1)
            .stderr_has("the endpoint or the model refuses images: ")
            .stderr_has("hint: use a model with vision, or set LLM_VISION=off");
        assert_eq!(run.stdout_json()["error"]["kind"], "endpoint", "{words}");
        server.finish();
    }
}

/// Other refusals are not classified as refusals of an image.
#[test]
fn other_refusals_are_not_image_refusals() {
    for (status, words, kind) in [
        (400, "Invalid image data: could not decode", "endpoint"),
        (
            400,
            "image URLs are not currently supported, please use base64 encoded data instead",
            "endpoint",
        ),
        (401, "this key has no access to vision; image input is not allowed", "auth"),
        (400, "maximum context length is 8192 tokens", "context"),
    ] {
        let server = Server::start([Reply::error(status, words)]);
        let run = Test::new()
            .file("a.gif", GIF)
            .endpoint(&server)
            .args(["-o", "json", "-aa.gif", "look"])
            .run();
        let run = run.stderr_lacks("refuses images");
        assert_eq!(run.stdout_json()["error"]["kind"], kind, "{words}");
        server.finish();
    }
}

/// The question is kept until another replaces it; `/retry` sends it again. Images of an older
/// question do not block the conversation.
#[test]
fn conversation_continues_after_a_refused_image() {
    let refusal = || Reply::error(400, "this model does not support image input");
    let server = Server::start([refusal(), refusal(), Reply::text("plain")]);
    let test = Test::new().file("a.gif", GIF);
    let lines = "/attach a.gif\nlook\n/retry\nwithout\n";
    let run = test.next_run().endpoint(&server).args(["chat"]).stdin(lines);
    run.run().status(1).stdout("plain\n");
    let requests = server.finish();
    assert_eq!(requests[1].json["messages"], requests[0].json["messages"]);
    assert!(shows(&requests[1]) && requests[2].messages().len() == 2);
    assert_eq!(requests[2].last_message()["content"], "without");

    let server = Server::start([
        Reply::text("seen"),
        refusal(),
        Reply::text("blind"),
        Reply::text("still"),
        // Another model may accept images.
        Reply::text("seeing"),
    ]);
    let run = test.endpoint(&server).args(["chat", "-aa.gif", "look"]);
    let run = run.stdin("and now\nand then\n/model other\nagain\n").run();
    run.success().stdout("seen\nblind\nstill\nseeing\n");
    let requests = server.finish();
    let shown: Vec<bool> = requests.iter().map(shows).collect();
    assert_eq!(shown, [true, true, false, false, true]);
    assert_eq!(
        requests[3].messages()[1]["content"],
        "look\n[image left out: the model is shown none]"
    );
}

#[test]
fn attachments_go_with_the_next_question() {
    let server = Server::start(["one", "two", "three", "four"].map(Reply::text));
    let test = Test::new()
        .skill("art", SKILL)
        .file("a.gif", GIF)
        .file("b b.png", png(4, 5, 10))
        .file("home/c.txt", "see\n")
        .endpoint(&server)
        .args(["chat", "-a", "a.gif"]);
    let home = test.path("home");
    let lines = "/attach\nfirst\n/attach\n/attach 'b b.png'\n/clear\n/attach b\\ b.png\n/attach ~/c.txt\n/attach missing\n\
                 /attach\nsecond\n/attach a.gif\n/clear\nthird\n/attach a.gif\n/art now\n";
    let run = test.env("HOME", home).stdin(lines).run();
    // A refused line sets the exit status, as in every piped conversation.
    run.status(1)
        .stdout("one\ntwo\nthree\nfour\n")
        .stderr_has("attached: a.gif (image/gif, 13 bytes, 3x2)")
        .stderr_has("nothing is attached")
        .stderr_has("attached to the next question: b b.png (image/png, 34 bytes, 4x5)")
        .stderr_has("attached: ~/c.txt (text, 4 bytes)")
        .stderr_has("skills-runner: failed to attach `missing`: No such file");
    let requests = server.finish();
    let first = parts(requests[0].last_message());
    assert_eq!((first.len(), &first[0]["text"]), (2, &json!("first")));
    assert_eq!(decoded(&first[1]).1, GIF);
    let second = parts(requests[1].last_message());
    let text = "second\n\n<file name=\"~/c.txt\">\nsee\n</file>";
    assert_eq!((second.len(), &second[0]["text"]), (2, &json!(text)));
    assert_eq!(decoded(&second[1]).0, "image/png");
    assert_eq!(requests[2].last_message()["content"], "third");
    let fourth = parts(requests[3].last_message());
    assert!(fourth[0]["text"].as_str().unwrap().contains("Look at them."));
    assert_eq!(decoded(&fourth[1]).1, GIF);
}

/// Without a prompt, attachments go with the first typed question. A refused line on a terminal can
/// be typed again.
#[test]
fn attachments_work_on_a_terminal() {
    let server = Server::start([Reply::text("Seen.")]);
    let test = Test::new().file("a.gif", GIF).endpoint(&server);
    let mut terminal = test.args(["-a", "a.gif"]).spawn_on_terminal();
    terminal
        .expect("> ")
        .type_line("/attach nowhere.png")
        .expect("No such file")
        .expect("> ")
        .type_line("/attach a.gif")
        .expect("to the next question")
        .expect("> ")
        .type_line("look")
        .expect("Seen.")
        .expect("> ")
        .ctrl('d');
    terminal.wait_exit().success();
    let requests = server.finish();
    assert_eq!(parts(requests[0].last_message()).len(), 2);
}

/// All images are sent with every request, so images from tools are limited in number.
#[test]
fn images_from_tools_are_limited_per_conversation() {
    let server = Server::start([reads(&["1", "2", "3", "tiny"]), Reply::text("done")]);
    let mut test = Test::new().skill("art", SKILL).file("skills/art/tiny", GIF);
    for number in 1..=3 {
        let file = format!("skills/art/{number}");
        test = test.file(&file, png(number, 9, (5 << 20) - 24));
    }
    test.endpoint(&server).args(["look"]).run().success();
    let requests = server.finish();
    assert_eq!(parts(requests[1].last_message()).len(), 2 * 3);
    let content = requests[1].tool_result("call_3");
    assert!(content.ends_with("no room for more images]"), "{content}");
}

/// The largest image is in memory at most twice in base64.
#[test]
fn largest_image_needs_little_memory() {
    let largest = png(9, 9, (5 << 20) - 24);
    // Few tokens for many bytes do not cause a warning.
    let reply = Reply::text("done").with_usage(900, 5);
    let server = Server::start([reads(&["a.png"]), reply]);
    let run = Test::new()
        .skill("art", SKILL)
        .file("skills/art/a.png", &largest)
        .endpoint(&server)
        .args(["look"])
        .run();
    run.success().stderr_lacks("OLLAMA_CONTEXT_LENGTH").memory_at_most(26 << 10);
    let requests = server.finish();
    let last = parts(requests[1].last_message());
    assert_eq!(decoded(&last[1]).1, largest);
}

/// A file or address attached twice is sent and reported once.
#[test]
fn duplicate_attachment_is_sent_once() {
    let server = Server::start([Reply::text("one"), Reply::text("two")]);
    let url = "https://h.test/a.png";
    let test = Test::new().file("a.txt", "text");
    let lines = format!("/attach a.txt\n/attach {url}\n/attach\nfirst\n");
    let test_chat = test.next_run().endpoint(&server);
    let run = test_chat.args(["chat", "-a", "a.txt"]).stdin(lines).run().success();
    run.stderr_has(&format!("attached: {url} (the endpoint fetches it)\n"));
    let asks = test.endpoint(&server).args(["-a", "a.txt", "-aa.txt", "hi"]);
    asks.run().success();
    let requests = server.finish();
    let first = parts(requests[0].last_message());
    let text = "first\n\n<file name=\"a.txt\">\ntext\n</file>";
    assert_eq!((first.len(), &first[0]["text"]), (2, &json!(text)));
    let text = "hi\n\n<file name=\"a.txt\">\ntext\n</file>";
    assert_eq!(requests[1].last_message()["content"], text);
}

/// Attachments of a failed question go with the question that replaces it, which is reported.
/// Attachments dropped by `/undo` and `/clear` are reported as well.
#[test]
fn attachments_of_a_failed_question_are_kept() {
    let full = "maximum context length is 4096 tokens";
    let server = Server::start([
        Reply::error(503, "no").header("Retry-After", "3600"),
        Reply::text("one"),
        Reply::error(400, full),
        Reply::text("two"),
    ]);
    let test = Test::new()
        .file("notes.txt", "the notes")
        .file("a.gif", GIF)
        .endpoint(&server)
        .args(["chat"]);
    let mut terminal = test.spawn_on_terminal();
    terminal.expect("> ").type_line("/attach notes.txt");
    terminal.expect("> ").type_line("/attach a.gif");
    terminal.expect("> ").type_line("first");
    terminal.expect("/retry sends it again").expect("> ");
    terminal
        .type_line("better")
        .expect("attached again, because the previous question failed: notes.txt, image/gif")
        .expect("one")
        .expect("> ");
    terminal
        .type_line("/undo")
        .expect("removed question and answer: better\n")
        .expect("removed attachments: notes.txt, image/gif")
        .expect("> ");
    terminal.type_line("/attach notes.txt").expect("> ");
    terminal.type_line("large").expect(full).expect("> ");
    // Except if the question was too large.
    let offers = terminal.output().matches("/retry sends").count();
    assert_eq!(offers, 1);
    terminal
        .type_line("small")
        .expect("removed with the failed question: notes.txt")
        .expect("two")
        .expect("> ");
    terminal.type_line("/attach notes.txt").expect("> ");
    terminal
        .type_line("/clear")
        .expect("the conversation is cleared; removed attachments: notes.txt (text, 9 bytes)")
        .expect("> ");
    terminal.ctrl('d');
    terminal.wait_exit().success();
    let requests = server.finish();
    let better = parts(requests[1].last_message());
    let text = "better\n\n<file name=\"notes.txt\">\nthe notes\n</file>";
    assert_eq!((better.len(), &better[0]["text"]), (2, &json!(text)));
    assert_eq!(requests[3].last_message()["content"], "small");
}
