//! The example skills do what their documents promise.

use serde_json::{Value, json};

use crate::harness::{Outcome, Test};

const SKILLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/skills");

fn call(skill: &str, file: &str, args: &[&str], stdin: &str) -> (Outcome, Value) {
    let arguments = json!({"skill_name": skill, "file_path": file, "args": args, "stdin": stdin});
    let test =
        Test::new().args(["--skills", SKILLS, "tool", "run_python_script", &arguments.to_string()]);
    let run = test.run();
    let result = run.stdout_json();
    (run, result)
}

#[test]
fn calculator() {
    let table: [(&[&str], &str, i32, &str); 8] = [
        (&["eval", "1/3 + 1/6"], "", 0, "0.5\n"),
        (&["1/3"], "", 0, "0.33333333333333333333 (rounded; exactly 1/3)\n"),
        (
            &["eval", "net = 1499.90", "vat = net * 19/100", "round(net + vat, 2)"],
            "",
            0,
            "net = 1499.90 -> 1499.9\nvat = net * 19/100 -> 284.981\nround(net + vat, 2) = 1784.88\n",
        ),
        (
            &["eval", "--digits", "50", "sqrt(2)"],
            "",
            0,
            "1.4142135623730950488016887242096980785696718753769 (rounded)\n",
        ),
        (&["eval"], "0.1 + 0.2\n2^64\n", 0, "0.1 + 0.2 = 0.3\n2^64 = 18446744073709551616\n"),
        (
            &["stats", "--places", "2"],
            "2 4 4 4 5 5 7 9\n",
            0,
            "count     8\nsum       40.00\nmean      5.00\nmedian    4.50\nmin       2.00\nmax       9.00\nstdev     2.14\npstdev    2.00\nvariance  4.57\nq0.25     4.00\nq0.75     5.50\nmode      4.00\n",
        ),
        (&["eval", "1/0"], "", 1, "calc.py: error: division by zero in '1/0'\n"),
        (&["eval", "__import__('os').getcwd()"], "", 1, "error"),
    ];
    for (args, stdin, code, expected) in table {
        check("calculator", "scripts/calc.py", args, stdin, code, expected);
    }
}

#[test]
fn data_explorer() {
    let orders = "assets/orders.csv";
    let table: [(&[&str], &str, i32, &str); 4] = [
        (
            &[
                "filter",
                orders,
                "amount > 500",
                "region in North,West",
                "--sort",
                "amount",
                "--desc",
                "--columns",
                "order_id,customer,amount",
            ],
            "",
            0,
            "order_id  customer           amount\n--------  ----------------  -------\n    1032  Elm Street Books  2994.00\n    1022  Dune Café          567.00\n(2 of 40 rows match)\n",
        ),
        (
            &["group", orders, "--by", "order_date:month", "--of", "amount", "--agg", "count,sum"],
            "",
            0,
            "order_date:month  count  amount_sum\n----------------  -----  ----------\n2026-01              10     2024.85\n2026-02              19     3328.75\n2026-03              11     3375.25\n(3 groups, 40 rows)\n",
        ),
        (
            &["head", "-", "--json"],
            "\u{feff}a;b\r\n1;x\r\n2.50;\r\n",
            0,
            "{\"more\": false, \"rows\": [{\"a\": 1, \"b\": \"x\"}, {\"a\": 2.5, \"b\": null}]}\n",
        ),
        (&["filter", orders, "ammount > 1"], "", 1, "no column 'ammount' (did you mean 'amount'?)"),
    ];
    for (args, stdin, code, expected) in table {
        check("data-explorer", "scripts/explore.py", args, stdin, code, expected);
    }
}

#[test]
fn text_analyzer() {
    let log = "assets/sample.log";
    let table: [(&[&str], &str, i32, &str); 3] = [
        (
            &["search", "unhandled exception", log, "-F"],
            "",
            0,
            "41:2026-03-14 09:14:21,887 ERROR [worker-1] http: unhandled exception in request b058d2eea1\n52:2026-03-14 09:17:47,298 ERROR [worker-7] http: unhandled exception in request f8f2c944a1\n(2 lines match)\n",
        ),
        (
            &["frequency", "-", "--ngram", "2", "--top", "1"],
            "the cat saw the cat\n",
            0,
            "5 words, 3 different sequences of 2 words\n\nmost frequent\n  2  the cat\n",
        ),
        (&["log", "missing.log"], "", 1, "missing.log"),
    ];
    for (args, stdin, code, expected) in table {
        check("text-analyzer", "scripts/analyze.py", args, stdin, code, expected);
    }
}

/// A skill whose package is missing says which, and how to get it.
#[test]
fn a_skill_that_needs_a_package_says_so() {
    let document = "---\nname: t\ndescription: d\n---\n";
    let script = std::fs::read(format!("{SKILLS}/table-report/scripts/report.py")).unwrap();
    let test = Test::new()
        .skill("t", document)
        .file("skills/t/scripts/report.py", script)
        .file("skills/t/requirements.txt", "XlsxWriter\n")
        .file("skills/t/sales.csv", "a,b\n1,2\n")
        .venv("t");
    let arguments = r#"{"skill_name":"t","file_path":"scripts/report.py","args":["sales.csv"]}"#;
    let result = test.args(["tool", "run_python_script", arguments]).run().status(1).stdout_json();
    assert!(result["stderr"].as_str().unwrap().contains("XlsxWriter is missing"), "{result}");
    assert!(
        result["hint"]
            .as_str()
            .unwrap()
            .contains("`skills-runner skills setup t XlsxWriter` installs it"),
        "{result}"
    );
}

/// `expected` is all of stdout, or for a failure a part of stderr.
fn check(skill: &str, file: &str, args: &[&str], stdin: &str, code: i32, expected: &str) {
    let (run, result) = call(skill, file, args, stdin);
    run.demand(result["returncode"] == code, format!("{args:?} ends with {code}"));
    let (stream, matches) = match code {
        0 => (&result["stdout"], result["stdout"] == expected),
        _ => (&result["stderr"], result["stderr"].as_str().unwrap().contains(expected)),
    };
    run.demand(matches, format!("{args:?} prints {expected:?}, not {stream}"));
}
