package lab

import "github.com/nasml/lab/nasml/runs"

// Pace counts the units of a search or training under way, which are of about equal time over its epochs.
type Pace struct {
	Progress runs.Progress
	Units    int // in all
	booked   int
	begun    bool
}

// At is after so many steps of an epoch, from 0. What a checkpoint brought along says nothing about the pace.
func (p *Pace) At(epoch, epochs, step, steps int, note string) {
	now := int(float64(p.Units) * (float64(epoch) + float64(step)/float64(steps)) / float64(epochs))
	if !p.begun {
		p.begun, p.booked = true, max(0, now-max(1, p.Units/epochs/steps))
		p.Progress.Skip(p.booked)
	}
	p.Progress.Step(max(0, now-p.booked), note)
	p.booked = max(p.booked, now)
}

// End counts what is left.
func (p *Pace) End(note string) { p.Progress.Step(p.Units-p.booked, note) }
