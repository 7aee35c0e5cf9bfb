package runs

import (
	"bytes"
	"encoding/gob"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/janpfeifer/gonb/gonbui/protocol"
	"github.com/stretchr/testify/require"
)

// clocked is a meter with lines into a buffer and a clock set by hand.
type clocked struct {
	*meter
	out bytes.Buffer
	at  time.Time
}

func newClocked(every time.Duration) *clocked {
	c := &clocked{at: time.Unix(0, 0)}
	c.meter = newMeter(every, func() time.Time { return c.at }, lineDrawer(&c.out))
	return c
}

// step counts n units at so many seconds after the start.
func (c *clocked) step(second float64, n int, note string) {
	c.at = time.Unix(0, 0).Add(time.Duration(second * float64(time.Second)))
	c.Step(n, note)
}

func TestProgressLines(t *testing.T) {
	p := newClocked(5 * time.Second)
	p.Start(100, "figure2 (a)")
	for second := 1; second <= 42; second++ {
		p.step(float64(second), 1, "k=256")
	}
	lines := strings.Split(strings.TrimSpace(p.out.String()), "\n")
	require.Len(t, lines, 8, "one in five seconds")
	require.Equal(t, "figure2 (a) k=256: 5 %, 01:35 left", lines[0])
	require.Equal(t, "figure2 (a) k=256: 40 %, 01:00 left", lines[7])
	p.step(100, 58, "k=512")
	p.Done()
	require.True(t, strings.HasSuffix(p.out.String(), "figure2 (a): done in 01:40\n"), p.out.String())
	p.out.Reset()
	p.Done()
	require.Empty(t, p.out.String(), "nothing runs any more")
}

func TestProgressStopped(t *testing.T) {
	p := newClocked(time.Minute)
	p.Start(3, "f")
	p.step(7, 1, "x")
	p.Done()
	require.Equal(t, "f x: stopped at 33 % after 00:07\n", p.out.String())
}

func TestProgressWithNothingToDo(t *testing.T) {
	p := newClocked(0)
	p.Step(1, "before the start")
	p.Start(0, "all read from the store")
	p.Step(0, "x")
	p.Done()
	require.Empty(t, p.out.String())
}

// Work of an earlier process counts as done, but not as fast.
func TestTimeLeftAfterResume(t *testing.T) {
	p := newClocked(time.Second)
	p.Start(100, "f")
	p.Skip(90)
	for second := 1; second <= 4; second++ {
		p.step(float64(2*second), 1, "")
	}
	lines := strings.Split(strings.TrimSpace(p.out.String()), "\n")
	require.Equal(t, "f: 94 %, 00:12 left", lines[3], "6 units of 2 s")
}

// The first step holds the compiler: it does not slow the forecast for ever.
func TestTimeLeftForgetsTheFirstStep(t *testing.T) {
	p := newClocked(0)
	p.Start(10, "f")
	p.Step(0, "compiling")
	p.step(30, 1, "")
	p.step(31, 1, "")
	p.step(34, 0, "a long step")
	require.Equal(t, []string{
		"f compiling: 00:00 so far",
		"f: 10 %, 00:30 so far",
		"f: 20 %, 00:08 left",
		"f a long step: 20 %, 00:05 left",
	}, strings.Split(strings.TrimSpace(p.out.String()), "\n"))
}

func TestProgressNeverPassesItsEnd(t *testing.T) {
	p := newClocked(0)
	p.Start(2, "f")
	p.step(1, 5, "")
	require.Equal(t, "f: finishing, 00:00\n", p.out.String())
}

// A forecast stands in until there is a pace, and what takes longer than
// thought is not "00:00 left".
func TestTimeLeftIsForecastFirst(t *testing.T) {
	p := newClocked(0)
	p.Start(100, "f")
	p.Skip(20)
	Expect(p.meter, 10*time.Second)
	p.step(40, 0, "compiling")
	p.step(60, 1, "")
	p.step(70, 1, "")
	p.step(80, 77, "")
	p.step(82, 0, "")
	p.step(83, 1, "")
	p.step(95, 0, "evaluating")
	require.Equal(t, []string{
		"f compiling: 20 %, 00:40 so far, about 13:20 to come",
		"f: 21 %, 13:10 left",
		"f: 22 %, 13:00 left",
		"f: 99 %, 01:22 so far",
		"f: finishing, 00:00",
		"f evaluating: finishing, 00:12",
	}, slices.DeleteFunc(strings.Split(strings.TrimSpace(p.out.String()), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "f: 99 %, 00:00")
	}))
}

// Time passes on the screen while nothing is counted.
func TestProgressBeats(t *testing.T) {
	drawn := make(chan state)
	p := newMeter(time.Hour, time.Now, func(s state) { drawn <- s }).beating(time.Millisecond)
	p.Start(10, "f")
	for range 3 {
		s := <-drawn
		require.False(t, s.begun)
		require.Positive(t, s.elapsed)
	}
	go p.Done()
	for s := range drawn {
		if s.last {
			break
		}
	}
	require.Nil(t, p.quit)
	p.Start(10, "g")
	require.Equal(t, "g", (<-drawn).what, "another piece of work beats, too")
	go p.Done()
	for s := range drawn {
		if s.last {
			break
		}
	}
}

func TestProgressFromSeveralGoroutines(t *testing.T) {
	p := newMeter(0, time.Now, func(state) {})
	p.Start(1000, "f")
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			for range 100 {
				p.Step(1, "x")
			}
		})
	}
	all.Wait()
	require.Equal(t, 1000, p.state.done)
}

func TestTerminalBar(t *testing.T) {
	var out bytes.Buffer
	draw := terminalDrawer(&out)
	draw(state{what: "f", total: 10, done: 4, begun: true, left: time.Minute, first: true})
	require.Contains(t, out.String(), "01:00 left")
	draw(state{what: "f", total: 10, done: 10, left: 0})
	draw(state{what: "f", total: 10, done: 10, elapsed: time.Minute, last: true})
	require.True(t, strings.HasSuffix(out.String(), "f: done in 01:00\n"), "%q", out.String())
}

func TestClock(t *testing.T) {
	require.Equal(t, "00:00", clock(400*time.Millisecond))
	require.Equal(t, "59:59", clock(time.Hour-time.Second))
	require.Equal(t, "1:02:03", clock(time.Hour+2*time.Minute+3*time.Second))
	require.Equal(t, "47:59:59", clock(48*time.Hour-time.Second))
	require.Equal(t, "3.5 days", clock(84*time.Hour))
}

func TestProgressFrom(t *testing.T) {
	p := newClocked(0)
	require.Same(t, p, ProgressFrom(WithProgress(t.Context(), p)))
	require.Same(t, ProgressFrom(t.Context()), ProgressFrom(t.Context()), "one for the process")
}

// fakeKernel plays GoNB's side of the pipes to a cell and returns what the
// cell displays, until it ends.
func fakeKernel(t *testing.T, cell *exec.Cmd) (shown []protocol.DisplayData) {
	t.Helper()
	there, back := filepath.Join(t.TempDir(), "there"), filepath.Join(t.TempDir(), "back")
	require.NoError(t, syscall.Mkfifo(there, 0o600))
	require.NoError(t, syscall.Mkfifo(back, 0o600))
	cell.Env = append(
		os.Environ(),
		childMode+"=cell",
		protocol.GONB_PIPE_ENV+"="+there,
		protocol.GONB_PIPE_BACK_ENV+"="+back,
	)
	cell.Stderr = os.Stderr
	require.NoError(t, cell.Start())
	from, err := os.Open(there)
	require.NoError(t, err)
	defer func() { _ = from.Close() }()
	to, err := os.OpenFile(back, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer func() { _ = to.Close() }()
	decode, encode := gob.NewDecoder(from), gob.NewEncoder(to)
	for {
		var data protocol.DisplayData
		if err := decode.Decode(&data); errors.Is(err, io.EOF) {
			return shown
		}
		require.NoError(t, err)
		if sync, ok := data.Data[protocol.MIMECommValue].(protocol.CommValue); ok {
			require.NoError(
				t,
				encode.Encode(protocol.CommValue{Address: protocol.GonbuiSyncAckAddress, Value: sync.Value}),
			)
			continue
		}
		shown = append(shown, data)
	}
}

func TestNotebookProgress(t *testing.T) {
	cell := exec.Command(os.Args[0])
	shown := fakeKernel(t, cell)
	require.NoError(t, cell.Wait())
	require.Len(t, shown, 11, "once a second in ten seconds, and the last")
	for _, data := range shown {
		require.NotEmpty(t, data.DisplayID)
		require.Equal(t, shown[0].DisplayID, data.DisplayID, "one output that changes")
	}
	require.Equal(
		t,
		`<progress value="100" max="1000"></progress> <small>figure &lt;2&gt; k = 64: 10 %, 00:09 left</small>`,
		shown[0].Data[protocol.MIMETextHTML],
	)
	require.Equal(t, `<small>figure &lt;2&gt;: done in 00:10</small>`, shown[10].Data[protocol.MIMETextHTML])
}
