//! Reasoning, opaque fields, and content in blocks.

use serde_json::{Value, json};

use super::{
    ALPHA, after_calls, calling_message, delta, finish, message, pieces, stream, stream_of_pieces,
    talk,
};
use crate::harness::Reply;

/// A reply with reasoning and a call, streamed and not streamed.
fn with_reasoning_and_call(fields: &str) -> [(&'static [&'static str], Reply); 2] {
    let streamed = stream([delta(fields), pieces(ALPHA), finish("tool_calls")]);
    let body = message(&format!(r#"{fields},"tool_calls":{ALPHA}"#), "tool_calls");
    [(&[], streamed), (&["--no-stream"], body)]
}

#[test]
fn reasoning_is_shown_once_and_not_on_stdout() {
    for (fields, kept) in [
        (r#""reasoning_content":"Hm, 2.""#, "reasoning_content"),
        (r#""reasoning":"Hm, 2.""#, "reasoning"),
        (r#""reasoning_text":"Hm, 2.""#, ""),
        (r#""reasoning":"Hm, 2.","reasoning_content":"Hm, 2.""#, "reasoning_content"),
        (r#""reasoning_content":"","reasoning":"Hm, 2.""#, "reasoning"),
        (r#""reasoning_content":null,"reasoning":"Hm, 2.""#, "reasoning"),
    ] {
        for args in [&["-v"][..], &["-v", "--no-stream"]] {
            let streamed = stream([delta(fields), delta(r#""content":"4""#), finish("stop")]);
            let body = message(&format!(r#"{fields},"content":"4""#), "stop");
            let reply = if args.len() == 1 { streamed } else { body };
            let talk = talk(args, [reply]);
            assert_eq!(talk.run.stderr.matches("Hm, 2.").count(), 1, "{fields}");
            talk.run.success().stdout("4\n");
        }
        // At most one field is sent back with calls; `reasoning_text` never is.
        for (args, reply) in with_reasoning_and_call(fields) {
            let request = after_calls(args, reply);
            let names = ["reasoning_content", "reasoning", "reasoning_text"];
            let sent =
                names.into_iter().filter(|name| calling_message(&request).get(*name).is_some());
            let sent: Vec<&str> = sent.collect();
            assert_eq!(sent.join(" "), kept, "{fields}");
        }
    }
    // Without -v reasoning is not shown.
    let silent =
        stream([delta(r#""reasoning_content":"Hm.""#), delta(r#""content":"4""#), finish("stop")]);
    talk(&[], [silent]).run.success().stdout("4\n").stderr_is_empty();
}

#[test]
fn reasoning_in_the_text_is_not_part_of_the_answer() {
    let texts = [
        ("<think>\nHm, </thin 2.\n</think>\n\nIt is 4.", "It is 4."),
        // The opening tag was part of the prompt.
        ("Hm, 2.</think>\n\nIt is 4.", "It is 4."),
        // Tags that the text only mentions.
        ("It is `<think>`.", "It is `<think>`."),
    ];
    for (text, expected) in texts {
        let in_pieces = |size: usize| {
            let letters: Vec<char> = text.chars().collect();
            let parts: Vec<String> = letters
                .chunks(size)
                .map(|part| {
                    delta(&format!(r#""content":{}"#, json!(part.iter().collect::<String>())))
                })
                .collect();
            stream(parts.into_iter().chain([finish("stop")]))
        };
        let body = message(&format!(r#""content":{}"#, json!(text)), "stop");
        for (args, reply) in
            [(&[][..], in_pieces(1)), (&[][..], in_pieces(1000)), (&["--no-stream"][..], body)]
        {
            talk(args, [reply]).run.success().stdout(&format!("{expected}\n"));
        }
    }
    // With -v reasoning is shown on stderr.
    let body = message(r#""content":"<think>Hm, 2.</think>4""#, "stop");
    talk(&["-v", "--no-stream"], [body]).run.success().stdout("4\n").stderr_has("Hm, 2.");
}

#[test]
fn reasoning_in_the_text_is_not_sent_back() {
    for content in
        ["<think>Hm.</think>", "<think>Hm.</think>\\n\\nLet me look.", "Hm.\\n</think>\\n\\n"]
    {
        let fields = format!(r#""content":"{content}""#);
        for (args, reply) in with_reasoning_and_call(&fields) {
            let request = after_calls(args, reply);
            let expected =
                if content.contains("look") { json!("Let me look.") } else { Value::Null };
            assert_eq!(calling_message(&request)["content"], expected, "{content}");
        }
    }
    // Reasoning alone is not an answer.
    let body = || message(r#""content":"<think>Hm.</think>""#, "stop");
    talk(&["--no-stream"], [body(), body()]).run.status(1).stdout_is_empty().stderr_has("empty");
}

#[test]
fn reasoning_with_calls_is_sent_back_unchanged() {
    let thought = "Hm, \u{1f980} \"2\"\n  and 2.\n";
    let parts: Vec<String> = thought
        .chars()
        .map(|letter| delta(&format!(r#""reasoning_content":{}"#, json!(letter.to_string()))))
        .collect();
    let streamed = stream(parts.into_iter().chain([pieces(ALPHA), finish("tool_calls")]));
    let body = message(
        &format!(r#""content":"","reasoning_content":{},"tool_calls":{ALPHA}"#, json!(thought)),
        "tool_calls",
    );
    for (args, reply) in [(&[][..], streamed), (&["--no-stream"][..], body)] {
        let request = after_calls(args, reply);
        assert_eq!(calling_message(&request)["reasoning_content"], thought);
    }
    // Each message keeps its own reasoning over several requests of the turn.
    let step = |thought: &str| {
        let thought = delta(&format!(r#""reasoning_content":"{thought}""#));
        stream([thought, pieces(ALPHA), finish("tool_calls")])
    };
    let talk =
        talk(&[], [step("one"), stream_of_pieces(&[ALPHA]), step("three"), Reply::text("done")]);
    talk.run.success().stdout("done\n");
    let last = talk.requests[3].messages().iter().filter(|message| message["role"] == "assistant");
    let thoughts: Vec<&Value> = last.map(|message| &message["reasoning_content"]).collect();
    assert_eq!(thoughts, [&json!("one"), &Value::Null, &json!("three")]);
}

#[test]
fn empty_reasoning_is_not_sent_and_refused_reasoning_only_once() {
    for fields in [r#""reasoning_content":"","reasoning":null"#, r#""reasoning_details":[]"#] {
        for (args, reply) in with_reasoning_and_call(fields) {
            let request = after_calls(args, reply);
            for name in ["reasoning_content", "reasoning", "reasoning_details"] {
                assert_eq!(calling_message(&request).get(name), None, "{fields}");
            }
        }
    }
    let refusals = [
        r#"{"detail":[{"type":"extra_forbidden","loc":["body","messages",2,"assistant","reasoning_content"],"msg":"Extra inputs are not permitted","input":"Hm."}]}"#,
        r#"{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","messages",2,"assistant","reasoning_content"],"msg":"Extra inputs are not permitted"}]},"type":"invalid_request_error"}"#,
        r#"{"error":{"message":"property 'messages.2.reasoning_content' is unsupported","type":"invalid_request_error"}}"#,
    ];
    for (status, refusal) in [(422, refusals[0]), (422, refusals[1]), (400, refusals[2])] {
        let calls =
            || stream([delta(r#""reasoning_content":"Hm.""#), pieces(ALPHA), finish("tool_calls")]);
        let talk =
            talk(&[], [calls(), Reply::status(status).body(refusal), calls(), Reply::text("done")]);
        talk.run.success().stdout("done\n");
        assert_eq!(calling_message(&talk.requests[1])["reasoning_content"], "Hm.");
        for request in &talk.requests[2..] {
            assert!(!String::from_utf8_lossy(&request.body).contains("reasoning_content"));
        }
    }
}

#[test]
fn signatures_are_sent_back_verbatim() {
    let signed = r#"{"google":{"thought_signature":"CpcJ+/=","n":12345678901234567890,"f":[1.5,null,true]}}"#;
    let signature: Value = serde_json::from_str(signed).unwrap();
    let calls = format!(
        r#"[{{"index":0,"id":"a","type":"function","extra_content":{signed},"function":{{"name":"list_skills","arguments":"{{}}"}}}},{{"index":1,"id":"b","type":"function","function":{{"name":"list_skills","arguments":"{{}}"}}}}]"#
    );
    let late = format!(r#"[{{"index":0,"extra_content":{signed}}}]"#);
    let plain = calls.replace(&format!(r#""extra_content":{signed},"#), "");
    for (args, reply) in [
        (&[][..], stream_of_pieces(&[&calls])),
        (&[][..], stream_of_pieces(&[&plain, &late])),
        (&["--no-stream"][..], message(&format!(r#""tool_calls":{calls}"#), "tool_calls")),
    ] {
        let request = after_calls(args, reply);
        let calls = &calling_message(&request)["tool_calls"];
        assert_eq!(calls[0]["extra_content"], signature);
        assert_eq!(calls[1].get("extra_content"), None, "only the call that had it");
    }
    // `extra_content` of the message itself is sent back, too.
    for (args, reply) in with_reasoning_and_call(&format!(r#""extra_content":{signed}"#)) {
        assert_eq!(calling_message(&after_calls(args, reply))["extra_content"], signature);
    }
    // OpenRouter streams `reasoning_details` in pieces, which are sent back in order.
    let one = r#"{"type":"reasoning.text","text":"Hm","signature":null,"id":"r1","format":"anthropic-claude-v1","index":0}"#;
    let two = r#"{"type":"reasoning.encrypted","data":"abc=","id":"r2","index":1}"#;
    let streamed = stream([
        delta(&format!(r#""reasoning":"Hm","reasoning_details":[{one}]"#)),
        delta(&format!(r#""reasoning_details":[{two}]"#)),
        pieces(ALPHA),
        finish("tool_calls"),
    ]);
    let body = message(
        &format!(r#""reasoning":"Hm","reasoning_details":[{one},{two}],"tool_calls":{ALPHA}"#),
        "tool_calls",
    );
    let expected: Value = serde_json::from_str(&format!("[{one},{two}]")).unwrap();
    for (args, reply) in [(&[][..], streamed), (&["--no-stream"][..], body)] {
        let request = after_calls(args, reply);
        assert_eq!(calling_message(&request)["reasoning_details"], expected);
        assert_eq!(calling_message(&request)["reasoning"], "Hm");
    }
}

#[test]
fn refused_signature_is_omitted_from_then_on() {
    let signed = ALPHA.replace(
        r#""id":"a","#,
        r#""id":"a","extra_content":{"google":{"thought_signature":"x"}},"#,
    );
    let refusal = r#"{"detail":[{"type":"extra_forbidden","loc":["body","messages",2,"assistant","tool_calls",0,"extra_content"],"msg":"Extra inputs are not permitted","input":{"google":{"thought_signature":"x"}}}]}"#;
    let talk = talk(
        &[],
        [
            stream_of_pieces(&[&signed]),
            Reply::status(422).body(refusal),
            stream_of_pieces(&[&signed]),
            Reply::text("done"),
        ],
    );
    talk.run.success().stdout("done\n");
    let has = |index: usize| {
        String::from_utf8_lossy(&talk.requests[index].body).contains("extra_content")
    };
    assert_eq!([has(1), has(2), has(3)], [true, false, false]);
}

#[test]
fn content_blocks_are_joined() {
    let blocks = r#"[{"type":"thinking","thinking":[{"type":"text","text":"Hm."}]},{"type":"text","text":"It "},{"type":"reference","reference_ids":[1]},{"type":"text","text":"is"}]"#;
    let streamed = stream([
        delta(r#""content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm."}]}]"#),
        delta(r#""content":[{"type":"text","text":"It "}]"#),
        delta(r#""content":[]"#),
        delta(r#""content":"is""#),
        delta(r#""content":[{"type":"text","text":" 4"},{"type":"text","text":"."}]"#),
        finish("stop"),
    ]);
    talk(&[], [streamed]).run.success().stdout("It is 4.\n");
    let body = message(&format!(r#""content":{blocks}"#), "stop");
    talk(&["--no-stream"], [body]).run.success().stdout("It is\n");
    // The content is sent back as a string.
    for (args, reply) in with_reasoning_and_call(&format!(r#""content":{blocks}"#)) {
        assert_eq!(calling_message(&after_calls(args, reply))["content"], "It is");
    }
    let only_thoughts =
        r#""content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm."}]}]"#;
    for (args, reply) in with_reasoning_and_call(only_thoughts) {
        assert_eq!(calling_message(&after_calls(args, reply))["content"], Value::Null);
    }
}
