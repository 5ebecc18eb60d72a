//! Shell completions: one script per shell, with lists generated from the tables.

use super::{CompletionKind, named_operand, value_kind};
use crate::cli::table::{COMMANDS, OPTIONS};

/// The syntax of one shell: line templates in which `%` and a letter are placeholders
/// for the fields of a [`CompletionRow`].
struct Shell {
    script: &'static str,
    /// Line for an option.
    option: &'static str,
    /// Line for an option with a value.
    option_with_value: &'static str,
    /// Line for a command or subcommand.
    word: &'static str,
    /// Line for the name that a command takes.
    operand: &'static str,
    /// Separator between names of options.
    separator: &'static str,
    /// An escaped single quote inside single quotes.
    quote: &'static str,
    /// The code that completes each [`CompletionKind`], in its order.
    completions: [&'static str; 6],
}

/// The values of the placeholders of one line.
#[derive(Clone, Copy, Default)]
struct CompletionRow<'r> {
    /// `%n`: the name or word as the user types it.
    name: &'r str,
    /// `%f`: the option in the syntax of fish.
    fish: &'r str,
    /// `%v`: the placeholder of the value.
    value: &'r str,
    /// `%e`: the sign before the value.
    sign: &'r str,
    /// `%g`: the code that completes the value.
    completion: &'r str,
    /// `%a`: the description.
    about: &'r str,
    /// `%w`: the words before it.
    before: &'r str,
    /// `%m`: `*` where the name may be repeated.
    more: &'r str,
}

/// The completion script for bash.
pub(super) fn bash() -> String {
    script(&Shell {
        script: include_str!("complete.bash"),
        option: "",
        option_with_value: "    [[ $option != %n ]] || %g\n",
        word: "    [[ $before != '%w' ]] || reply+=' %n'\n",
        operand: "    [[ $before != '%w'%m ]] || %g\n",
        separator: "|",
        quote: "",
        completions: [
            "reply=",
            "compopt -o default",
            "compopt -o dirnames",
            "_skills_runner_names skills list --json",
            "_skills_runner_names sessions list --json",
            "reply='%n'",
        ],
    })
}

/// The completion script for zsh.
pub(super) fn zsh() -> String {
    script(&Shell {
        script: include_str!("complete.zsh"),
        option: "        '*%n[%a]' \\\n",
        option_with_value: "        '*%n%e[%a]:%v: %g' \\\n",
        word: "    [[ $before != '%w' ]] || rows+=('%n:%a')\n",
        operand: "    [[ $before != '%w'%m ]] || { %g; return }\n",
        separator: "|",
        quote: "'\\''",
        completions: [
            "",
            "_files",
            "_files -/",
            "_skills_runner_names skills list --json",
            "_skills_runner_names sessions list --json",
            "compadd %n",
        ],
    })
}

/// The completion script for fish.
pub(super) fn fish() -> String {
    script(&Shell {
        script: include_str!("complete.fish"),
        option: "complete -c skills-runner %f -d '%a'\n",
        option_with_value: "complete -c skills-runner %f %g -d '%a'\n",
        word: "complete -c skills-runner -n '__skills_runner_at \"%w\"' -fa %n -d '%a'\n",
        operand: "complete -c skills-runner -n '__skills_runner_at \"%w%m\"' %g\n",
        separator: " ",
        quote: "\\'",
        completions: [
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
                line = shell.option_with_value;
                append(&mut taking, shell.separator, &typed);
            }
            append(&mut all, " ", &typed);
            let fish = [fish, name].concat();
            let completion = shell.completion(&value_kind(row));
            let row = CompletionRow {
                name: &typed,
                fish: &fish,
                value: row.value.unwrap_or(""),
                sign,
                completion: &completion,
                about: row.about,
                ..CompletionRow::default()
            };
            shell.add_line(&mut options, line, &row);
        }
    }
    let mut script = shell.script.to_string();
    for (mark, list) in [
        ("@OPTIONS@", options),
        ("@WORDS@", command_lines(shell)),
        ("@ALL@", all),
        ("@TAKING@", taking),
    ] {
        script = script.replace(mark, &list);
    }
    script
}

/// The lines for commands, subcommands and the names that follow them.
fn command_lines(shell: &Shell) -> String {
    let mut words = String::new();
    let mut last = "";
    for row in COMMANDS {
        let mut add_word = |before, name| {
            let row = CompletionRow { name, about: row.about, before, ..CompletionRow::default() };
            shell.add_line(&mut words, shell.word, &row);
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
        if let Some((before, is_repeated, kind)) = named_operand(row) {
            let row = CompletionRow {
                completion: &shell.completion(&kind),
                before,
                more: if is_repeated { "*" } else { "" },
                ..CompletionRow::default()
            };
            shell.add_line(&mut words, shell.operand, &row);
        }
    }
    words
}

fn append(list: &mut String, between: &str, name: &str) {
    if !list.is_empty() {
        list.push_str(between);
    }
    list.push_str(name);
}

impl Shell {
    fn completion(&self, kind: &CompletionKind) -> String {
        let [unknown, file, folder, skill, session, word] = self.completions;
        match kind {
            CompletionKind::Unknown => unknown.to_string(),
            CompletionKind::File => file.to_string(),
            CompletionKind::Folder => folder.to_string(),
            CompletionKind::Skill => skill.to_string(),
            CompletionKind::Session => session.to_string(),
            CompletionKind::Word(words) => word.replace("%n", words),
        }
    }

    /// Adds the line with its placeholders replaced.
    fn add_line(&self, script: &mut String, line: &str, row: &CompletionRow) {
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
                Some('g') => row.completion,
                Some('w') => row.before,
                Some('m') => row.more,
                _ => &about,
            });
            script.push_str(signs.as_str());
        }
    }
}
