package runs

import (
	"context"
	"fmt"
	"html"
	"io"
	"os"
	"sync"
	"time"

	"github.com/janpfeifer/gonb/gonbui"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Progress shows how far a computation is and how long it still takes. Its
// methods may be called from several goroutines.
type Progress interface {
	// Start begins a piece of work of total units of about equal time.
	Start(total int, what string)
	// Skip counts n units that were done earlier, as those of a checkpoint:
	// they are done, but say nothing about the pace.
	Skip(n int)
	// Step counts n more units, n ≥ 0, and notes what is going on.
	Step(n int, note string)
	// Done ends the piece of work.
	Done()
}

// NewProgress picks the form that suits: a bar in a terminal, one line that changes in a GoNB notebook (at most one
// write a second), and else a plain line now and then. All but the notebook's goes to standard error.
func NewProgress() Progress {
	switch {
	case gonbui.IsNotebook:
		return newMeter(time.Second, time.Now, notebookDrawer()).beating(2 * time.Second)
	case term.IsTerminal(int(os.Stderr.Fd())):
		return newMeter(100*time.Millisecond, time.Now, terminalDrawer(os.Stderr)).beating(time.Second)
	}
	return newMeter(5*time.Second, time.Now, lineDrawer(os.Stderr)).beating(30 * time.Second)
}

// Expect tells a progress how long a unit of work will take by a forecast, for
// as long as there is no pace. A progress that shows no time stays as it is.
func Expect(p Progress, unit time.Duration) {
	if m, ok := p.(*meter); ok {
		m.expect(unit)
	}
}

// Tell notes what a reader has to see, at once. A progress that shows no time takes it as any note.
func Tell(p Progress, note string) {
	m, ok := p.(*meter)
	if !ok {
		p.Step(0, note)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state.note = note
	m.show(m.now())
}

// Silent is a progress that shows nothing.
var Silent Progress = silent{}

type silent struct{}

func (silent) Start(int, string) {}
func (silent) Skip(int)          {}
func (silent) Step(int, string)  {}
func (silent) Done()             {}

// WithProgress returns a context that carries a progress.
func WithProgress(ctx context.Context, p Progress) context.Context {
	return context.WithValue(ctx, progressKey, p)
}

// ProgressFrom returns the progress that the context carries, else the one of the whole process, made by [NewProgress].
func ProgressFrom(ctx context.Context) Progress {
	if p, ok := ctx.Value(progressKey).(Progress); ok && p != nil {
		return p
	}
	return processProgress()
}

var processProgress = sync.OnceValue(NewProgress)

// meter counts and times; a drawer shows what it counts.
type meter struct {
	every time.Duration // between two drawings
	now   func() time.Time
	draw  func(s state)
	beat  time.Duration // after which a state is drawn again, so that one sees that time passes; 0: never

	mu      sync.Mutex
	state   state
	started time.Time
	drawn   time.Time
	pace    pace
	quit    chan struct{} // ends the beat
}

type state struct {
	what, note  string
	done, total int
	elapsed     time.Duration
	begun       bool          // a unit was counted
	since       time.Duration // the last unit
	left        time.Duration // not positive: not known, or longer than thought
	first, last bool          // first and last drawing of a piece of work
}

func newMeter(every time.Duration, now func() time.Time, draw func(state)) *meter {
	return &meter{every: every, now: now, draw: draw}
}

// beating makes the meter draw by itself where nothing is counted for long, as while a graph is compiled.
func (m *meter) beating(beat time.Duration) *meter {
	m.beat = beat
	return m
}

func (m *meter) keepBeating(quit <-chan struct{}) {
	tick := time.NewTicker(m.beat)
	defer tick.Stop()
	for {
		select {
		case <-quit:
			return
		case <-tick.C:
			m.mu.Lock()
			if now := m.now(); m.state.total > 0 && now.Sub(m.drawn) >= m.beat {
				m.show(now)
			}
			m.mu.Unlock()
		}
	}
}

func (m *meter) expect(unit time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pace.expected = unit
}

func (m *meter) Start(total int, what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopBeating()
	if m.beat > 0 {
		m.quit = make(chan struct{})
		go m.keepBeating(m.quit)
	}
	m.started = m.now()
	m.drawn = m.started
	m.state = state{what: what, total: max(total, 0), first: true}
	m.pace = pace{}
}

func (m *meter) stopBeating() {
	if m.quit != nil {
		close(m.quit)
		m.quit = nil
	}
}

func (m *meter) Skip(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state.done = min(m.state.done+max(n, 0), m.state.total)
}

func (m *meter) Step(n int, note string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state.done = min(m.state.done+max(n, 0), m.state.total)
	m.state.note = note
	now := m.now()
	m.pace.add(now.Sub(m.started), max(n, 0))
	if m.state.total > 0 && now.Sub(m.drawn) >= m.every {
		m.show(now)
	}
}

func (m *meter) Done() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopBeating()
	if m.state.total == 0 {
		return // nothing was started
	}
	m.state.last = true
	m.show(m.now())
	m.state = state{}
}

func (m *meter) show(now time.Time) {
	m.state.elapsed = now.Sub(m.started)
	m.state.begun, m.state.since = m.pace.units > 0, m.state.elapsed-m.pace.lastAt
	m.state.left = m.pace.left(m.state.elapsed, m.state.total-m.state.done)
	m.draw(m.state)
	m.state.first = false
	m.drawn = now
}

// pace is how long one unit takes. The first step includes what happens once (loading a
// plugin, compiling) and does not count.
type pace struct {
	firstN, units   int           // units of the first step, and of all
	firstAt, lastAt time.Duration // since the start
	expected        time.Duration // of a unit, by a forecast; 0: there is none
}

func (p *pace) add(at time.Duration, n int) {
	if n == 0 {
		return
	}
	if p.units == 0 {
		p.firstAt, p.firstN = at, n
	}
	p.units += n
	p.lastAt = at
}

// left is the time for so many more units, less what passed since the last step; 0 where nothing is known.
func (p *pace) left(elapsed time.Duration, units int) time.Duration {
	one := p.expected
	if p.units > p.firstN {
		one = (p.lastAt - p.firstAt) / time.Duration(p.units-p.firstN)
	}
	if p.units > 0 {
		elapsed -= p.lastAt
	} else {
		elapsed = 0 // of what happens once, which no forecast has
	}
	return max(0, one*time.Duration(units)-elapsed)
}

// text is the state in one line, "figure2 (a) k=256: 42 %, 00:37 left".
func (s state) text() string {
	switch {
	case s.last && s.done < s.total:
		return fmt.Sprintf("%s: stopped at %d %% after %s", s.title(), s.percent(), clock(s.elapsed))
	case s.last:
		return fmt.Sprintf("%s: done in %s", s.what, clock(s.elapsed))
	case s.done >= s.total || !s.begun && s.done == 0:
		return fmt.Sprintf("%s: %s", s.title(), s.time())
	}
	return fmt.Sprintf("%s: %d %%, %s", s.title(), s.percent(), s.time())
}

// time says how long it takes yet, or where that is not known, how long it has taken: while compiling, after a first
// step, and where the last units take longer than those before.
func (s state) time() string {
	switch {
	case s.done >= s.total:
		return "finishing, " + clock(s.since)
	case s.left <= 0, !s.begun && s.left < time.Second/2: // what would read 00:00
		return clock(s.elapsed) + " so far"
	case !s.begun:
		return fmt.Sprintf("%s so far, about %s to come", clock(s.elapsed), clock(s.left))
	}
	return clock(s.left) + " left"
}

// title is what is computed, and where in it we are.
func (s state) title() string {
	if s.note == "" {
		return s.what
	}
	return s.what + " " + s.note
}

func (s state) percent() int { return 100 * s.done / max(s.total, 1) }

// clock is a duration as 00:37 or 1:02:03, from two days on as 3.5 days.
func clock(d time.Duration) string {
	if d >= 48*time.Hour {
		return fmt.Sprintf("%.1f days", d.Hours()/24)
	}
	s := int(d.Round(time.Second) / time.Second)
	if s < 3600 {
		return fmt.Sprintf("%02d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}

func lineDrawer(w io.Writer) func(state) {
	return func(s state) { _, _ = fmt.Fprintln(w, s.text()) }
}

func terminalDrawer(w io.Writer) func(state) {
	var bar *progressbar.ProgressBar
	return func(s state) {
		if s.first {
			bar = progressbar.NewOptions(s.total, progressbar.OptionSetWriter(w), progressbar.OptionSetWidth(20),
				progressbar.OptionSetElapsedTime(false), // our own knows what was resumed
				progressbar.OptionSetPredictTime(false), progressbar.OptionShowDescriptionAtLineEnd(),
				progressbar.OptionClearOnFinish())
		}
		if s.last {
			_ = bar.Clear()
			_, _ = fmt.Fprintln(w, s.text())
			return
		}
		bar.Describe(s.title() + ", " + s.time())
		_ = bar.Set(min(s.done, s.total-1)) // a full bar would end itself
	}
}

// notebookDrawer changes one output of the cell, so that the stored notebook keeps one short line and not every state.
// The last state is waited for: GoNB drops what is under way when the process of a cell ends.
func notebookDrawer() func(state) {
	id := "progress_" + gonbui.UniqueId()
	return func(s state) {
		text := "<small>" + html.EscapeString(s.text()) + "</small>"
		if s.last {
			gonbui.UpdateHTML(id, text)
			gonbui.Sync()
			return
		}
		gonbui.UpdateHTML(id, fmt.Sprintf(`<progress value="%d" max="%d"></progress> %s`, s.done, s.total, text))
	}
}
