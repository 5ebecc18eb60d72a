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
//! use skills_runner::agent::{self, Bounds};
//! use skills_runner::event::Tally;
//! use skills_runner::instructions::{self, Parts};
//! use skills_runner::model::http::HttpModel;
//! use skills_runner::{Config, Conversation, Needs, Patience, Settings, Skills, Tools, Workbench};
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
//! let settings = Settings::of([
//!     ("LLM_API_BASE_URL", address.as_str()), // such as http://localhost:11434/v1
//!     ("LLM_MODEL_NAME", "qwen3"),
//!     ("SKILLS_FOLDER_PATH", "skills"),
//!     // Scripts get what stands here, and nothing else.
//!     ("PATH", "/usr/local/bin:/usr/bin:/bin"),
//! ]);
//! let folder = env!("CARGO_MANIFEST_DIR").as_ref(); // where the user works
//! let config = Config::resolve(&settings, folder, Needs::Endpoint)?;
//! let patience = Patience::endless();
//! let model = HttpModel::new(config.endpoint()?, true, patience.clone());
//!
//! let skills = Skills::of(&config);
//! let catalogue = skills.catalogue();
//! let tools = Tools::offered(Workbench::new(&config, &skills, &patience), &catalogue);
//! let parts = Parts::new(&catalogue, &tools, folder);
//!
//! let mut conversation = Conversation::new(&instructions::build(&parts));
//! conversation.ask("Which region sells most?");
//! let bounds = Bounds { window: config.context_window, ..Bounds::default() };
//! let mut tally = Tally::default();
//! agent::turn(
//!     &mut conversation, &model, &tools, &bounds, &mut tally, &mut |_| {},
//! )?;
//! assert_eq!(conversation.answered(), "The north.");
//! assert_eq!(tally.steps, 1);
//! # Ok(())
//! # }
//! ```
//!
//! A program that wants its own environment to count says
//! `Settings::of(std::env::vars_os())`.
//! The same conversation goes on with another `ask` and another `turn`.
//!
//! # A model of your own
//!
//! A model is whoever answers a [`Request`](model::Request): another protocol,
//! a cache, a test.
//!
//! ```
//! use skills_runner::agent::{self, Bounds};
//! use skills_runner::event::{Listener, Tally};
//! use skills_runner::message::{Assistant, Message};
//! use skills_runner::model::{Finish, Reply, Request};
//! use skills_runner::{Conversation, Event, Model, Result};
//! # use skills_runner::{Config, Needs, Patience, Settings, Skills, Tools, Workbench};
//!
//! /// Says again what was asked, in capitals.
//! struct Parrot;
//!
//! impl Model for Parrot {
//!     fn name(&self) -> &str {
//!         "parrot"
//!     }
//!
//!     fn complete(&self, request: &Request<'_>, listener: &mut Listener<'_>) -> Result<Reply> {
//!         let text = match request.messages.last() {
//!             Some(Message::User(said)) => said.text.to_uppercase(),
//!             _ => String::new(),
//!         };
//!         listener(Event::Text(&text));
//!         Ok(Reply {
//!             message: Assistant { content: text, ..Assistant::default() },
//!             finish: Finish::Complete,
//!             cause: None,
//!             usage: None,
//!         })
//!     }
//! }
//!
//! # fn main() -> Result<()> {
//! # let settings = Settings::of([("SKILLS_FOLDER_PATH", "skills")]);
//! # let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
//! # let config = Config::resolve(&settings, here, Needs::Skills)?;
//! # let (skills, patience) = (Skills::of(&config), Patience::endless());
//! # let tools = Tools::new(Workbench::new(&config, &skills, &patience));
//! # let (bounds, mut tally) = (Bounds::default(), Tally::default());
//! let mut conversation = Conversation::new("Be brief.");
//! conversation.ask("hello");
//! agent::turn(
//!     &mut conversation, &Parrot, &tools, &bounds, &mut tally, &mut |_| {},
//! )?;
//! assert_eq!(conversation.answered(), "HELLO");
//! assert_eq!(conversation.messages().len(), 3);
//! assert_eq!(tally.steps, 1);
//! # Ok(())
//! # }
//! ```
//!
//! # A tool of your own
//!
//! Arguments are checked against the schema before the tool runs, and what is
//! wrong goes back to the model. [`ScriptedModel`](model::scripted) plays the
//! model here.
//!
//! ```
//! use serde_json::{Value, json};
//! use skills_runner::tool::ToolResult;
//! use skills_runner::tools::Arguments;
//! use skills_runner::{Tool, Tools, Workbench};
//! # use skills_runner::agent::{self, Bounds};
//! # use skills_runner::event::Tally;
//! # use skills_runner::message::{Assistant, Message};
//! # use skills_runner::model::scripted::{ScriptedModel, Step};
//! # use skills_runner::tool::ToolCall;
//! # use skills_runner::{Config, Conversation, Needs, Patience, Settings, Skills};
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
//!     fn run(&self, arguments: &Arguments, _bench: &Workbench<'_>) -> ToolResult {
//!         let pieces = json!({"article": arguments["article"], "pieces": self.pieces});
//!         ToolResult::success(pieces.to_string(), "counted")
//!     }
//! }
//!
//! # fn stock(article: &str) -> Assistant {
//! #     let call = ToolCall {
//! #         name: "stock".into(),
//! #         arguments: json!({"article": article}).to_string(),
//! #         ..ToolCall::default()
//! #     };
//! #     Assistant { calls: vec![call], ..Assistant::default() }
//! # }
//! # fn last(messages: &[Message]) -> String {
//! #     match messages.last() {
//! #         Some(Message::Tool { content, .. }) => content.clone(),
//! #         _ => String::new(),
//! #     }
//! # }
//! # static STEPS: &[Step] = &[
//! #     |_| stock("sofa"),
//! #     |messages| {
//! #         assert!(last(messages).contains("`article` must be one of"), "{messages:?}");
//! #         stock("chair")
//! #     },
//! #     |messages| Assistant { content: last(messages), ..Assistant::default() },
//! # ];
//! # fn main() -> skills_runner::Result<()> {
//! # let config = Config::resolve(&Settings::default(), "/".as_ref(), Needs::Skills)?;
//! # let (skills, patience) = (Skills::new(Vec::new()), Patience::endless());
//! # let bench = Workbench::new(&config, &skills, &patience);
//! # let model = ScriptedModel::new("scripted", STEPS);
//! # let (bounds, mut tally) = (Bounds::default(), Tally::default());
//! // `Tools::offered(bench, &catalogue)` where the model is to have skills as well.
//! let tools = Tools::new(bench).with(Box::new(Stock { pieces: 7 }))?;
//! let mut conversation = Conversation::new("You sell furniture.");
//! conversation.ask("Are there chairs?");
//! agent::turn(
//!     &mut conversation, &model, &tools, &bounds, &mut tally, &mut |_| {},
//! )?;
//! // The model asked for a sofa first, was told what there is, and asked again.
//! assert_eq!(conversation.answered(), r#"{"article":"chair","pieces":7}"#);
//! assert_eq!(tally.tool_calls, 2);
//! # Ok(())
//! # }
//! ```
//!
//! # What happens
//!
//! ```
//! use skills_runner::Event;
//! # use skills_runner::agent::{self, Bounds};
//! # use skills_runner::event::Tally;
//! # use skills_runner::instructions::{self, Parts};
//! # use skills_runner::message::Assistant;
//! # use skills_runner::model::scripted::{ScriptedModel, Step};
//! # use skills_runner::tool::ToolCall;
//! # use skills_runner::{Config, Conversation, Needs, Patience, Settings, Skills, Tools, Workbench};
//! # static STEPS: &[Step] = &[
//! #     |_| Assistant {
//! #         content: "I look.".into(),
//! #         calls: vec![ToolCall {
//! #             name: "get_skill".into(),
//! #             arguments: r#"{"skill_name": "calculator"}"#.into(),
//! #             ..ToolCall::default()
//! #         }],
//! #         ..Assistant::default()
//! #     },
//! #     |_| Assistant { content: "I can calculate.".into(), ..Assistant::default() },
//! # ];
//! # fn main() -> skills_runner::Result<()> {
//! # let settings = Settings::of([("SKILLS_FOLDER_PATH", "skills")]);
//! # let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
//! # let config = Config::resolve(&settings, here, Needs::Skills)?;
//! # let (skills, patience) = (Skills::of(&config), Patience::endless());
//! # let catalogue = skills.catalogue();
//! # let tools = Tools::offered(Workbench::new(&config, &skills, &patience), &catalogue);
//! # let instructions = instructions::build(&Parts::new(&catalogue, &tools, here));
//! # assert!(instructions.contains("\n- calculator: "), "{instructions}");
//! # let mut conversation = Conversation::new(&instructions);
//! # let model = ScriptedModel::new("scripted", STEPS);
//! # let (bounds, mut tally) = (Bounds::default(), Tally::default());
//!
//! let mut told = Vec::new();
//! let mut listener = |event: Event<'_>| match event {
//!     Event::Text(piece) => told.push(piece.to_string()),
//!     Event::ToolCall { call, summary } => told.push(format!("{} {summary}", call.name)),
//!     Event::ToolResult { result, .. } => told.push(format!("ok: {}", result.ok)),
//!     _ => {}
//! };
//! conversation.ask("What can you do?");
//! agent::turn(
//!     &mut conversation, &model, &tools, &bounds, &mut tally, &mut listener,
//! )?;
//! assert_eq!(told, ["I look.", "get_skill calculator", "ok: true", "I can calculate."]);
//! # Ok(())
//! # }
//! ```
//!
//! # The map
//!
//! `main.rs` hands over arguments, environment and working directory to [`cli`]
//! and takes an exit status back. Layers, top to bottom; a module imports only
//! from its own layer and those below it:
//!
//! | layer | modules |
//! |---|---|
//! | 5 front ends | [`cli`] |
//! | 4 conversation | [`agent`], [`context`], [`conversation`], [`instructions`], [`session`] |
//! | 3 doing | [`model`], [`tools`] |
//! | 2 knowing | [`config`], [`settings`], [`dotenv`], [`memory`], [`skills`] |
//! | 1 world | [`world`]: processes, files, network, signals, input, output |
//! | 0 words | [`address`], [`error`], [`event`], [`limits`], [`media`], [`message`], [`secret`], [`text`], [`tool`] |
//!
//! Nothing but the front ends and `world::output` prints, nothing but
//! `main.rs` reads the environment, and nothing exits.

pub mod address;
pub mod agent;
mod bounded;
pub mod cli;
pub mod config;
pub mod context;
pub mod conversation;
mod digest;
pub mod dotenv;
pub mod error;
pub mod event;
pub mod instructions;
pub mod limits;
#[cfg(not(fuzzing))]
mod mcp;
// `fuzz/` feeds its reader of messages; it is not public otherwise.
#[cfg(fuzzing)]
pub mod mcp;
pub mod media;
pub mod memory;
pub mod message;
pub mod model;
mod order;
mod percent;
pub mod secret;
pub mod session;
pub mod settings;
pub mod skills;
pub mod text;
pub mod tool;
pub mod tools;
pub mod world;

pub use config::{Config, Needs};
pub use conversation::Conversation;
pub use error::{Error, Result};
pub use event::Event;
pub use model::Model;
pub use settings::Settings;
pub use skills::Skills;
pub use tools::{Tool, Tools, Workbench};
pub use world::patience::Patience;
