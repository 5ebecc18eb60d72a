//! The search for skills: `list_skills` with a query, `skills list QUERY`, and the skills that the
//! system prompt describes.

mod labelled;

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Outcome, Reply, Server, Test, seconds};
use crate::paths::make_node;

fn document(name: &str, description: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\n\n# {name}\n\n{body}\n")
}

/// Runs `list_skills` with a query.
fn search(test: &Test, query: &str) -> Outcome {
    let arguments = json!({ "query": query }).to_string();
    test.next_run().args(["tool", "list_skills", &arguments]).run().success()
}

/// The names in a result of `list_skills`.
fn names(result: &Value) -> Vec<&str> {
    let skills = result["skills"].as_array().unwrap().iter();
    skills.map(|skill| skill["name"].as_str().unwrap()).collect()
}

/// Ten skills with similar words.
fn office() -> Test {
    let skills = [
        ("code-review-excellence", "Gives feedback on pull requests.", "Be kind."),
        ("agent-memory", "Stores memories of agents for later retrieval.", "Retrieve them."),
        ("xlsx", "Creates and edits Excel spreadsheets, with formulas and charts.", "Totals."),
        ("pdf", "Merges, splits and fills PDF files.", "Rotates pages that are upside down."),
        ("airflow-pipelines", "Writes DAGs for Apache Airflow.", "Set `retries` of each task."),
        ("python-testing", "Writes unit tests for Python with pytest.", "Use fixtures."),
        ("web-testing", "Tests pages in a browser.", "Python scripts drive the browser."),
        ("python-style", "Formats Python source.", "Run ruff, and write nothing by hand."),
        ("会议纪要", "把会议录音整理成会议纪要。", "先听录音,再写纪要。"),
        ("angebote", "Schreibt Angebote für Kunden.", "Die Umsätze stehen in der Tabelle."),
    ];
    skills.iter().fold(Test::new(), |test, (name, description, body)| {
        test.skill(name, &document(name, description, body))
    })
}

#[test]
fn the_best_skill_comes_first() {
    let test = office();
    let table = [
        ("Excel", "xlsx"),
        ("EXCEL spreadsheet", "xlsx"),
        ("write unit tests python", "python-testing"),
        ("airflow retries", "airflow-pipelines"),
        ("my Airflow tasks should be retried when they fail", "airflow-pipelines"),
        ("rotating", "pdf"),
        ("merging pdfs", "pdf"),
        ("code-review", "code-review-excellence"),
        ("会议的纪要", "会议纪要"),
        ("Kannst du mir ein Angebot für einen Kunden schreiben?", "angebote"),
    ];
    for (query, expected) in table {
        let run = search(&test, query);
        let result = run.stdout_json();
        run.check(names(&result).first() == Some(&expected), format_args!("{query}: {expected}"));
    }
}

/// A search that finds nothing says so, with the words that are unknown and those near to them.
#[test]
fn a_query_that_no_skill_fits_finds_none() {
    let test = office();
    for (query, note) in [
        (
            "churn",
            "no skill fits, of 10 skills; no skill mentions `churn`; if other or English words find none either, do without one, or say so",
        ),
        ("how do I get red wine out of the carpet", "no skill mentions `red`, `wine`, `carpet`"),
        ("spredsheets", "no skill mentions `spredsheets`; similar words: `spreadsheets`"),
        ("what is the weather like", "no skill mentions `weather`"),
    ] {
        let run = search(&test, query);
        let result = run.stdout_json();
        run.check(names(&result).is_empty(), format_args!("{query}: nothing fits"));
        run.stdout_has(note).stdout_lacks("leave `query` out").stdout_lacks("all of them");
    }
    // Unknown words beside known ones.
    search(&test, "Excel formulas and chrats")
        .stdout_has("\"xlsx\"")
        .stdout_has("no skill mentions `chrats`");
    for query in ["browser automatisieren fernsteuern", "pytest browser xyzzy plugh"] {
        search(&test, query).stdout_has("\"web-testing\"").stdout_has("no skill mentions");
    }
    // A word is not repeated without limit.
    let run = search(&test, &"x".repeat(100_000));
    run.check(run.stdout.len() < 300, "the word is cut");
    // Pairs of characters are not words.
    search(&test, "单细胞").stdout_lacks("mentions");
}

/// What is below the threshold is listed with descriptions: at most three, the nearest first.
#[test]
fn near_skills_are_no_sure_hits() {
    let test = office();
    let run = search(&test, "turn upside fernsteuern");
    let row = json!({"name": "pdf", "description": "Merges, splits and fills PDF files."});
    let note = "no sure hit: use one of these only if its description fits; no skill mentions `turn`, `fernsteuern`";
    assert_eq!(run.stdout_json(), json!({"skills": [row], "note": note}));
    let mut test = office();
    for name in ["a", "b", "c", "d"] {
        test = test.skill(name, &document(name, "Draws.", "Write to the owl."));
    }
    let result = search(&test, "owl fernsteuern").stdout_json();
    assert_eq!(names(&result), ["a", "b", "c"]);
    // Words that no skill has do not count against those that one has.
    let run = search(&test, "Excel charts xyzzy plugh frobnicate quux quuux");
    run.stdout_has("\"xlsx\"").stdout_lacks("no sure hit");
    search(&test, "Makros summieren Excel").stdout_has("\"xlsx\"").stdout_lacks("no sure hit");
}

/// Eight skills are listed, and all that mention a word are counted; a query without words is none.
#[test]
fn the_result_is_limited_and_counted() {
    let mut test = Test::new();
    for number in 0..30 {
        let name = format!("report-{number:02}");
        let about = if number == 17 { "Sends a report by fax." } else { "Writes a report." };
        test = test.skill(&name, &document(&name, about, "Prints."));
    }
    for other in ["a", "b"] {
        test = test.skill(other, &document(other, "Draws.", "Draws."));
    }
    let result = search(&test, "report fax").stdout_json();
    assert_eq!((names(&result).len(), names(&result)[0]), (8, "report-17"));
    assert_eq!(result["note"], "the best 8 of 30 skills that mention a word of the query");
    let result = search(&test, "drawing").stdout_json();
    assert_eq!(names(&result), ["a", "b"]);
    assert_eq!(result["note"], "2 skills mention a word of the query");
    let long = "Writes a report. Prints it on paper. ".repeat(30);
    let test = test.skill("long", &document("long", &long, "paper"));
    let result = search(&test, "paper").stdout_json();
    let description = result["skills"][0]["description"].as_str().unwrap();
    assert!(description.ends_with("a report.") && description.len() <= 512, "{description}");
    let test = test.next_run();
    fs::remove_dir_all(test.path("skills/long")).unwrap();
    for query in ["", " ?! "] {
        assert_eq!(names(&search(&test, query).stdout_json()).len(), 32, "{query}");
    }
}

/// Documents that cannot be read, or are endless, do not stop a search.
#[test]
fn odd_documents_do_not_stop_a_search() {
    let test = office()
        .folder("skills/pipe")
        .folder("skills/folder/SKILL.md")
        .skill("bytes", "---\nname: bytes\n---\nExcel \u{0} excel \u{fffd}")
        .link("skills/dangling", "nothing");
    make_node(&test.path("skills/pipe/SKILL.md"), &["p"]);
    fs::write(test.path("skills/bytes/SKILL.md"), b"---\nname: b\n---\nExcel \xff\xfe excel")
        .unwrap();
    let huge = test.path("skills/xlsx/SKILL.md");
    fs::File::options().append(true).open(huge).unwrap().set_len(1 << 40).unwrap();
    let run = search(&test, "Excel").took_at_most(seconds(5.0)).memory_at_most(64 << 10);
    let result = run.stdout_json();
    run.check(names(&result).contains(&"xlsx"), "the sparse document is found");
    run.check(names(&result).contains(&"bytes"), "so are bytes that are not UTF-8");
}

#[test]
fn people_search_with_the_same_ranking() {
    let test = office();
    let run = test.next_run().args(["skills", "list", "write", "unit tests", "python"]).run();
    let run = run.success().stderr_has("4 skills mention a word of the query");
    let first: Vec<&str> =
        run.stdout.lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(first[0], "python-testing");
    let result = search(&test, "write unit tests python").stdout_json();
    assert_eq!(first, names(&result), "the tool lists the same");
    let run = test.next_run().args(["skills", "list", "--json", "excel"]).run().success();
    assert_eq!(names(&run.stdout_json()), ["xlsx"]);
    let failed = || test.next_run().args(["skills", "list"]);
    failed()
        .args(["churn"])
        .run()
        .status(1)
        .stdout_is_empty()
        .stderr_has("failed to find a skill: no skill fits");
    let run = failed().args(["--json", "churn"]).run().status(1);
    assert_eq!(run.stdout_json()["skills"], json!([]));
    assert_eq!(run.stdout_json()["note"], "no skill fits, of 10 skills; no skill mentions `churn`");
    Test::new().args(["skills", "list", "excel"]).run().success().stdout_is_empty();
}

/// Four hundred skills, of which one is about geese.
fn many() -> Test {
    let mut test = Test::new();
    for number in 0..400 {
        let name = format!("skill-{number:03}");
        let body = if number == 333 { "Feed the geese." } else { "Nothing else." };
        let description = format!("Does the thing of kind {number}. Use it for nothing else.");
        test = test.skill(&name, &document(&name, &description, body));
    }
    test
}

const GEESE: &str = "- skill-333: Does the thing of kind 333. Use it for nothing else.\n";

/// The bytes that the list of skills takes in a system prompt.
fn list_bytes(system: &str) -> usize {
    let list = system.split("\nSkills:\n").nth(1).unwrap();
    list.split("\nRelative paths ").next().unwrap().len()
}

/// The system prompt describes the skills that fit the first question, and then stays the same.
#[test]
fn the_first_question_chooses_the_described_skills() {
    let test = many();
    let server = Server::start([
        Reply::call("list_skills", &json!({})),
        Reply::text("Done."),
        Reply::text("Nine."),
        Reply::text("Geese again."),
    ]);
    let lines = "how do I feed geese?\nwhat is kind 9?\n/clear\nwhat is kind 9?\n";
    test.next_run().endpoint(&server).args(["chat"]).stdin(lines).run().success();
    let requests = server.finish();
    let system = requests[0].system();
    assert!(system.contains(&format!("(shortened; those whose words match the first question come first; list_skills with a query searches all)\n{GEESE}")), "{system}");
    assert!(system.contains("By name only: ") && system.contains(" more\n"), "{system}");
    assert!((8000..=8192).contains(&list_bytes(system)), "{}", list_bytes(system));
    for request in &requests[1..3] {
        assert_eq!(request.system(), system);
    }
    // The list is not in the prompt, so the tool gives it.
    assert!(requests[1].last_message()["content"].as_str().unwrap().contains(r#""skill-399""#));
    let system = requests[3].system();
    let first = system.lines().find(|line| line.starts_with("- skill-")).unwrap();
    assert!(first.starts_with("- skill-009: "), "{system}");

    // Another run of the conversation, and another model: the first question is the same.
    let server = Server::always(|_| Reply::text("Done."));
    let run =
        |words: &[&str]| test.next_run().endpoint(&server).args(["--session", "birds"]).args(words);
    run(&["how do I feed geese?"]).run().success();
    run(&["what is kind 9?"]).run().success();
    let lines = "what is kind 10?\n/model other\nwhat is kind 11?\n";
    run(&["chat"]).stdin(lines).run().success();
    let requests = server.finish();
    assert_eq!(requests.len(), 4);
    for request in &requests {
        assert_eq!(request.system(), requests[0].system());
    }
    assert!(requests[0].system().contains(GEESE), "{}", requests[0].system());

    // What is piped in does not choose if there is a prompt.
    let test = many();
    let server = Server::start([Reply::text("Done.")]);
    let piped = "kind 9, kind 9, kind 9\n".repeat(10);
    test.next_run().endpoint(&server).args(["feed the geese"]).stdin(piped).run().success();
    assert!(server.finish()[0].system().contains(&format!("searches all)\n{GEESE}")));

    // One-shot, with a known window: half its number in bytes.
    let server = Server::start([Reply::text("Done.")]);
    let test = test.next_run().endpoint(&server).env("LLM_CONTEXT_WINDOW", "8192");
    test.args(["feed the geese"]).run().success();
    let requests = server.finish();
    let system = requests[0].system();
    assert!(system.contains(GEESE), "{system}");
    assert!((3900..=4096).contains(&list_bytes(system)), "{}", list_bytes(system));
}

/// The parts of a question are ranked one by one: many skills for one part leave room for another.
#[test]
fn each_part_of_the_first_question_chooses_skills() {
    let mut test = many();
    for number in 0..60 {
        let name = format!("sales-{number:02}");
        let about = "Writes the weekly sales report of a shop, with totals for each region.";
        test = test.skill(&name, &document(&name, about, "Nothing else."));
    }
    for question in
        ["Write the weekly sales report and feed the geese.", "Weekly sales report!\nFeed geese"]
    {
        let server = Server::start([Reply::text("Done.")]);
        test.next_run().endpoint(&server).args([question]).run().success();
        let requests = server.finish();
        let list = requests[0].system().split("\nSkills:\n").nth(1).unwrap();
        let mut lines = list.lines().skip(1);
        assert!(lines.next().unwrap().starts_with("- sales-00: "), "{question}");
        assert!(lines.take(2).any(|line| GEESE.starts_with(line)), "{list}");
    }
}

/// If the system prompt lists all skills, the tool does not repeat their descriptions, until a
/// skill changes.
#[test]
fn a_list_that_the_model_has_is_not_repeated() {
    let test = office();
    let added = test.path("skills/new");
    let server = Server::start([
        Reply::call("list_skills", &json!({})),
        Reply::from_fn(move |_| {
            fs::create_dir(&added).unwrap();
            fs::write(added.join("SKILL.md"), document("new", "Came later.", "")).unwrap();
            Reply::call("list_skills", &json!({}))
        }),
        Reply::call("list_skills", &json!({"query": "excel"})),
        Reply::text("done"),
    ]);
    test.next_run().endpoint(&server).args(["hi"]).run().success();
    let requests = server.finish();
    let results: Vec<Value> = requests[1..]
        .iter()
        .map(|request| {
            serde_json::from_str(request.last_message()["content"].as_str().unwrap()).unwrap()
        })
        .collect();
    assert_eq!(names(&results[0]).len(), 10);
    assert_eq!(results[0]["skills"][0], json!({"name": "agent-memory"}));
    let note = "your system message has the whole descriptions of all these skills";
    assert_eq!(results[0]["note"], note);
    assert_eq!(names(&results[1]).len(), 11);
    assert!(results[1].to_string().contains("Came later.") && results[1].get("note").is_none());
    assert!(results[2]["skills"][0]["description"].as_str().unwrap().contains("spreadsheets"));
}
