# Completion for fish, written by `skills-runner --generate complete-fish`.

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