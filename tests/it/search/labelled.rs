//! Eighty labelled questions over made-up skills in the shape of published ones: the right skill
//! is found, and where none fits, that is the answer.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{document, names, search};
use crate::harness::Test;

#[derive(Deserialize)]
struct MadeUpSkill {
    name: String,
    description: String,
    body: String,
}

#[derive(Deserialize)]
struct LabelledQuestion {
    question: String,
    /// What a model would search for.
    query: String,
    /// The right skills; empty if none fits.
    skills: Vec<String>,
}

/// How many questions were answered right.
#[derive(Debug, Default)]
struct Score {
    fitting: usize,
    first: usize,
    among_three: usize,
    without: usize,
    refused: usize,
}

impl Score {
    fn add(&mut self, right: &[String], result: &Value) {
        let found = names(result);
        if right.is_empty() {
            self.without += 1;
            let is_unsure = result["note"].as_str().is_some_and(|it| it.starts_with("no sure hit"));
            self.refused += usize::from(found.is_empty() || is_unsure);
            return;
        }
        let place = found.iter().position(|name| right.iter().any(|right| right == name));
        self.fitting += 1;
        self.first += usize::from(place == Some(0));
        self.among_three += usize::from(place.is_some_and(|place| place < 3));
    }

    /// Whether the right skill is first and among three in so many per cent, and whether so many
    /// of the questions that no skill fits are answered so.
    fn is_at_least(&self, first: usize, among_three: usize, refused: usize) -> bool {
        self.first * 100 >= self.fitting * first
            && self.among_three * 100 >= self.fitting * among_three
            && self.refused * 100 >= self.without * refused
    }
}

#[test]
fn the_right_skill_is_found_among_many() {
    let skills: Vec<MadeUpSkill> = serde_json::from_str(include_str!("skills.json")).unwrap();
    let questions = include_str!("questions.jsonl").lines();
    let questions: Vec<LabelledQuestion> =
        questions.map(|line| serde_json::from_str(line).unwrap()).collect();
    let test = skills.iter().fold(Test::new(), |test, skill| {
        let description = json!(skill.description).to_string();
        test.skill(&skill.name, &document(&skill.name, &description, &skill.body))
    });
    let (mut as_asked, mut as_searched) = (Score::default(), Score::default());
    for LabelledQuestion { question, query, skills } in &questions {
        as_asked.add(skills, &search(&test, question).stdout_json());
        as_searched.add(skills, &search(&test, query).stdout_json());
    }
    assert_eq!((as_asked.fitting, as_asked.without), (70, 10));
    println!("{as_asked:?}, {as_searched:?}");
    assert!(as_searched.is_at_least(80, 92, 80), "{as_searched:?}");
    // Questions in other words than the skills'.
    assert!(as_asked.is_at_least(75, 80, 80), "{as_asked:?}");
}
