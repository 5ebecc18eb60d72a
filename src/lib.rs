//! Skills for any language model that speaks OpenAI's chat completions.
//!
//! The crate is the program, and a library for programs of your own: it reads
//! no environment, prints nothing and ends nothing. A [`Config`] is made of
//! names and values, [`Skills`] are looked for in folders, a [`Conversation`]
//! is answered by a [`Model`] with the help of [`Tools`], and what happens is
//! told as [`Event`]s. What fails is an [`Error`] with a kind.
//!
//! # One answer
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
//! #         let (mut asked, mut piece) = (Vec::new(), [0; 4096]);
//! #         while !asked.ends_with(b"}") {
//! #             let length = stream.read(&mut piece).unwrap();
//! #             assert_ne!(length, 0);
//! #             asked.extend_from_slice(&piece[..length]);
//! #         }
//! #         assert!(String::from_utf8_lossy(&asked).contains("Which region sells most?"));
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
//!     // Scripts get what stands here, and nothing else.
//!     ("PATH", "/usr/local/bin:/usr/bin:/bin"),
//! ]);
//! let folder = env!("CARGO_MANIFEST_DIR").as_ref(); // where the user works
//! let config = Config::resolve(&settings, folder, ConfigNeeds::Endpoint)?;
//! let cancellation = Cancellation::never();
//! let model = HttpModel::new(config.endpoint()?, true, cancellation.clone());
//!
//! let skills = Skills::from_config(&config);
//! let catalogue = skills.catalogue();
//! let tools = Tools::offered(ToolContext::new(&config, &skills, &cancellation), &catalogue);
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
//! A program that wants its own environment to count says
//! `Settings::from_pairs(std::env::vars_os())`.
//! The same conversation goes on with another `ask` and another `turn`.
//!
//! # A model of your own
//!
//! A model is whoever answers a [`ModelRequest`]: another protocol,
//! a cache, a test.
//!
//! ```
//! use skills_runner::{
//!     AssistantMessage, Conversation, Event, EventSink, FinishReason, Message, Model, ModelReply,
//!     ModelRequest, Result, RunStats, TurnLimits, run_turn,
//! };
//! # use skills_runner::{Cancellation, Config, ConfigNeeds, Settings, Skills, ToolContext, Tools};
//!
//! /// Says again what was asked, in capitals.
//! struct Parrot;
//!
//! impl Model for Parrot {
//!     fn name(&self) -> &str {
//!         "parrot"
//!     }
//!
//!     fn complete(&self, request: &ModelRequest<'_>, sink: &mut EventSink<'_>) -> Result<ModelReply> {
//!         let text = match request.messages.last() {
//!             Some(Message::User(said)) => said.text.to_uppercase(),
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
//! # let (skills, cancellation) = (Skills::from_config(&config), Cancellation::never());
//! # let tools = Tools::new(ToolContext::new(&config, &skills, &cancellation));
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
//! # A tool of your own
//!
//! Arguments are checked against the schema before the tool runs, and what is
//! wrong goes back to the model. [`ScriptedModel`] plays the
//! model here.
//!
//! ```
//! use serde_json::{Value, json};
//! use skills_runner::{Arguments, Tool, ToolContext, ToolResult, Tools};
//! # use skills_runner::{
//! #     AssistantMessage, Cancellation, Config, ConfigNeeds, Conversation, Message, RunStats,
//! #     ScriptedModel, ScriptedStep, Settings, Skills, ToolCall, TurnLimits, run_turn,
//! # };
//!
//! struct Stock {
//!     pieces: u64,
//! }
//!
//! impl Tool for Stock {
//!     fn name(&self) -> &str {
//!         "stock"
//!     }
//!
//!     fn description(&self) -> &str {
//!         "Tells how many pieces of an article there are."
//!     }
//!
//!     fn parameters(&self) -> Value {
//!         json!({
//!             "type": "object",
//!             "properties": {"article": {"type": "string", "enum": ["chair", "table"]}},
//!             "required": ["article"],
//!         })
//!     }
//!
//!     fn run(&self, arguments: &Arguments, _context: &ToolContext<'_>) -> ToolResult {
//!         let pieces = json!({"article": arguments["article"], "pieces": self.pieces});
//!         ToolResult::success(pieces.to_string(), "counted")
//!     }
//! }
//!
//! # fn stock(article: &str) -> AssistantMessage {
//! #     let call = ToolCall {
//! #         name: "stock".into(),
//! #         arguments: json!({"article": article}).to_string(),
//! #         ..ToolCall::default()
//! #     };
//! #     AssistantMessage { calls: vec![call], ..AssistantMessage::default() }
//! # }
//! # fn last(messages: &[Message]) -> String {
//! #     match messages.last() {
//! #         Some(Message::Tool { content, .. }) => content.clone(),
//! #         _ => String::new(),
//! #     }
//! # }
//! # static STEPS: &[ScriptedStep] = &[
//! #     |_| stock("sofa"),
//! #     |messages| {
//! #         assert!(last(messages).contains("`article` must be one of"), "{messages:?}");
//! #         stock("chair")
//! #     },
//! #     |messages| AssistantMessage { content: last(messages), ..AssistantMessage::default() },
//! # ];
//! # fn main() -> skills_runner::Result<()> {
//! # let config = Config::resolve(&Settings::default(), "/".as_ref(), ConfigNeeds::Skills)?;
//! # let (skills, cancellation) = (Skills::new(Vec::new()), Cancellation::never());
//! # let context = ToolContext::new(&config, &skills, &cancellation);
//! # let model = ScriptedModel::new("scripted", STEPS);
//! # let (limits, mut stats) = (TurnLimits::default(), RunStats::default());
//! // `Tools::offered(context, &catalogue)` where the model is to have skills as well.
//! let tools = Tools::new(context).with(Box::new(Stock { pieces: 7 }))?;
//! let mut conversation = Conversation::new("You sell furniture.");
//! conversation.add_question("Are there chairs?");
//! run_turn(
//!     &mut conversation, &model, &tools, &limits, &mut stats, &mut |_| {},
//! )?;
//! // The model asked for a sofa first, was told what there is, and asked again.
//! assert_eq!(conversation.answer_text(), r#"{"article":"chair","pieces":7}"#);
//! assert_eq!(stats.tool_calls, 2);
//! # Ok(())
//! # }
//! ```
//!
//! # What happens
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
//! #         content: "I look.".into(),
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
//! # let (skills, cancellation) = (Skills::from_config(&config), Cancellation::never());
//! # let catalogue = skills.catalogue();
//! # let tools = Tools::offered(ToolContext::new(&config, &skills, &cancellation), &catalogue);
//! # let instructions = system_prompt(&PromptParts::new(&catalogue, &tools, here));
//! # assert!(instructions.contains("\n- calculator: "), "{instructions}");
//! # let mut conversation = Conversation::new(&instructions);
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
//! assert_eq!(shown, ["I look.", "get_skill calculator", "ok: true", "I can calculate."]);
//! # Ok(())
//! # }
//! ```
//!
//! # The map
//!
//! `main.rs` hands over arguments, environment and working directory to `cli`
//! and takes an exit status back. Layers, top to bottom; a module imports only
//! from its own layer and those below it:
//!
//! | layer | modules |
//! |---|---|
//! | 5 front ends | `cli` |
//! | 4 conversation | `agent`, `context`, `conversation`, `instructions`, `session` |
//! | 3 doing | `model`, `tools` |
//! | 2 knowing | `config`, `settings`, `dotenv`, `memory`, `skills` |
//! | 1 world | `world`: processes, files, network, signals, input, output |
//! | 0 words | `address`, `error`, `event`, `limits`, `media`, `message`, `secret`, `text`, `tool` |
//!
//! Nothing but the front ends and `world::output` prints, nothing but
//! `main.rs` reads the environment, and nothing exits.

mod address;
mod agent;
mod bounded;
mod cli;
mod config;
mod context;
mod conversation;
mod digest;
mod dotenv;
mod error;
mod event;
mod instructions;
#[doc(hidden)]
pub mod internals;
mod limits;
mod mcp;
mod media;
mod memory;
mod message;
mod model;
mod order;
mod percent;
mod secret;
mod session;
mod settings;
mod skills;
mod text;
mod tool;
mod tools;
mod world;

pub use agent::{TurnLimits, TurnOutcome, run_turn};
pub use config::{Config, ConfigNeeds, Endpoint};
pub use conversation::Conversation;
pub use error::{Error, ErrorKind, Result};
pub use event::{Event, EventSink, RunStats};
pub use instructions::{PromptParts, SystemPromptOverride, system_prompt};
pub use message::{AssistantMessage, Image, Message, UserMessage};
pub use model::http::HttpModel;
pub use model::scripted::{ScriptedModel, ScriptedStep};
pub use model::{FinishReason, Model, ModelReply, ModelRequest};
pub use settings::{EnvFile, Settings};
pub use skills::{Catalogue, Problem, Severity, Skill, SkillSummary, Skills};
pub use tool::{Effects, ToolCall, ToolDefinition, ToolResult, Usage};
pub use tools::{Arguments, Tool, ToolContext, Tools};
pub use world::cancellation::{Cancellation, StopReason};
pub use world::signal::Interrupt;

/// The program itself: what `main.rs` calls, in the order in which it does.
pub mod program {
    pub use crate::cli::{ExitOutcome, Invocation, Startup, parse, run};
    pub use crate::settings::is_secret;
    pub use crate::world::hardening::{fill_streams, forget, hide_memory};
    pub use crate::world::process::become_subreaper;
    pub use crate::world::signal::{Signal, end_by, survive_file_limit};
}
