# Completion for `go tool nasml` and PROGRAM, in bash 3.2 or newer.

_FUNCTION_answer() { # words up to the cursor, of which the first call the program
	local -a call
	if [ "$1 $2 $3" = "go tool nasml" ]; then
		call=(go tool nasml)
		shift 3
	else
		call=("${1/#\~/$HOME}")
		shift
	fi
	"${call[@]}" complete -- "$@" 2>/dev/null | cut -f1
}

_FUNCTION() {
	local line=${COMP_LINE:0:COMP_POINT} word before
	local -a words
	read -ra words <<<"$line"
	case $line in *[[:space:]]) words+=("") ;; esac
	word=${words[${#words[@]} - 1]}
	local IFS=$'\n'
	COMPREPLY=($(_FUNCTION_answer "${words[@]}"))
	case ${COMPREPLY[0]} in
	:files)
		COMPREPLY=()
		type compopt >/dev/null 2>&1 && compopt -o default
		;;
	*=)
		type compopt >/dev/null 2>&1 && compopt -o nospace
		;;
	esac
	case $COMP_WORDBREAKS in *=*) # which bash has parted the word at
		case $word in *=*)
			before=${word%"${word##*=}"}
			COMPREPLY=("${COMPREPLY[@]#"$before"}")
			;;
		esac
		;;
	esac
}
complete -F _FUNCTION PROGRAM

# go, of which one tool is this program: all else stays as it was.
_FUNCTION_go_before=$(complete -p go 2>/dev/null | sed -n 's/.*-F \([^ ]*\) .*/\1/p')
case $_FUNCTION_go_before in _FUNCTION_go) _FUNCTION_go_before= ;; esac
_FUNCTION_go() {
	if [ "${COMP_WORDS[1]} ${COMP_WORDS[2]}" = "tool nasml" ] && [ "$COMP_CWORD" -gt 2 ]; then
		_FUNCTION
	elif [ -n "$_FUNCTION_go_before" ]; then
		"$_FUNCTION_go_before" "$@"
	fi
}
complete -o default -F _FUNCTION_go go
