#compdef skills-runner
# Completion for zsh, written by `skills-runner --generate complete-zsh`.

_skills_runner_words() {
    local before=${words[1,CURRENT-1]}
    local -a rows
@WORDS@    (( $#rows )) && _describe word rows || _files
}

_skills_runner() {
    _arguments -s -S : \
@OPTIONS@        '*:: :_skills_runner_words'
}

if [[ $funcstack[1] == _skills-runner ]]; then
    _skills_runner
else
    compdef _skills_runner skills-runner
fi
