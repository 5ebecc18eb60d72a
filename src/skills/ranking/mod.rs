//! The ranking of skills for a question, by name, description and document: BM25 with a weight for
//! each of the three (Robertson, Zaragoza and Taylor, "Simple BM25 extension to multiple weighted
//! fields", 2004).
//!
//! There is no index: the documents are read each time, and only the words of the question are
//! counted in them. The weights were chosen with 320 labelled questions over 1,038 published
//! skills.

use std::collections::HashSet;
use std::iter;

use crate::lookup::OpenFolders;
use crate::{SkillSummary, Skills};
use base::limits;

mod note;
mod stemmer;
mod words;

use words::{WordStarts, for_each_word, is_stop_word, write_base, write_stem};

/// Weight of a word in the name; one in the description has 1.
const NAME_WEIGHT: f64 = 2.0;
/// Weight of a word in the document, of which the logarithm of the number of occurrences counts.
const DOCUMENT_WEIGHT: f64 = 0.25;
/// Weight of another word of the same root: "operation" for "operator".
const SAME_ROOT: f32 = 0.25;
/// How much the length of name, description and document counts: occurrences in a long text prove
/// less.
const LENGTH_PARTS: [f64; 3] = [0.6, 0.9, 0.9];
/// Part of the weight of the question's words that skills mention, which a skill has to reach to
/// fit.
const FITTING_PART: f64 = 0.4;
/// Part of the weight of a word that occurs nowhere, which is enough as well: long questions
/// contain many words that no skill mentions.
const FITTING_WORD: f64 = 0.6;
/// How often a skill has to mention each word of the question, which is enough as well.
const FITTING_COUNT: f32 = 2.0;
/// Skills from which on the number of those with a word says how rare it is.
const FEW_SKILLS: usize = 10;

/// The skills for a question.
#[derive(Debug)]
pub struct Ranking<'c> {
    /// The skills that mention a word of the question, the best first.
    mentioning: Vec<&'c SkillSummary>,
    /// How many of them a search lists at most: fewer if none surely fits the question, by its
    /// score, or as skills mention its only word, or one mentions all of its words repeatedly.
    listed: usize,
    /// The words of the question that no skill mentions.
    unknown_words: Vec<String>,
}

impl<'c> Ranking<'c> {
    /// Ranks the skills. `None` if there are none, or no words in the question.
    pub fn new(
        skills: &Skills,
        candidates: &[&'c SkillSummary],
        question: &str,
    ) -> Option<Ranking<'c>> {
        let question = Question::parse(question);
        if question.terms.is_empty() || candidates.is_empty() {
            return None;
        }
        let counts = question.count_all(skills, candidates);
        let weights = question.weights(&counts);
        let order = order(&counts, &weights, candidates);
        let is_unknown = |term: usize| counts.iter().all(|skill| !skill.terms[term].occurs());
        let (unknown, known): (Vec<usize>, Vec<usize>) =
            (0..weights.len()).partition(|term| is_unknown(*term));
        let whole: f64 = known.iter().map(|term| weights[*term]).sum();
        let mentions_all = |skill: &SkillCounts| {
            known.iter().all(|term| skill.terms[*term].total() >= FITTING_COUNT)
        };
        let about = |term: usize| counts.iter().filter(|it| it.terms[term].is_in_summary()).count();
        // The only known word of several may be there by chance, except if one skill is about it.
        let is_alone = !unknown.is_empty() && known.len() == 1 && about(known[0]) != 1;
        let listed = order.first().map_or(0, |(score, at)| {
            let mentioned = counts[*at].terms.iter().filter(|term| term.occurs()).count();
            let is_part = || *score > FITTING_PART * whole || weights.len() == 1;
            if *score > FITTING_WORD * rarity(0.0, counts.len())
                || !is_alone && (is_part() || counts.iter().any(mentions_all))
            {
                limits::FOUND_SKILLS
            } else if 2 * mentioned >= known.len() {
                limits::SIMILAR_NAMES
            } else {
                0
            }
        });
        Some(Ranking {
            listed,
            unknown_words: unknown.iter().map(|at| question.terms[*at].word.clone()).collect(),
            mentioning: order.into_iter().map(|(_, at)| candidates[at]).collect(),
        })
    }

    /// The skills for a question, the best first: by turns those for the whole question and for
    /// each of its parts, as the words of one part say nothing about another.
    pub fn by_parts(
        skills: &Skills,
        candidates: &[&'c SkillSummary],
        question: &str,
    ) -> Vec<&'c SkillSummary> {
        let whole = Question::parse(question);
        if whole.terms.is_empty() {
            return Vec::new();
        }
        let counts = whole.count_all(skills, candidates);
        let weights = whole.weights(&counts);
        let parts = question.split(['.', ',', ';', '?', '!', '\n']);
        let parts = parts.flat_map(|part| part.split(" and ")).take(limits::QUERY_PARTS);
        let orders = iter::once(question).chain(parts).map(|part| {
            let part = Question::parse(part);
            let is_in = |term: &Term| part.terms.iter().any(|it| it.stem == term.stem);
            let weights = weights.iter().zip(&whole.terms);
            let weights = weights.map(|(weight, term)| if is_in(term) { *weight } else { 0.0 });
            order(&counts, &weights.collect::<Vec<_>>(), candidates)
        });
        let orders: Vec<_> = orders.collect();
        let mut seen = HashSet::new();
        let places = 0..candidates.len();
        let turns = places.flat_map(|place| orders.iter().filter_map(move |it| it.get(place)));
        turns.filter(|(_, at)| seen.insert(*at)).map(|(_, at)| candidates[*at]).collect()
    }

    /// The skills that a search lists: the best ones, or the nearest if none fits.
    pub fn found(&self) -> &[&'c SkillSummary] {
        &self.mentioning[..self.mentioning.len().min(self.listed)]
    }
}

/// A word of the question.
struct Term {
    /// The word in small letters.
    word: String,
    /// Common part of words of its root.
    stem: String,
    /// Common part of the word's forms.
    base: String,
}

struct Question {
    terms: Vec<Term>,
    starts: WordStarts,
}

/// How often a word occurs in a skill; another word of the same root counts less.
#[derive(Clone, Copy, Default)]
struct TermCounts {
    name: f32,
    description: f32,
    document: f32,
}

/// Counts in a skill's texts.
struct SkillCounts {
    /// For each word of the question.
    terms: Vec<TermCounts>,
    /// Bytes of the name, words of the description, bytes of the document up to where it was read.
    lengths: [usize; 3],
}

impl TermCounts {
    fn total(self) -> f32 {
        self.name + self.description + self.document
    }

    fn occurs(self) -> bool {
        self.total() > 0.0
    }

    fn is_in_summary(self) -> bool {
        self.name > 0.0 || self.description > 0.0
    }
}

impl Question {
    fn parse(text: &str) -> Question {
        let mut all: Vec<Term> = Vec::new();
        let mut stem = String::new();
        for_each_word(text, &WordStarts::all(), &mut |word| {
            let word = &word[..word.floor_char_boundary(limits::QUERY_WORD_BYTES)];
            write_stem(word, &mut stem);
            let is_new =
                all.len() < limits::QUERY_WORDS_READ && all.iter().all(|term| term.stem != stem);
            if is_new {
                let mut base = String::new();
                write_base(word, &mut base);
                all.push(Term { word: word.to_lowercase(), stem: stem.clone(), base });
            }
        });
        let is_subject = |term: &Term| !is_stop_word(&term.word);
        // "What is this?" has to be searched for as it is.
        if all.iter().any(is_subject) {
            all.retain(is_subject);
        }
        all.truncate(limits::QUERY_WORDS);
        let starts = WordStarts::of(all.iter().map(|term| &*term.stem));
        Question { terms: all, starts }
    }

    /// Counts the words of the question in all skills.
    fn count_all(&self, skills: &Skills, candidates: &[&SkillSummary]) -> Vec<SkillCounts> {
        let folders = OpenFolders::of(skills);
        let mut bytes_left = limits::RANKED_BYTES;
        let mut bytes = Vec::new();
        let mut buffer = String::new();
        let count = |skill: &&SkillSummary| {
            let mut terms = vec![TermCounts::default(); self.terms.len()];
            let mut count = |text: &str, field: fn(&mut TermCounts) -> &mut f32| {
                for_each_word(text, &self.starts, &mut |word| {
                    write_stem(word, &mut buffer);
                    if let Some(at) = self.terms.iter().position(|term| term.stem == buffer) {
                        write_base(word, &mut buffer);
                        let is_form = self.terms[at].base == buffer;
                        *field(&mut terms[at]) += if is_form { 1.0 } else { SAME_ROOT };
                    }
                });
                text.len()
            };
            let name = count(&skill.name, |term| &mut term.name);
            let alias = count(skill.alias.as_deref().unwrap_or_default(), |term| &mut term.name);
            count(&skill.description, |term| &mut term.description);
            let description = skill.description.split_whitespace().count();
            folders.read_start(skill, bytes_left.min(limits::RANKED_DOCUMENT_BYTES), &mut bytes);
            bytes_left -= bytes.len();
            let document = count(&String::from_utf8_lossy(&bytes), |term| &mut term.document);
            SkillCounts { terms, lengths: [name + alias, description, document] }
        };
        candidates.iter().map(count).collect()
    }

    /// The weight of each word: the fewer skills mention it, the more it says. Those that mention
    /// it in name or description count twice, as they are about it.
    fn weights(&self, counts: &[SkillCounts]) -> Vec<f64> {
        let terms = 0..self.terms.len();
        let count = |is_meant: &dyn Fn(&SkillCounts) -> bool| {
            counts.iter().filter(|skill| is_meant(skill)).count()
        };
        terms
            .map(|term| {
                let all = count(&|skill| skill.terms[term].occurs());
                let about = count(&|skill| skill.terms[term].is_in_summary());
                rarity(number(all + about) / 2.0, counts.len())
            })
            .collect()
    }
}

/// How much a word says that occurs in so many of the skills.
fn rarity(occurrences: f64, skills: usize) -> f64 {
    let all = number(skills.max(FEW_SKILLS));
    (1.0 + (all - occurrences + 0.5) / (occurrences.max(1.0) + 0.5)).ln()
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// The skills with a score, the best first, with their places.
fn order(
    counts: &[SkillCounts],
    weights: &[f64],
    candidates: &[&SkillSummary],
) -> Vec<(f64, usize)> {
    let scores = scores(counts, weights).into_iter().zip(0..);
    let mut order: Vec<(f64, usize)> = scores.filter(|(score, _)| *score > 0.0).collect();
    order.sort_by(|(one, at), (other, other_at)| {
        let by_name = || candidates[*at].name.cmp(&candidates[*other_at].name);
        other.total_cmp(one).then_with(by_name)
    });
    order
}

/// The score of each skill.
fn scores(counts: &[SkillCounts], weights: &[f64]) -> Vec<f64> {
    let average = |field: usize| {
        let sum: usize = counts.iter().map(|skill| skill.lengths[field]).sum();
        (number(sum) / number(counts.len())).max(1.0)
    };
    let averages = [average(0), average(1), average(2)];
    let score = |skill: &SkillCounts| {
        let [name, description, document] = std::array::from_fn(|field| {
            let part = LENGTH_PARTS[field];
            1.0 - part + part * number(skill.lengths[field]) / averages[field]
        });
        let terms = skill.terms.iter().zip(weights);
        let terms = terms.map(|(counts, weight)| {
            let occurrences = NAME_WEIGHT * f64::from(counts.name.min(1.0)) / name
                + f64::from(counts.description) / description
                + DOCUMENT_WEIGHT * (f64::from(counts.document) / document).ln_1p();
            weight * occurrences / (1.0 + occurrences)
        });
        terms.sum()
    };
    counts.iter().map(score).collect()
}
