//! The list of skills in the system prompt, within a byte limit.
//!
//! If not all skills fit with their whole descriptions, the best ones for the first question keep
//! them, the next ones have their first sentences, the rest only names, and the last ones are
//! counted.

use std::collections::HashSet;

use base::limits;
use base::text;
use skills::SkillSummary;

/// The list, one line for each skill.
pub(super) struct SkillList {
    pub text: String,
    /// Whether all skills are in it with their whole descriptions.
    pub is_whole: bool,
}

/// A skill of a shortened list.
struct Entry<'s> {
    skill: &'s SkillSummary,
    /// The line with the description; `None`: only the name is listed, or not even that.
    line: Option<String>,
}

impl SkillList {
    /// All skills with their descriptions, if they fit.
    pub(super) fn whole(skills: &[&SkillSummary], budget: usize) -> Option<SkillList> {
        let mut list = SkillList { text: String::new(), is_whole: true };
        for skill in skills {
            let description = skill.description_line();
            list.is_whole &= description.len() <= limits::DESCRIPTION_BYTES;
            let kept = text::first_sentences(&description, limits::DESCRIPTION_BYTES);
            list.text += &line(skill, &kept);
            if list.text.len() > budget {
                return None;
            }
        }
        Some(list)
    }

    /// As much of the list as fits; `best` are the skills for the first question, in order.
    pub(super) fn shortened(
        skills: &[&SkillSummary],
        best: &[&SkillSummary],
        budget: usize,
        can_search: bool,
    ) -> SkillList {
        let chosen: HashSet<&str> = best.iter().map(|skill| &*skill.name).collect();
        let rest = skills.iter().filter(|skill| !chosen.contains(&*skill.name));
        let entries = best.iter().chain(rest).map(|skill| Entry { skill, line: None });
        let mut entries: Vec<Entry<'_>> = entries.collect();
        let note = match best {
            _ if !can_search => "(shortened)\n",
            [] => SHORTENED,
            _ => BEST_FIRST,
        };
        let names: usize = skills.iter().map(|skill| name_bytes(skill)).sum();
        // Names say less than descriptions of the right skills, but more than those of any.
        let for_names = names.min(if best.is_empty() { budget } else { budget / 4 });
        let mut room = budget.saturating_sub(note.len() + NAMES.len() + MORE_BYTES + for_names);
        let mut describe = |entry: &mut Entry<'_>, most: usize| {
            let description = entry.skill.description_line();
            let kept = match most {
                limits::SENTENCE_BYTES if description.len() > most => {
                    text::whole_sentences(&description, most).into()
                }
                _ => text::first_sentences(&description, most),
            };
            let new = line(entry.skill, &kept);
            // A name that the line takes the place of.
            let name = if for_names == names { name_bytes(entry.skill) } else { 0 };
            let added = new.len().saturating_sub(entry.line.as_ref().map_or(name, String::len));
            let fits = added <= room;
            if fits && !kept.is_empty() {
                room -= added;
                entry.line = Some(new);
            }
            fits
        };
        let whole = best.len().min(limits::FOUND_SKILLS);
        let all_fit = entries.iter_mut().enumerate().all(|(at, entry)| {
            at < whole && describe(entry, limits::DESCRIPTION_BYTES)
                || describe(entry, limits::SENTENCE_BYTES)
        });
        if all_fit {
            let _ = entries.iter_mut().all(|entry| describe(entry, limits::DESCRIPTION_BYTES));
        }
        let lines: Vec<&str> = entries.iter().filter_map(|entry| entry.line.as_deref()).collect();
        let mut text = format!("{note}{}", lines.concat());
        let others = entries.iter().filter(|entry| entry.line.is_none()).map(|entry| entry.skill);
        push_names(&others.collect::<Vec<_>>(), budget, &mut text);
        SkillList { text, is_whole: false }
    }
}

const SHORTENED: &str =
    "(shortened; list_skills with a query searches all, and gives whole descriptions)\n";
const BEST_FIRST: &str = "(shortened; those whose words match the first question come first; \
                          list_skills with a query searches all)\n";

/// Words before the names of skills without a description.
const NAMES: &str = "By name only: ";

/// Room for the number of skills that are not even named.
const MORE_BYTES: usize = ", and 12345 more\n".len();

/// Adds the names of skills, as many as fit, and the number of the others.
fn push_names(skills: &[&SkillSummary], budget: usize, text: &mut String) {
    let room = budget.saturating_sub(text.len() + NAMES.len() + MORE_BYTES);
    let mut bytes = 0;
    let fitting = skills.iter().take_while(|skill| {
        bytes += name_bytes(skill);
        bytes <= room
    });
    let names: Vec<_> = fitting.map(|skill| skill.display_name()).collect();
    let more = skills.len() - names.len();
    match (names.len(), more) {
        (0, 0) => {}
        (0, _) => text.push_str(&format!("… and {more} more\n")),
        (_, 0) => text.push_str(&format!("{NAMES}{}\n", names.join(", "))),
        _ => text.push_str(&format!("{NAMES}{}, and {more} more\n", names.join(", "))),
    }
}

/// The bytes that a name takes among others.
fn name_bytes(skill: &SkillSummary) -> usize {
    skill.display_name().len() + ", ".len()
}

fn line(skill: &SkillSummary, description: &str) -> String {
    let name = skill.display_name();
    match description {
        "" => format!("- {name}\n"),
        _ => format!("- {name}: {description}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: usize = 2000;
    const DESCRIPTION: &str = "Sorts the files of a folder. Use it when a folder has become a \
                               mess, or when files have to be found by date, size or owner. It \
                               asks before it moves anything, and can undo what it has done as \
                               long as the folder exists and no other program has changed it.";

    fn skills(count: usize, description: &str) -> Vec<SkillSummary> {
        let skill = |number| SkillSummary {
            name: format!("skill-{number:05}"),
            description: description.to_string(),
            ..SkillSummary::default()
        };
        (0..count).map(skill).collect()
    }

    fn list(skills: &[SkillSummary], best: &[usize]) -> String {
        let all: Vec<&SkillSummary> = skills.iter().collect();
        let best: Vec<&SkillSummary> = best.iter().map(|at| &skills[*at]).collect();
        let whole = SkillList::whole(&all, BUDGET);
        let list = whole.unwrap_or_else(|| SkillList::shortened(&all, &best, BUDGET, true));
        assert!(list.text.len() <= BUDGET, "{} bytes: {}", list.text.len(), list.text);
        list.text
    }

    #[test]
    fn a_list_that_fits_is_whole() {
        assert_eq!(list(&[], &[]), "");
        let text = list(&skills(3, "Does things."), &[]);
        assert!(text.starts_with("- skill-00000: Does things.\n- skill-00001: "), "{text}");
        assert!(!text.contains("shortened"), "{text}");
    }

    #[test]
    fn the_best_skills_keep_their_descriptions() {
        let text = list(&skills(30, DESCRIPTION), &[17, 4]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(format!("{}\n", lines[0]), BEST_FIRST);
        assert_eq!(lines[1], format!("- skill-00017: {DESCRIPTION}"));
        assert_eq!(lines[2], format!("- skill-00004: {DESCRIPTION}"));
        assert!(lines[3].starts_with("- skill-00000: Sorts the files of a folder. Use it when"));
        assert!(lines[3].ends_with("size or owner."), "{text}");
        let last = lines.last().unwrap();
        assert!(last.starts_with(NAMES) && last.ends_with(", skill-00029"), "{text}");
        for number in 0..30 {
            assert_eq!(text.matches(&format!("skill-{number:05}")).count(), 1, "{text}");
        }
        // All space is used: one more line would not fit.
        assert!(text.len() + lines[3].len() > BUDGET, "{} bytes", text.len());
    }

    #[test]
    fn skills_that_are_not_even_named_are_counted() {
        let many = skills(10_000, DESCRIPTION);
        let text = list(&many, &[9_999]);
        assert!(text.contains(&format!("- skill-09999: {DESCRIPTION}\n")), "{text}");
        let unknown = list(&many, &[]);
        assert!(unknown.starts_with(SHORTENED) && !unknown.contains(": Sorts"), "{unknown}");
        for text in [text, unknown] {
            let names = text.matches("skill-0").count();
            assert!(text.ends_with(&format!(", and {} more\n", 10_000 - names)), "{text}");
            assert!(text.len() > BUDGET - 20, "{} bytes", text.len());
        }
    }

    #[test]
    fn long_descriptions_are_cut_between_sentences() {
        let long = [DESCRIPTION; 9].join(" ");
        let text = list(&skills(1, &long), &[]);
        assert!(text.ends_with("changed it.\n") && text.len() < 1100, "{text}");
    }
}
