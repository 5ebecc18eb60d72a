//! Skills for any language model with an OpenAI-compatible chat API.
//!
//! A skill is a folder with a document `SKILL.md`, files and scripts. The model
//! sees a list of skills, reads those that fit the question, and runs their
//! scripts with tools.
//!
//! This crate contains the program `skills-runner` and a library for your own
//! programs. The library does not read the environment, does not print and does
//! not exit:
//!
//! - [`Settings`] are names and values; [`Config`] is their checked form.
//! - [`Skills`] finds the skills in folders; a [`Catalogue`] lists them.
//! - [`Tools`] holds the tools that a model may call.
//! - [`Model`] is a trait: [`HttpModel`] sends requests to an endpoint.
//! - [`Conversation`] holds the messages; [`run_turn`] answers its open question.
//! - Progress is reported as an [`Event`] to a callback; a failure is an
//!   [`Error`] with a kind and perhaps a hint.
//!
//! # Ask a question
//!
//! ```
//! use skills_runner::{
//!     Cancellation, Config, ConfigNeeds, Conversation, HttpModel, PromptParts, RunStats, Settings,
//!     Skills, ToolContext, Tools, TurnLimits, run_turn, system_prompt,
//! };
//!
//! # use std::io::{Read, Write};
//! # /// Answers one request as an endpoint would.
//! # fn endpoint() -> String {
//! #     let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
//! #     let port = listener.local_addr().unwrap().port();
//! #     std::thread::spawn(move || {
//! #         let (mut stream, _) = listener.accept().unwrap();
//! #         let (mut request, mut piece) = (Vec::new(), [0; 4096]);
//! #         while !request.ends_with(b"}") {
//! #             let length = stream.read(&mut piece).unwrap();
//! #             assert_ne!(length, 0);
//! #             request.extend_from_slice(&piece[..length]);
//! #         }
//! #         assert!(String::from_utf8_lossy(&request).contains("Which region sells most?"));
//! #         let body = r#"{"choices": [{"message": {"content": "The north."}, "finish_reason": "stop"}]}"#;
//! #         let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
//! #         stream.write_all((head + body).as_bytes()).unwrap();
//! #         let _ = stream.read(&mut piece);
//! #     });
//! #     format!("http://127.0.0.1:{port}/v1")
//! # }
//! # fn main() -> skills_runner::Result<()> {
//! # let address = endpoint();
//! let settings = Settings::from_pairs([
//!     ("LLM_API_BASE_URL", address.as_str()), // such as http://localhost:11434/v1
//!     ("LLM_MODEL_NAME", "qwen3"),
//!     ("SKILLS_FOLDER_PATH", "skills"),
//!     // Scripts get these variables as their environment, and no others.
//!     ("PATH", "/usr/local/bin:/usr/bin:/bin"),
//! ]);
//! let folder = env!("CARGO_MANIFEST_DIR").as_ref(); // the user's working folder
//! let config = Config::resolve(&settings, folder, ConfigNeeds::Endpoint)?;
//! let cancellation = Cancellation::never();
//! let is_streaming = true;
//! let model = HttpModel::new(config.endpoint()?, is_streaming, cancellation.clone());
//!
//! let skills = config.skills();
//! let catalogue = skills.catalogue();
//! let tools = Tools::for_model(config.tool_context(&skills, &cancellation), &catalogue);
//! let parts = PromptParts::new(&catalogue, &tools, folder);
//!
//! let mut conversation = Conversation::new(&system_prompt(&parts));
//! conversation.add_question("Which region sells most?");
//! let limits = TurnLimits { window: config.context_window, ..TurnLimits::default() };
//! let mut stats = RunStats::default();
//! run_turn(
//!     &mut conversation, &model, &tools, &limits, &mut stats, &mut |_| {},
//! )?;
//! assert_eq!(conversation.answer_text(), "The north.");
//! assert_eq!(stats.steps, 1);
//! # Ok(())
//! # }
//! ```
//!
//! To read the settings from the environment, use
//! `Settings::from_pairs(std::env::vars_os())`. To continue the conversation, call
//! [`Conversation::add_question`] and [`run_turn`] again.
//!
//! # Implement a model
//!
//! A [`Model`] answers a [`ModelRequest`]. Implement it for another protocol, a
//! cache or a test.
//!
//! ```
//! use skills_runner::{
//!     AssistantMessage, Conversation, Event, EventSink, FinishReason, Message, Model, ModelReply,
//!     ModelRequest, Result, RunStats, TurnLimits, run_turn,
//! };
//! # use skills_runner::{Cancellation, Config, ConfigNeeds, Settings, Skills, ToolContext, Tools};
//!
//! /// Repeats the question in capital letters.
//! struct Parrot;
//!
//! impl Model for Parrot {
//!     fn name(&self) -> &str {
//!         "parrot"
//!     }
//!
//!     fn complete(&self, request: &ModelRequest<'_>, sink: &mut EventSink<'_>) -> Result<ModelReply> {
//!         let text = match request.messages.last() {
//!             Some(Message::User(message)) => message.text.to_uppercase(),
//!             _ => String::new(),
//!         };
//!         sink(Event::Text(&text));
//!         Ok(ModelReply {
//!             message: AssistantMessage { content: text, ..AssistantMessage::default() },
//!             finish: FinishReason::Complete,
//!             cause: None,
//!             usage: None,
//!         })
//!     }
//! }
//!
//! # fn main() -> Result<()> {
//! # let settings = Settings::from_pairs([("SKILLS_FOLDER_PATH", "skills")]);
//! # let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
//! # let config = Config::resolve(&settings, here, ConfigNeeds::Skills)?;
//! # let (skills, cancellation) = (config.skills(), Cancellation::never());
//! # let tools = Tools::new(config.tool_context(&skills, &cancellation));
//! # let (limits, mut stats) = (TurnLimits::default(), RunStats::default());
//! let mut conversation = Conversation::new("Be brief.");
//! conversation.add_question("hello");
//! run_turn(
//!     &mut conversation, &Parrot, &tools, &limits, &mut stats, &mut |_| {},
//! )?;
//! assert_eq!(conversation.answer_text(), "HELLO");
//! assert_eq!(conversation.messages().len(), 3);
//! assert_eq!(stats.steps, 1);
//! # Ok(())
//! # }
//! ```
//!
//! # Add a tool
//!
//! The arguments of a call are read into a struct. If they do not fit, the tool
//! does not run and the model gets the error. This example uses a
//! [`ScriptedModel`], which replies with fixed messages.
//!
//! ```
//! use serde::Deserialize;
//! use serde_json::{Value, json};
//! use skills_runner::{ArgumentError, Arguments, PreparedCall, Tool, ToolContext, ToolResult, Tools};
//! # use skills_runner::{
//! #     AssistantMessage, Cancellation, Config, ConfigNeeds, Conversation, Message, RunStats,
//! #     ScriptedModel, ScriptedStep, Settings, Skills, ToolCall, TurnLimits, run_turn,
//! # };
//!
//! struct Stock {
//!     pieces: u64,
//! }
//!
//! #[derive(Deserialize)]
//! struct StockArguments {
//!     article: String,
//!     colour: Option<String>,
//! }
//!
//! impl Tool for Stock {
//!     fn name(&self) -> &str {
//!         "stock"
//!     }
//!
//!     fn description(&self) -> &str {
//!         "Returns the number of pieces in stock of an article."
//!     }
//!
//!     fn parameters(&self) -> Value {
//!         json!({
//!             "type": "object",
//!             "properties": {"article": {"type": "string"}, "colour": {"type": "string"}},
//!             "required": ["article"],
//!         })
//!     }
//!
//!     fn prepare(&self, arguments: Arguments) -> Result<PreparedCall<'_>, ArgumentError> {
//!         let StockArguments { article, colour } = arguments.parse()?;
//!         Ok(PreparedCall::new(article.clone(), move |_context| {
//!             let counted = json!({"article": article, "colour": colour, "pieces": self.pieces});
//!             ToolResult::success(counted.to_string(), "counted")
//!         }))
//!     }
//! }
//!
//! # fn stock(arguments: Value) -> AssistantMessage {
//! #     let call = ToolCall {
//! #         name: "stock".into(),
//! #         arguments: arguments.to_string(),
//! #         ..ToolCall::default()
//! #     };
//! #     AssistantMessage { calls: vec![call], ..AssistantMessage::default() }
//! # }
//! # fn last(messages: &[Message]) -> String {
//! #     match messages.last() {
//! #         Some(Message::Tool(result)) => result.content.clone(),
//! #         _ => String::new(),
//! #     }
//! # }
//! # static STEPS: &[ScriptedStep] = &[
//! #     |_| stock(json!({"colour": "red"})),
//! #     |messages| {
//! #         assert!(last(messages).contains("`article` is missing"), "{messages:?}");
//! #         stock(json!({"article": "chair", "colour": "red"}))
//! #     },
//! #     |messages| AssistantMessage { content: last(messages), ..AssistantMessage::default() },
//! # ];
//! # fn main() -> skills_runner::Result<()> {
//! # let config = Config::resolve(&Settings::default(), "/".as_ref(), ConfigNeeds::Skills)?;
//! # let (skills, cancellation) = (Skills::new(Vec::new()), Cancellation::never());
//! # let context = config.tool_context(&skills, &cancellation);
//! # let model = ScriptedModel::new("scripted", STEPS);
//! # let (limits, mut stats) = (TurnLimits::default(), RunStats::default());
//! // To offer skills as well, start with `Tools::for_model(context, &catalogue)`.
//! let tools = Tools::new(context).with(Box::new(Stock { pieces: 7 }))?;
//! let mut conversation = Conversation::new("You sell furniture.");
//! conversation.add_question("Are there chairs?");
//! run_turn(
//!     &mut conversation, &model, &tools, &limits, &mut stats, &mut |_| {},
//! )?;
//! // The model forgot the article first, got an error, and then named it.
//! assert_eq!(conversation.answer_text(), r#"{"article":"chair","colour":"red","pieces":7}"#);
//! assert_eq!(stats.tool_calls, 2);
//! # Ok(())
//! # }
//! ```
//!
//! # Receive events
//!
//! [`run_turn`] calls its last argument for each piece of text, each tool call and
//! each result.
//!
//! ```
//! use skills_runner::Event;
//! # use skills_runner::{
//! #     AssistantMessage, Cancellation, Config, ConfigNeeds, Conversation, PromptParts, RunStats,
//! #     ScriptedModel, ScriptedStep, Settings, Skills, ToolCall, ToolContext, Tools, TurnLimits,
//! #     run_turn, system_prompt,
//! # };
//! # static STEPS: &[ScriptedStep] = &[
//! #     |_| AssistantMessage {
//! #         content: "I will look.".into(),
//! #         calls: vec![ToolCall {
//! #             name: "get_skill".into(),
//! #             arguments: r#"{"skill_name": "calculator"}"#.into(),
//! #             ..ToolCall::default()
//! #         }],
//! #         ..AssistantMessage::default()
//! #     },
//! #     |_| AssistantMessage { content: "I can calculate.".into(), ..AssistantMessage::default() },
//! # ];
//! # fn main() -> skills_runner::Result<()> {
//! # let settings = Settings::from_pairs([("SKILLS_FOLDER_PATH", "skills")]);
//! # let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
//! # let config = Config::resolve(&settings, here, ConfigNeeds::Skills)?;
//! # let (skills, cancellation) = (config.skills(), Cancellation::never());
//! # let catalogue = skills.catalogue();
//! # let tools = Tools::for_model(config.tool_context(&skills, &cancellation), &catalogue);
//! # let prompt = system_prompt(&PromptParts::new(&catalogue, &tools, here));
//! # assert!(prompt.contains("\n- calculator: "), "{prompt}");
//! # let mut conversation = Conversation::new(&prompt);
//! # let model = ScriptedModel::new("scripted", STEPS);
//! # let (limits, mut stats) = (TurnLimits::default(), RunStats::default());
//!
//! let mut shown = Vec::new();
//! let mut sink = |event: Event<'_>| match event {
//!     Event::Text(piece) => shown.push(piece.to_string()),
//!     Event::ToolCall { call, summary } => shown.push(format!("{} {summary}", call.name)),
//!     Event::ToolResult { result, .. } => shown.push(format!("ok: {}", result.ok)),
//!     _ => {}
//! };
//! conversation.add_question("What can you do?");
//! run_turn(
//!     &mut conversation, &model, &tools, &limits, &mut stats, &mut sink,
//! )?;
//! assert_eq!(shown, ["I will look.", "get_skill calculator", "ok: true", "I can calculate."]);
//! # Ok(())
//! # }
//! ```
//!
//! # Modules
//!
//! `main.rs` passes arguments, environment and working folder to `cli` and gets
//! an exit status back. The parts below the front ends are crates of their own, each
//! of which uses only those below it:
//!
//! | crate | content |
//! |---|---|
//! | `skills_runner` | front ends: `cli`, `mcp`; `ui`: what is printed and typed; `config`, which fills the options of the parts below |
//! | `agent` | `turn`, `context`, `conversation`, `session`, `system_prompt`, `memory`, `tools` |
//! | `chat_api` | models: requests, replies, what endpoints do differently |
//! | `skills` | the skill format, folders of skills, Python for their scripts, the linter |
//! | `host` | processes, files, network, signals: the only unsafe code |
//! | `base` | messages, events, errors, settings, secrets, text, limits |
//!
//! Only `ui` prints, and only `main.rs` reads the environment and exits.
#![forbid(unsafe_code)]

mod cli;
mod config;
mod mcp;
mod ui;

pub use agent::conversation::{Conversation, ConversationState};
pub use agent::system_prompt::{PromptParts, SystemPromptOverride, system_prompt};
pub use agent::tools::{ArgumentError, Arguments, PreparedCall, Tool, ToolContext, Tools};
pub use agent::turn::{TurnLimits, TurnOutcome, run_turn};
pub use base::error::{Error, ErrorKind, Fault, Result};
pub use base::event::{Actions, Event, EventSink, RunStats};
pub use base::media::Image;
pub use base::message::{
    AssistantMessage, AssistantMessageKind, AttachedFile, InvokedSkill, Message, ToolMessage,
    UserMessage, UserMessageKind,
};
pub use base::settings::{EnvFile, Settings};
pub use base::tool::{
    Action, CallForm, Effects, ScriptExit, ToolCall, ToolDefinition, ToolResult, Usage,
};
pub use chat_api::http::HttpModel;
pub use chat_api::scripted::{ScriptedModel, ScriptedStep};
pub use chat_api::{
    CallForms, Endpoint, FinishReason, Model, ModelReply, ModelRequest, ToolCalling,
};
pub use config::{Config, ConfigNeeds};
pub use host::cancellation::{Cancellation, StopReason};
pub use host::open_missing_streams_before_main;
pub use host::signal::Interrupt;
pub use skills::{
    Catalogue, FolderOrigin, FolderSummary, Problem, Rule, Severity, Skill, SkillSummary, Skills,
    SkillsFolder,
};

/// The parts of the program that `main.rs` calls. Other programs do not need them.
pub mod program {
    pub use crate::cli::{ExitOutcome, Invocation, Startup, parse, run};
    pub use base::settings::is_secret;
    pub use host::hardening::{erase_from_environment, hide_memory, open_missing_streams};
    pub use host::signal::{Signal, exit_by_signal, handle_file_size_limit};
    pub use host::subreaper::become_subreaper;
}

/// Parsers that `fuzz/` checks. They are not part of the API.
#[doc(hidden)]
pub mod parsers {
    pub use crate::mcp::{
        Era, Id, IncomingMessage, RequestMeta, RpcError, RpcRequest, RpcResult, parse_line,
    };
    pub use crate::ui::StreamRedactor;
}
