package study

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/runs"
)

// This file forecasts what cases will take by what those took that are stored.

// Forecasts says what each of the cases will take on this machine, s; 0 where nothing is known. It is the case's own
// forecast, or its work, at the price at which batches of trials of the study were computed on a machine with as
// many processors. Nothing is read before it is asked.
func (s Study) Forecasts(store *runs.Store, cases []Case) func(c Case) float64 {
	like := likeness
	says := func(c Case) bool { return c.Units > 0 || c.Work > 0 || c.Forecast != nil }
	measured := s.Amount != nil || slices.ContainsFunc(cases, says)
	if !measured { // any other settings may be any amount of work
		like = asText
	}
	prices := sync.OnceValue(func() []price {
		of := s.amounts(cases)
		return prices(store.Alike(s.ID), like, of)
	})
	return func(c Case) float64 {
		own := c.Seconds()
		if own == 0 && c.Forecast != nil {
			return 0
		}
		amount, alike, from := cmp.Or(own, c.Amount()), like(c.Params), prices()
		if !measured {
			from = only(from, func(p price) bool { return p.like == alike })
		}
		price, known := typical(from, alike, amount, own > 0)
		if !known {
			return own
		}
		return price * amount
	}
}

// amounts says how much work a record's trial was, in seconds of its own forecast or as [Case.Work]; 0 where that is
// not known: of the cases, and of what Amount knows.
func (s Study) amounts(cases []Case) func(r *runs.Record) float64 {
	known := map[string]Case{}
	if trials, err := s.Trials(cases); err == nil {
		for i, t := range trials {
			if key, err := t.Key(); err == nil {
				known[key] = cases[i]
			}
		}
	}
	found := map[string]float64{} // by settings, which seeds have in common
	return func(r *runs.Record) float64 {
		if c, ok := known[r.Key]; ok {
			return cmp.Or(c.Seconds(), c.Amount())
		}
		params, ok := r.Trial.Params.(json.RawMessage)
		if s.Amount == nil || !ok {
			return 0
		}
		if _, ok := found[string(params)]; !ok {
			found[string(params)] = s.Amount(params)
		}
		return found[string(params)]
	}
}

type price struct {
	like    string  // settings of its trials: but for numbers, if these say how much work it is
	amount  float64 // of work, the mean of a trial
	seconds float64 // that a unit of it took, at most
	least   float64 // and at least, if it had all processors; 0 where their time is not known
}

// near is how many times more or less work a trial may be whose price holds: beyond, what is done once weighs more.
// doubt is a factor between a model's forecast and what was recorded by which a computation was paused, or had few of
// the processors: that says nothing about the next.
const near, doubt = 8, 3

// prices are those of the batches that were computed on as many processors as this machine has, and on what its
// backend is.
func prices(
	records []*runs.Record, likeness func(params any) string, amount func(r *runs.Record) float64,
) (all []price) {
	type batch struct {
		started time.Time
		trials  int
	}
	cuda := strings.Contains(os.Getenv("GOMLX_BACKEND"), "cuda")
	records = slices.DeleteFunc(slices.Clone(records), func(r *runs.Record) bool {
		return r.Host.CPUs != runtime.NumCPU() || strings.Contains(r.Backend, "cuda") != cuda
	})
	for _, of := range By(records, func(r *runs.Record) batch { return batch{r.Started, r.Batch} }) {
		work, took, worked, counted, timed := 0.0, 0.0, 0.0, 0.0, true
		alike := map[string][]float64{}
		for _, r := range of {
			took, worked, timed = max(took, quiet(r)), max(worked, r.Processor), timed && r.Processor > 0
			if a := amount(r); a > 0 && !math.IsInf(a, 0) {
				like := likeness(r.Trial.Params)
				work, counted = work+a, counted+1
				alike[like] = append(alike[like], a)
			}
		}
		if !timed || 2*len(of) < of[0].Batch { // trials that are not stored may have had any share of it
			worked = 0
		}
		unit := counted / float64(max(1, of[0].Batch)) / work
		for _, like := range slices.Sorted(maps.Keys(alike)) {
			if took > 0 {
				all = append(all, price{
					like, stat.Mean(alike[like], nil), took * unit, worked * unit / float64(runtime.NumCPU()),
				})
			}
		}
	}
	return all
}

// quiet is at most the time in which a record's batch had the processors: all that they worked.
func quiet(r *runs.Record) float64 {
	if r.Processor > 0 {
		return min(r.Seconds, r.Processor)
	}
	return r.Seconds
}

// typical is the median price for so much work: of trials that differ in numbers alone, or else of all; of trials of
// about as much work, or else of all; and of those whose processor time is known, or else of all. Beside a model's own
// forecast all three must hold: the price is then as near to 1 as processor time allows, and unknown if that is far.
func typical(all []price, like string, amount float64, model bool) (seconds float64, known bool) {
	about := func(p price) bool { return p.amount <= near*amount && amount <= near*p.amount }
	alike, timed := func(p price) bool { return p.like == like }, func(p price) bool { return p.least > 0 }
	if model {
		all = only(all, func(p price) bool {
			return alike(p) && about(p) && timed(p) && p.least <= doubt && p.seconds >= 1./doubt
		})
		for i, p := range all {
			all[i].seconds = min(max(1, p.least), p.seconds)
		}
	}
	for _, which := range []func(p price) bool{alike, about, timed} {
		if some := only(all, which); len(some) > 0 {
			all = some
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	each := slices.Sorted(slices.Values(Map(all, func(p price) float64 { return p.seconds })))
	return stat.Quantile(0.5, stat.Empirical, each, nil), true
}

func only(all []price, which func(p price) bool) []price {
	return slices.DeleteFunc(slices.Clone(all), func(p price) bool { return !which(p) })
}

// likeness are the settings of a trial that are no numbers, by their names.
func likeness(params any) string {
	var v any
	if err := json.Unmarshal([]byte(asText(params)), &v); err != nil { // it has no key either
		return ""
	}
	var words []string
	leaves("", v, func(name string, leaf any) {
		switch leaf.(type) {
		case string, bool:
			words = append(words, fmt.Sprintf("%s=%v", name, leaf))
		}
	})
	slices.Sort(words)
	return strings.Join(words, "\n")
}

func asText(params any) string {
	text, err := json.Marshal(params)
	if err != nil { // it has no key either
		return ""
	}
	return string(text)
}

// leaves visits the values inside v that have no parts.
func leaves(name string, v any, visit func(name string, leaf any)) {
	switch v := v.(type) {
	case map[string]any:
		for inner, x := range v {
			leaves(name+"."+inner, x, visit)
		}
	case []any:
		for i, x := range v {
			leaves(fmt.Sprintf("%s.%d", name, i), x, visit)
		}
	default:
		visit(name, v)
	}
}
