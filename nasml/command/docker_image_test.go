package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// dockerVar is set where images are to be built, to "cpu" or to "cuda", which
// is both: the first takes a quarter of an hour and 10 GB while it lasts, the
// second downloads 2.5 GB more.
const dockerVar = "NASML_TEST_DOCKER"

// The container is in a network of its own, which leads nowhere. There it has
// an address besides 127.0.0.1, as it has where a port of it is published.
const containerAddress = "198.51.100.2"

// engine builds and runs images without a daemon: buildah in folders of its
// own, which are removed with the test.
type engine struct {
	dir, network string
	base         string // the image to build on
	driver       string // how layers are kept: overlay, or vfs, which works everywhere and copies all
}

// newEngine skips the test where it is not asked for or cannot be run.
func newEngine(t *testing.T) *engine {
	t.Helper()
	if os.Getenv(dockerVar) == "" {
		t.Skip("builds an image, which takes a quarter of an hour and 10 GB: `.ci/docker` runs it, with $" + dockerVar)
	}
	for _, program := range []string{"buildah", "mmdebstrap", "ip"} {
		if _, err := exec.LookPath(program); err != nil || os.Geteuid() != 0 {
			t.Skip("not run: needs root, buildah, mmdebstrap and ip (Debian: apt install buildah mmdebstrap iproute2)")
		}
	}
	dir, err := os.MkdirTemp("", "nasml-docker-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	e := &engine{dir: dir, network: fmt.Sprintf("nasml%d", os.Getpid()), driver: os.Getenv("STORAGE_DRIVER")}
	t.Cleanup(func() {
		_ = e.buildah("rm", "--all").Run()
		_ = os.RemoveAll(dir)
	})
	if e.driver == "" {
		e.driver = "overlay"
		if e.buildah("info").Run() != nil {
			e.driver = "vfs"
		}
	}
	t.Logf("layers are kept by %s in %s", e.driver, dir)
	e.connect(t)
	return e
}

// connect makes the container's network.
func (e *engine) connect(t *testing.T) {
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "delete", e.network).Run() })
	for _, line := range []string{
		"netns add " + e.network,
		"-n " + e.network + " link set lo up",
		"-n " + e.network + " address add " + containerAddress + "/32 dev lo",
	} {
		out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput()
		require.NoError(t, err, "ip %s: %s", line, out)
	}
}

func (e *engine) buildah(args ...string) *exec.Cmd {
	return e.program("buildah", append(e.folders(), args...)...)
}

func (e *engine) folders() []string {
	return []string{
		"--storage-driver",
		e.driver,
		"--root",
		filepath.Join(e.dir, "storage"),
		"--runroot",
		filepath.Join(e.dir, "run"),
	}
}

func (e *engine) program(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "BUILDAH_ISOLATION=chroot")
	return cmd
}

// must runs a command to its end and returns what it printed.
func must(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	require.NoError(t, err, "%s\n%s%s", cmd, out, said.String())
	return strings.TrimSpace(string(out))
}

// makeBase makes a Debian as the pinned one, with the certificates that this
// machine trusts besides, as one does behind a proxy that has its own.
func (e *engine) makeBase(t *testing.T) {
	archive := filepath.Join(e.dir, "base.tar")
	must(t, exec.Command("mmdebstrap", "--variant=minbase", "bookworm", archive))
	container := must(t, e.buildah("from", "scratch"))
	must(t, e.buildah("add", "--quiet", container, archive, "/"))
	if own := "/usr/local/share/ca-certificates"; exists(own) {
		must(t, e.buildah("copy", "--quiet", container, own, own))
	}
	must(t, e.buildah("commit", "--quiet", "--rm", container, "nasml-base"))
	require.NoError(t, os.Remove(archive))
	e.base = "localhost/nasml-base"
}

// build builds a target of the Dockerfile as compose does, with other ids.
func (e *engine) build(t *testing.T, target string) {
	root, err := findRoot()
	require.NoError(t, err)
	args := []string{
		"build",
		"--layers",
		"--target",
		target,
		"--tag",
		"nasml:" + target,
		"--file",
		filepath.Join(root, "docker", "Dockerfile"),
		"--build-arg",
		"BASE=" + e.base,
		"--build-arg",
		"UID=4321",
		"--build-arg",
		"GID=4322",
	}
	for _, name := range []string{"GOPROXY", "PIP_INDEX_URL"} {
		if value := os.Getenv(name); value != "" {
			args = append(args, "--build-arg", name+"="+value)
		}
	}
	cmd := e.buildah(append(args, root)...)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	require.NoError(t, cmd.Run())
}

// imageConfig is what an image says of how it is to be run.
type imageConfig struct {
	User            string
	Env, Entrypoint []string
	Cmd             []string
}

func (e *engine) config(t *testing.T, image string) imageConfig {
	var answer struct {
		OCIv1 struct{ Config imageConfig }
	}
	require.NoError(t, json.Unmarshal([]byte(must(t, e.buildah("inspect", "--type", "image", image))), &answer))
	return answer.OCIv1.Config
}

// container is one of an image, with a checkout, data and a store from outside.
type container struct {
	*engine
	name    string
	user    int // who runs in it, and whose the checkout and the store are
	volumes []string
	marker  string // in the environment of everything that runs in it
}

// container makes one with nothing from outside.
func (e *engine) container(t *testing.T, image string, user int) *container {
	return &container{
		engine: e,
		name:   must(t, e.buildah("from", image)),
		user:   user,
		marker: "NASML_TEST_CONTAINER=" + filepath.Base(e.dir),
	}
}

// mount gives it a copy of the checkout, a store, and the data read-only.
func (c *container) mount(t *testing.T) {
	lab, data, store := filepath.Join(c.dir, "lab"), filepath.Join(c.dir, "data"), filepath.Join(c.dir, "store")
	for _, dir := range []string{lab, data, store} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}
	root, err := findRoot()
	require.NoError(t, err)
	for _, name := range []string{"go.mod", "go.sum"} {
		require.NoError(t, os.WriteFile(filepath.Join(lab, name), []byte(dockerText(t, "../"+name)), 0o644))
	}
	for _, name := range []string{"nasml", "notebooks", "plots"} {
		require.NoError(t, os.CopyFS(filepath.Join(lab, name), os.DirFS(filepath.Join(root, name))))
	}
	if own := os.Getenv("NASML_DATA"); exists(filepath.Join(own, "mnist")) {
		require.NoError(t, os.CopyFS(filepath.Join(data, "mnist"), os.DirFS(filepath.Join(own, "mnist"))))
	}
	must(t, exec.Command("chown", "-R", fmt.Sprintf("%d:%d", c.user, c.user), lab, store))
	c.volumes = []string{lab + ":/lab", data + ":/data:ro", store + ":/store"}
}

// command runs args in the container and its network.
func (c *container) command(settings []string, args ...string) *exec.Cmd {
	run := append([]string{"netns", "exec", c.network, "buildah"}, c.folders()...)
	run = append(run, "run", "--user", fmt.Sprintf("%d:%d", c.user, c.user), "--env", c.marker)
	for _, v := range c.volumes {
		run = append(run, "--volume", v)
	}
	for _, s := range settings {
		run = append(run, "--env", s)
	}
	return c.program("ip", append(append(run, c.name, "--"), args...)...)
}

// sh runs a line of shell in the container and returns what it prints.
func (c *container) sh(t *testing.T, line string) string {
	t.Helper()
	return must(t, c.command(nil, "sh", "-c", line))
}

// processes are the programs that run in the container, by their ids.
func (c *container) processes(t *testing.T) map[int]string {
	t.Helper()
	all := map[int]string{}
	folders, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	for _, folder := range folders {
		environment, err := os.ReadFile(filepath.Join(folder, "environ"))
		if err != nil || !slices.Contains(strings.Split(string(environment), "\x00"), c.marker) {
			continue // it has ended meanwhile, or is none of ours
		}
		name, _ := os.ReadFile(filepath.Join(folder, "comm"))
		id, err := strconv.Atoi(filepath.Base(folder))
		require.NoError(t, err)
		all[id] = strings.TrimSpace(string(name))
	}
	return all
}

// TestImage builds the image for processors and uses it as docker/README.md
// says: the checkout mounted, any user, and no network.
func TestImage(t *testing.T) {
	e := newEngine(t)
	e.makeBase(t)
	e.build(t, "cpu")
	config := e.config(t, "nasml:cpu")
	require.Equal(t, "nasml", config.User)
	begin := append(slices.Clone(config.Entrypoint), "notebooks")
	serve := append(slices.Clone(config.Entrypoint), config.Cmd...)
	t.Run("contents", func(t *testing.T) { imageContents(t, e) })
	c := e.container(t, "nasml:cpu", 2345) // whom the image does not know
	c.mount(t)
	t.Run("notebook", func(t *testing.T) { imageNotebook(t, c, begin) })
	t.Run("given token", func(t *testing.T) { imageGivenToken(t, c, serve) })
	t.Run("made token", func(t *testing.T) { imageMadeToken(t, c, serve) })
	t.Run("cuda", func(t *testing.T) { imageCUDA(t, e) })
}

// imageContents looks at the image itself, as its own user.
func imageContents(t *testing.T, e *engine) {
	look := e.container(t, "nasml:cpu", 4321)
	require.Equal(
		t,
		"4321 4322 nasml",
		look.sh(t, `stat -c '%u %g %U' /lab/notebooks`),
		"the ids of the build's arguments",
	)
	require.Empty(t, look.sh(t, `find /lab -name '.*' -o -name figures -o -name docker`), "history, settings, results")
	require.Empty(
		t,
		look.sh(t, `for p in curl unzip git make g++ cmake; do command -v $p; done; ls /var/lib/apt/lists`),
		"what only a build needs",
	)
	require.Empty(
		t,
		look.sh(t, `find "$GOCACHE" ! -newermt 2037-01-01 -type f ! -name trim.txt | head -n 3`),
		"the go command would throw it away after five days",
	)
	require.NotEmpty(t, look.sh(t, `find "$GOCACHE" -name '*-d' | head -n 3`))
	version := look.sh(t, "go version")
	require.Contains(t, version, "go"+readDockerfile(t).arguments["GO_VERSION"]+" linux/")
	t.Log("sizes in MB: " + look.sh(t, `for d in / /usr /usr/local/go /opt/nasml/* /lab; do du -sxm $d; done | xargs`))
}

// imageNotebook executes the README's first notebook, in the checkout outside.
func imageNotebook(t *testing.T, c *container, begin []string) {
	settings := []string{"NASML_SCALE=quick"}
	if !exists(filepath.Join(c.dir, "data", "mnist")) {
		t.Log("on synthetic data: there is no $NASML_DATA/mnist")
		settings = append(settings, "NASML_OFFLINE_DATA=synthetic")
	}
	notebook := filepath.Join(c.dir, "lab", "notebooks", "oymak2021", "figure2_lipschitz.ipynb")
	require.NoError(t, os.WriteFile(notebook, []byte(withoutOutputs(t, read(t, notebook))), 0o644))
	cmd := c.command(settings, append(begin, "notebooks/oymak2021/figure2_lipschitz.ipynb")...)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	require.NoError(t, cmd.Run())
	require.Contains(t, read(t, notebook), `"image/png"`, "the figure is in the file outside")
	require.NoDirExists(t, filepath.Join(c.dir, "lab", ".nasml"), "the set-up is the image's")
	require.NotEmpty(t, recordsOf(t, filepath.Join(c.dir, "store")), "the trials are in the store outside")
	for _, made := range []string{notebook, filepath.Join(filepath.Dir(notebook), "figures")} {
		info, err := os.Stat(made)
		require.NoError(t, err)
		require.EqualValues(t, c.user, info.Sys().(*syscall.Stat_t).Uid, made)
	}
}

// withoutOutputs is a notebook as before its first run.
func withoutOutputs(t *testing.T, text string) string {
	var notebook map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &notebook))
	for _, cell := range notebook["cells"].([]any) {
		if cell := cell.(map[string]any); cell["cell_type"] == "code" {
			cell["outputs"], cell["execution_count"] = []any{}, nil
		}
	}
	out, err := json.Marshal(notebook)
	require.NoError(t, err)
	return string(out)
}

// lab is a JupyterLab that runs in a container.
type lab struct {
	*container
	beside  *container // who asks: buildah runs one command in a container at a time
	address string
	ended   chan error
}

// serve starts the image's own command and waits until it answers.
func (c *container) serve(t *testing.T, command []string, settings ...string) *lab {
	const port = "8899"
	l := &lab{
		container: c,
		beside:    c.container(t, "nasml:cpu", c.user),
		address:   "http://" + containerAddress + ":" + port,
		ended:     make(chan error, 1),
	}
	cmd := c.command(append(settings, "NASML_PORT="+port), command...)
	log, err := os.Create(
		filepath.Join(c.dir, "lab.log"),
	) // a file, which does not keep Wait until all that write to it have ended
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = log, log
	begin := time.Now()
	require.NoError(t, cmd.Start())
	go func() { l.ended <- cmd.Wait() }()
	t.Cleanup(func() {
		for id := range c.processes(t) {
			_ = syscall.Kill(id, syscall.SIGKILL)
		}
		if t.Failed() {
			t.Log(l.output(t))
		}
	})
	require.Eventually(
		t,
		func() bool { return l.ask("GET", "/api", "") == http.StatusOK },
		3*time.Minute,
		100*time.Millisecond,
		"JupyterLab does not come up",
	)
	t.Logf("JupyterLab answers %.1f s after its start", time.Since(begin).Seconds())
	return l
}

func (l *lab) output(t *testing.T) string { return read(t, filepath.Join(l.dir, "lab.log")) }

// asking prints the status of an answer: a program for the container's network.
const asking = `import sys, urllib.request as u, urllib.error as e
method, address, token, body = sys.argv[1:]
headers = {"Authorization": "token " + token} if token else {}
try:
    print(u.urlopen(u.Request(address, body.encode() or None, headers, method=method)).status)
except e.HTTPError as answer:
    print(answer.code)`

// ask returns the status of a path's answer, 0 if there is none. The body is
// that of a POST.
func (l *lab) ask(method, path, token string, body ...string) int {
	out, err := l.beside.command(nil, "python3", "-c", asking, method, l.address+path, token, strings.Join(body, "")).
		Output()
	if err != nil {
		return 0
	}
	status, _ := strconv.Atoi(strings.TrimSpace(string(out))) // 0, too, where it is none
	return status
}

// stop is `docker stop`: SIGTERM to the first process, and some time.
func (l *lab) stop(t *testing.T) {
	t.Helper()
	first := 0
	for id, name := range l.processes(t) {
		if name == "tini" {
			require.Zero(t, first, "one first process")
			first = id
		}
	}
	require.NotZero(t, first)
	begin := time.Now()
	require.NoError(t, syscall.Kill(first, syscall.SIGTERM))
	select {
	case err := <-l.ended:
		require.NoError(t, err, l.output(t))
	case <-time.After(time.Minute):
		t.Fatalf("still running a minute after SIGTERM: %v", l.processes(t))
	}
	t.Logf("stopped in %.1f s", time.Since(begin).Seconds())
	require.Contains(t, l.output(t), "JupyterLab has stopped")
	require.Empty(t, l.processes(t), "left behind")
}

// imageGivenToken lets in who has the token of the environment, and nobody
// else, and ends with its kernels.
func imageGivenToken(t *testing.T, c *container, command []string) {
	const token = "a-token-of-the-test"
	l := c.serve(t, command, "JUPYTER_TOKEN="+token)
	require.Equal(t, http.StatusForbidden, l.ask("GET", "/api/contents", ""))
	require.Equal(t, http.StatusForbidden, l.ask("GET", "/api/contents", "another"))
	require.Equal(t, http.StatusOK, l.ask("GET", "/api/contents", token))
	require.Equal(t, http.StatusOK, l.ask("GET", "/lab?token="+token, ""))
	require.Contains(t, l.output(t), "http://127.0.0.1:8899/lab")
	require.NotContains(t, l.output(t), token, "a token that was given is not printed")

	out, err := l.beside.command([]string{"NASML_PORT=8899"}, command...).CombinedOutput()
	require.Error(t, err, "the port is in use")
	require.Contains(t, string(out), "port 8899 cannot be used")

	require.Equal(t, http.StatusCreated, l.ask("POST", "/api/kernels", token, `{"name":"gonb"}`))
	require.Eventually(t, func() bool {
		for _, name := range l.processes(t) {
			if name == "gonb" {
				return true
			}
		}
		return false
	}, time.Minute, 100*time.Millisecond, "no kernel")
	l.stop(t)
}

// imageMadeToken does the same with the token that JupyterLab makes.
func imageMadeToken(t *testing.T, c *container, command []string) {
	l := c.serve(t, command, "JUPYTER_TOKEN=") // as compose passes one that is not set
	var found []string
	require.Eventually(t, func() bool {
		found = regexp.MustCompile(`http://127\.0\.0\.1:8899/\S*token=([0-9a-f]{32,})`).FindStringSubmatch(l.output(t))
		return found != nil
	}, time.Minute, 100*time.Millisecond, "no address is printed")
	require.Equal(t, http.StatusForbidden, l.ask("GET", "/api/contents", ""))
	require.Equal(t, http.StatusOK, l.ask("GET", "/api/contents", found[1]))
	l.stop(t)
}

// imageCUDA builds the image for GPUs. If there is none, its plugin is still
// loaded, and what it says is all that can be seen here.
func imageCUDA(t *testing.T, e *engine) {
	if os.Getenv(dockerVar) != "cuda" {
		t.Skip("downloads 2.5 GB: `.ci/docker cuda` runs it")
	}
	e.build(t, "cuda")
	config := e.config(t, "nasml:cuda")
	require.Equal(t, "nasml", config.User)
	require.Contains(t, config.Env, "GOMLX_BACKEND=xla:cuda")
	c := e.container(t, "nasml:cuda", 2345)
	out, err := c.command(nil, append(
		config.Entrypoint,
		"run",
		"oymak2021/figure2",
		"--set",
		"Panels=a",
		"--set",
		"Widths=64",
		"--set",
		"Data=synthetic",
		"--set",
		"Examples=500",
		"--set",
		"Epochs=1",
		"--out",
		"/tmp/figures",
	)...).
		CombinedOutput()
	require.Error(t, err, "there is no GPU in this container, and the processor must not be taken in silence")
	require.Contains(t, string(out), "No visible GPU devices")
}
