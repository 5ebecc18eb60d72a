//! Endpoints that refuse images.

use super::{GIF, SKILL, reads, shows};
use crate::harness::{Reply, Server, Test};

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
#[ignore = "long"]
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
#[ignore = "long"]
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
