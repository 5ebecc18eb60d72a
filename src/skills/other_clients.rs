//! Tools of other clients, which models call from habit, and what to use instead here.

/// Advice, each with the tool that must be offered for it; empty: none.
type Advice = &'static [(&'static str, &'static str)];

const PYTHON: (&str, &str) = ("run_python_script", "do it in Python with `run_python_script`");

/// Names of tools, in lower case without `_` and `-`, and the advice: the first that fits counts.
#[rustfmt::skip]
const TABLE: [(&str, Advice); 11] = [
    ("bash shell sh terminal exec executecommand executebash runshellcommand runterminalcmd \
      runcommand runbash localshell cmd command bashoutput execcommand writestdin jsrepl",
     &[("run_command", "use `run_command`"), ("run_python_script", "run it by subprocess in `run_python_script`")]),
    ("read cat view openfile viewfile readfile readmanyfiles viewimage",
     &[("read_file", "use `read_file`, for a file of a skill `read_file_in_skill`"), ("read_file_in_skill", "use `read_file_in_skill` for a file of a skill")]),
    ("edit multiedit strreplaceeditor strreplacebasededittool strreplace editfile applypatch \
      applydiff replace searchreplace notebookedit",
     &[("edit_file", "use `edit_file`, for a new file `write_file`"), PYTHON]),
    ("write createfile writefile savefile writetofile",
     &[("write_file", "use `write_file`"), PYTHON]),
    ("glob grep ls find listdir listdirectory listfiles searchfiles searchfilecontent \
      filesearch grepsearch codebasesearch",
     &[("run_command", "use `run_command` with ls, find or grep"), PYTHON]),
    ("webfetch websearch fetch browser searchweb googlewebsearch browse",
     &[("run_command", "no tool here is for the web: use curl with `run_command` if it has network access, otherwise say to the user what you need"), ("", "no tool here is for the web: say to the user what you need")]),
    ("task agent dispatchagent spawnagent subagent newtask",
     &[("", "there are no other agents: do the work yourself")]),
    ("todowrite todoread updateplan taskcreate taskupdate writetodos",
     &[("", "keep the list in your answer")]),
    ("askuserquestion askuser askfollowupquestion requestuserinput",
     &[("", "ask in your answer")]),
    ("skill skills useskill loadskill readskill activateskill runskill",
     &[("get_skill", "read the skill with `get_skill`")]),
    ("python executepython runpython pythoninterpreter codeinterpreter ipython runcode \
      executecode codeexecution pythonrepl",
     &[("run_python_script", "use `run_python_script`")]),
];

/// Returns advice on another client's tool.
pub fn advice(name: &str, is_offered: impl Fn(&str) -> bool) -> Option<&'static str> {
    let fits = |tool: &str| tool.is_empty() || is_offered(tool);
    let name: String = name.chars().filter(|c| !matches!(c, '_' | '-')).collect();
    let name = name.to_ascii_lowercase();
    let (_, advice) = TABLE.iter().find(|(names, _)| names.split(' ').any(|it| it == name))?;
    advice.iter().find(|(tool, _)| fits(tool)).map(|(_, text)| *text)
}
