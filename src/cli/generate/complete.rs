//! Completions of shells: a script each, whose lists come from the tables.

use super::{Guess, named, value};
use crate::cli::table::{COMMANDS, OPTIONS};

/// What a shell has to be told, as lines in which `%` and a letter stand for:
/// `n` a name or word, `f` the same as fish has it, `v` what a value is called,
/// `e` the sign before it, `g` what it is likely to be, `a` what all that is
/// about, `w` the words before, `m` whether there may be more of them.
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

/// For bash.
pub fn bash() -> String {
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
pub fn zsh() -> String {
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
pub fn fish() -> String {
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
    let (mut options, mut words) = (String::new(), String::new());
    let (mut all, mut taking) = (String::new(), String::new());
    for row in OPTIONS {
        let short = row.short.map(String::from);
        for (name, is_long) in [(short.as_deref(), false), (Some(&row.long[2..]), true)] {
            let Some(name) = name else { continue };
            let [dashes, fish, sign] = if is_long {
                ["--", "-l ", "="]
            } else {
                ["-", "-s ", "+"]
            };
            let typed = [dashes, name].concat();
            let mut line = shell.option;
            if row.value.is_some() {
                line = shell.valued;
                add(&mut taking, shell.between, &typed);
            }
            add(&mut all, " ", &typed);
            let fish = [fish, name].concat();
            let guess = shell.guess(&value(row));
            let values = [
                &typed,
                &fish,
                row.value.unwrap_or(""),
                sign,
                &guess,
                row.about,
                "",
                "",
            ];
            shell.fill(&mut options, line, values);
        }
    }
    let mut last = "";
    for row in COMMANDS {
        let mut word = |before, word| {
            let values = [word, "", "", "", "", row.about, before, ""];
            shell.fill(&mut words, shell.word, values);
        };
        if row.name != last {
            word("", row.name);
        }
        last = row.name;
        if let Some(next) = row.usage.split(' ').nth(1)
            && next.starts_with(|first: char| first.is_ascii_lowercase())
        {
            word(row.name, next);
        }
        if let Some((before, is_repeated, guess)) = named(row) {
            let more = if is_repeated { "*" } else { "" };
            let guess = shell.guess(&guess);
            let values = ["", "", "", "", &guess, "", before, more];
            shell.fill(&mut words, shell.operand, values);
        }
    }
    let mut script = shell.script.to_string();
    for (mark, list) in [
        ("@OPTIONS@", options),
        ("@WORDS@", words),
        ("@ALL@", all),
        ("@TAKING@", taking),
    ] {
        script = script.replace(mark, &list);
    }
    script
}

fn add(list: &mut String, between: &str, name: &str) {
    if !list.is_empty() {
        list.push_str(between);
    }
    list.push_str(name);
}

impl Shell {
    fn guess(&self, guess: &Guess) -> String {
        let [unknown, file, folder, skill, session, word] = self.guesses;
        match guess {
            Guess::Unknown => unknown.to_string(),
            Guess::File => file.to_string(),
            Guess::Folder => folder.to_string(),
            Guess::Skill => skill.to_string(),
            Guess::Session => session.to_string(),
            Guess::Word(words) => word.replace("%n", words),
        }
    }

    /// Adds the line with these values in the places of the letters.
    fn fill(&self, script: &mut String, line: &str, values: [&str; 8]) {
        let mut parts = line.split('%');
        script.push_str(parts.next().unwrap_or(""));
        for part in parts {
            let (letter, rest) = part.split_at(1);
            if let Some(index) = "nfvegawm".find(letter) {
                let value = values[index];
                match letter {
                    "a" => script.push_str(&value.replace('\'', self.quote)),
                    _ => script.push_str(value),
                }
            }
            script.push_str(rest);
        }
    }
}
