//go:build cgo && ((linux && (amd64 || arm64)) || (darwin && arm64)) && !noxla

package backend

// #include "hook.h"
import "C"

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/go-xla/compute/xla"

	"github.com/nasml/lab/nasml/backend/programs"
)

// Foresee says that b will be asked for the programs that it was asked for when Foresee was last called with the same
// settings, in another process: what the cache has of the large ones is loaded while the caller builds their graphs.
// Where it comes otherwise, time was lost and nothing else. Settings are known by their JSON. end is called when no
// more of the programs is to come. Where the process has several backends, nothing is foreseen.
func Foresee(b compute.Backend, settings any) (end func()) {
	name, err := json.Marshal(settings)
	hooked.Lock()
	defer hooked.Unlock()
	h := hooked.hook
	if _, ok := b.(*xla.Backend); !ok || err != nil || h == nil || h.cache == nil {
		return func() {}
	}
	list := programs.KeyOf([]byte("foreseen"), h.constant[:], fmt.Appendf(nil, "%T", settings), name)
	f := &foresight{
		hook: h, client: C.nasml_client(), list: list, before: h.cache.Next(list),
		loaded: map[programs.Key]*early{}, done: make(chan struct{}),
	}
	if f.client == nil || !h.foresight.CompareAndSwap(nil, f) { // that of another search
		return func() {}
	}
	var queue []*early
	for _, key := range f.before {
		e := &early{key: key, ready: make(chan struct{})}
		queue, f.loaded[key] = append(queue, e), e
	}
	go f.load(queue)
	return f.end
}

// foresight loads programs before they are asked for.
type foresight struct {
	hook   *hook
	client unsafe.Pointer // for which they are loaded
	list   programs.Key   // where the cache has the keys of the large programs
	before []programs.Key // of the process before, in the order in which they were asked for
	done   chan struct{}  // nothing is being loaded any more

	mu     sync.Mutex
	asked  []programs.Key // of this one
	ended  bool
	loaded map[programs.Key]*early // and not taken
}

// early is a program that is loaded, or being loaded.
type early struct {
	key     programs.Key
	program unsafe.Pointer // NULL where it could not be, or was not to be any more
	ready   chan struct{}
}

// large is the size from which on it pays to load a program early, in bytes; most is how many are.
var large, most = 1 << 19, 4

// load loads one program after another.
func (f *foresight) load(queue []*early) {
	defer close(f.done)
	if len(queue) > 0 {
		f.hook.kernels() // that programs call
	}
	for _, e := range queue {
		f.mu.Lock()
		ended := f.ended
		f.mu.Unlock()
		if !ended {
			began := time.Now()
			e.program = f.hook.read(f.client, e.key)
			giveBack(began)
		}
		close(e.ready)
	}
}

// take is a program that was foreseen, NULL where it was not.
func (f *foresight) take(client unsafe.Pointer, key programs.Key) unsafe.Pointer {
	if client != f.client {
		return nil
	}
	f.mu.Lock()
	e := f.loaded[key]
	delete(f.loaded, key)
	f.mu.Unlock()
	if e == nil {
		return nil
	}
	<-e.ready
	return e.program
}

// note keeps which programs were asked for, where they are others than before.
func (f *foresight) note(key programs.Key, size int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended || size < large || len(f.asked) == most || slices.Contains(f.asked, key) {
		return
	}
	f.asked = append(f.asked, key)
	if n := len(f.asked); n <= len(f.before) && slices.Equal(f.asked, f.before[:n]) {
		return
	}
	_ = f.hook.cache.SetNext(f.list, f.asked) // without it, nothing is foreseen
}

// end waits for what is being loaded and frees what was not asked for.
func (f *foresight) end() {
	f.mu.Lock()
	f.ended = true
	f.mu.Unlock()
	<-f.done
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.loaded {
		if e.program != nil {
			C.nasml_drop_program(e.program)
		}
	}
	f.loaded = nil
	f.hook.foresight.CompareAndSwap(f, nil)
}

// nasmlClientEnds is called before a client ends, whose programs end with it.
//
//export nasmlClientEnds
func nasmlClientEnds(client unsafe.Pointer) {
	if h := hooked.hook; h != nil {
		if f := h.foresight.Load(); f != nil && f.client == client {
			f.end()
		}
	}
}
