//! Refusals that require the tool's name in tool messages.
//!
//! The name is not sent by default, since some endpoints refuse it.

use crate::quirks::{changes, contains_any};

/// How many words around `name` are searched for what it is the name of.
const NEARBY_WORDS: usize = 8;

/// Whether a refusal, in lower case, requires the tool's name in a tool message. `positions`
/// are those of the tool messages in the request.
pub(super) fn is_required(refusal: &str, positions: &[usize]) -> bool {
    let refusal = refusal.replace("\\n", " ");
    let words: Vec<&str> = refusal
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .collect();
    let is_name = |at: &usize| words[*at] == "name";
    (0..words.len()).filter(is_name).any(|at| {
        let nearby =
            &words[at.saturating_sub(NEARBY_WORDS)..words.len().min(at + NEARBY_WORDS + 1)];
        let text = nearby.join(" ");
        let is_tool_name = match &words[..at] {
            // `messages[2].name`, `messages.2.tool.name`
            [.., "messages", position] | [.., "messages", position, _] if is_number(position) => {
                position.parse().is_ok_and(|position| positions.contains(&position))
            }
            // The name of a call or of the model.
            [.., "function" | "model"] => false,
            // A Python template lacks it in some message.
            [.., "attribute"] => true,
            _ => {
                nearby.iter().any(|word| changes::TOOL_MESSAGE.contains(word))
                    || text.contains("role function")
            }
        };
        is_tool_name && !positions.is_empty() && contains_any(&text, &changes::MISSING_FIELD)
    })
}

fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_only_refusals_that_require_the_name() {
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
            assert!(is_required(&refusal, &[3]), "{refusal}");
            assert!(!is_required(&refusal, &[]), "nothing to name: {refusal}");
        }
        for refusal in [
            // The name of another message, a tool, a call, the model.
            r#"{"detail":[{"type":"missing","loc":["body","messages",0,"name"],"msg":"Field required"}]}"#,
            r#"{"error":{"message":"Missing required parameter: 'messages[2].tool_calls[0].function.name'."}}"#,
            r#"{"error":{"message":"* GenerateContentRequest.tools[0].function_declarations[5].name: Invalid function name. Must start with a letter or an underscore."}}"#,
            "The model name is required to call a tool",
            // The name is refused, or something else is missing.
            "Only messages of role 'user' can have a name.",
            r#"{"detail":[{"type":"extra_forbidden","loc":["body","messages",3,"tool","name"],"msg":"Extra inputs are not permitted"}]}"#,
            r#"{"detail":[{"type":"missing","loc":["body","messages",3,"tool","tool_call_id"],"msg":"Field required"}]}"#,
            r#"Invalid JSON payload received. Unknown name "extra_content" at 'messages[2].tool_calls[0]': Cannot find field."#,
            "Request contains an invalid argument.",
        ] {
            assert!(!is_required(&refusal.to_lowercase(), &[3]), "{refusal}");
        }
    }
}
