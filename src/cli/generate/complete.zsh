#compdef skills-runner
# Completion for zsh, written by `skills-runner --generate complete-zsh`.

# Names that the program lists, except those that a shell would expand or that look like options.
_skills_runner_names() {
    compadd -- ${(f)"$($program $folders "$@" 2>/dev/null </dev/null |
        grep -o '"name":"[A-Za-z0-9._][A-Za-z0-9._-]*"' | cut -d '"' -f 4)"}
}

_skills_runner_words() {
    local before=${words[1,CURRENT-1]}
    local -a rows
@WORDS@    (( $#rows )) && _describe word rows || _files
}

_skills_runner() {
    local program=$words[1] word option
    local -a folders
    for word in "${(@Q)words[2,CURRENT-1]}"; do
        [[ $word != --skills=* ]] || { option=--skills word=${word#*=} }
        [[ $option != --skills ]] || folders+=(--skills "${word/#\~\//$HOME/}")
        option=$word
    done
    _arguments -s -S : \
@OPTIONS@        '*:: :_skills_runner_words'
}

if [[ $funcstack[1] == _skills-runner ]]; then
    _skills_runner
else
    compdef _skills_runner skills-runner
fi
