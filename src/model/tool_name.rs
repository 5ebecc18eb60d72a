//! Refusals that want the tool's name in a tool's message.
//!
//! It is not sent unasked: some endpoints refuse it.

/// How many words around a `name` say what it is the name of.
const NEAR: usize = 8;

/// How a refusal says that something is missing.
const MISSING: [&str; 11] = [
    "missing",
    "required",
    "requires",
    "empty",
    "blank",
    "must have",
    "must include",
    "must be provided",
    "should have",
    "no attribute",
    "be a valid string",
];

/// A tool's message, in one word: also how Gemini names it, and Python's types.
const TOOL_MESSAGE: [&str; 8] = [
    "tool",
    "toolmessage",
    "tool_message",
    "tool_response",
    "toolresponse",
    "tool_result",
    "function_response",
    "functionresponse",
];

/// Whether a refusal, in lower case, says that a tool's message has no name.
/// `places` are those of such messages in the request.
pub(super) fn is_wanted(refusal: &str, places: &[usize]) -> bool {
    let refusal = refusal.replace("\\n", " ");
    let words: Vec<&str> = refusal
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .collect();
    let is_name = |at: &usize| words[*at] == "name";
    (0..words.len()).filter(is_name).any(|at| {
        let near = &words[at.saturating_sub(NEAR)..words.len().min(at + NEAR + 1)];
        let text = near.join(" ");
        let is_tools = match &words[..at] {
            // `messages[2].name`, `messages.2.tool.name`
            [.., "messages", place] | [.., "messages", place, _] if is_number(place) => {
                place.parse().is_ok_and(|place| places.contains(&place))
            }
            // That of a call, or of the model.
            [.., "function" | "model"] => false,
            // A template in Python misses it in some message.
            [.., "attribute"] => true,
            _ => {
                near.iter().any(|word| TOOL_MESSAGE.contains(word))
                    || text.contains("role function")
            }
        };
        is_tools && !places.is_empty() && MISSING.iter().any(|words| text.contains(words))
    })
}

fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wanted_name_is_told_from_other_refusals() {
        let missed = [
            // Gemini, and Ollama's cloud
            r#"[{"error":{"code":400,"message":"* GenerateContentRequest.contents[2].parts[0].function_response.name: Name cannot be empty.\n","status":"INVALID_ARGUMENT"}}]"#,
            // Mistral, Cerebras, vLLM
            r#"{"detail":[{"type":"missing","loc":["body","messages",3,"tool","name"],"msg":"Field required","input":{"role":"tool","tool_call_id":"a","content":"x"}}]}"#,
            r#"{"message":"body.messages.3.tool.name: Field required","type":"invalid_request_error","param":"validation_error","code":"wrong_api_format"}"#,
            r#"{"object":"error","message":"[{'type': 'missing', 'loc': ('body', 'messages', 3, 'name'), 'msg': 'Field required'}]","type":"BadRequestError","param":null,"code":400}"#,
            r#"{"object":"error","message":"'dict object' has no attribute 'name'","type":"BadRequestError"}"#,
            // Groq's form
            r#"{"error":{"message":"'messages.3' : for 'role:tool' the following must be satisfied[('messages.3.name' : property 'name' is missing)]"}}"#,
            r#"{"error":{"message":"Missing required parameter: 'messages[3].name'.","param":"messages[3].name","code":"missing_required_parameter"}}"#,
            // Gateways and templates
            "Missing parameter 'name': messages with role 'function' must have a 'name'.",
            "Tool message must have a 'name' field. The 'name' field is required to match the tool call",
            r#"{"error":{"message":"Tool name is required for Gemini requests","code":"invalid_tool_call_format"}}"#,
            "Invalid tool response: 'name' must be provided.",
        ];
        for refusal in missed {
            let refusal = refusal.to_lowercase();
            assert!(is_wanted(&refusal, &[3]), "{refusal}");
            assert!(!is_wanted(&refusal, &[]), "nothing to name: {refusal}");
        }
        for refusal in [
            // Another message's, a tool's, a call's, the model's.
            r#"{"detail":[{"type":"missing","loc":["body","messages",0,"name"],"msg":"Field required"}]}"#,
            r#"{"error":{"message":"Missing required parameter: 'messages[2].tool_calls[0].function.name'."}}"#,
            r#"{"error":{"message":"* GenerateContentRequest.tools[0].function_declarations[5].name: Invalid function name. Must start with a letter or an underscore."}}"#,
            "The model name is required to call a tool",
            // It is not wanted at all, or something else is.
            "Only messages of role 'user' can have a name.",
            r#"{"detail":[{"type":"extra_forbidden","loc":["body","messages",3,"tool","name"],"msg":"Extra inputs are not permitted"}]}"#,
            r#"{"detail":[{"type":"missing","loc":["body","messages",3,"tool","tool_call_id"],"msg":"Field required"}]}"#,
            r#"Invalid JSON payload received. Unknown name "extra_content" at 'messages[2].tool_calls[0]': Cannot find field."#,
            "Request contains an invalid argument.",
        ] {
            assert!(!is_wanted(&refusal.to_lowercase(), &[3]), "{refusal}");
        }
    }
}
