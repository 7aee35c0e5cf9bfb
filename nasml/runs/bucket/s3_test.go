package bucket

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/runs"
)

const (
	addressEnv = "NASML_TEST_BUCKET" // where a worker of these tests computes
	diaryEnv   = "NASML_TEST_DIARY"  // file in which it notes what it computes
	trialsEnv  = "NASML_TEST_TRIALS" // how many
	killsEnv   = "NASML_TEST_KILLS"  // how often a worker is killed, if not a few times
)

// TestMain makes the test program a worker where a test started it as one.
func TestMain(m *testing.M) {
	if address := os.Getenv(addressEnv); address != "" {
		if err := work(address, os.Getenv(diaryEnv)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// work computes the trials of which it notes the beginning and the end.
func work(address, diary string) error {
	s, err := runs.Open(address)
	if err != nil {
		return err
	}
	note, err := os.OpenFile(diary, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer note.Close()
	n, err := strconv.Atoi(os.Getenv(trialsEnv))
	if err != nil {
		return err
	}
	_, err = compute(context.Background(), s, n, func(j *runs.Job) error {
		begin := time.Now().UnixMilli()
		time.Sleep(40 * time.Millisecond)
		_, err := fmt.Fprintf(note, "%d %d %d\n", j.Trials[0].Seed, begin, time.Now().UnixMilli())
		return err
	})
	return err
}

// server starts a real S3 server on an empty folder and returns its address.
func server(t testing.TB) *url.URL {
	t.Helper()
	program := findServer()
	if program == "" {
		t.Skip(
			"not run: no S3 server; build one with `go build -modfile=.ci/s3/go.mod -o .nasml/s3/versitygw " +
				"github.com/versity/versitygw/cmd/versitygw`",
		)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "tester")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "tester-secret")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_MAX_ATTEMPTS", "1") // the store tries again by itself
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "data", "lab"), 0o777))
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
	require.NoError(t, free.Close())
	cmd := exec.Command(
		program,
		"--quiet",
		"--access",
		"tester",
		"--secret",
		"tester-secret",
		"--port",
		address,
		"posix",
		"--nometa",
		filepath.Join(dir, "data"),
	)
	cmd.Dir = dir
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for range 200 {
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close()
			return &url.URL{Scheme: "http", Host: address}
		}
		time.Sleep(50 * time.Millisecond)
	}
	require.Fail(t, "the S3 server does not answer", said.String())
	return nil
}

// findServer looks for the server in PATH and in the checkout's .nasml/s3.
func findServer() string {
	if path, err := exec.LookPath("versitygw"); err == nil {
		return path
	}
	dir, err := os.Getwd()
	for err == nil && dir != filepath.Dir(dir) {
		path := filepath.Join(dir, ".nasml", "s3", "versitygw")
		if _, err := os.Stat(path); err == nil {
			return path
		}
		dir = filepath.Dir(dir)
	}
	return ""
}

// addressAt is the address of the store at a server.
func addressAt(at *url.URL) string {
	return fmt.Sprintf(
		"s3://lab/shared/store?endpoint=%s&use_path_style=true&region=us-east-1&lease=2s",
		url.QueryEscape(at.String()),
	)
}

// faulty is a way to a server that loses requests, loses answers, answers with
// errors and takes its time, one request in ten each.
func faulty(t *testing.T, at *url.URL) *url.URL {
	t.Helper()
	draw := rand.New(rand.NewPCG(1, 2))
	var mu sync.Mutex
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(at)
		r.Out.Host = r.In.Host // which is signed
	}, ErrorLog: quiet()}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		fate := draw.IntN(10)
		mu.Unlock()
		switch fate {
		case 0: // the request is lost
			panic(http.ErrAbortHandler)
		case 1: // the answer is lost
			proxy.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		case 2:
			http.Error(w, "try later", http.StatusServiceUnavailable)
			return
		case 3:
			time.Sleep(200 * time.Millisecond)
		}
		proxy.ServeHTTP(w, r)
	}))
	front.Config.ErrorLog = quiet()
	t.Cleanup(front.Close)
	to, err := url.Parse(front.URL)
	require.NoError(t, err)
	return to
}

func TestAStoreOnS3(t *testing.T) {
	address := addressAt(server(t))
	s, err := runs.Open(address)
	require.NoError(t, err)
	require.Equal(t, "s3://lab/shared/store", s.Dir())
	_, err = compute(t.Context(), s, 20, nil)
	require.NoError(t, err)
	again, err := runs.Open(address)
	require.NoError(t, err)
	_, err = compute(t.Context(), again, 20, func(*runs.Job) error { panic("it is there") })
	require.NoError(t, err)
	records, broken, err := again.List()
	require.NoError(t, err)
	require.Empty(t, broken)
	require.Len(t, records, 20)
	for _, r := range records {
		if r.Trial.Seed < 5 {
			require.NoError(t, again.Remove(r.Key))
		}
	}
	_, err = again.GC(runs.GCOptions{})
	require.NoError(t, err)
	records, _, err = s.List()
	require.NoError(t, err)
	require.Len(t, records, 15)
}

// Four workers on a store whose connection breaks, and one of them killed
// again and again (NASML_TEST_KILLS times): every trial ends with its number,
// none is computed by two at a time.
func TestKilledWorkersAndABadConnection(t *testing.T) {
	at := server(t)
	address := addressAt(faulty(t, at))
	diary := filepath.Join(t.TempDir(), "diary")
	kills := 8
	if testing.Short() {
		kills = 3
	}
	if text := os.Getenv(killsEnv); text != "" {
		var err error
		kills, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	workTrials := max(30, 2*kills)
	begun, done := time.Now(), atomic.Bool{}
	var workers sync.WaitGroup
	draw := rand.New(rand.NewPCG(3, 4))
	var mu sync.Mutex
	left := kills
	life := func() (time.Duration, bool) {
		mu.Lock()
		defer mu.Unlock()
		left--
		return time.Duration(200+draw.IntN(1500)) * time.Millisecond, left >= 0
	}
	for range 4 {
		workers.Go(func() {
			for !done.Load() {
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(
					os.Environ(),
					addressEnv+"="+address,
					diaryEnv+"="+diary,
					trialsEnv+"="+strconv.Itoa(workTrials),
				)
				cmd.Stderr = os.Stderr
				if err := cmd.Start(); err != nil {
					t.Error(err)
					return
				}
				if after, kill := life(); kill {
					time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
				}
				if cmd.Wait() == nil {
					done.Store(true)
				}
			}
		})
	}
	workers.Wait()
	t.Logf("%d kills, %d trials, %s", kills-max(left, 0), workTrials, time.Since(begun).Round(time.Second))

	s, err := runs.Open(addressAt(at))
	require.NoError(t, err)
	records, err := compute(t.Context(), s, workTrials, func(*runs.Job) error { panic("all is there") })
	require.NoError(t, err)
	for i, r := range records {
		require.Equal(t, 10*float64(i), r.Values["x"])
	}
	kept, broken, err := s.List()
	require.NoError(t, err)
	require.Empty(t, broken)
	require.Len(t, kept, workTrials)
	requireApart(t, diary, workTrials)
}

// requireApart checks that no two computations of one trial overlap.
func requireApart(t *testing.T, diary string, n int) {
	t.Helper()
	f, err := os.Open(diary)
	require.NoError(t, err)
	defer f.Close()
	type span struct{ begin, end int64 }
	spans := map[string][]span{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var seed string
		var s span
		_, err := fmt.Sscan(lines.Text(), &seed, &s.begin, &s.end)
		require.NoError(t, err)
		for _, other := range spans[seed] {
			require.False(
				t,
				s.begin < other.end && other.begin < s.end,
				"trial %s was computed twice at the same time: %v and %v",
				seed,
				s,
				other,
			)
		}
		spans[seed] = append(spans[seed], s)
	}
	require.Len(t, spans, n)
}

// Listing 10,000 records: about the number that a large sweep has.
func BenchmarkListS3(b *testing.B) {
	at := os.Getenv("NASML_BENCH_BUCKET") // an address of a store with records
	if at == "" {
		b.Skip("not run: set NASML_BENCH_BUCKET to the address of a store")
	}
	s, err := runs.Open(at)
	require.NoError(b, err)
	for b.Loop() {
		records, _, err := s.List()
		require.NoError(b, err)
		b.ReportMetric(float64(len(records)), "records")
	}
}

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
