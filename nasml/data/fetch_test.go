package data

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// publisher serves content, zipped, through handle, which may misbehave
// before or instead of calling serve, and counts the requests.
func publisher(
	t *testing.T,
	l *library,
	content map[string][]byte,
	handle func(w http.ResponseWriter, r *http.Request, zipped []byte),
) *atomic.Int64 {
	t.Helper()
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		plain, ok := content[r.URL.Path[1:]]
		if !ok {
			http.NotFound(w, r)
			return
		}
		handle(w, r, gz(plain))
	}))
	t.Cleanup(server.Close)
	l.mirror(server.URL + "/")
	return &requests
}

// mirror gives every file one more address.
func (l *library) mirror(base string) {
	for _, set := range l.sets {
		for _, p := range set {
			for i := range p.files {
				p.files[i].URLs = append(p.files[i].URLs, base+p.files[i].Path)
			}
		}
	}
}

// serve answers as a good server does, ranges included.
func serve(w http.ResponseWriter, r *http.Request, zipped []byte) {
	http.ServeContent(w, r, "file.gz", time.Time{}, bytes.NewReader(zipped))
}

// ignoreRange sends the whole file, whatever was asked for.
func ignoreRange(w http.ResponseWriter, r *http.Request, zipped []byte) {
	r.Header.Del("Range")
	serve(w, r, zipped)
}

// breakOff lets handle answer, but cuts the connection after n bytes.
func breakOff(
	handle func(http.ResponseWriter, *http.Request, []byte),
	n int,
) func(http.ResponseWriter, *http.Request, []byte) {
	return func(w http.ResponseWriter, r *http.Request, zipped []byte) {
		handle(&cutter{ResponseWriter: w, left: n}, r, zipped)
	}
}

type cutter struct {
	http.ResponseWriter
	left int
}

func (c *cutter) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p[:min(len(p), c.left)])
	if c.left -= n; n < len(p) {
		c.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, err
}

// whole requires that a set is there, and nothing else.
func whole(t *testing.T, l *library, name Name) {
	t.Helper()
	for _, split := range []Split{Train, Test} {
		_, err := l.load(t.Context(), name, split)
		require.NoError(t, err)
	}
	entries, err := os.ReadDir(filepath.Join(l.dir, string(name)))
	require.NoError(t, err)
	require.Len(t, entries, 4, "%v", entries)
}

func TestFetchDownloadsWhatIsMissing(t *testing.T) {
	l, content := small(t)
	requests := publisher(t, l, content, serve)
	put(t, l.dir, "fashion-mnist/train-labels-idx1-ubyte.gz", gz(content["fashion-mnist/train-labels-idx1-ubyte.gz"]))
	var last, total int64
	require.NoError(t, l.fetch(t.Context(), FashionMNIST, func(done, all int64) {
		require.GreaterOrEqual(t, done, last)
		last, total = done, all
	}))
	require.EqualValues(t, 3, requests.Load())
	require.Equal(t, total, last)
	whole(t, l, FashionMNIST)
	require.NoError(t, l.fetch(t.Context(), FashionMNIST, nil))
	require.EqualValues(t, 3, requests.Load(), "what is there is not downloaded again")
}

func TestLoadDownloads(t *testing.T) {
	l, content := small(t)
	publisher(t, l, content, serve)
	im, err := l.load(t.Context(), MNIST, Test)
	require.NoError(t, err)
	require.Equal(t, content["mnist/t10k-images-idx3-ubyte.gz"][16:], im.Pixels)
}

func TestFetchResumesWhereItBrokeOff(t *testing.T) {
	l, content := small(t)
	var ranges sync.Map
	requests := publisher(t, l, content, func(w http.ResponseWriter, r *http.Request, zipped []byte) {
		ranges.Store(r.URL.Path+r.Header.Get("Range"), true)
		breakOff(serve, 100)(w, r, zipped)
	})
	require.NoError(t, l.fetch(t.Context(), MNIST, nil))
	whole(t, l, MNIST)
	want, longest := 0, 0
	for _, f := range []string{"train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"} {
		n := len(gz(content["mnist/"+f+"-ubyte.gz"]))
		want, longest = want+(n+99)/100, max(longest, n)
	}
	require.Greater(t, longest, 100*tries, "more pieces than tries")
	require.EqualValues(t, want, requests.Load(), "each byte is asked for once")
	_, resumed := ranges.Load("/mnist/train-images-idx3-ubyte.gzbytes=100-")
	require.True(t, resumed)
}

func TestFetchResumesInALaterRun(t *testing.T) {
	l, content := small(t)
	path := "mnist/train-images-idx3-ubyte.gz"
	zipped := gz(content[path])
	first := make(chan string, 10)
	publisher(t, l, content, func(w http.ResponseWriter, r *http.Request, zipped []byte) {
		first <- r.Header.Get("Range")
		serve(w, r, zipped)
	})
	put(t, l.dir, path+".part", zipped[:50])
	require.NoError(t, l.fetch(t.Context(), MNIST, nil))
	require.Equal(t, "bytes=50-", <-first)
	whole(t, l, MNIST)

	require.NoError(
		t,
		os.Rename(filepath.Join(l.dir, path), filepath.Join(l.dir, path+".part")),
	) // killed just before the rename
	require.NoError(t, l.fetch(t.Context(), MNIST, nil))
	whole(t, l, MNIST)
}

func TestFetchStartsAgain(t *testing.T) {
	path := "mnist/train-images-idx3-ubyte.gz"
	for name, c := range map[string]struct {
		handle func(http.ResponseWriter, *http.Request, []byte)
		part   func(zipped []byte) []byte
	}{
		"where the server ignores Range": {ignoreRange, func(z []byte) []byte { return z[:50] }},
		"where the part is wrong":        {serve, func([]byte) []byte { return make([]byte, 50) }},
		"where the part is too long":     {serve, func(z []byte) []byte { return append(bytes.Clone(z), 1, 2, 3) }},
		"where the part has its length":  {serve, func(z []byte) []byte { return make([]byte, len(z)) }},
		"where the server sends elsewhere": {func(w http.ResponseWriter, r *http.Request, zipped []byte) {
			if r.Header.Get("Range") != "" {
				r.Header.Set("Range", "bytes=7-")
			}
			serve(w, r, zipped)
		}, func(z []byte) []byte { return z[:50] }},
	} {
		t.Run(name, func(t *testing.T) {
			l, content := small(t)
			publisher(t, l, content, c.handle)
			put(t, l.dir, path+".part", c.part(gz(content[path])))
			require.NoError(t, l.fetch(t.Context(), MNIST, nil))
			whole(t, l, MNIST)
		})
	}
}

func TestFetchTriesAgainAndNotForever(t *testing.T) {
	l, content := small(t)
	var n atomic.Int64
	publisher(t, l, content, func(w http.ResponseWriter, r *http.Request, zipped []byte) {
		if n.Add(1)%tries != 0 {
			http.Error(w, "later", http.StatusServiceUnavailable)
			return
		}
		serve(w, r, zipped)
	})
	require.NoError(t, l.fetch(t.Context(), MNIST, nil))
	whole(t, l, MNIST)

	for name, handle := range map[string]func(http.ResponseWriter, *http.Request, []byte){
		"unavailable": func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			w.WriteHeader(503)
		},
		"breaks off where it was, no resume": breakOff(ignoreRange, 50),
	} {
		t.Run(name, func(t *testing.T) {
			l, content := small(t)
			requests := publisher(t, l, content, handle)
			err := l.fetch(t.Context(), MNIST, nil)
			require.ErrorIs(t, err, ErrMissing)
			require.LessOrEqual(t, requests.Load(), int64(tries+1))
		})
	}
}

func TestFetchGoesToTheNextAddress(t *testing.T) {
	l, content := small(t)
	wrong := publisher(t, l, content, func(w http.ResponseWriter, r *http.Request, _ []byte) {
		serve(w, r, gz(content["fashion-mnist/t10k-labels-idx1-ubyte.gz"])) // a good file, and another one
	})
	gone := publisher(t, l, nil, nil)
	publisher(t, l, content, serve)
	require.NoError(t, l.fetch(t.Context(), MNIST, nil))
	whole(t, l, MNIST)
	require.EqualValues(t, []int64{4, 4}, []int64{wrong.Load(), gone.Load()}, "such an address is asked once a file")
}

func TestFetchErrorSaysAllThatWentWrong(t *testing.T) {
	l, content := small(t)
	publisher(t, l, map[string][]byte{"mnist/train-images-idx3-ubyte.gz": content["mnist/t10k-images-idx3-ubyte.gz"]},
		serve)
	publisher(t, l, nil, nil)
	dead := httptest.NewServer(nil)
	dead.Close()
	l.mirror(dead.URL + "/")
	err := l.fetch(t.Context(), MNIST, nil)
	require.ErrorIs(t, err, ErrMissing)
	path := filepath.Join(l.dir, "mnist", "train-images-idx3-ubyte.gz")
	for _, want := range []string{
		path + ": the file is missing and could not be downloaded",
		"found 10×6×5 images, expected 20×6×5), and was deleted",
		"the server answered 404 Not Found",
		dead.URL + "/mnist/train-images-idx3-ubyte.gz: dial tcp",
		"connection refused",
		"go tool nasml data mnist --from DIR",
	} {
		require.ErrorContains(t, err, want)
	}
	require.NoFileExists(t, path+".part", "nothing wrong is resumed")
}

func TestFetchReplacesABrokenFileAndKeepsIt(t *testing.T) {
	l, content := small(t)
	publisher(t, l, content, serve)
	path := "mnist/t10k-labels-idx1-ubyte.gz"
	put(t, l.dir, path, []byte("mine"))
	_, err := l.load(t.Context(), MNIST, Test)
	require.ErrorIs(t, err, ErrBroken, "Load replaces nothing")
	require.NoError(t, l.fetch(t.Context(), MNIST, nil))
	kept, err := os.ReadFile(filepath.Join(l.dir, path+".broken"))
	require.NoError(t, err)
	require.Equal(t, "mine", string(kept))
	_, err = l.load(t.Context(), MNIST, Test)
	require.NoError(t, err)
}

func TestFetchStopsWithItsContext(t *testing.T) {
	l, content := small(t)
	ctx, cancel := context.WithCancel(t.Context())
	publisher(t, l, content, func(w http.ResponseWriter, r *http.Request, zipped []byte) {
		w.Header().Set("Content-Length", fmt.Sprint(len(zipped)))
		_, _ = w.Write(zipped[:60]) // the client sees whether it came
		w.(http.Flusher).Flush()
		<-r.Context().Done() // and says no more
	})
	err := l.fetch(ctx, MNIST, func(done, _ int64) {
		if done == 60 {
			cancel()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "what is there is kept and resumed")
	part, err := os.Stat(filepath.Join(l.dir, "mnist", "train-images-idx3-ubyte.gz.part"))
	require.NoError(t, err)
	require.EqualValues(t, 60, part.Size())
}

func TestFetchLeavesASilentServer(t *testing.T) {
	l, content := small(t)
	l.stall = 20 * time.Millisecond
	publisher(t, l, content, func(_ http.ResponseWriter, r *http.Request, _ []byte) { <-r.Context().Done() })
	require.ErrorContains(t, l.fetch(t.Context(), MNIST, nil), errStalled.Error())
}

// The lock is per open file, so that two goroutines stand for two processes.
func TestFetchersTakeTurns(t *testing.T) {
	l, content := small(t)
	requests := publisher(t, l, content, breakOff(serve, 100))
	var pieces int64
	for path, plain := range content {
		if filepath.Dir(path) == string(MNIST) {
			pieces += int64(len(gz(plain))+99) / 100
		}
	}
	var wg sync.WaitGroup
	errs := make([]error, 5)
	for i := range errs {
		wg.Go(func() { errs[i] = l.fetch(t.Context(), MNIST, nil) })
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Equal(t, pieces, requests.Load(), "each byte is downloaded once")
	whole(t, l, MNIST)
}

func TestWaitingForALockStopsWithItsContext(t *testing.T) {
	l, _ := small(t)
	path := filepath.Join(l.dir, "mnist", "x.part")
	held, err := lockPart(t.Context(), path)
	require.NoError(t, err)
	defer held.release()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = lockPart(ctx, path)
	require.ErrorIs(t, err, context.Canceled)
}

func TestFetchSyntheticAndUnknown(t *testing.T) {
	l, _ := small(t)
	require.NoError(t, l.fetch(t.Context(), Synthetic, nil))
	err := l.fetch(t.Context(), "imagenet", nil)
	require.ErrorContains(t, err, `expected one of ["synthetic" "fashion-mnist" "mnist"]`)
}

func TestFinalErrorsAreNotTriedAgain(t *testing.T) {
	for err, want := range map[error]bool{
		&url.Error{Err: &net.DNSError{IsNotFound: true}}:  true,
		&url.Error{Err: &net.DNSError{IsTemporary: true}}: false,
		&statusError{code: http.StatusForbidden}:          true,
		&statusError{code: http.StatusTooManyRequests}:    false,
		&statusError{code: http.StatusBadGateway}:         false,
		&fs.PathError{Err: syscall.ENOSPC}:                true,
		io.ErrUnexpectedEOF:                               false,
		errStalled:                                        false,
	} {
		require.Equal(t, want, final(err), "%v", err)
	}
}
