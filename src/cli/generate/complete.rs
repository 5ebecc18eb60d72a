//! Completions of shells: a script each, whose lists come from the tables.

use super::{CompletionKind, named, value};
use crate::cli::table::{COMMANDS, OPTIONS};

/// What a shell has to be told, as lines in which `%` and a letter stand for
/// the parts of a [`CompletionRow`].
struct Shell {
    script: &'static str,
    /// An option.
    option: &'static str,
    /// One with a value.
    valued: &'static str,
    /// A word of a command.
    word: &'static str,
    /// The name that a command takes.
    operand: &'static str,
    /// Between the names of options.
    between: &'static str,
    /// A single quote inside of single quotes.
    quote: &'static str,
    /// What is likely to be typed; the last goes on with the words to choose from.
    guesses: [&'static str; 6],
}

/// What stands in a line, each part for its letter.
#[derive(Clone, Copy, Default)]
struct CompletionRow<'r> {
    /// `n`: a name or word as it is typed.
    name: &'r str,
    /// `f`: the same as fish has it.
    fish: &'r str,
    /// `v`: what the value is called.
    value: &'r str,
    /// `e`: the sign before the value.
    sign: &'r str,
    /// `g`: what is likely to be typed.
    guess: &'r str,
    /// `a`: what all that is about.
    about: &'r str,
    /// `w`: the words before.
    before: &'r str,
    /// `m`: whether there may be more of them.
    more: &'r str,
}

/// For bash.
pub(super) fn bash() -> String {
    script(&Shell {
        script: include_str!("complete.bash"),
        option: "",
        valued: "    [[ $option != %n ]] || %g\n",
        word: "    [[ $before != '%w' ]] || reply+=' %n'\n",
        operand: "    [[ $before != '%w'%m ]] || %g\n",
        between: "|",
        quote: "",
        guesses: [
            "reply=",
            "compopt -o default",
            "compopt -o dirnames",
            "_skills_runner_names skills list --json",
            "_skills_runner_names sessions list --json",
            "reply='%n'",
        ],
    })
}

/// For zsh.
pub(super) fn zsh() -> String {
    script(&Shell {
        script: include_str!("complete.zsh"),
        option: "        '*%n[%a]' \\\n",
        valued: "        '*%n%e[%a]:%v: %g' \\\n",
        word: "    [[ $before != '%w' ]] || rows+=('%n:%a')\n",
        operand: "    [[ $before != '%w'%m ]] || { %g; return }\n",
        between: "|",
        quote: "'\\''",
        guesses: [
            "",
            "_files",
            "_files -/",
            "_skills_runner_names skills list --json",
            "_skills_runner_names sessions list --json",
            "compadd %n",
        ],
    })
}

/// For fish.
pub(super) fn fish() -> String {
    script(&Shell {
        script: include_str!("complete.fish"),
        option: "complete -c skills-runner %f -d '%a'\n",
        valued: "complete -c skills-runner %f %g -d '%a'\n",
        word: "complete -c skills-runner -n '__skills_runner_at \"%w\"' -fa %n -d '%a'\n",
        operand: "complete -c skills-runner -n '__skills_runner_at \"%w%m\"' %g\n",
        between: " ",
        quote: "\\'",
        guesses: [
            "-x",
            "-rF",
            "-xa '(__fish_complete_directories)'",
            "-xa '(__skills_runner_names skills list --json)'",
            "-xa '(__skills_runner_names sessions list --json)'",
            "-xa '%n'",
        ],
    })
}

fn script(shell: &Shell) -> String {
    let (mut options, mut all, mut taking) = (String::new(), String::new(), String::new());
    for row in OPTIONS {
        let short = row.short.map(String::from);
        for (name, is_long) in [(short.as_deref(), false), (Some(&row.long[2..]), true)] {
            let Some(name) = name else { continue };
            let [dashes, fish, sign] = if is_long { ["--", "-l ", "="] } else { ["-", "-s ", "+"] };
            let typed = [dashes, name].concat();
            let mut line = shell.option;
            if row.value.is_some() {
                line = shell.valued;
                add(&mut taking, shell.between, &typed);
            }
            add(&mut all, " ", &typed);
            let fish = [fish, name].concat();
            let guess = shell.guess(&value(row));
            let row = CompletionRow {
                name: &typed,
                fish: &fish,
                value: row.value.unwrap_or(""),
                sign,
                guess: &guess,
                about: row.about,
                ..CompletionRow::default()
            };
            shell.fill(&mut options, line, &row);
        }
    }
    let mut script = shell.script.to_string();
    for (mark, list) in
        [("@OPTIONS@", options), ("@WORDS@", words(shell)), ("@ALL@", all), ("@TAKING@", taking)]
    {
        script = script.replace(mark, &list);
    }
    script
}

/// The lines for the words of commands and the names that follow them.
fn words(shell: &Shell) -> String {
    let mut words = String::new();
    let mut last = "";
    for row in COMMANDS {
        let mut add_word = |before, name| {
            let row = CompletionRow { name, about: row.about, before, ..CompletionRow::default() };
            shell.fill(&mut words, shell.word, &row);
        };
        if row.name != last {
            add_word("", row.name);
        }
        last = row.name;
        if let Some(next) = row.usage.split(' ').nth(1)
            && next.starts_with(|first: char| first.is_ascii_lowercase())
        {
            add_word(row.name, next);
        }
        if let Some((before, is_repeated, guess)) = named(row) {
            let row = CompletionRow {
                guess: &shell.guess(&guess),
                before,
                more: if is_repeated { "*" } else { "" },
                ..CompletionRow::default()
            };
            shell.fill(&mut words, shell.operand, &row);
        }
    }
    words
}

fn add(list: &mut String, between: &str, name: &str) {
    if !list.is_empty() {
        list.push_str(between);
    }
    list.push_str(name);
}

impl Shell {
    fn guess(&self, guess: &CompletionKind) -> String {
        let [unknown, file, folder, skill, session, word] = self.guesses;
        match guess {
            CompletionKind::Unknown => unknown.to_string(),
            CompletionKind::File => file.to_string(),
            CompletionKind::Folder => folder.to_string(),
            CompletionKind::Skill => skill.to_string(),
            CompletionKind::Session => session.to_string(),
            CompletionKind::Word(words) => word.replace("%n", words),
        }
    }

    /// Adds the line with the row's parts in the places of their letters.
    fn fill(&self, script: &mut String, line: &str, row: &CompletionRow) {
        let about = row.about.replace('\'', self.quote);
        let mut parts = line.split('%');
        script.push_str(parts.next().unwrap_or(""));
        for part in parts {
            let mut signs = part.chars();
            script.push_str(match signs.next() {
                Some('n') => row.name,
                Some('f') => row.fish,
                Some('v') => row.value,
                Some('e') => row.sign,
                Some('g') => row.guess,
                Some('w') => row.before,
                Some('m') => row.more,
                _ => &about,
            });
            script.push_str(signs.as_str());
        }
    }
}
