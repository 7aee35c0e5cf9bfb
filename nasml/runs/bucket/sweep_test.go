package bucket

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/runs"
)

// counted is a way to a server that counts requests, and takes as long as one
// to a service in another building.
func counted(b *testing.B, at *url.URL, delay time.Duration, requests *atomic.Int64) *url.URL {
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(at)
		r.Out.Host = r.In.Host // which is signed
	}, ErrorLog: quiet(), Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		time.Sleep(delay)
		proxy.ServeHTTP(w, r)
	}))
	b.Cleanup(front.Close)
	to, err := url.Parse(front.URL)
	require.NoError(b, err)
	return to
}

// What the store itself costs a sweep of trials that cost nothing: computing
// them in jobs of a hundred, reading them at the next start, looking how far
// they are, and listing them. NASML_BENCH_TRIALS says how many (1000),
// NASML_BENCH_DELAY how long a request takes on its way (20ms).
// docker/scaling.md tells what came out.
func BenchmarkSweep(b *testing.B) {
	n, delay := 1000, 20*time.Millisecond
	if text := os.Getenv("NASML_BENCH_TRIALS"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		require.NoError(b, err)
	}
	if text := os.Getenv("NASML_BENCH_DELAY"); text != "" {
		var err error
		delay, err = time.ParseDuration(text)
		require.NoError(b, err)
	}
	b.Run("folder", func(b *testing.B) {
		sweep(b, filepath.Join(b.TempDir(), "store"), n, nil)
	})
	b.Run("s3", func(b *testing.B) {
		var requests atomic.Int64
		address := addressAt(counted(b, server(b), delay, &requests))
		sweep(b, strings.Replace(address, "lease=2s", "lease=60s", 1), n, &requests)
	})
}

// sweep measures the phases one after the other; each goes over all trials once.
func sweep(b *testing.B, address string, n int, requests *atomic.Int64) {
	ctx := runs.WithProgress(b.Context(), runs.Silent)
	open := func() *runs.Store {
		s, err := runs.Open(address)
		require.NoError(b, err)
		return s
	}
	phase := func(name string, once func(s *runs.Store)) {
		b.Run(name, func(b *testing.B) {
			var heap uint64
			for range b.N {
				s := open()
				if requests != nil {
					requests.Store(0)
				}
				once(s)
				heap = heapBytes()
				runtime.KeepAlive(s)
			}
			b.ReportMetric(b.Elapsed().Seconds()*1e6/float64(b.N)/float64(n), "µs/trial")
			b.ReportMetric(float64(heap)/1e6, "MB")
			if requests != nil {
				b.ReportMetric(float64(requests.Load())/float64(n), "requests/trial")
			}
		})
	}
	all := trials(n)
	var kept []*runs.Record
	phase("look", func(s *runs.Store) {
		_, err := s.Compute(runs.WithPart(ctx, new(runs.Part)), all, runs.Options{}, nil)
		require.NoError(b, err)
	})
	phase("compute", func(s *runs.Store) {
		_, err := s.Compute(ctx, all, runs.Options{MaxBatch: 100}, func(_ context.Context, j *runs.Job) error {
			results := make([]runs.Result, len(j.Trials))
			for i, t := range j.Trials {
				results[i] = resultOf(t)
			}
			return j.DoneAll(results)
		})
		require.NoError(b, err)
	})
	phase("read", func(s *runs.Store) {
		var err error
		kept, err = s.Compute(ctx, all, runs.Options{}, nil)
		require.NoError(b, err)
	})
	phase("list", func(s *runs.Store) {
		records, broken, err := s.List()
		require.NoError(b, err)
		require.Empty(b, broken)
		require.Len(b, records, n)
	})
	runtime.KeepAlive(kept)
}

// heapBytes is what is alive on the heap.
func heapBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
