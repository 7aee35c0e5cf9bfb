package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

func TestFits(t *testing.T) {
	app := kong.Must(new(cli), kong.Name("nasml"), flagValues)
	for words, want := range map[string]string{ // the last word is the one to complete
		"sho":                             "show",
		"compl":                           "completion", // and not what the shells ask
		"store v":                         "verify",
		"store rm ":                       "",
		"run a b roberts/theo":            "roberts/theorem1 roberts/theorem4 roberts/theorem7",
		"show a b":                        "", // it takes one
		"run --sc":                        "--scale",
		"run --no":                        "--no-published",
		"run x --scale ":                  "paper quick",
		"run x --scale=p":                 "--scale=paper",
		"run x --format pdf,s":            "pdf,svg",
		"run x --format svg,s":            "",
		"run x --json -- --sc":            "",
		"run x --out ":                    filesFit,
		"run x --shard ":                  "",
		"list --kind t":                   "table theorem",
		"list --paper k":                  "khodak2020",
		"data mn":                         "mnist",
		"trace ":                          filesFit,
		"completion ":                     "bash fish zsh",
		"run x --style iclr/":             "iclr/column iclr/text",
		"run x --set Seeds":               "", // of no figure
		"status roberts/map --j":          "--json",
		"run oymak2021/figure2 --set Wid": "Widths=",
		"run oymak2021/figure2 roberts/map --set Noise": "Noise= NoisePoints=",
		"run oymak2021/figure2 --set Stored":            "StoredOnly=",
		"run oymak2021/figure2 --set StoredOnly=":       "StoredOnly=false StoredOnly=true",
		"run oymak2021/figure2 --set Data=m":            "Data=mnist",
		"run li2021/figure1 --set Update=x":             "Update=xnas",
		"run oymak2021/figure2 --set Loss=":             "Loss=half-mse Loss=mse",
		"run oymak2021/figure2 --set=Dat":               "--set=Data=",
	} {
		var got []string
		for _, f := range fits(app.Model.Node, strings.Split(words, " ")) {
			got = append(got, f.Word)
		}
		require.Equal(t, want, strings.Join(got, " "), "%q", words)
	}
	all := fits(app.Model.Node, []string{"run", "oymak2021/figure2", "--set", "Widths="})
	require.Regexp(t, `^Widths=\d+(,\d+)*$`, all[0].Word)
	require.Contains(t, fits(app.Model.Node, []string{"run", "roberts/theorem1"})[0].Meaning, "Two activations")
}

// calledVar makes TestShellsComplete the program that the shells call.
const calledVar = "NASML_TEST_CALLED"

// onPath makes programs nasml and go, of which the one is this test's and the other has
// it as its tool.
func onPath(t *testing.T) (env []string) {
	t.Helper()
	self, err := filepath.Abs(os.Args[0])
	require.NoError(t, err)
	dir := t.TempDir()
	call := calledVar + "=1 exec '" + self + "' -test.run='^TestShellsComplete$' -- \"$@\"\n"
	for name, text := range map[string]string{
		"nasml": "#!/bin/sh\n" + call,
		"go":    "#!/bin/sh\n[ \"$1 $2\" = 'tool nasml' ] || exit 2\nshift 2\n" + call,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	return append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
}

// asks is a shell's program that completes the line $2 by the script $1 and prints the
// answers, a line each.
var asks = map[string]string{
	"bash": `_before() { COMPREPLY=(build tool); }
complete -F _before go
source "$1"
COMP_LINE=$2 COMP_POINT=${#2} COMP_WORDS=($2) COMP_CWORD=${#COMP_WORDS[@]}
case $2 in *" ") ;; *) COMP_CWORD=$((COMP_CWORD - 1)) ;; esac
case ${COMP_WORDS[0]} in go) _nasml_go ;; *) _nasml ;; esac
printf '%s\n' "${COMPREPLY[@]}"`,
	"fish": `source $argv[1]; complete -C $argv[2] | cut -f1`,
	// Its completion works in its line editor alone: at a terminal, which zpty makes, a
	// key completes and writes down what became of the line, whose last word is printed.
	"zsh": `zmodload zsh/zpty
export SCRIPT=$1 ZDOTDIR=$(mktemp -d)
cat >$ZDOTDIR/.zshrc <<'RC'
autoload -Uz compinit && compinit -D -u
source $SCRIPT
answer() { zle complete-word; print -r -- "$LBUFFER" >$ZDOTDIR/answer; exit }
zle -N answer
bindkey '^I' answer
PS1=READY
RC
zpty shell zsh -d -i
zpty -r -m shell said '*READY*'
zpty -w -n shell "$2"$'\t'
while zpty -r shell said; do :; done
line=$(<$ZDOTDIR/answer)
print -r -- "${${(z)line}[-1]}"
rm -r $ZDOTDIR`,
}

func TestShellsComplete(t *testing.T) {
	if os.Getenv(calledVar) != "" { // what the shells call
		os.Exit(execute(t.Context(), os.Args[slices.Index(os.Args, "--")+1:], console{os.Stdout, os.Stderr}))
	}
	for shell, program := range asks {
		t.Run(shell, func(t *testing.T) {
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skipf("there is no %s", shell)
			}
			env := onPath(t)
			status, script, said := call(t, "completion", shell)
			require.Equal(t, exitOK, status, said)
			file := filepath.Join(t.TempDir(), "script")
			require.NoError(t, os.WriteFile(file, []byte(script), 0o644))
			ask := func(line string) string {
				args := []string{"-c", program, "-", file, line}
				if shell == "fish" {
					args = []string{"-c", program, file, line}
				}
				cmd := exec.CommandContext(t.Context(), path, args...)
				cmd.Env, cmd.Stderr = env, t.Output()
				out, err := cmd.Output()
				require.NoError(t, err)
				return strings.TrimSpace(string(out))
			}
			setting := "Data=mnist"
			if shell == "bash" { // parts words at =
				setting = "mnist"
			}
			for line, want := range map[string]string{
				"nasml sho": "show",
				"nasml run oymak2021/figure2 roberts/theorem1":     "roberts/theorem1",
				"go tool nasml run oymak2021/figure2 --set Wid":    "Widths=",
				"go tool nasml run oymak2021/figure2 --set Data=m": setting,
			} {
				require.Equal(t, want, ask(line), line)
			}
			if shell == "bash" {
				require.Equal(t, "build\ntool", ask("go "), "what go completes besides")
			}
		})
	}
}
