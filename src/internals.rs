//! Items that `fuzz/`, `examples/` and the tests use in addition to the public API.
//!
//! They are not part of the API: any version may change them.
#![allow(missing_docs)]

pub mod config {
    pub use crate::skills::ScriptSettings;
    pub use crate::skills::python::PythonChoice;
}
pub mod conversation {
    pub use crate::conversation::{ConversationChange, SavedConversation, repair_messages};
}
pub mod dotenv {
    pub use crate::dotenv::{Dotenv, Variable, parse, parse_bytes};
}
pub mod limits {
    pub use crate::limits::{
        ALL_ARGUMENTS_BYTES, CALLS_ANSWERED, ENV_EXPANSION_BYTES, INVOCATION_BYTES, LEADING_BLANKS,
        MESSAGE_BYTES, MESSAGE_ID_BYTES, MESSAGE_LINE_BYTES, READ_BYTES, SECRET_BYTES,
        SECRET_PART_BYTES, SSE_EVENT_BYTES, SSE_LINE_BYTES, TOOL_NAME_CHARS,
    };
}
pub mod mcp {
    pub use crate::mcp::{
        Era, Id, IncomingMessage, RequestMeta, RpcError, RpcRequest, RpcResult, parse_line,
    };
}
pub mod memory {
    pub use crate::memory::fact::normalize_content;
    pub use crate::memory::facts::{FactChange, Facts, NewFact};
}
pub mod model {
    pub use crate::model::{
        EventTooLarge, InvalidResponse, ReplyAssembler, SseSplitter, TextCall, ThinkFilter,
        ThinkPiece, find_calls, is_code_call, is_unparsed_call, read_text_calls,
    };
}
pub mod secret {
    pub use crate::secret::{CutEdges, MASK, Secret, Secrets};
}
pub mod session {
    pub use crate::session::{change_line, restore};
}
pub mod settings {
    pub use crate::settings::SETTINGS;
}
pub mod skills {
    pub use crate::skills::{Problem, RULES, Rule, RuleRow, Severity, Skill};

    pub mod check {
        pub use crate::skills::check::{check, check_python};
    }
    pub mod frontmatter {
        pub use crate::skills::frontmatter::{Frontmatter, first_line_of_text, parse, parse_head};
    }
    pub mod invocation {
        pub use crate::skills::invocation::{SkillFolders, is_for_users, render};
        pub use crate::skills::split_words;
    }
    pub mod packages {
        pub use crate::skills::packages::{
            known_module, normalized_name, package_of, project_name,
        };
    }
    pub mod probe {
        pub use crate::skills::probe::{ProbeResult, ProbedSkill, probe, probe_skills};
    }
    pub mod python {
        pub use crate::skills::python::Interpreter;
    }
    pub mod requirements {
        pub use crate::skills::requirements::{
            DeclaredPackage, decode, is_line_end, logical_lines,
        };
    }
    pub mod venv {
        pub use crate::skills::venv::INCOMPLETE;
    }
    pub mod yaml {
        pub use crate::skills::yaml::*;
    }
}
pub mod tool {
    pub use crate::tool::parse_arguments;
}
pub mod tools {
    pub use crate::tools::BUILTIN_TOOLS;
}
pub mod world {
    pub mod archive {
        pub use crate::world::archive::{ArchiveEntry, ArchiveEntryKind, EntryVisitor, read};
    }
    pub use crate::ui::StreamRedactor;
    pub use crate::world::capture::{Capture, CaptureLimits};
    pub use crate::world::confined::{
        Mechanism, OpenError, OpenFile, PathTarget, Root, WalkLimits, read_whole,
    };
    pub use crate::world::lines::{LineBuffer, LinePiece};
}
