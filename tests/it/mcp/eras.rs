//! The two eras of the protocol, request by request: versions, required metadata, ids,
//! notifications and the fields of results.

use serde_json::{Value, json};

use super::Client;
use super::client::MODERN;
use crate::harness::Test;

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

fn test_with_skill() -> Test {
    let document = "---\nname: echo\ndescription: Says things again.\n---\n\n# Echo\n";
    Test::new().skill("echo", document)
}

fn modern() -> Value {
    json!({VERSION: MODERN, CAPABILITIES: {}})
}

fn server_info() -> Value {
    json!({"name": "skills-runner", "version": env!("CARGO_PKG_VERSION")})
}

/// The sorted names of the object's members.
fn names(object: &Value) -> Vec<&str> {
    let object = object.as_object().expect("an object");
    let mut names: Vec<&str> = object.keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

/// Sends `params` unchanged and returns the whole answer.
#[track_caller]
fn answer(client: &mut Client, method: &str, params: &Value) -> Value {
    let line = json!({"jsonrpc": "2.0", "id": "bare", "method": method, "params": params});
    client.send(line.to_string());
    let answer = client.next();
    assert_eq!(answer["id"], "bare", "{answer}");
    answer
}

#[track_caller]
fn code(client: &mut Client, method: &str, params: &Value) -> i64 {
    let answer = answer(client, method, params);
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(!message.is_empty() && !message.contains('\n'), "{answer}");
    assert_eq!(names(&answer), ["error", "id", "jsonrpc"]);
    answer["error"]["code"].as_i64().unwrap()
}

/// Each version that starts with `initialize` is returned as requested.
#[test]
fn initialize_returns_the_requested_version() {
    let newest = "2025-11-25";
    for (requested, answered) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        (newest, newest),
        ("1999-01-01", newest),
        ("2099-01-01", newest),
        (MODERN, newest),
        ("", newest),
    ] {
        let mut client = Client::bare(&test_with_skill());
        let params = json!({
            "protocolVersion": requested,
            "capabilities": {"roots": {"listChanged": true}, "sampling": {}},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let result = client.result_of("initialize", params);
        assert_eq!(result["protocolVersion"], answered, "{requested}");
        assert_eq!(result["serverInfo"], server_info());
        assert!(result["capabilities"]["tools"].is_object());
        assert!(result["instructions"].as_str().unwrap().contains("echo"));
        let expected = ["capabilities", "instructions", "protocolVersion", "serverInfo"];
        assert_eq!(names(&result), expected);
        client.notify("notifications/initialized", json!({}));
        client.assert_silent();
        client.close().status(0);
    }
}

#[test]
fn initialize_requires_only_a_version() {
    let mut client = Client::bare(&test_with_skill());
    for params in [json!({}), json!({"protocolVersion": 5}), json!({"protocolVersion": null})] {
        assert_eq!(code(&mut client, "initialize", &params), -32602, "{params}");
        assert_eq!(code(&mut client, "tools/list", &json!({})), -32602, "{params}");
    }
    client.result_of("initialize", json!({"protocolVersion": "2025-06-18"}));
    client.result_of("tools/list", json!({}));
    // A repeated `initialize`, also with another version, is allowed.
    let again = client.result_of("initialize", json!({"protocolVersion": "2024-11-05"}));
    assert_eq!(again["protocolVersion"], "2024-11-05");
    client.result_of("tools/list", json!({}));
}

#[test]
fn ping_returns_an_empty_result_at_any_time() {
    let mut client = Client::bare(&test_with_skill());
    assert_eq!(client.result_of("ping", json!({})), json!({}));
    client.send(r#"{"jsonrpc":"2.0","id":"bare","method":"ping"}"#);
    assert_eq!(client.next()["result"], json!({}));
    client.result_of("initialize", json!({"protocolVersion": "2025-11-25"}));
    assert_eq!(client.result_of("ping", json!({"_meta": {"progressToken": 1}})), json!({}));
}

/// Requests of the newer era must state version and capabilities.
#[test]
fn new_era_requests_require_version_and_capabilities() {
    let wrong = [
        json!({}),
        json!({VERSION: MODERN}),
        json!({CAPABILITIES: {}}),
        json!({VERSION: null, CAPABILITIES: {}}),
        json!({VERSION: 20_260_728, CAPABILITIES: {}}),
        json!({VERSION: [MODERN], CAPABILITIES: {}}),
        json!({VERSION: {"version": MODERN}, CAPABILITIES: {}}),
        json!({VERSION: true, CAPABILITIES: {}}),
        json!({VERSION: MODERN, CAPABILITIES: null}),
        json!({VERSION: MODERN, CAPABILITIES: []}),
        json!({VERSION: MODERN, CAPABILITIES: "{}"}),
        json!({VERSION: MODERN, CAPABILITIES: true}),
        json!({"protocolVersion": MODERN, "clientCapabilities": {}}),
        json!([MODERN, {}, 5]),
        json!([]),
        json!(MODERN),
        json!(5),
        json!(false),
    ];
    let mut client = Client::bare(&test_with_skill());
    for method in ["server/discover", "tools/list", "tools/call", "prompts/list"] {
        assert_eq!(code(&mut client, method, &json!({})), -32602, "{method}");
        for meta in &wrong {
            let params = json!({"_meta": meta, "name": "list_skills"});
            assert_eq!(code(&mut client, method, &params), -32602, "{method} {meta}");
        }
    }
    // After `initialize` both may be omitted, but not one of them.
    let mut client = Client::legacy(&test_with_skill());
    let [nothing, halves @ ..] = wrong;
    assert!(answer(&mut client, "tools/list", &json!({"_meta": nothing}))["result"].is_object());
    for half in &halves[..11] {
        assert_eq!(code(&mut client, "tools/list", &json!({"_meta": half})), -32602, "{half}");
    }
    let reported = answer(&mut Client::bare(&test_with_skill()), "tools/list", &json!({}));
    let reported = reported["error"]["message"].as_str().unwrap();
    assert!(reported.contains(VERSION) && reported.contains("initialize"), "{reported}");
}

#[test]
fn unknown_version_error_lists_the_known_ones() {
    let mut client = Client::bare(&test_with_skill());
    for version in ["2025-11-25", "2026-07-29", "", "draft", "2026-07-28 "] {
        for method in ["server/discover", "tools/list", "ping"] {
            let params = json!({"_meta": {VERSION: version, CAPABILITIES: {}}});
            let error = &answer(&mut client, method, &params)["error"];
            assert_eq!(error["code"], -32022, "{version} {error}");
            assert_eq!(error["data"], json!({"supported": [MODERN], "requested": version}));
        }
    }
    let long = "x".repeat(100_000);
    let params = json!({"_meta": {VERSION: long, CAPABILITIES: {}}});
    let error = &answer(&mut client, "tools/list", &params)["error"];
    assert_eq!(error["code"], -32022);
    assert!(error.to_string().len() < 1000, "{error}");
}

/// An unknown version is reported first: the method may exist in it.
#[test]
fn version_is_checked_before_the_method() {
    for mut client in [Client::bare(&test_with_skill()), Client::legacy(&test_with_skill())] {
        for method in ["foo/bar", "logging/setLevel", "subscriptions/listen"] {
            let mut code = |meta: Value| code(&mut client, method, &json!({"_meta": meta}));
            for version in [json!("2025-11-25"), json!("2099-01-01"), json!("")] {
                assert_eq!(code(json!({VERSION: version, CAPABILITIES: {}})), -32022);
                assert_eq!(code(json!({VERSION: version})), -32022, "{version}");
            }
            for half in [
                json!({VERSION: MODERN}),
                json!({VERSION: MODERN, CAPABILITIES: []}),
                json!({VERSION: 5, CAPABILITIES: {}}),
            ] {
                assert_eq!(code(half.clone()), -32602, "{half}");
            }
            for whole in [modern(), json!({}), Value::Null, json!({"progressToken": 1})] {
                assert_eq!(code(whole.clone()), -32601, "{whole}");
            }
            let params = json!({"_meta": {VERSION: "2099-01-01", CAPABILITIES: {}}});
            let error = &answer(&mut client, method, &params)["error"];
            assert_eq!(error["data"]["supported"], json!([MODERN]), "{error}");
            assert_eq!(error["data"]["requested"], "2099-01-01");
            let bare = &answer(&mut client, method, &json!({}))["error"];
            assert_eq!(bare["code"], -32601, "{bare}");
        }
    }
}

#[test]
fn discover_describes_the_server() {
    let mut client = Client::modern(&test_with_skill());
    let result = client.result_of("server/discover", json!({}));
    assert_eq!(result["supportedVersions"], json!([MODERN]));
    assert!(result["capabilities"]["tools"].is_object());
    assert!(result["instructions"].as_str().unwrap().contains("echo"));
    assert_eq!(result["_meta"], json!({SERVER_INFO: server_info()}));
    assert!(result["ttlMs"].as_u64().is_some());
    assert_eq!(result["cacheScope"], "private");
    let expected = [
        "_meta",
        "cacheScope",
        "capabilities",
        "instructions",
        "resultType",
        "supportedVersions",
        "ttlMs",
    ];
    assert_eq!(names(&result), expected);
    let legacy = Client::legacy(&test_with_skill()).error_of("server/discover", json!({}));
    assert_eq!(legacy["code"], -32602);
}

#[test]
fn new_era_has_no_initialize_and_no_ping() {
    let mut client = Client::modern(&test_with_skill());
    for method in ["initialize", "ping"] {
        let params = json!({"protocolVersion": "2025-11-25"});
        assert_eq!(client.error_of(method, params)["code"], -32601);
    }
    // Nor has it opened a session of the older era.
    assert_eq!(code(&mut client, "tools/list", &json!({})), -32602);
}

/// Every result of the newer era names its server and its type, and cacheable ones have a time to
/// live and a scope. Results of the older era have none of these fields.
#[test]
fn results_have_the_fields_of_their_era() {
    let document = json!({"uri": "skill://echo/SKILL.md"});
    let lists = [
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", document),
        ("resources/directory/read", json!({"uri": "skill://echo"})),
        ("skills/list", json!({})),
    ];
    let once = [
        ("tools/call", json!({"name": "list_skills"})),
        ("tools/call", json!({"name": "get_skill", "arguments": {"skill_name": "none"}})),
        ("prompts/get", json!({"name": "echo"})),
    ];
    let (mut old, mut new) =
        (Client::legacy(&test_with_skill()), Client::modern(&test_with_skill()));
    for (is_kept, rows) in [(true, &lists[..]), (false, &once[..])] {
        for (method, params) in rows {
            let result = new.result_of(method, params.clone());
            assert_eq!(result["_meta"][SERVER_INFO], server_info(), "{method}");
            assert_eq!(result["resultType"], "complete");
            assert_eq!(result["ttlMs"].is_u64(), is_kept, "{method}: {result}");
            assert_eq!(result["cacheScope"] == "private", is_kept, "{method}");
            let result = old.result_of(method, params.clone());
            let names = names(&result);
            for name in ["_meta", "resultType", "ttlMs", "cacheScope"] {
                assert!(!names.contains(&name), "{method}: {result}");
            }
        }
    }
}

/// One process serves both eras in any order.
#[test]
fn both_eras_can_alternate() {
    let mut client = Client::bare(&test_with_skill());
    let list = json!({"_meta": modern()});
    let kept = |answer: &Value| answer["result"]["ttlMs"].is_u64();
    assert!(kept(&answer(&mut client, "tools/list", &list)));
    assert_eq!(code(&mut client, "tools/list", &json!({})), -32602);
    client.result_of("initialize", json!({"protocolVersion": "2025-11-25"}));
    for _ in 0..3 {
        assert!(kept(&answer(&mut client, "tools/list", &list)));
        let old = answer(&mut client, "tools/list", &json!({}));
        assert!(old["result"]["tools"].is_array() && !kept(&old));
        assert!(kept(&answer(&mut client, "server/discover", &list)));
        assert_eq!(answer(&mut client, "ping", &json!({}))["result"], json!({}));
        assert_eq!(code(&mut client, "ping", &list), -32601);
    }
}

/// An id is returned unchanged, to the last digit.
#[test]
fn ids_are_returned_unchanged() {
    let mut client = Client::bare(&test_with_skill());
    let long = format!("\"{}\"", "x".repeat(10_000));
    for (sent, expected) in [
        ("1", "1"),
        ("0", "0"),
        ("-7", "-7"),
        ("9007199254740993", "9007199254740993"),
        ("18446744073709551616", "18446744073709551616"),
        ("-123456789012345678901234567890", "-123456789012345678901234567890"),
        (r#""""#, r#""""#),
        (r#""1""#, r#""1""#),
        (r#""null""#, r#""null""#),
        (r#""a\"b\\c\n\u0000\/""#, r#""a\"b\\c\n\u0000/""#),
        (r#""\u00e9\ud83d\ude00é""#, "\"é😀é\""),
        (long.as_str(), long.as_str()),
    ] {
        // An id can be used again after its answer.
        for _ in 0..2 {
            for (method, expected_part) in
                [("ping", "result"), ("no/such", "error"), ("tools/list", "error")]
            {
                client.send(format!(r#"{{"jsonrpc":"2.0","id":{sent},"method":"{method}"}}"#));
                let line = client.running().read_stdout_until("\n");
                let begin = format!(r#"{{"jsonrpc":"2.0","id":{expected},"{expected_part}":"#);
                assert!(line.starts_with(&begin), "{sent}: {line}");
            }
        }
    }
}

#[test]
fn requests_with_invalid_ids_are_not_answered() {
    let mut client = Client::bare(&test_with_skill().env("SKILLS_FOLDER_PATH", "skills"));
    for id in ["null", "1.5", "1.0", "1e3", "true", "{}", "[1]", "[]"] {
        client.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#));
        let reported = client.running().read_stderr_until("\n");
        assert!(reported.contains("`id` must be a string or an integer"), "{id}: {reported}");
    }
    assert_eq!(answer(&mut client, "ping", &json!({}))["result"], json!({}));
}

/// Whatever their content is, and whether their method is known or not.
#[test]
fn notifications_and_responses_are_never_answered() {
    let mut client = Client::bare(&test_with_skill());
    for line in [
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":null}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{"a":[]}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":["x"]}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":"x"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/no/such","params":{"a":1}}"#,
        r#"{"jsonrpc":"2.0","method":"no/such"}"#,
        r#"{"jsonrpc":"2.0","method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"list_skills"}}"#,
        r#"{"jsonrpc":"2.0","method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#,
        r#"{"jsonrpc":"2.0","method":""}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#,
        r#"{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"no"},"result":{}}"#,
    ] {
        client.send(line);
    }
    assert_eq!(code(&mut client, "tools/list", &json!({})), -32602);
    // They have no effect and cause no output.
    let outcome = client.close().status(0);
    assert_eq!(outcome.stdout.lines().count(), 1);
    outcome.stderr_lacks("list_skills").stderr_lacks("without an answer");
}

#[test]
fn unknown_methods_have_their_error_code() {
    for mut client in [Client::legacy(&test_with_skill()), Client::modern(&test_with_skill())] {
        for method in [
            "no/such",
            "",
            "tools",
            "Tools/List",
            "tools/list ",
            "logging/setLevel",
            "notifications/initialized",
        ] {
            let error = client.error_of(method, json!({}));
            assert_eq!(error["code"], -32601, "{method}");
        }
        let long = client.error_of(&"x".repeat(100_000), json!({}));
        assert_eq!(long["code"], -32601);
        assert!(long.to_string().len() < 1000);
        for params in [
            json!({"name": "no_such"}),
            json!({"name": ""}),
            json!({"name": 5}),
            json!({"name": null}),
            json!({"name": ["list_skills"]}),
            json!({}),
        ] {
            let error = client.error_of("tools/call", params);
            assert_eq!(error["code"], -32602, "{error}");
        }
        for cursor in [json!("next"), json!(""), json!(5), json!({}), json!([])] {
            for method in [
                "tools/list",
                "prompts/list",
                "resources/list",
                "resources/templates/list",
                "skills/list",
            ] {
                let error = client.error_of(method, json!({"cursor": cursor}));
                assert_eq!(error["code"], -32602, "{method} {cursor}");
            }
        }
        client.result_of("tools/list", json!({"cursor": null}));
        // Wrong arguments are a tool error, which the model can correct.
        for arguments in [json!([]), json!(5), json!({"skill_name": []}), json!("{"), json!({})] {
            let result = client.call("get_skill", arguments);
            assert_eq!(result["isError"], true, "{result}");
        }
        client.assert_silent();
    }
}

/// The instructions for the client's model are within the length that clients accept and include
/// the facts.
#[test]
fn instructions_are_short_and_include_the_facts() {
    let long = |number: usize| {
        let words = "many words of description ".repeat(20);
        (format!("skill-{number:03}"), words)
    };
    let few = test_with_skill();
    let many = (0..300).map(long).fold(Test::new(), |test, (name, words)| {
        let document = format!("---\nname: {name}\ndescription: {words}\n---\n");
        test.skill(&name, &document)
    });
    let guide = |test: &Test| {
        let result = Client::modern(test).result_of("server/discover", json!({}));
        result["instructions"].as_str().unwrap().to_owned()
    };
    assert!(guide(&few).contains("\n- echo: "));
    let cut = guide(&many);
    assert!(cut.len() <= 2000 && cut.contains("skill-000"), "{cut}");
    assert!(cut.contains("list_skills with a query"), "{cut}");
    let with_memory = few.env("MEMORY_PATH", "facts.md");
    let mut client = Client::legacy(&with_memory);
    let reported = client.call("remember_fact", json!({"content": "The printer is in room 4."}));
    assert_eq!(reported["structuredContent"]["remembered"], "The printer is in room 4.");
    client.close().status(0);
    let guide = guide(&with_memory);
    assert!(guide.contains("each part newest first):\n"), "{guide}");
    assert!(guide.contains("The printer is in room 4."), "{guide}");
}
