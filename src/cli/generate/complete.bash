# Completion for bash, written by `skills-runner --generate complete-bash`.

_skills_runner_value() {
@OPTIONS@}

_skills_runner_words() {
    local before=${words[*]}
@WORDS@    [[ $reply ]] || compopt -o default
}

_skills_runner() {
    local IFS=$' \t\n' current=${COMP_WORDS[COMP_CWORD]} option= reply= words=() word
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        if [[ $option ]]; then
            # Bash breaks --option=value at the sign.
            [[ $word != = ]] || continue
            option=
            continue
        fi
        case $word in
            --) compopt -o default; return ;;
            @TAKING@) option=$word ;;
            -*) ;;
            *) words+=("$word") ;;
        esac
    done
    [[ $current != = ]] || current=
    if [[ $option ]]; then
        _skills_runner_value
    elif [[ $current == -* ]]; then
        reply='@ALL@'
    else
        _skills_runner_words
    fi
    COMPREPLY=($(compgen -W "$reply" -- "$current"))
}

complete -F _skills_runner skills-runner
