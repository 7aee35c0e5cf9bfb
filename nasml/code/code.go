// Package code tells which version of the library computes a trial.
//
// A version speaks of numbers, not of wording. It begins as the hash of the source that computed the first record of a
// kind, and stays when the source changes in a way that was shown to give the same numbers: the committed file
// versions.json has the version and the accepted source of every kind, and "go tool nasml store accept" writes another
// source there, after it has recomputed shipped trials. Source that the file does not know is a version of its own, so
// that nobody is shown the numbers of other code.
package code

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/nasml/lab/nasml"
)

// Kind is a kind of trials, those that one piece of arithmetic computes.
type Kind struct {
	name  string
	rooms []string
	own   fs.FS // of another module; nil: none

	once     sync.Once
	source   string
	version  string
	accepted bool
	err      error
}

var (
	kindsLock sync.Mutex
	kinds     = map[string]*Kind{}
)

// Define names a kind of trials and the packages that compute it, by their paths below nasml, "search". All that these
// import of this module counts too. It panics if the name is taken.
func Define(name string, rooms ...string) *Kind {
	kindsLock.Lock()
	defer kindsLock.Unlock()
	if kinds[name] != nil {
		panic(fmt.Sprintf("code: %q is defined twice", name))
	}
	k := &Kind{name: name, rooms: rooms}
	kinds[name] = k
	return k
}

// DefineOwn is Define for arithmetic of another module, the Go files of a folder of it:
//
//	//go:embed *.go
//	var sources embed.FS
//
//	var areas = code.DefineOwn("mypaper/figure1", sources)
//
// All that these import of this module counts, too, and so do rooms. What they
// import of their own module does not: embed that as well.
func DefineOwn(name string, sources fs.FS, rooms ...string) *Kind {
	k := Define(name, rooms...)
	k.own = sources
	return k
}

// Kinds are all kinds that were defined, by name.
func Kinds() []*Kind {
	kindsLock.Lock()
	defer kindsLock.Unlock()
	var all []*Kind
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		all = append(all, kinds[name])
	}
	return all
}

// Name is the name of the kind.
func (k *Kind) Name() string { return k.name }

// Version is the version of the source in this program: the accepted one, or, where the source was never accepted, the
// source's own hash. It is an error if a package of the kind cannot be read.
func (k *Kind) Version() (string, error) {
	k.once.Do(k.find)
	return k.version, k.err
}

// Accepted reports whether the source in this program is one of those of which was shown that they compute the same.
func (k *Kind) Accepted() (bool, error) {
	k.once.Do(k.find)
	return k.accepted, k.err
}

// Source is the hash of the source in this program.
func (k *Kind) Source() (string, error) {
	k.once.Do(k.find)
	return k.source, k.err
}

func (k *Kind) find() {
	if k.source, k.err = sourceOf(nasml.Sources, modules(), k.rooms, k.own); k.err != nil {
		k.err = fmt.Errorf("version of %s: %w", k.name, k.err)
		return
	}
	k.version = k.source
	if known, ok := ledger().Kinds[k.name]; ok && known.Source == k.source {
		k.version, k.accepted = known.Version, true
	}
}

// Assume makes this process take the kind's source for that of its version, whatever it is. It is for finding out
// whether it is that, and returns false where the kind has no version.
func (k *Kind) Assume() bool {
	known, ok := ledger().Kinds[k.name]
	k.once.Do(k.find)
	if !ok || k.err != nil {
		return false
	}
	k.version = known.Version
	return true
}

// Version is what the ledger knows of a kind.
type Version struct {
	Version string `json:"version"` // the hash in the keys of trials
	Source  string `json:"source"`  // the hash of the accepted source, which computes that version
}

// Ledger is the content of versions.json.
type Ledger struct {
	// Modules are the versions of what computes besides this module. A test
	// holds them to go.mod and to the requirements of the set-up.
	Modules map[string]string  `json:"modules"`
	Kinds   map[string]Version `json:"kinds"`
}

// LedgerFile is where the ledger lies below the checkout.
const LedgerFile = "nasml/code/versions.json"

//go:embed versions.json
var ledgerFile embed.FS

var ledger = sync.OnceValue(func() *Ledger {
	text, err := ledgerFile.ReadFile("versions.json")
	if err != nil {
		panic(err) // it is embedded
	}
	l, err := ParseLedger(text)
	if err != nil {
		panic(fmt.Errorf("%s, as built into this program: %w", LedgerFile, err))
	}
	return l
})

// ParseLedger reads the text of versions.json.
func ParseLedger(text []byte) (*Ledger, error) {
	l := new(Ledger)
	if err := json.Unmarshal(text, l); err != nil {
		return nil, fmt.Errorf("not a ledger of versions: %w", err)
	}
	if l.Kinds == nil {
		l.Kinds = map[string]Version{}
	}
	return l, nil
}

// Accept makes the source that which computes the version of a kind, or makes it the version where the kind has none.
func (l *Ledger) Accept(kind, source string) {
	known, ok := l.Kinds[kind]
	if !ok {
		known.Version = source
	}
	known.Source = source
	l.Kinds[kind] = known
}

// Text is the ledger as versions.json has it.
func (l *Ledger) Text() ([]byte, error) {
	text, err := json.MarshalIndent(l, "", "\t")
	return append(text, '\n'), err
}

// Modules are the versions of GoMLX, go-xla, XLA's plugin and gonum that compute: the pinned ones, or those that this
// program was built with where they are others. Of a module whose source may be any, as that of a vendored one, it is
// the hash of that source.
func Modules() map[string]string { return maps.Clone(modules()) }

var modules = sync.OnceValue(func() map[string]string {
	found := maps.Clone(ledger().Modules)
	info, ok := debug.ReadBuildInfo()
	if !ok { // tests have none either
		return found
	}
	for _, m := range info.Deps {
		if _, counts := found[m.Path]; counts {
			found[m.Path] = versionOf(m)
		}
	}
	return found
})
