//! Tests of what the placeholders of a document become.

use std::time::Duration;

use super::*;
use host::clock::thread_time;

const PLAIN: &str = "---\nname: s\ndescription: d\n---\n";
const HINTED: &str = "---\nname: s\nargument-hint: [file] [format]\n---\n";

#[track_caller]
fn check(front: &str, table: &[(&str, &str, &str)]) {
    for (body, arguments, expected) in table {
        let text =
            render(&format!("{front}{body}"), &SkillFolders::new("/s"), Some(arguments)).unwrap();
        assert_eq!(text, *expected, "{body:?} with {arguments:?}");
    }
}

#[test]
fn all_arguments_are_inserted_as_typed() {
    check(
        PLAIN,
        &[
            ("Fix $ARGUMENTS now.", "a  'b c'", "Fix a  'b c' now."),
            ("$ARGUMENTS,$ARGUMENTS", "x", "x,x"),
            ("Fix $ARGUMENTS.", "", "Fix ."),
            ("分析$ARGUMENTS的代码", "main.rs", "分析main.rs的代码"),
            ("$ARGUMENTS_test.go", "run", "run_test.go"),
            ("$ARGUMENTSX $ARGUMENTS2", "x", "$ARGUMENTSX $ARGUMENTS2\n\nARGUMENTS: x"),
            ("$arguments", "x", "$arguments\n\nARGUMENTS: x"),
            ("a\r\n$ARGUMENTS\r\n", "x\ny", "a\r\nx\ny\r\n"),
        ],
    );
}

#[test]
fn words_are_counted_from_0_and_missing_ones_are_kept() {
    check(
        PLAIN,
        &[
            ("$ARGUMENTS[0]-$ARGUMENTS[1]", "'a b' c", "a b-c"),
            ("$ARGUMENTS[2] $ARGUMENTS[0]", "a", "$ARGUMENTS[2] a"),
            ("$ARGUMENTS[7]", "a b", "$ARGUMENTS[7]\n\nARGUMENTS: a b"),
            ("$ARGUMENTS[x] $ARGUMENTS[] $ARGUMENTS[0", "a", "a[x] a[] a[0"),
            ("$ARGUMENTS[99999999999999999999999]", "", "$ARGUMENTS[99999999999999999999999]"),
        ],
    );
    check(
        HINTED,
        &[
            ("$0 to $1, $2", "a b", "a to b, $2"),
            ("$10$0", "a b", "$10a"),
            ("$10", "0 1 2 3 4 5 6 7 8 9 ten", "ten"),
            ("$1.00 $1_x $1的", "a b", "b.00 b_x b的"),
            ("$1st $1k $0", "a b", "$1st $1k a"),
            ("$0", "", "$0"),
            ("$$0", "a", "$a"),
        ],
    );
}

/// Shell and awk would break.
#[test]
fn numbers_are_kept_if_no_arguments_are_declared() {
    let awk = "awk '{print $1}' \"$0\" $9.99";
    check(PLAIN, &[(awk, "", awk), (awk, "x y", &format!("{awk}\n\nARGUMENTS: x y"))]);
    for key in ["arguments: [a]", "arguments: file", "argument-hint: '[file]'"] {
        check(&format!("---\nname: s\n{key}\n---\n"), &[("$0", "v", "v")]);
    }
}

#[test]
fn names_are_declared_in_the_frontmatter() {
    for names in [
        "arguments: [issue, branch-name, issue_id]",
        "arguments: issue branch-name issue_id",
        "arguments:\n  - name: issue\n    description: d\n  - name: branch-name\n  - issue_id",
    ] {
        check(
            &format!("---\nname: s\n{names}\n---\n"),
            &[
                ("$issue on $branch-name", "7 main", "7 on main"),
                ("$issue_id|$issue-x|$issues", "7 m 9", "9|7-x|$issues"),
                ("$issue[0] $branch", "7", "$issue[0] $branch\n\nARGUMENTS: 7"),
                ("<$branch-name>", "7", "<>"),
                ("$0 $other", "7", "7 $other"),
            ],
        );
    }
    check(
        "---\narguments: [1st, ARGUMENTS, x, x]\n---\n",
        &[("$x $ARGUMENTS $1st", "a b c d", "c a b c d $1st")],
    );
    check(PLAIN, &[("$issue", "7", "$issue\n\nARGUMENTS: 7")]);
}

#[test]
fn backslash_escapes_a_placeholder() {
    check(
        HINTED,
        &[
            (r"\$ARGUMENTS \$ARGUMENTS[0] \$0", "a", "$ARGUMENTS $ARGUMENTS[0] $0\n\nARGUMENTS: a"),
            (r"\$9 $0", "a", "$9 a"),
            (r"\$HOME \$ \n \", "", r"\$HOME \$ \n \"),
            (r"\\$0 \\\$0", "a", r"\\a \\\a"),
            (r"\${CLAUDE_SKILL_DIR} \$ARGUMENTSX", "", r"${CLAUDE_SKILL_DIR} \$ARGUMENTSX"),
        ],
    );
    check(PLAIN, &[(r"costs \$1.50", "", "costs $1.50")]);
    check("---\narguments: [a]\n---\n", &[(r"\$a \$b $a", "x", r"$a \$b x")]);
}

#[test]
fn folder_placeholders_use_no_arguments() {
    check(
        PLAIN,
        &[
            (
                "${CLAUDE_SKILL_DIR}/x {baseDir}/y <SKILL_DIR>/z",
                "a",
                "/s/x /s/y /s/z\n\nARGUMENTS: a",
            ),
            (
                "${baseDir} {{baseDir}} {basedir} <SKILL_DIR ${CLAUDE_SKILL_DIR",
                "",
                "${baseDir} {{baseDir}} {basedir} <SKILL_DIR ${CLAUDE_SKILL_DIR",
            ),
            ("{x} < <<SKILL_DIR>> $", "", "{x} < </s> $"),
        ],
    );
}

#[test]
fn values_are_not_expanded_again() {
    let value = r"$ARGUMENTS $0 \$0 {baseDir} <SKILL_DIR>";
    check(
        HINTED,
        &[
            ("$ARGUMENTS", value, value),
            ("$0|$1", "'$1 {baseDir}' two", "$1 {baseDir}|two"),
            ("$ARGUMENTS[0]{baseDir}", "$", "$/s"),
        ],
    );
    let text =
        render("<SKILL_DIR>/x $0", &SkillFolders::new("/$ARGUMENTS/{baseDir}"), Some("a")).unwrap();
    assert_eq!(text, "/$ARGUMENTS/{baseDir}/x $0\n\nARGUMENTS: a");
}

#[test]
fn documents_without_frontmatter_are_all_body() {
    check(
        "",
        &[("# T\n$ARGUMENTS", "a", "# T\na"), ("\u{feff}$ARGUMENTS", "a", "a"), ("x", " \n", "x")],
    );
    render("", &SkillFolders::new("/s"), Some("a")).unwrap_err();
    check("---\r\nname: s\r\n---\r\n", &[("a\r\n", "b", "a\r\n\n\nARGUMENTS: b")]);
}

/// A document as large as may be, of nothing but placeholders, and lines
/// that a careless reader searches again and again.
#[test]
fn time_is_linear_and_size_is_limited() {
    let start = thread_time();
    let fits = |body: &str, arguments: &str| {
        let front = "---\narguments: [a, b-c-d-e-f-g-h-i-j-k-l]\n---\n";
        render(&format!("{front}{body}"), &SkillFolders::new("/s"), Some(arguments))
            .map(|text| text.len())
    };
    let many = limits::DOCUMENT_BYTES / 10;
    assert_eq!(fits(&"$ARGUMENTS".repeat(many), "ten bytes."), Ok(many * 10));
    let million = "x".repeat(1 << 20);
    assert_eq!(fits("$ARGUMENTS", &million), Ok(1 << 20));
    let error = fits(&"$ARGUMENTS".repeat(many), &million).unwrap_err();
    assert!(error.contains("larger than 2 MiB"), "{error}");
    for body in ["\\", "$", "{", "<", "$b-c-d-", "$ARGUMENTS[", "$9", "\\$"] {
        let count = limits::DOCUMENT_BYTES / body.len();
        fits(&body.repeat(count), "a").unwrap();
    }
    for line in ["\"", "'", "\\", "\"\\", "a ", "\"' "] {
        fits("$0", &line.repeat((1 << 20) / line.len())).unwrap();
    }
    let took = thread_time().saturating_sub(start);
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[test]
fn user_invocable_false_is_for_the_model_only() {
    for (value, expected) in
        [("false", false), ("no", false), ("'false'", false), ("true", true), ("", true)]
    {
        let frontmatter = frontmatter::parse(&format!("---\nuser-invocable: {value}\n---\n"));
        assert_eq!(is_for_users(&frontmatter), expected, "{value:?}");
    }
    assert!(is_for_users(&frontmatter::parse(PLAIN)));
}
