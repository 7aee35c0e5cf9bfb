//go:build cgo && ((linux && (amd64 || arm64)) || (darwin && arm64)) && !noxla

package backend

// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "hook.h"
import "C"

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/gomlx/go-xla/pjrt"

	"github.com/nasml/lab/nasml/backend/programs"
	"github.com/nasml/lab/nasml/internal/kernels"
)

// A hook stands between go-xla and a plugin: it sees every program that is to
// be compiled, and takes it from the cache where it was compiled before.
type hook struct {
	path     string
	kernels  func() kernelSet
	cache    *programs.Cache // nil: everything is compiled
	constant programs.Key    // of all that is the same for every program of the process
	asked    atomic.Bool     // a program had a function that may have a kernel
	at       atomic.Int64    // calls that compile now, or wait for another process that does
	compiled atomic.Int64    // programs that the plugin compiled
	loaded   atomic.Int64    // programs that came from the cache
	early    atomic.Int64    // those of them that were foreseen
	full     atomic.Bool     // a program could not be kept: no other is

	foresight atomic.Pointer[foresight] // nil: nothing is foreseen
}

// hooked is the process's one plugin with a hook; it is set before the plugin compiles anything.
var hooked struct {
	sync.Mutex
	*hook
}

// hookPlugin makes go-xla compile through a hook wherever it opens the plugin
// of this path. A plugin that cannot be hooked is left to go-xla.
func hookPlugin(path string) {
	hooked.Lock()
	defer hooked.Unlock()
	if hooked.hook != nil { // this one already, or another one, which does without
		return
	}
	cPath := C.CString(path)
	defer C.free(unsafe.Pointer(cPath))
	var failed *C.char
	table := C.nasml_open(cPath, &failed)
	if failed != nil {
		warn("%s: compiled programs are not kept: %s", path, C.GoString(failed))
		C.free(unsafe.Pointer(failed))
	}
	if table == nil {
		return // go-xla says why
	}
	hooked.hook = newHook(path)
	if err := pjrt.RegisterPreloadedPlugin(path, uintptr(unsafe.Pointer(table))); err != nil {
		hooked.hook = nil
	}
}

// newHook opens the cache for a plugin. If there is none, it says why, and everything is compiled.
func newHook(path string) *hook {
	h := &hook{path: path, kernels: sync.OnceValue(func() kernelSet { return registerKernels(path) })}
	flags := os.Getenv(flagsEnv)
	cache, err := programs.Default()
	if err == nil && (cache == nil || wantsCompilation(flags)) {
		return h
	}
	if err == nil {
		cache.Refused = func(err error) { warn("a compiled program is not used: %v", err) }
		err = cache.Prepare()
	}
	if err == nil {
		err = h.fill(cache, flags)
	}
	if err != nil {
		warn("compiled programs are not kept: %v", err)
	}
	return h
}

// wantsCompilation reports whether XLA's options ask for more than a program: to
// write down how it came about. Options in a file may be any.
func wantsCompilation(flags string) bool {
	flags = strings.TrimSpace(flags)
	return strings.Contains(flags, "dump") || strings.Contains(flags, "flagfile") ||
		(flags != "" && !strings.HasPrefix(flags, "-"))
}

// fill gives the hook its cache and the constant part of every key.
func (h *hook) fill(cache *programs.Cache, flags string) error {
	plugin, err := cache.FileSum(h.path)
	if err != nil {
		return err
	}
	h.cache = cache
	h.constant = programs.KeyOf(plugin[:], []byte(processor()), []byte(flags))
	return nil
}

// processor names what XLA compiles for on a CPU: its vector instructions, and the number of cores, between which XLA
// divides its loops, where the environment does not name another.
func processor() string {
	facts := []string{runtime.GOOS, runtime.GOARCH, fmt.Sprint(runtime.NumCPU(), " cores"),
		os.Getenv("PJRT_NPROC"), os.Getenv("NPROC")}
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil { // not Linux: programs stay on their machine
		host, _ := os.Hostname()
		return strings.Join(append(facts, host), "\n")
	}
	first, _, _ := strings.Cut(string(text), "\n\n")
	for line := range strings.Lines(first) {
		name, value, _ := strings.Cut(line, ":")
		if slices.Contains(processorFacts, strings.TrimSpace(name)) {
			facts = append(facts, strings.TrimSpace(value))
		}
	}
	return strings.Join(facts, "\n")
}

// processorFacts are the lines of /proc/cpuinfo that say what a processor can do, on amd64 and on arm64.
var processorFacts = []string{"vendor_id", "cpu family", "model", "model name", "flags",
	"CPU implementer", "CPU architecture", "CPU variant", "CPU part", "Features"}

// nasmlCompile is the plugin's PJRT_Client_Compile: the program of the cache,
// or else the plugin's own, which is then kept. It returns PJRT's error.
//
//export nasmlCompile
func nasmlCompile(given *C.nasml_compile) unsafe.Pointer {
	defer giveBack(time.Now())
	h := hooked.hook
	code := unsafe.Slice((*byte)(unsafe.Pointer(given.program.code)), given.program.code_size)
	set := h.kernelsFor(given.client, code)
	if h.cache == nil {
		return h.compile(given, code, set)
	}
	key := h.key(given, code, set.sum)
	if h.load(given, key) {
		return nil
	}
	h.at.Add(1)
	defer h.at.Add(-1)
	defer h.cache.Lock(key)()
	if h.load(given, key) { // another process has compiled it meanwhile
		return nil
	}
	failed := h.compile(given, code, set)
	if failed == nil {
		h.keep(given, key)
	}
	return failed
}

// kernelsFor are the kernels that a program may call: on a CPU.
func (h *hook) kernelsFor(client unsafe.Pointer, code []byte) kernelSet {
	if !kernels.Named(unsafe.String(unsafe.SliceData(code), len(code))) ||
		!strings.HasSuffix(devices(client), "× cpu") {
		return kernelSet{}
	}
	h.asked.Store(true)
	return h.kernels()
}

// kernelSet is a library of kernels that is loaded: none, or those registered with the plugin.
type kernelSet struct {
	names []string
	sum   []byte // of the library, the kind of processor and how a program comes to call them
}

// in puts calls of the kernels into a program.
func (s kernelSet) in(code []byte) []byte {
	if len(s.names) == 0 {
		return code
	}
	text := string(code)
	with := kernels.Rewrite(text, func(name string) bool { return slices.Contains(s.names, name) })
	if with == text {
		return code
	}
	return []byte(kernels.Divide(with))
}

// registerKernels loads the kernels, which the set-up builds into the folder beside that of the plugin, and which are
// built now where they are not there. Where that fails it says so, and there are none.
func registerKernels(plugin string) kernelSet {
	isa := os.Getenv(kernels.Env)
	if isa == "off" {
		return kernelSet{}
	}
	path, err := kernels.Library(warn, filepath.Join(filepath.Dir(filepath.Dir(plugin)), "kernels"))
	var library []byte
	if err == nil {
		library, err = os.ReadFile(path)
	}
	if err != nil {
		warn("no kernels, XLA's own operations are used: %v", err)
		return kernelSet{}
	}
	cPath, cISA := C.CString(path), C.CString(isa)
	defer C.free(unsafe.Pointer(cPath))
	defer C.free(unsafe.Pointer(cISA))
	var found [64]*C.char
	n := C.nasml_register_kernels(cPath, cISA, &found[0], C.int(len(found)))
	switch n {
	case -1:
		warn("no kernels, XLA's own operations are used: %s does not load", path)
	case -2:
		warn("no kernels, XLA's own operations are used: $%s is %q, and this processor has no such instructions",
			kernels.Env, isa)
	}
	var set kernelSet
	for i := range max(n, 0) {
		set.names = append(set.names, C.GoString(found[i]))
	}
	if len(set.names) > 0 {
		sum := programs.KeyOf(library, []byte(isa), []byte(strings.Join(set.names, " ")), kernels.Rewriting())
		set.sum = sum[:]
	}
	return set
}

// key is the key of a program: the text before calls of kernels are put in, the options,
// the kernels, and all that the result depends on besides.
func (h *hook) key(given *C.nasml_compile, code, library []byte) programs.Key {
	program := given.program
	return programs.KeyOf(h.constant[:], []byte(devices(given.client)), library,
		C.GoBytes(unsafe.Pointer(program.format), C.int(program.format_size)),
		C.GoBytes(unsafe.Pointer(given.options), C.int(given.options_size)), code)
}

// devices says what a client computes on.
func devices(client unsafe.Pointer) string {
	var text [1024]byte
	room := (*C.char)(unsafe.Pointer(&text[0]))
	C.nasml_drop_error(C.nasml_describe(client, room, C.size_t(len(text))), room, C.size_t(len(text)))
	said, _, _ := strings.Cut(string(text[:]), "\x00")
	return said
}

// compile lets the plugin compile a program with calls of kernels, and as it is written where it does not take them.
func (h *hook) compile(given *C.nasml_compile, code []byte, set kernelSet) unsafe.Pointer {
	h.compiled.Add(1)
	h.at.Add(1)
	defer h.at.Add(-1)
	with := set.in(code)
	failed := compileText(given, with)
	if failed != nil && !slices.Equal(with, code) {
		C.nasml_drop_error(failed, nil, 0)
		failed = compileText(given, code)
	}
	return failed
}

func compileText(given *C.nasml_compile, code []byte) unsafe.Pointer {
	return C.nasml_compile_program(given, (*C.char)(unsafe.Pointer(unsafe.SliceData(code))), C.size_t(len(code)),
		&given.executable)
}

// giveBack gives the system back what memory compiling took, which the C library keeps,
// where that was long enough to have been much.
func giveBack(begin time.Time) {
	if time.Since(begin) > 100*time.Millisecond {
		C.nasml_give_back()
	}
}

// load takes a program from the cache, or from among those that were foreseen.
func (h *hook) load(given *C.nasml_compile, key programs.Key) bool {
	f := h.foresight.Load()
	given.executable = nil
	if f != nil {
		if given.executable = f.take(given.client, key); given.executable != nil {
			h.early.Add(1)
		}
	}
	if given.executable == nil {
		given.executable = h.read(given.client, key)
	}
	if given.executable == nil {
		return false
	}
	h.loaded.Add(1)
	if f != nil {
		f.note(key, h.cache.Size(key))
	}
	return true
}

// read loads a program of the cache, NULL if there is none. One that the plugin does not take is removed.
func (h *hook) read(client unsafe.Pointer, key programs.Key) (loaded unsafe.Pointer) {
	program := h.cache.Get(key)
	if len(program) == 0 {
		return nil
	}
	failed := C.nasml_load_program(client, (*C.char)(unsafe.Pointer(&program[0])), C.size_t(len(program)), &loaded)
	if failed != nil {
		C.nasml_drop_error(failed, nil, 0)
		h.cache.Drop(key)
		return nil
	}
	return loaded
}

// keep puts a compiled program into the cache. Where that fails it says so, once, and tries no more.
func (h *hook) keep(given *C.nasml_compile, key programs.Key) {
	if h.full.Load() {
		return
	}
	var out C.nasml_serialize
	if failed := C.nasml_serialize_program(given.executable, &out); failed != nil {
		var text [512]byte
		C.nasml_drop_error(failed, (*C.char)(unsafe.Pointer(&text[0])), C.size_t(len(text)))
		said, _, _ := strings.Cut(string(text[:]), "\x00")
		h.full.Store(true)
		warn("a compiled program is not kept: the plugin cannot write it down: %s", firstText(said))
		return
	}
	program := unsafe.Slice((*byte)(unsafe.Pointer(out.bytes)), out.size)
	err := h.cache.Put(key, program)
	if f := h.foresight.Load(); f != nil {
		f.note(key, len(program))
	}
	C.nasml_free_serialized(&out)
	if err != nil {
		h.full.Store(true)
		warn("compiled programs are not kept: %v", err)
	}
}

// warn writes a line to stderr, once a process: what it is about costs time and not numbers.
func warn(format string, args ...any) {
	warned.Do(func() { _, _ = fmt.Fprintf(os.Stderr, "nasml: "+format+"\n", args...) })
}

var warned sync.Once

// Compiling reports whether XLA compiles a program just now, which takes up to minutes and cannot be interrupted.
func Compiling() bool {
	hooked.Lock()
	defer hooked.Unlock()
	return hooked.hook != nil && hooked.at.Load() > 0
}

// Kernels names the C kernels (package kernels) that programs of this process
// call; there are none before a program asked for one.
func Kernels() []string {
	if hooked.hook == nil || !hooked.asked.Load() {
		return nil
	}
	return hooked.kernels().names
}
