# Completion for `go tool nasml` and PROGRAM, in fish.

function __FUNCTION_answer
    set -l words (commandline -opc)
    set -l call $words[1]
    set -e words[1]
    if test "$call $words[1] $words[2]" = "go tool nasml"
        set call go tool nasml
        set -e words[1..2]
    end
    set -l answers ($call complete -- $words (commandline -ct) 2>/dev/null)
    if test "$answers[1]" = ":files"
        __fish_complete_path (commandline -ct)
    else
        printf '%s\n' $answers
    end
end

function __FUNCTION_is_tool
    set -l words (commandline -opc)
    test (count $words) -ge 3; and test "$words[1..3]" = "go tool nasml"
end

complete -c PROGRAM -f -a '(__FUNCTION_answer)'
complete -c go -n __FUNCTION_is_tool -f -a '(__FUNCTION_answer)'
