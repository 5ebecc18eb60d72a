//! The system message: how to work with skills, and which there are.
//!
//! It is made once a conversation and stays byte for byte the same, because
//! endpoints cache the beginning of a prompt. The catalogue keeps to a budget:
//! descriptions are shortened first, names left out last, and it says so.

use std::fmt::Write as _;
use std::path::Path;

use crate::limits;
use crate::skills::{Catalogue, Summary};
use crate::text;

const WITHOUT_SKILLS: &str = "You are a helpful assistant. Answer briefly and exactly.";

const WITH_SKILLS: &str = "\
You are an assistant with skills: folders of instructions, files and Python scripts for particular tasks.
- When a skill fits the request, read it with get_skill before anything else and follow it. When none fits, answer directly.
- Read the files a skill names with read_file_in_skill when you need them.
- Where a skill shows a command such as `python scripts/x.py a b`, call run_python_script with file_path \"scripts/x.py\" and args [\"a\", \"b\"]. Run other commands from a Python `script` with subprocess.
- Do exact work (arithmetic, counting, data) with scripts, not in your head.
- When a call fails, read its error and change something before you try again.
- At the end answer the user in your own words.
";

/// Makes the system message. `custom` replaces the built-in instructions; the
/// catalogue is still added.
pub fn build(custom: Option<&str>, catalogue: &Catalogue, user_folder: &Path) -> String {
    let usable: Vec<&Summary> = catalogue
        .skills
        .iter()
        .filter(|skill| skill.fault.is_none())
        .collect();
    let mut text = match custom {
        Some(custom) => custom.trim_end().to_string(),
        None if usable.is_empty() => WITHOUT_SKILLS.to_string(),
        None => WITH_SKILLS.to_string(),
    };
    if usable.is_empty() {
        return text;
    }
    if custom.is_some() {
        text.push('\n');
    }
    let folder = user_folder.display();
    let _ = write!(
        text,
        "\nScripts start in their skill's folder. The user works in {folder}: give scripts absolute paths of the user's files.\n\nSkills:\n"
    );
    text.push_str(&list(&usable, limits::CATALOGUE_BYTES));
    text
}

/// One line a skill, within the budget.
fn list(skills: &[&Summary], budget: usize) -> String {
    // The longest description that lets all of them in.
    for most in [limits::DESCRIPTION_BYTES, 400, 200, 100, 50] {
        let lines = skills
            .iter()
            .map(|skill| line(skill, most))
            .collect::<String>();
        if lines.len() <= budget {
            return lines;
        }
    }
    let mut lines = String::from("(names only; list_skills with a query gives descriptions)\n");
    for (index, skill) in skills.iter().enumerate() {
        if lines.len() + skill.name.len() + 4 > budget {
            let left = skills.len() - index;
            let _ = writeln!(
                lines,
                "… and {left} more: list_skills with a query finds them"
            );
            break;
        }
        let _ = writeln!(lines, "- {}", skill.name);
    }
    lines
}

fn line(skill: &Summary, most: usize) -> String {
    let description = text::cut(&skill.description, most);
    if description.is_empty() {
        format!("- {}\n", skill.name)
    } else {
        format!("- {}: {description}\n", skill.name)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn catalogue(count: usize, description: &str) -> Catalogue {
        let skill = |number| Summary {
            name: format!("skill-{number:05}"),
            description: description.to_string(),
            alias: None,
            path: PathBuf::new(),
            problems: Vec::new(),
            fault: None,
        };
        Catalogue {
            skills: (0..count).map(skill).collect(),
            faults: Vec::new(),
        }
    }

    #[test]
    fn the_catalogue_keeps_to_its_budget_and_says_what_it_left_out() {
        let folder = Path::new("/home/u");
        let few = build(None, &catalogue(3, "Does things."), folder);
        assert!(few.contains("- skill-00002: Does things.\n"), "{few}");
        let many = build(None, &catalogue(60, &"word ".repeat(60)), folder);
        assert!(many.contains("- skill-00059: word") && many.contains('…'));
        let most = build(None, &catalogue(10_000, "x"), folder);
        assert!(most.contains("more: list_skills with a query"));
        for text in [&few, &many, &most] {
            assert!(text.len() < WITH_SKILLS.len() + limits::CATALOGUE_BYTES + 300);
        }
    }

    #[test]
    fn own_instructions_replace_ours_but_not_the_catalogue() {
        let text = build(Some("Speak Latin."), &catalogue(1, "d"), Path::new("/"));
        assert!(text.starts_with("Speak Latin.\n") && text.contains("- skill-00000: d"));
        assert_eq!(
            build(Some("Speak Latin."), &catalogue(0, ""), Path::new("/")),
            "Speak Latin."
        );
        assert_eq!(
            build(None, &catalogue(0, ""), Path::new("/")),
            WITHOUT_SKILLS
        );
    }
}
