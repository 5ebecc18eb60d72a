# Completion for bash, written by `skills-runner --generate complete-bash`.

# Names that the program lists, except those that a shell would expand or that look like options.
_skills_runner_names() {
    reply=$("$program" "${folders[@]}" "$@" 2>/dev/null </dev/null |
        grep -o '"name":"[A-Za-z0-9._][A-Za-z0-9._-]*"' | cut -d '"' -f 4)
}

_skills_runner_value() {
@OPTIONS@}

_skills_runner_words() {
    local before=${words[*]}
@WORDS@    [[ $reply ]] || compopt -o default
}

_skills_runner() {
    local IFS=$' \t\n' current=${COMP_WORDS[COMP_CWORD]} program=$1 option= reply= words=() folders=() word
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        if [[ $option ]]; then
            # Bash breaks --option=value at the sign.
            [[ $word != = ]] || continue
            if [[ $option == --skills ]]; then
                word=${word/#\~\//"$HOME/"} word=${word//[\\\"\']/}
                folders+=(--skills "$word")
            fi
            option=
            continue
        fi
        case $word in
            --) compopt -o default; return ;;
            @TAKING@) option=$word ;;
            --skills=*) folders+=("$word") ;;
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
