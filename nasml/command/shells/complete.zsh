# Completion for `go tool nasml` and PROGRAM, in zsh.

_FUNCTION() {
	local -a call answers names shown
	local -i first=2
	call=("$words[1]")
	if [[ "$words[1] $words[2] $words[3]" == "go tool nasml" ]]; then
		call=(go tool nasml)
		first=4
	fi
	answers=("${(@f)$("${(@)call/#\~/$HOME}" complete -- "${(@)words[first,CURRENT-1]}" "$PREFIX" 2>/dev/null)}")
	if [[ "$answers[1]" == ":files" ]]; then
		_files
		return
	fi
	local answer
	for answer in "${(@)answers:#}"; do
		names+=("${answer%%$'\t'*}")
		shown+=("${answer/$'\t'/  -- }")
	done
	if [[ "$names[1]" == *= ]]; then
		compadd -S '' -l -d shown -a names
	else
		compadd -l -d shown -a names
	fi
}

# go, of which one tool is this program: all else stays as it was.
typeset -g _FUNCTION_go_before="${_comps[go]:-_default}"
[[ "$_FUNCTION_go_before" == _FUNCTION_go ]] && _FUNCTION_go_before=_default
_FUNCTION_go() {
	if [[ "$words[2] $words[3]" == "tool nasml" ]] && ((CURRENT > 3)); then
		_FUNCTION
	else
		"$_FUNCTION_go_before" "$@"
	fi
}
compdef _FUNCTION PROGRAM
compdef _FUNCTION_go go
