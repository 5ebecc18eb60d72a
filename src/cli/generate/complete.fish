# Completion for fish, written by `skills-runner --generate complete-fish`.

# Names that the program lists, except those that a shell would expand or that look like options.
function __skills_runner_names
    set -l typed (commandline -opc)
    set -l folders
    set -l option
    for word in $typed[2..-1]
        if test "$option" = --skills
            set -a folders --skills (string replace -r '^~/' "$HOME/" -- $word)
        else if string match -q -- '--skills=*' $word
            set -a folders (string replace -r '=~/' "=$HOME/" -- $word)
        end
        set option $word
    end
    $typed[1] $folders $argv 2>/dev/null </dev/null |
        grep -o '"name":"[A-Za-z0-9._][A-Za-z0-9._-]*"' | cut -d '"' -f 4
end

# Whether these words are before the cursor, options aside.
function __skills_runner_at
    set -l words
    set -l option
    for word in (commandline -opc)[2..-1]
        if set -q option[1]
            set option
            continue
        end
        switch $word
            case --
                return 1
            case @TAKING@
                set option $word
            case '-*'
            case '*'
                set -a words $word
        end
    end
    string match -q -- "$argv" "$words"
end

@OPTIONS@@WORDS@