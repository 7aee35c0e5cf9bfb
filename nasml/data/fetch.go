package data

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nasml/lab/internal/files"
)

// Fetch downloads the files of a set that are missing, broken or incomplete; those that are there and good are left
// alone. progress, which may be nil, gets the bytes done and the bytes in all of these files; done falls where a server
// cannot resume and a file starts again.
//
// A download goes to NAME.part, is resumed there when it breaks off, now or in a later run, and gets its name once its
// checksum is right. An address that fails is tried again a few times, then the next one. Processes that fetch the same
// file take turns. A broken file is kept as NAME.broken once its replacement is there. The error says for each address
// what went wrong, and where to put a file that was obtained in another way; it wraps ErrMissing, ErrBroken or
// ErrIncomplete as the file still is, or ctx's error where ctx ended.
func Fetch(ctx context.Context, name Name, progress func(done, total int64)) error {
	l, err := open()
	if err != nil {
		return err
	}
	return l.fetch(ctx, name, progress)
}

func (l *library) fetch(ctx context.Context, name Name, progress func(done, total int64)) error {
	files, err := l.sets.files(name)
	if err != nil {
		return err
	}
	var wanted []File
	var done, total int64
	for _, f := range files {
		_, _, err := l.find(name, f)
		switch {
		case errors.Is(err, ErrMissing), errors.Is(err, ErrBroken), errors.Is(err, ErrIncomplete):
			wanted, total = append(wanted, f), total+f.Size
		case err != nil:
			return err
		}
	}
	report := func(n int64) {
		if progress != nil {
			progress(done+n, total)
		}
	}
	for _, f := range wanted {
		if err := l.download(ctx, name, f, report); err != nil {
			return err
		}
		done += f.Size // also where the address had it zipped to another size
		report(0)
	}
	return nil
}

func (l *library) download(ctx context.Context, name Name, f File, progress func(int64)) error {
	to := l.path(f)
	if f.ByHand != "" {
		return fmt.Errorf("%s: %w and cannot be downloaded by a program; %s", to, ErrMissing, f.howToGet(name))
	}
	part, err := lockPart(ctx, to+".part")
	if err != nil {
		return explain(err, f)
	}
	defer part.release()
	_, problem := f.read(to)
	switch {
	case problem == nil:
		return part.Truncate(0) // another process was quicker
	case errors.Is(problem, fs.ErrNotExist):
		problem = ErrMissing
	}
	var failed []string
	for _, address := range f.URLs {
		err := l.fill(ctx, f, address, part.File, progress)
		if err == nil {
			return explain(install(part.File, to), f)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s: the download stopped: %w; what is there is kept and resumed", to, ctx.Err())
		}
		if _, local := errors.AsType[*fs.PathError](err); local {
			return explain(err, f)
		}
		failed = append(failed, fmt.Sprintf("%s: %v", address, withoutURL(err)))
	}
	return fmt.Errorf("%s: %w and could not be downloaded (%s); get it elsewhere and put it there, %s",
		to, problem, strings.Join(failed, "; "), fromFolder(name))
}

// partial is the file that a download goes to, which no other process writes to.
type partial struct {
	*os.File
	lock *files.Lock
}

// lockPart opens the file of a download once no other process writes to it.
func lockPart(ctx context.Context, path string) (*partial, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	lock, err := files.WaitLock(ctx, path, 0o644, 50*time.Millisecond)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s: stopped waiting for the process that downloads it: %w", path, ctx.Err())
	case err != nil:
		return nil, fmt.Errorf("%s cannot be locked: %w; set NASML_DATA to a folder on a local disk", path, err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0o644)
	if err != nil {
		lock.Unlock()
		return nil, err
	}
	return &partial{file, lock}, nil
}

func (p *partial) release() {
	if info, err := p.Stat(); err == nil && info.Size() == 0 {
		os.Remove(p.Name())
	}
	p.Close()
	p.lock.Unlock()
}

const tries = 3 // requests to one address that bring nothing new

// fill downloads the file from one address. It resumes, retries after a pause if server or network fail, and checks the
// result.
func (l *library) fill(ctx context.Context, f File, address string, part *os.File, progress func(int64)) error {
	pause, most := l.pause, int64(0)
	for try := 1; ; try++ {
		resumed, size, err := l.request(ctx, address, part, progress)
		if err == nil {
			if err = check(f, part); err == nil {
				return nil
			}
			if !resumed { // the address has another file
				return err
			}
		}
		if size > most { // each byte is new once, so that this ends
			most, try, pause = size, 0, l.pause
		}
		if final(err) || try >= tries || ctx.Err() != nil {
			return err
		}
		if err := files.Sleep(ctx, pause); err != nil {
			return err
		}
		pause *= 2
	}
}

// final reports whether a retry is useless: for errors of the disk, of the request, and of the host's name.
func final(err error) bool {
	_, local := errors.AsType[*fs.PathError](err)
	status, answered := errors.AsType[*statusError](err)
	name, unknown := errors.AsType[*net.DNSError](err)
	return local || answered && !status.passing() || unknown && name.IsNotFound
}

func withoutURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// check reads the finished part, and empties it if it is not the file.
func check(f File, part *os.File) error {
	_, err := f.read(part.Name())
	if err == nil {
		err = f.checkZipped(part)
	}
	if err == nil {
		return nil
	}
	if e := part.Truncate(0); e != nil {
		return e
	}
	return fmt.Errorf("what was downloaded is not the file (%w), and was deleted", err)
}

// checkZipped compares the publisher's checksum of the file as it is, if there is one.
func (f File) checkZipped(part *os.File) error {
	if f.Zipped == "" {
		return nil
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(part, 0, math.MaxInt64)); err != nil {
		return err
	}
	if found := fmt.Sprintf("%x", sum.Sum(nil)); found != f.Zipped {
		return fmt.Errorf("found SHA-256 %s of the file as it is, expected %s", found, f.Zipped)
	}
	return nil
}

var errStalled = errors.New("the server was silent for too long")

// request appends what part lacks. It returns whether the server resumed, and the new size.
func (l *library) request(
	ctx context.Context, address string, part *os.File, progress func(int64),
) (resumed bool, size int64, err error) {
	offset, err := part.Seek(0, io.SeekEnd)
	if err != nil {
		return false, 0, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(l.stall, func() { cancel(errStalled) })
	defer silence.Stop()
	resp, err := l.get(ctx, address, offset)
	if err != nil {
		return false, offset, cause(ctx, err)
	}
	defer resp.Body.Close()
	resumed, complete, err := accept(resp, part, offset)
	if err != nil || complete {
		return complete, offset, err
	}
	if !resumed {
		offset = 0
	}
	m := &meter{to: part, done: offset, progress: progress, alive: func() { silence.Reset(l.stall) }}
	_, err = io.Copy(m, resp.Body)
	return resumed, m.done, cause(ctx, err)
}

// accept says what an answer does to part, which has offset bytes: continue, complete, or start again with an empty
// part. Anything else is an error.
func accept(resp *http.Response, part *os.File, offset int64) (resumed, complete bool, err error) {
	sent := resp.Header.Get("Content-Range")
	switch resp.StatusCode {
	case http.StatusOK:
		return false, false, restart(part)
	case http.StatusPartialContent:
		if strings.HasPrefix(sent, fmt.Sprintf("bytes %d-", offset)) {
			return true, false, nil
		}
		err = restart(part)
	case http.StatusRequestedRangeNotSatisfiable:
		if sent == fmt.Sprintf("bytes */%d", offset) {
			return true, true, nil
		}
		err = restart(part)
	}
	return false, false, errors.Join(err, &statusError{resp.StatusCode, resp.Status})
}

// get asks for the bytes as they are. Otherwise Go would unzip a .gz that a server labels as an encoding.
func (l *library) get(ctx context.Context, address string, offset int64) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept-Encoding", "identity")
	if offset > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	return l.client.Do(req)
}

func restart(part *os.File) error {
	if err := part.Truncate(0); err != nil {
		return err
	}
	_, err := part.Seek(0, io.SeekStart)
	return err
}

func cause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

type meter struct {
	to       *os.File
	done     int64
	progress func(int64)
	alive    func()
}

func (m *meter) Write(p []byte) (int, error) {
	n, err := m.to.Write(p)
	m.done += int64(n)
	m.alive()
	m.progress(m.done)
	return n, err
}

type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string { return "the server answered " + e.text }

func (e *statusError) passing() bool {
	return e.code >= 500 || e.code == http.StatusTooManyRequests || e.code == http.StatusRequestTimeout ||
		e.code == http.StatusRequestedRangeNotSatisfiable || e.code == http.StatusPartialContent
}
