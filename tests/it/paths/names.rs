//! Names of skills and files.

use super::{
    GET, INSIDE, MISSING, PARENT, PLAIN, READ, RUN, absolute, call, hostile, of, of_skill, refusal,
    results, start_of, without_openat2,
};
use serde_json::Value;

const NO_SKILL: &str = "there is no skill `";

/// Strings that are not names of skills, separated by spaces.
const NO_NAMES: &str = ". .. ... / // ../ ../.. ../outside ../skills/hostile outside ./hostile \
    hostile/ hostile/. hostile// hostile/docs hostile/docs/hostile hostile/outside \
    hostile/folder-out hostile/../../outside hostile-evil/../../outside .hidden .hidden/ ~ $HOME \
    * secret fifo socket dangling loop to-secret %2e%2e ..%2foutside %2e%2e%2foutside ．．/outside ‥ \
    ..\\outside hostile\\..\\..\\outside hоstile hostile\u{200b} hostile-evi file:///etc \
    /etc /proc/self /proc/self/cwd \0 hostile\0 ..\0/outside ../outside\0";

/// A skill's name is the name of one folder and not a path.
#[test]
#[ignore = "long"]
fn skill_names_are_not_paths() {
    let test = hostile().link("skills/hostile/docs/hostile", "../../../outside");
    let mut names: Vec<String> = NO_NAMES.split(' ').map(str::to_owned).collect();
    names.extend(["", " ", " hostile", "hostile ", "hostile\n"].map(str::to_owned));
    names.extend(["outside", "skills", "skills/hostile"].map(|path| absolute(&test, path)));
    names.extend(["x".repeat(255), "x".repeat(256), "é".repeat(2500)]);
    names.push("../".repeat(100_000) + "outside");
    // The name with blanks around it, and as a path, is taken as meant.
    let plain =
        |name: &String| name.trim().trim_start_matches("./").trim_end_matches('/').to_owned();
    names.retain(|name| plain(name) != "hostile");
    assert!(names.len() > 50);
    for name in &names {
        for tool in [GET, READ, RUN] {
            // Without a name it is a file of the user.
            if tool == RUN && name.is_empty() {
                continue;
            }
            let arguments = if tool == GET { of_skill(name) } else { of(name, "secret") };
            let message = refusal(&test, tool, arguments);
            assert!(message.contains(NO_SKILL), "{tool} {:?}: {message}", start_of(name));
        }
    }
    for (name, remedy) in
        [("hostil", "; did you mean `hostile`?"), ("weather", "; the skills are: hostile")]
    {
        let message = refusal(&test, GET, of_skill(name));
        assert!(message.ends_with(remedy), "{message}");
    }
}

/// Arguments that are not valid paths; of a repeated argument the last counts.
#[test]
fn invalid_path_arguments_are_reported() {
    let test = hostile();
    let wrong = |name: &str, kind: &str| format!("`{name}` must be a string, not {kind}");
    let missing = "`file_path` is missing".to_owned();
    for (fields, expected) in [
        ("", missing.clone()),
        (r#","file_path":null"#, missing),
        (r#","file_path":["../secret"]"#, wrong("file_path", "an array")),
        (r#","file_path":{"path":"../secret"}"#, wrong("file_path", "an object")),
        (r#","file_path":true"#, wrong("file_path", "a boolean")),
        (r#","file_path":"a.md","skill_name":["hostile"]"#, wrong("skill_name", "an array")),
        (r#","file_path":"a.md","skill_name":null"#, "`skill_name` is missing".into()),
        (r#","file_path":3"#, MISSING.into()),
        (r#","file_path":-1.5e300"#, MISSING.into()),
        (r#","file_path":"a.md","file_path":"../secret""#, PARENT.into()),
        (r#","file_path":"\u002e\u002e\u002fsecret""#, PARENT.into()),
        (r#","file_path":"..\/secret""#, PARENT.into()),
    ] {
        let arguments = format!(r#"{{"skill_name":"hostile"{fields}}}"#);
        let wrapped = serde_json::to_string(&arguments).unwrap();
        for arguments in [arguments, wrapped] {
            let message = refusal(&test, READ, &arguments);
            assert!(message.contains(&expected), "{arguments}: {message}");
        }
    }
    let broken: [(&[u8], &str); 4] = [
        (b"[\"hostile\",\"../secret\"]", "must be a JSON object"),
        (b"3", "must be a JSON object"),
        (b"{\"file_path\":\"\xc0\xae\xc0\xae/secret\"}", "is not UTF-8"),
        (b"{\"file_path\":\"\\ud800../secret\"}", "invalid JSON for"),
    ];
    for (stdin, expected) in broken {
        let run = test.next_run().args(["tool", READ, "-"]).stdin(stdin).run();
        run.status(2).stdout_is_empty().stderr_has(expected);
    }
    // A folder can be read but not run.
    let skill = absolute(&test, "skills/hostile");
    for path in [".", "./", "docs", "docs/", "docs/.", &skill] {
        call(&test, READ, of("hostile", path)).success();
        let message = refusal(&test, RUN, of("hostile", path));
        assert!(message.contains("a folder, not a file"), "{path}: {message}");
    }
    call(&test, READ, of("hostile", "")).success();
    let message = refusal(&test, RUN, of("hostile", ""));
    assert!(message.contains("give `script`"), "{message}");
}

/// Names that only look dangerous, separated by spaces.
const ODD_NAMES: &str = "... .... ..hidden .hidden ..; ．．/x ‥ ․․/x ..\\secret C:\\secret \
    %2e%2e/secret %00 $HOME ~ ~root * ? [a] {a,b} `id` $(id) 'one\"two new\nline tab\t \u{1b}[31m \
    \u{202e}txt.exe - -c --help -d/- @file # Ünï/cödé 日本語.py 😀 e\u{301} \u{7f} NUL aux.py a.md;b \
    & | \u{feff}bom";

/// Files with names that only look dangerous are read and run, and links that stay inside are
/// followed.
#[test]
fn unusual_file_names_work() {
    const ODD: &str = "-odd skill…";
    let long = "n".repeat(255);
    let mut names: Vec<&str> = ODD_NAMES.split(' ').collect();
    names.extend(["with space", " first", "last ", ".. ", " ..", &long]);
    let mut test = hostile().skill(ODD, "x\n").link("by-link", "skills");
    for name in &names {
        test = test.file(&format!("skills/{ODD}/{name}"), INSIDE);
    }
    let mut paths: Vec<Value> = names.iter().map(|name| of(ODD, name)).collect();
    let dots = "./".repeat(2000) + "a.md";
    let plain = "a.md ./a.md docs/b.md docs//b.md docs/./b.md ./docs/././/deep///c.md";
    paths.extend(plain.split(' ').chain([dots.as_str()]).map(|path| of("hostile", path)));
    for path in ["skills/hostile/a.md", "skills//hostile/./docs//b.md"] {
        paths.push(of("hostile", &absolute(&test, path)));
    }
    let links = "link-in chain-in folder-in/b.md folder-in/deep/up-in docs/deep/up-in step-20";
    let by_link = links.split(' ').map(|path| of("hostile", path));
    let all: Vec<Value> = paths.iter().cloned().chain(by_link).collect();
    for (shell, paths) in [(Some(PLAIN.to_owned()), all), (without_openat2(&test), paths)] {
        let Some(shell) = shell else { continue };
        let calls: Vec<_> = paths.iter().map(|path| (READ, path.clone())).collect();
        for (path, content) in paths.iter().zip(results(&test, &shell, &calls)) {
            assert_eq!(content, INSIDE, "{path} by {shell}");
        }
    }
    // The skills folder is a link: both its names are valid for the skill.
    for folder in ["by-link", "skills"] {
        let path = absolute(&test, &format!("{folder}/hostile/a.md"));
        let run = test.next_run().args(["--skills", "by-link", "tool", READ]);
        run.args([of("hostile", &path).to_string()]).run().success().stdout(INSIDE);
    }
    // No file name is parsed as an option of the interpreter.
    let scripts = ["...", "-", "-c", "--help", "-d/-", "~", "new\nline", "．．/x", &long];
    let scripts = scripts.into_iter().map(|name| of(ODD, name));
    let dash = absolute(&test, &format!("skills/{ODD}/-c"));
    for arguments in scripts.chain([of(ODD, &dash), of("hostile", "link-in")]) {
        let run = test.next_run().args(["tool", RUN, &arguments.to_string()]).run();
        run.success().stdout_has(r#""returncode":0,"stdout":"inside\n""#);
    }
}
