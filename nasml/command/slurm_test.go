package command

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/runs"
)

// cluster is a Slurm of one node on this machine, with its own key and ports.
type cluster struct {
	dir  string
	node *exec.Cmd
}

// startCluster starts munge, a controller and a node, or skips the test.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("not run: takes a minute and more")
	}
	munge, err := user.Lookup("munge")
	for _, program := range []string{"munged", "slurmctld", "slurmd", "sbatch", "squeue"} {
		if _, missing := exec.LookPath(program); missing != nil || err != nil || os.Geteuid() != 0 {
			t.Skip("not run: needs root, Slurm and munge (Debian: apt install slurm-wlm munge)")
		}
	}
	uid, err := strconv.Atoi(munge.Uid)
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "nasml-slurm-") // short: a socket lies in it
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	key := make([]byte, 128)
	_, _ = rand.Read(key)
	m := filepath.Join(dir, "munge")
	require.NoError(t, os.MkdirAll(m, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(m, "key"), key, 0o600))
	for _, path := range []string{m, filepath.Join(m, "key")} {
		require.NoError(t, os.Chown(path, uid, -1))
	}
	c := &cluster{dir: dir}
	c.configure(t, filepath.Join(m, "socket"))
	t.Setenv("SLURM_CONF", filepath.Join(dir, "slurm.conf"))
	daemon := exec.Command(
		"munged",
		"--foreground",
		"--force",
		"--key-file",
		filepath.Join(m, "key"),
		"--socket",
		filepath.Join(m, "socket"),
		"--pid-file",
		filepath.Join(m, "pid"),
		"--log-file",
		filepath.Join(m, "log"),
		"--seed-file",
		filepath.Join(m, "seed"),
	)
	daemon.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	c.start(t, daemon)
	require.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(m, "socket")); return err == nil },
		20*time.Second, 50*time.Millisecond)
	c.start(t, exec.Command("slurmctld", "-D"))
	c.startNode(t)
	require.Eventually(t, func() bool {
		out, _ := exec.Command("sinfo", "-h", "-o", "%t").Output()
		return strings.TrimSpace(string(out)) == "idle"
	}, time.Minute, 200*time.Millisecond, "the node does not come up")
	return c
}

// configure writes slurm.conf for a machine without cgroups.
func (c *cluster) configure(t *testing.T, socket string) {
	host, err := os.Hostname()
	require.NoError(t, err)
	host, _, _ = strings.Cut(host, ".")
	lines := []string{
		"ClusterName=lab", "SlurmctldHost=" + host + "(127.0.0.1)", "SlurmUser=root", "SlurmdUser=root",
		"AuthType=auth/munge", "AuthInfo=socket=" + socket, "CredType=cred/munge",
		"ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none", "SelectType=select/cons_tres",
		"StateSaveLocation=" + filepath.Join(c.dir, "state"), "SlurmdSpoolDir=" + filepath.Join(c.dir, "spool"),
		"SlurmctldPidFile=" + filepath.Join(c.dir, "ctld.pid"), "SlurmdPidFile=" + filepath.Join(c.dir, "d.pid"),
		"SlurmctldLogFile=" + filepath.Join(c.dir, "ctld.log"), "SlurmdLogFile=" + filepath.Join(c.dir, "d.log"),
		fmt.Sprintf("SlurmctldPort=%d", freePort(t)), fmt.Sprintf("SlurmdPort=%d", freePort(t)),
		"SlurmdTimeout=10", "KillWait=2", "ReturnToService=2", "MpiDefault=none",
		"AccountingStorageType=accounting_storage/none", "JobAcctGatherType=jobacct_gather/none",
		"NodeName=" + host + " NodeAddr=127.0.0.1 CPUs=2 RealMemory=1000 State=UNKNOWN",
		"PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP",
	}
	for _, folder := range []string{"state", "spool"} {
		require.NoError(t, os.MkdirAll(filepath.Join(c.dir, folder), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(c.dir, "slurm.conf"), []byte(strings.Join(lines, "\n")+"\n"), 0o644))
}

func freePort(t *testing.T) int {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer free.Close()
	return free.Addr().(*net.TCPAddr).Port
}

// start starts a daemon that ends with the test.
func (c *cluster) start(t *testing.T, daemon *exec.Cmd) {
	var said bytes.Buffer
	daemon.Stdout, daemon.Stderr = &said, &said
	require.NoError(t, daemon.Start())
	t.Cleanup(func() {
		_ = daemon.Process.Kill()
		_ = daemon.Wait()
		if t.Failed() {
			t.Logf("%s: %s", daemon.Path, said.String())
		}
	})
}

func (c *cluster) startNode(t *testing.T) {
	c.node = exec.Command("slurmd", "-D")
	c.start(t, c.node)
}

// empty reports whether no task waits or runs.
func (c *cluster) empty() bool {
	out, err := exec.Command("squeue", "-h").Output()
	return err == nil && len(bytes.TrimSpace(out)) == 0
}

// An array of Figure 2 whose node and one of whose workers are killed ends with
// the numbers of one process: nothing lost, nothing kept twice.
func TestSlurm(t *testing.T) {
	root, err := findRoot()
	require.NoError(t, err)
	if _, err := os.Stat(filepath.Join(root, ".nasml", "pjrt")); err != nil && os.Getenv(pluginPathVar) == "" {
		t.Skip("not run: no XLA plugin: `go tool nasml setup`")
	}
	c := startCluster(t)
	store := filepath.Join(c.dir, "store")
	t.Setenv("NASML_STORE", store)
	figure := []string{"oymak2021/figure2", "--scale", "quick"}
	for _, set := range []string{
		"Panels=a", "Widths=64,96", "Seeds=4", "Epochs=3", "Data=synthetic", "Examples=1000", "Together=1",
		"Precision=float64",
	} {
		figure = append(figure, "--set", set)
	}
	call := func(verb string, more ...string) string {
		var out, said bytes.Buffer
		code := execute(context.Background(), append(append([]string{verb}, figure...), more...), console{&out, &said})
		require.Contains(t, []int{exitOK, exitFailed, exitClaims}, code, said.String())
		require.NotContains(t, said.String(), "did not take", said.String())
		return out.String()
	}
	look := func() (s standing) {
		require.NoError(t, json.Unmarshal([]byte(call("status", "--json")), &s))
		return s
	}
	require.Equal(t, 40, look().Open)
	submit := func() {
		call("slurm", "--array", "4", "--cpus", "1", "--dir", filepath.Join(c.dir, "job"), "--submit")
	}
	submit()

	require.Eventually(t, func() bool { return look().Done > 0 }, 3*time.Minute, 100*time.Millisecond,
		"no task gets anywhere")
	require.NoError(t, c.node.Process.Kill())
	_ = exec.Command("pkill", "-9", "-o", "-f", filepath.Join(c.dir, "job", "nasml")+" run").
		Run()
		// one may have ended by now
	time.Sleep(time.Second)
	c.startNode(t)

	for range 4 {
		require.Eventually(t, c.empty, 5*time.Minute, 300*time.Millisecond)
		if look().Done == 40 {
			break
		}
		submit()
	}
	s := look()
	require.Equal(t, 40, s.Done, "%+v", s)
	require.Zero(t, s.Failed)

	shared := recordsOf(t, store)
	t.Setenv("NASML_STORE", filepath.Join(c.dir, "alone"))
	call("run", "--out", filepath.Join(c.dir, "figures"), "--format", "csv")
	alone := recordsOf(t, filepath.Join(c.dir, "alone"))
	require.Len(t, shared, 40)
	for key, values := range alone {
		for name, value := range values { // parts cut the trials into other graphs, whose sums round otherwise
			require.InEpsilon(t, value, shared[key][name], 1e-9, name)
		}
	}
}

// Nothing that a user gives ends its line of the script, or its word where no quotes
// are around it.
func TestSlurmMistakes(t *testing.T) {
	t.Setenv("NASML_STORE", t.TempDir())
	for _, args := range [][]string{
		{"--partition", "a\ntouch x"}, {"--partition", "a b"}, {"--partition", `a"b`}, {"--partition", "a'b"},
		{"--time", "8:00:00\r"}, {"--mem", "8G\n#SBATCH --uid=0"}, {"--mem", "8G --uid=0"},
		{"--dir", filepath.Join(t.TempDir(), "a\nb")}, {"--dir", filepath.Join(t.TempDir(), "%j")},
		{"--set", "Data=a\nb"}, {"--set", "Data=a\x00b"}, {"--set", "Data=a\u2028b"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			dir := t.TempDir()
			status, out, err := call(t, append([]string{"slurm", "oymak2021/figure2", "--dir", dir}, args...)...)
			require.Equal(t, exitUsage, status)
			require.Contains(t, err, args[0]+" must be ")
			require.Empty(t, out)
			require.Empty(t, filesIn(t, dir))
		})
	}
}

func filesIn(t *testing.T, dir string) []os.DirEntry {
	found, err := os.ReadDir(dir)
	require.NoError(t, err)
	return found
}

// What the cluster takes is not refused.
func TestWordsOfClusters(t *testing.T) {
	for _, word := range []string{"gpu,long", "08:00:00", "1-12:00", "8G", "/home/jörg/lab_1/a.b", "UNLIMITED"} {
		require.True(t, oneWord(word), word)
	}
	for _, name := range []string{"a", "1", "a-b", strings.Repeat("a", 63)} {
		require.True(t, isLabel(name), name)
		require.True(t, isSubdomain(name+".b"), name)
	}
	for _, text := range []string{"8Gi", "500M", "1.5G", "128974848", "129e6", "100m"} {
		require.True(t, quantity.MatchString(text), text)
	}
	for _, text := range []string{"lab/nasml:1", "ghcr.io:443/a/b__c@sha256:00ff", "nasml"} {
		require.True(t, imageName.MatchString(text), text)
	}
}

// recordsOf are the values of a store's own records by key.
func recordsOf(t *testing.T, dir string) map[string]map[string]float64 {
	store, err := runs.Open(dir)
	require.NoError(t, err)
	records, broken, err := store.List()
	require.NoError(t, err)
	require.Empty(t, broken)
	all := map[string]map[string]float64{}
	for _, r := range records {
		all[r.Key] = r.Values
	}
	return all
}
