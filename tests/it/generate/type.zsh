# Types each line and Tab into an interactive zsh that finds the completion in
# ./functions, and prints what then stands on the command line, in <>.
emulate zsh -o extendedglob
zmodload zsh/zpty
zpty -b inner zsh -f -i

read_until() {
    local seen= piece
    repeat 200; do
        while zpty -r -t inner piece; do seen+=$piece; done
        [[ $seen == *$~1* ]] && { REPLY=$seen; return }
        sleep 0.05
    done
    print "no $1 in: $seen"
    exit 1
}

zpty -w inner 'PROMPT=; fpath=($PWD/functions $fpath); autoload -Uz compinit; compinit -u -D; setopt no_beep'
zpty -w inner 'show() { print -r -- "<$BUFFER>"; BUFFER= }; zle -N show; bindkey "^X" show; print RE""ADY'
read_until READY
for line in "$@"; do
    zpty -w -n inner $line$'\t\x18'
    read_until '\<*\>'
    print -r -- "${${REPLY##*\<}%%\>*}"
done
