package command

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// The files of docker/ without an engine; TestImage builds and runs the image.

// dockerText is a file of docker/, or of the checkout with "..".
func dockerText(t *testing.T, name string) string {
	t.Helper()
	root, err := findRoot()
	require.NoError(t, err)
	return read(t, filepath.Join(root, "docker", name))
}

// dockerfile is what the tests ask of docker/Dockerfile.
type dockerfile struct {
	arguments map[string]string // the default of each build argument
	users     map[string]string // whom each stage ends as
	settings  string            // all ENV instructions
}

// readDockerfile fails where a stage stands on anything but the base and the
// stages above it.
func readDockerfile(t *testing.T) dockerfile {
	t.Helper()
	text := regexp.MustCompile(`(?m)^\s*#.*\n`).ReplaceAllString(dockerText(t, "Dockerfile"), "")
	d := dockerfile{arguments: map[string]string{}, users: map[string]string{"${BASE}": "root"}}
	stage := ""
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case words[0] == "ARG":
			name, value, _ := strings.Cut(words[1], "=")
			d.arguments[name] = value
		case words[0] == "ENV":
			d.settings += line
		case words[0] == "FROM":
			require.Len(t, words, 4, "every stage has a name: %s", line)
			require.Contains(t, d.users, words[1], "neither the base nor a stage above")
			stage = words[3]
			d.users[stage] = d.users[words[1]]
		case words[0] == "USER":
			d.users[stage] = words[1]
		case words[0] == "COPY" && strings.HasPrefix(words[1], "--from="):
			require.Contains(t, d.users, strings.TrimPrefix(words[1], "--from="), "no stage above")
		}
	}
	return d
}

func TestDockerfilePinsWhatItTakes(t *testing.T) {
	d := readDockerfile(t)
	require.Regexp(t, `^debian:[a-z]+-\d{8}-slim@sha256:[0-9a-f]{64}$`, d.arguments["BASE"])
	require.Regexp(t, `^[0-9a-f]{64}$`, d.arguments["GO_SHA256_AMD64"])
	require.Regexp(t, `^[0-9a-f]{64}$`, d.arguments["GO_SHA256_ARM64"])
	require.Contains(
		t,
		dockerText(t, "../go.mod"),
		"\ngo "+d.arguments["GO_VERSION"]+"\n",
		"the image has the Go of go.mod",
	)
	require.Equal(t, "nasml", d.users["cpu"])
	require.Equal(t, "nasml", d.users["cuda"])
	for _, word := range []string{"TOKEN", "PIP_", "GOPROXY", "PROXY="} {
		require.NotContains(t, strings.ToUpper(d.settings), word, "a secret or a proxy of the build stays in the image")
	}
}

func TestDockerignoreNamesWhatGoesIn(t *testing.T) {
	var rules []string
	for line := range strings.Lines(dockerText(t, "../.dockerignore")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			rules = append(rules, line)
		}
	}
	require.Equal(
		t,
		[]string{"*", "!go.mod", "!go.sum", "!LICENSE", "!nasml", "!notebooks", "!plots", "**/.*", "**/figures"},
		rules,
		"nothing but what is named, and the hidden files last",
	)
}

// composeService is what the tests ask of a service of docker/compose.yaml.
type composeService struct {
	Image, User string
	Build       struct{ Context, Dockerfile, Target string }
	Ports       []string
	Volumes     []string
	Environment map[string]string
	Deploy      struct {
		Resources struct {
			Reservations struct {
				Devices []struct {
					Driver       string
					Capabilities []string
				}
			}
		}
	}
}

func TestComposeIsForThisMachineOnly(t *testing.T) {
	var file struct{ Services map[string]composeService }
	require.NoError(t, yaml.Unmarshal([]byte(dockerText(t, "compose.yaml")), &file))
	require.Len(t, file.Services, 2)
	d := readDockerfile(t)
	for name, s := range file.Services {
		require.Equal(t, name, s.Build.Target)
		require.Contains(t, d.users, s.Build.Target)
		require.Equal(t, "nasml:"+name, s.Image)
		require.NotEmpty(t, dockerText(t, filepath.Join(s.Build.Context, s.Build.Dockerfile)))
		require.Len(t, s.Ports, 1)
		for _, port := range s.Ports {
			require.Regexp(t, `^127\.0\.0\.1:`, port)
		}
		require.Equal(t, "${JUPYTER_TOKEN:-}", s.Environment["JUPYTER_TOKEN"], "no token of its own")
		require.Equal(t, "${NASML_UID:-1000}:${NASML_GID:-1000}", s.User)
		require.Equal(
			t,
			[]string{
				"..:/lab",
				"${NASML_DATA_VOLUME:-data}:/data:${NASML_DATA_MODE:-rw}",
				"${NASML_STORE_VOLUME:-store}:/store",
			},
			s.Volumes,
		)
	}
	require.Empty(t, file.Services["cpu"].Deploy.Resources.Reservations.Devices)
	devices := file.Services["cuda"].Deploy.Resources.Reservations.Devices
	require.Len(t, devices, 1)
	require.Equal(t, "nvidia", devices[0].Driver)
	require.Equal(t, []string{"gpu"}, devices[0].Capabilities)
}
