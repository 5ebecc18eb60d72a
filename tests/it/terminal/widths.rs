//! Lists and help use the width of the terminal.

use crate::harness::{Reply, Server, Test};
use unicode_width::UnicodeWidthStr as _;

/// Runs a command line on a terminal of this width, and returns what it showed.
fn shown(test: &Test, columns: u16, line: &str) -> String {
    let line = format!("stty cols {columns}; {line}");
    test.next_run().shell(&line).spawn_on_terminal().wait_exit().terminal
}

#[test]
fn lists_and_help_fit_the_terminal() {
    let about = "处理表格数据，生成图表，并把结果写入文件。当用户要求分析电子表格、统计数字或者画图的时候使用这个技能。支持多种格式。";
    let test = Test::new()
        .skill("数据", &format!("---\nname: 数据\ndescription: {about}\n---\n"))
        .skill("émile", &format!("---\nname: émile\ndescription: {}\n---\n", "é👩 ".repeat(60)))
        .skill("calc", &format!("---\nname: calc\ndescription: {}\n---\n", "sums ".repeat(30)));
    for columns in [40, 80, 200] {
        for line in ["skills list", "skills check --help", "--help"] {
            let text = shown(&test, columns, &format!("skills-runner {line}"));
            assert!(!text.trim().is_empty());
            for line in text.lines() {
                // Names of commands and options are not broken.
                let is_name = line.starts_with("skills-runner ")
                    || line.starts_with("  ") && !line.starts_with("   ");
                let is_long_name = is_name && line.width() < 80 || !line.trim().contains(' ');
                assert!(is_long_name || line.width() <= columns.into(), "{columns}: {line}");
            }
        }
        let text = shown(&test, columns, "skills-runner skills list");
        assert!(text.lines().all(|line| columns == 200 || line.ends_with('…')), "{text}");
        assert!(text.lines().any(|line| line.width() + 3 >= columns.into()), "{text}");
    }
    assert!(shown(&test, 200, "skills-runner skills list").contains(about));
    let widest = |columns| {
        let text = shown(&test, columns, "skills-runner --help");
        text.lines().map(str::len).max().unwrap()
    };
    assert!(widest(200) > 85 && widest(80) <= 80);
}

/// Only on a terminal is the list of models requested after a refusal.
#[test]
fn a_refused_model_names_near_ones_on_a_terminal() {
    let server = Server::of_all_requests(|request| match request.path.as_str() {
        "/v1/models" => Reply::models(["test-model-2", "other"]),
        "/v1/chat/completions" => Reply::error(404, "The model `test-model` does not exist"),
        _ => Reply::status(404),
    });
    let test = Test::new().endpoint(&server);
    let hint = "`test-model` is not among the 2 models listed; similar names: `test-model-2`";
    let run = test.next_run().args(["hi"]).spawn_on_terminal().wait_exit().status(1);
    run.terminal_has("does not exist").terminal_has(hint);
    let run = test.next_run().args(["hi"]).run().status(1);
    run.stderr_has("hint: check LLM_MODEL_NAME");
    let gets = server.finish().iter().filter(|request| request.path == "/v1/models").count();
    assert_eq!(gets, 1);
}
