package runs

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// checkpointName is a function of the set of trials, whatever their order.
func (j *Job) checkpointName() string {
	id := digest([]byte(strings.Join(slices.Sorted(slices.Values(j.keys)), "\n")))
	return "checkpoints/" + id + ".ckpt"
}

// Save stores the state that write writes: weights, optimizer state, random streams, position in the data. Load returns
// the same bytes, in this process or a later one. It returns an error if another machine has taken the trials over.
func (j *Job) Save(write func(io.Writer) error) error {
	begun := j.store.now()
	if slices.ContainsFunc(j.locks, func(l Lock) bool { return !l.Held() }) {
		return fmt.Errorf(
			"the run store %s could not be reached for so long that another machine may compute these %d trials now: "+
				"run again to read or continue them", j.store.Dir(), len(j.Trials))
	}
	first, err := json.Marshal(meta{j.started(), j.seconds(), j.use(), j.before.Resumed, j.checkpointName()})
	if err != nil {
		return err
	}
	err = j.store.write(j.checkpointName(), func(w io.Writer) error {
		h := sha256.New()
		buffered := bufio.NewWriterSize(io.MultiWriter(w, h), 1<<20)
		_, _ = buffered.Write(append(first, '\n')) // Flush tells of errors
		if err := write(buffered); err != nil {
			return err
		}
		if err := buffered.Flush(); err != nil {
			return err
		}
		_, err := w.Write(h.Sum(nil))
		return err
	})
	j.saved = j.store.now()
	j.savedTook = j.saved.Sub(begun)
	return err
}

// SaveEvery saves, and reports that it did, if the last Save is at least so long ago and 20
// times as long as it took: saving costs at most 5 % of the time.
func (j *Job) SaveEvery(every time.Duration, write func(io.Writer) error) (bool, error) {
	last := j.saved
	if last.IsZero() {
		last = j.begun
	}
	if j.store.now().Sub(last) < max(every, 20*j.savedTook) {
		return false, nil
	}
	return true, j.Save(write)
}

// IntervalEnv is a time such as 20ms that takes the place of those between two checkpoints.
const IntervalEnv = "NASML_CHECKPOINT"

// Interval is the time between two checkpoints: the usual one, or what $NASML_CHECKPOINT says.
func Interval(usual time.Duration) time.Duration {
	if d, err := time.ParseDuration(os.Getenv(IntervalEnv)); err == nil && d >= 0 {
		return d
	}
	return usual
}

// Load opens the state that was saved last for this set of trials, or returns an error that is [ErrNotFound]. A broken
// checkpoint is set aside and counts as not found.
func (j *Job) Load() (io.ReadCloser, error) {
	f, m, err := j.store.openCheckpoint(j.checkpointName())
	if broken, ok := errors.AsType[*Broken](err); ok {
		if err := j.store.setAside(broken); err != nil {
			return nil, fmt.Errorf("%w; %w", broken, err)
		}
		return nil, broken
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("checkpoint %s: %w", j.store.medium.Where(j.checkpointName()), ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	j.before = *m
	j.before.Resumed++
	return f, nil
}

// LoadTelling is Load that says through progress where a checkpoint is broken, or of
// other trials, so that the computation begins again.
func (j *Job) LoadTelling(progress Progress) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		r, err := j.Load()
		if broken, ok := errors.AsType[*Broken](err); ok {
			Tell(progress, broken.Error()+"; it starts again")
		}
		return r, err
	}
}

type checkpoint struct {
	io.Reader
	io.Closer
}

// openCheckpoint verifies a checkpoint from end to end before any of it is used.
func (s *Store) openCheckpoint(name string) (*checkpoint, *meta, error) {
	f, err := s.open(name)
	if err != nil {
		return nil, nil, err
	}
	r, m, err := verifyCheckpoint(f)
	if err == nil && m.Of != "" && m.Of != name {
		err = notWhole("it was saved as " + m.Of + ", by trials with other parameters")
	}
	if err == nil {
		return &checkpoint{r, f}, m, nil
	}
	_ = f.Close()
	if bad, ok := errors.AsType[notWhole](err); ok {
		return nil, nil, s.broken(name, string(bad))
	}
	return nil, nil, fmt.Errorf("run store cannot read %s: %w", s.medium.Where(name), err)
}

// notWhole is the reason why a checkpoint cannot be believed.
type notWhole string

func (n notWhole) Error() string { return string(n) }

// verifyCheckpoint returns the caller's part of a checkpoint and its first line, or an error that is notWhole.
func verifyCheckpoint(f Object) (io.Reader, *meta, error) {
	size := f.Size() - sha256.Size
	if size < 0 {
		return nil, nil, notWhole(fmt.Sprintf("it has %d bytes, too few for a checkpoint", f.Size()))
	}
	h := sha256.New()
	if _, err := io.CopyN(h, f, size); err != nil {
		return nil, nil, err
	}
	sum, err := io.ReadAll(f)
	if err != nil {
		return nil, nil, err
	}
	if !bytes.Equal(sum, h.Sum(nil)) {
		return nil, nil, notWhole("its content does not have the sum that its end says")
	}
	r := bufio.NewReaderSize(io.NewSectionReader(f, 0, size), 1<<20)
	m := new(meta)
	first, err := r.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(first, m)
	}
	if err != nil {
		return nil, nil, notWhole(err.Error())
	}
	return r, m, nil
}
