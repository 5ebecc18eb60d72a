//! The example skills work as their documents describe.

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
    let table: [(&[&str], &str, i32, &str); 12] = [
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
        (&["eval", "-7 % 3", "--places", "2"], "", 0, "2.00\n"),
        (
            &["eval", "--json", "comb(49, 6)"],
            "",
            0,
            "[{\"expression\": \"comb(49, 6)\", \"value\": \"13983816\", \"exact\": true}]\n",
        ),
        (&["eval", "1/0"], "", 1, "failed to evaluate expression `1/0`: division by zero\n"),
        (&["eval", "__import__('os').getcwd()"], "", 1, "`__import__('os').getcwd()` is not"),
        (&["eval", "9**9**9"], "", 1, "the result is undefined or too large"),
        (&["eval", "1e999999999"], "", 1, "an exponent is over 4000"),
        (&["eval"], "", 1, "failed to read expressions"),
    ];
    for (args, stdin, code, expected) in table {
        check("calculator", "scripts/calc.py", args, stdin, code, expected);
    }
}

#[test]
fn calculator_statistics() {
    let orders = concat!(env!("CARGO_MANIFEST_DIR"), "/skills/data-explorer/assets/orders.csv");
    let table: [(&[&str], &str, i32, &str); 6] = [
        (
            &["describe", "--places", "2"],
            "2 4 4 4 5 5 7 9\n",
            0,
            "count     8\nsum       40.00\nmean      5.00\nmedian    4.50\nmin       2.00\nmax       9.00\nstdev     2.14\npstdev    2.00\nvariance  4.57\nq0.25     4.00\nq0.75     5.50\nmode      4.00\n",
        ),
        (
            &["describe", "--file", orders, "--column", "amount", "--quantiles", "0.5,0.9,0.99"],
            "",
            0,
            "count     38\nsum       8728.85\nmean      229.70657894736842105\nmedian    24.9\nmin       3.2\nmax       2994\nstdev     544.26317848587520712\npstdev    537.05407636806887641\nvariance  296222.40745554765292\nq0.5      24.9\nq0.9      621.45\nq0.99     2347.795\nskipped   2\n",
        ),
        (
            &["regress", "1,2", "2,4.1", "3,5.9", "--at", "4"],
            "",
            0,
            "count           3\nslope           1.95\nintercept       0.1\nr               0.99901526317819195068\nr_squared       0.99803149606299212598\nresidual_stdev  0.12247448713915890491\nat 4            7.9\n",
        ),
        (&["describe"], "", 1, "failed to describe numbers: there are no numbers\n"),
        (&["describe", "--file", orders, "--column", "amnt"], "", 1, "no column `amnt` in file"),
        (&["regress", "1,2", "1,3"], "", 1, "failed to regress numbers: all x are equal\n"),
    ];
    for (args, stdin, code, expected) in table {
        check("calculator", "scripts/stats.py", args, stdin, code, expected);
    }
}

#[test]
fn data_explorer() {
    let orders = "assets/orders.csv";
    let table: [(&[&str], &str, i32, &str); 13] = [
        (
            &["profile", "-"],
            "id,day,amount\n007,2026-01-31,2.50\n008,2026-02-28,n/a\n009,2026-02-28,4\n",
            0,
            "column  type    missing  distinct  min         max         mean  frequent\n------  ------  -------  --------  ----------  ----------  ----  --------------\nid      text          0         3\nday     date          0         2  2026-01-31  2026-02-28        2026-02-28 (2)\namount  number        1         2  2.5         4           3.25\n(3 rows)\n",
        ),
        (
            &["head", orders, "-n", "2", "--columns", "order_id,amount"],
            "",
            0,
            "order_id   amount\n--------  -------\n    1001  1247.50\n    1002   119.40\n(more rows follow: True)\n",
        ),
        (
            &["filter", orders, "amount empty", "--columns", "order_id,amount"],
            "",
            0,
            "order_id  amount\n--------  ------\n    1018\n    1030  n/a\n(2 of 40 rows match)\n",
        ),
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
            &[
                "group",
                orders,
                "--by",
                "region",
                "--of",
                "amount",
                "--agg",
                "count,sum",
                "--where",
                "order_date ~ ^2026-02",
            ],
            "",
            0,
            "region  count  amount_sum\n------  -----  ----------\nSouth       5     1534.75\nEast        5       843.1\nWest        5         689\nNorth       3       252.3\n            1         9.6\n(5 groups, 19 rows)\n",
        ),
        (
            &["head", "-", "--json"],
            "\u{feff}a;b\r\n1;x\r\n2.50;\r\n",
            0,
            "{\"more\": false, \"rows\": [{\"a\": 1, \"b\": \"x\"}, {\"a\": 2.5, \"b\": null}]}\n",
        ),
        (
            &["filter", "-", "b.c not empty", "--json"],
            "[{\"a\": 1, \"b\": {\"c\": 2.5}}, {\"a\": null}]",
            0,
            "{\"matched\": 1, \"rows_read\": 2, \"rows\": [{\"a\": 1, \"b.c\": 2.5}]}\n",
        ),
        (
            &["filter", orders, "ammount > 1"],
            "",
            1,
            "failed to find column `ammount`: did you mean `amount`?",
        ),
        (&["profile", "-"], "", 1, "failed to read table `-`"),
        // Without a command, which the options show.
        (
            &[orders, "--by", "region", "-n", "1"],
            "",
            0,
            "region  count\n------  -----\nNorth      12\n(5 groups, 40 rows; the first 1 are shown)\n",
        ),
        (
            &[orders, "--sort", "amount", "--desc", "--columns", "order_id", "-n", "1"],
            "",
            0,
            "order_id\n--------\n    1032\n(40 of 40 rows match; the first 1 are shown)\n",
        ),
        (
            &[orders, "-n", "1"],
            "",
            0,
            "column    type     missing  distinct   min   max    mean  frequent\n--------  -------  -------  --------  ----  ----  ------  --------\norder_id  integer        0        40  1001  1040  1020.5\n(40 rows; the first 1 are shown)\n",
        ),
    ];
    for (args, stdin, code, expected) in table {
        check("data-explorer", "scripts/explore.py", args, stdin, code, expected);
    }
}

#[test]
fn text_analyzer() {
    let log = "assets/sample.log";
    let table: [(&[&str], &str, i32, &str); 7] = [
        (
            &[
                "log",
                log,
                "--since",
                "2026-03-14 09:10",
                "--until",
                "2026-03-14 09:18",
                "--match",
                "zero",
            ],
            "",
            0,
            "2 entries, 8 lines that continue one\nfirst 2026-03-14 09:14:21\nlast  2026-03-14 09:17:47\n\nlevels\n  2  ERROR\n\nrate (entries, errors)\n  2026-03-14 09:14:00       1       1\n  2026-03-14 09:17:00       1       1\n\nmessages: 1 groups, the most frequent\n       2  ERROR [worker-<n>] http: unhandled exception in request <hex> | ZeroDivisionError: division by zero\n\nerrors: 1 groups, the most frequent\n       2  ERROR [worker-<n>] http: unhandled exception in request <hex> | ZeroDivisionError: division by zero\n          assets/sample.log, line 41; 2026-03-14 09:14:21 to 2026-03-14 09:17:47\n",
        ),
        (
            &["search", "unhandled exception", log, "-F"],
            "",
            0,
            "41:2026-03-14 09:14:21,887 ERROR [worker-1] http: unhandled exception in request b058d2eea1\n52:2026-03-14 09:17:47,298 ERROR [worker-7] http: unhandled exception in request f8f2c944a1\n(2 lines match)\n",
        ),
        (
            &["search", "TWO", "-", "-i", "-C", "1"],
            "one\ntwo\nthree\nfour\n",
            0,
            "1-one\n2:two\n3-three\n(1 lines match)\n",
        ),
        (
            &["summary", "-"],
            "a bc\r\n\nd\n",
            0,
            "- (utf-8-sig)\n\n  3  lines\n  1  empty lines\n  3  words\n  5  characters\n  1  lines that end in CRLF\n  0  lines with invalid bytes\n  4  characters in the longest line\n",
        ),
        (
            &["frequency", "-", "--ngram", "2", "--top", "1"],
            "the cat saw the cat\n",
            0,
            "5 words, 3 different sequences of 2 words\n\nmost frequent\n  2  the cat\n",
        ),
        (&["log", "missing.log"], "", 1, "missing.log"),
        (&["search", "(", log], "", 1, "failed to run search: missing )"),
    ];
    for (args, stdin, code, expected) in table {
        check("text-analyzer", "scripts/analyze.py", args, stdin, code, expected);
    }
}

/// Each kind of line in the reference of the skill.
#[test]
fn text_analyzer_reads_its_documented_formats() {
    let lines = r#"10.0.0.1 - - [14/Mar/2026:09:26:53 +0100] "GET /a/12 HTTP/1.1" 503 2326
Mar 14 09:26:53 web1 sshd[812]: Failed password
{"time":"2026-03-14T09:26:53Z","level":"error","msg":"lost 7"}
[2026-03-14T09:26:53.589+01:00] app.WARN: slow
2026/03/14 09:26:53 [error] 7#7: open() failed
time="2026-03-14T09:26:53Z" level=error msg="lost"
"#;
    let (run, result) = call("text-analyzer", "scripts/analyze.py", &["log", "-", "--json"], lines);
    let report: Value = serde_json::from_str(result["stdout"].as_str().unwrap()).unwrap();
    run.check(report["entries"] == 6, "each line is an entry");
    run.check(report["levels"] == json!({"ERROR": 5, "WARNING": 1}), "each has its level");
    let patterns = report["messages"].as_array().unwrap().iter().map(|group| &group["pattern"]);
    assert_eq!(
        patterns.collect::<Vec<_>>(),
        [
            "status 503 GET /a/<n> HTTP/<n>",
            "sshd[<n>]: Failed password",
            "lost <n>",
            "app.WARN: slow",
            "<n>#<n>: open() failed",
            "msg=\"lost\"",
        ]
    );
}

/// The scripts that the documents suggest to a model.
#[test]
fn scripts_in_the_documents_run() {
    for (skill, last) in [
        (
            "calculator",
            "3 11087.18
",
        ),
        (
            "data-explorer",
            "1030 has no amount; unit price 249.50
",
        ),
        (
            "text-analyzer",
            "29 requests, slowest 83 ms
",
        ),
    ] {
        let document = std::fs::read_to_string(format!("{SKILLS}/{skill}/SKILL.md")).unwrap();
        let section = document.split("## From a script of your own").nth(1).unwrap();
        let code = section.lines().skip_while(|line| !line.starts_with("    "));
        let code = code.take_while(|line| line.is_empty() || line.starts_with("    "));
        let code: Vec<&str> = code.map(|line| line.get(4..).unwrap_or_default()).collect();
        let script = code.join("\n");
        let arguments = json!({"skill_name": skill, "script": script}).to_string();
        let test = Test::new().args(["--skills", SKILLS, "tool", "run_python_script", &arguments]);
        let run = test.run().success();
        let result = run.stdout_json();
        run.check(result["stdout"].as_str().unwrap().ends_with(last), format!("{result}"));
    }
}

/// The error names the missing package and the command that installs it.
#[test]
fn missing_package_of_a_skill_is_reported() {
    let document = "---\nname: t\ndescription: d\n---\n";
    let script = |name| std::fs::read(format!("{SKILLS}/table-report/scripts/{name}.py")).unwrap();
    let test = Test::new()
        .skill("t", document)
        .file("skills/t/scripts/report.py", script("report"))
        .file("skills/t/scripts/tables.py", script("tables"))
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
            .contains("tell the user to run: skills-runner skills setup t XlsxWriter"),
        "{result}"
    );
}

/// `expected` is the whole stdout, or for a failure a part of stderr.
fn check(skill: &str, file: &str, args: &[&str], stdin: &str, code: i32, expected: &str) {
    let (run, result) = call(skill, file, args, stdin);
    run.check(result["returncode"] == code, format!("{args:?} ends with {code}"));
    let (stream, matches) = match code {
        0 => (&result["stdout"], result["stdout"] == expected),
        _ => (&result["stderr"], result["stderr"].as_str().unwrap().contains(expected)),
    };
    run.check(matches, format!("{args:?} prints {expected:?}, not {stream}"));
}
