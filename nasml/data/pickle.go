package data

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// unpickler reads pickles of Python, protocols 2 to 4, as plain data: numbers, texts, lists, tuples, sets,
// dictionaries, and numpy's arrays and numbers. It knows no other instruction and runs nothing: a call is only written
// down, and only where it is one of pickledCalls.
//
// It reads a stream and keeps what onSet leaves of it, so that a file of
// gigabytes needs only the memory of what is wanted.
//
// Module nlpodyssey/gopickle v0.2.0 keeps all that it reads, and refuses numpy's arrays and numbers where it is not
// told what to make of each: of the ten files of testdata in the benchmarks' formats it reads the one that has none.
type unpickler struct {
	in    *bufio.Reader
	at    int64 // bytes read
	stack []any
	marks []int // lengths of the stack
	err   error // the first one; whatever is read after it is zero

	// onSet, where it is set, returns what a dictionary gets for a key. It may
	// empty the value: the pickle may name it again only by its place.
	onSet func(key string, value any) any

	// What a pickle can name again: memo has places in named, where each text stands once.
	memo  []uint32
	named []any
	texts map[string]uint32
}

type (
	tuple  []any
	global string
	// pickled is a numpy array or dtype: what was called to make it, and the state that was given to it then.
	pickled struct {
		what        string
		args, state tuple
	}
	// dict is a dictionary in the order of the file. It is made for a few look-ups in small ones.
	dict  struct{ entries []keyed }
	keyed struct{ key, value any }
)

func (d *dict) get(key string) any {
	for _, e := range slices.Backward(d.entries) {
		if e.key == key { // of the same type, too
			return e.value
		}
	}
	return nil
}

func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case int, float64, bool:
		return fmt.Sprint(v)
	case string:
		return fmt.Sprintf("%.100q", v)
	case *[]any:
		return fmt.Sprintf("a list of %d", len(*v))
	case *dict:
		return fmt.Sprintf("a dictionary of %d", len(v.entries))
	case tuple:
		return fmt.Sprintf("a tuple of %d", len(v))
	case *pickled:
		return "a numpy " + v.what
	}
	return fmt.Sprintf("a %T", v)
}

// peekable is the length up to which bytes are read without a copy.
const peekable = 1 << 16

func newUnpickler(r io.Reader) *unpickler {
	return &unpickler{in: bufio.NewReaderSize(r, peekable), texts: map[string]uint32{}}
}

func unpickleDict(pickle []byte) (*dict, error) {
	u := newUnpickler(bytes.NewReader(pickle))
	d, err := u.loadDict()
	if _, end := u.in.ReadByte(); err == nil && end == nil {
		return nil, errors.New("found something else than one dictionary in the pickle")
	}
	return d, err
}

func (u *unpickler) loadDict() (*dict, error) {
	v, err := u.load()
	if err != nil {
		return nil, err
	}
	d, ok := v.(*dict)
	if !ok {
		return nil, fmt.Errorf("found %s in the pickle, expected a dictionary", describe(v))
	}
	return d, nil
}

// load returns the next value of the stream. A truncated pickle and unknown instructions are errors.
func (u *unpickler) load() (any, error) {
	u.stack, u.marks, u.memo, u.named = u.stack[:0], u.marks[:0], nil, nil
	clear(u.texts)
	for u.err == nil {
		code := u.number(1)
		if u.err != nil {
			break
		}
		if code == '.' {
			return u.pop(), u.err
		}
		do := opcodes[byte(code)]
		if do == nil {
			u.fail(
				"found instruction 0x%02x in the pickle, expected only those of numbers, texts, containers and numpy "+
					"arrays (protocols 2 to 4); nothing of it was run", code)
			break
		}
		do(u)
	}
	return nil, fmt.Errorf("%w, at byte %d", u.err, u.at)
}

// opcodes are the instructions by their codes, which pickletools.py lists.
var opcodes = [256]func(*unpickler){
	0x80: func(u *unpickler) { u.number(1) }, // the protocol
	0x95: func(u *unpickler) { u.bytes(8) },  // the length of a frame
	'(':  func(u *unpickler) { u.marks = append(u.marks, len(u.stack)) },
	'N':  func(u *unpickler) { u.push(nil) },
	0x88: func(u *unpickler) { u.push(true) },
	0x89: func(u *unpickler) { u.push(false) },
	'K':  func(u *unpickler) { u.push(u.number(1)) },
	'M':  func(u *unpickler) { u.push(u.number(2)) },
	'J':  func(u *unpickler) { u.push(int(int32(u.number(4)))) },
	0x8a: func(u *unpickler) { u.push(u.long(u.number(1))) },
	'G': func(u *unpickler) {
		if b := u.peek(8); u.err == nil {
			u.push(math.Float64frombits(binary.BigEndian.Uint64(b)))
			u.skip(8)
		}
	},
	'X':  func(u *unpickler) { u.text(u.number(4)) },
	0x8c: func(u *unpickler) { u.text(u.number(1)) },
	'C':  func(u *unpickler) { u.push(u.bytes(u.number(1))) },
	'B':  func(u *unpickler) { u.push(u.bytes(u.number(4))) },
	']':  func(u *unpickler) { u.push(&[]any{}) },
	0x8f: func(u *unpickler) { u.push(&[]any{}) }, // a set
	'}':  func(u *unpickler) { u.push(&dict{}) },
	')':  func(u *unpickler) { u.push(tuple{}) },
	0x85: func(u *unpickler) { u.push(tuple(u.popN(1))) },
	0x86: func(u *unpickler) { u.push(tuple(u.popN(2))) },
	0x87: func(u *unpickler) { u.push(tuple(u.popN(3))) },
	't':  func(u *unpickler) { u.push(tuple(u.popMark())) },
	'a':  func(u *unpickler) { u.extend(u.popN(1)) },
	'e':  func(u *unpickler) { u.extend(u.popMark()) },
	0x90: func(u *unpickler) { u.extend(u.popMark()) }, // into a set
	's':  func(u *unpickler) { u.set(u.popN(2)) },
	'u':  func(u *unpickler) { u.set(u.popMark()) },
	'q':  func(u *unpickler) { u.put(u.number(1)) },
	'r':  func(u *unpickler) { u.put(u.number(4)) },
	0x94: func(u *unpickler) { u.put(len(u.memo)) },
	'h':  func(u *unpickler) { u.recall(u.number(1)) },
	'j':  func(u *unpickler) { u.recall(u.number(4)) },
	'c':  func(u *unpickler) { u.global(u.line(), u.line()) },
	0x93: func(u *unpickler) {
		if names := u.popN(2); u.err == nil {
			module, _ := names[0].(string)
			name, _ := names[1].(string)
			u.global(module, name)
		}
	},
	'R': func(u *unpickler) {
		args, ok := u.pop().(tuple)
		what, isGlobal := u.pop().(global)
		call := pickledCalls[string(what)]
		if !ok || !isGlobal || call == nil {
			u.fail("found a call of something else than a container or numpy's _reconstruct, dtype and scalar in the " +
				"pickle; it was not run")
			return
		}
		v, err := call(args)
		if err != nil {
			u.fail("%w; it was not run", err)
		}
		u.push(v)
	},
	'b': func(u *unpickler) {
		state, ok := u.pop().(tuple)
		object, isObject := u.top().(*pickled)
		if !ok || !isObject {
			u.fail("found a state for something else than a numpy array in the pickle")
			return
		}
		object.state = state
	},
}

var pickledNames = map[string]global{
	"numpy.core.multiarray._reconstruct":  "_reconstruct",
	"numpy._core.multiarray._reconstruct": "_reconstruct",
	"numpy.core.multiarray.scalar":        "scalar",
	"numpy._core.multiarray.scalar":       "scalar",
	"numpy.ndarray":                       "ndarray",
	"numpy.dtype":                         "dtype",
	"collections.OrderedDict":             "OrderedDict",
	"builtins.set":                        "set",
	"__builtin__.set":                     "set",
	"_codecs.encode":                      "encode",
}

var pickledCalls = map[string]func(args tuple) (any, error){
	"_reconstruct": func(args tuple) (any, error) { return &pickled{what: "_reconstruct", args: args}, nil },
	"dtype":        func(args tuple) (any, error) { return &pickled{what: "dtype", args: args}, nil },
	"scalar":       pickledScalar,
	"OrderedDict": func(args tuple) (any, error) {
		if len(args) > 0 {
			return nil, errors.New("found an OrderedDict that is made of something")
		}
		return &dict{}, nil
	},
	"set": func(args tuple) (any, error) {
		if len(args) == 1 {
			if list, ok := args[0].(*[]any); ok {
				return list, nil
			}
		}
		return nil, errors.New("found a set that is made of something else than a list")
	},
	"encode": func(args tuple) (any, error) { // bytes in protocol 2
		if len(args) == 2 && args[1] == "latin1" {
			if text, ok := args[0].(string); ok {
				return latin1(text)
			}
		}
		return nil, errors.New("found an encoding of something else than bytes as latin1")
	},
}

func latin1(text string) ([]byte, error) {
	var b []byte
	for _, r := range text {
		if r > 0xff {
			return nil, fmt.Errorf("found the letter %q, expected one of latin1", r)
		}
		b = append(b, byte(r))
	}
	return b, nil
}

func pickledScalar(args tuple) (any, error) {
	wrong := errors.New("found a numpy scalar, expected one of f8, f4, i8 or i4 with its bytes")
	if len(args) != 2 {
		return nil, wrong
	}
	dtype, isDtype := args[0].(*pickled)
	b, isBytes := args[1].([]byte)
	if !isDtype || !isBytes || dtype.what != "dtype" || len(dtype.args) == 0 {
		return nil, wrong
	}
	// Little-endian: what every machine writes that trains networks.
	switch kind := dtype.args[0]; {
	case kind == "f8" && len(b) == 8:
		return math.Float64frombits(binary.LittleEndian.Uint64(b)), nil
	case kind == "f4" && len(b) == 4:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))), nil
	case kind == "i8" && len(b) == 8:
		return int(binary.LittleEndian.Uint64(b)), nil
	case kind == "i4" && len(b) == 4:
		return int(int32(binary.LittleEndian.Uint32(b))), nil
	}
	return nil, wrong
}

// put memoizes the last value at a place. Python counts the places.
func (u *unpickler) put(place int) {
	if place > len(u.memo)+1 {
		u.fail("found place %d in the pickle after %d of them, expected the next one", place, len(u.memo))
		return
	}
	for place >= len(u.memo) {
		u.memo = append(u.memo, 0)
	}
	v := u.top()
	text, isText := v.(string)
	at, known := u.texts[text]
	if !isText || !known {
		at = uint32(len(u.named))
		u.named = append(u.named, v)
	}
	if isText {
		u.texts[text] = at
	}
	u.memo[place] = at
}

func (u *unpickler) recall(place int) {
	if place >= len(u.memo) || len(u.named) == 0 {
		u.fail("found place %d in the pickle, expected one of the %d before", place, len(u.memo))
		return
	}
	u.push(u.named[u.memo[place]])
}

func (u *unpickler) push(v any) { u.stack = append(u.stack, v) }

func (u *unpickler) pop() any { return u.popN(1)[0] }

func (u *unpickler) top() any {
	v := u.pop()
	u.push(v)
	return v
}

// popN returns the last n values in order; nils if there are fewer above the last mark.
func (u *unpickler) popN(n int) []any {
	bottom := 0
	if len(u.marks) > 0 {
		bottom = u.marks[len(u.marks)-1]
	}
	values := make([]any, n)
	if len(u.stack)-n < bottom {
		u.fail("found an instruction without its values in the pickle")
		return values
	}
	copy(values, u.stack[len(u.stack)-n:])
	u.stack = u.stack[:len(u.stack)-n]
	return values
}

func (u *unpickler) popMark() []any {
	if len(u.marks) == 0 {
		u.fail("found an end without its beginning in the pickle")
		return nil
	}
	values := u.popN(len(u.stack) - u.marks[len(u.marks)-1])
	u.marks = u.marks[:len(u.marks)-1]
	return values
}

func (u *unpickler) extend(values []any) {
	list, ok := u.top().(*[]any)
	if !ok {
		u.fail("found values of a list without the list in the pickle")
		return
	}
	*list = append(*list, values...)
}

func (u *unpickler) set(pairs []any) {
	d, ok := u.top().(*dict)
	if !ok || len(pairs)%2 != 0 {
		u.fail("found values of a dictionary without the dictionary in the pickle")
		return
	}
	for i := 0; i < len(pairs); i += 2 {
		key, value := pairs[i], pairs[i+1]
		switch k := key.(type) {
		case string:
			if u.onSet != nil {
				value = u.onSet(k, value)
			}
		case int, tuple:
		default:
			u.fail("found %s for a key in the pickle, expected a text, a number or a tuple", describe(key))
			return
		}
		d.entries = append(d.entries, keyed{key, value})
	}
}

func (u *unpickler) fail(format string, args ...any) {
	if u.err == nil {
		u.err = fmt.Errorf(format, args...)
	}
}

// peek returns the next n ≤ peekable bytes, valid until the next call, without consuming them.
func (u *unpickler) peek(n int) []byte {
	if u.err != nil {
		return nil
	}
	b, err := u.in.Peek(n)
	if err != nil {
		u.short(len(b), n, err)
		return nil
	}
	return b
}

func (u *unpickler) skip(n int) {
	n, _ = u.in.Discard(n) // they were peeked at
	u.at += int64(n)
}

func (u *unpickler) short(left, n int, err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		u.fail("found a pickle that is cut off: %d bytes are left, expected %d", left, n)
		return
	}
	u.fail("found a pickle that cannot be read: %w", err)
}

// bytes returns the next n bytes. It allocates only as much as exists.
func (u *unpickler) bytes(n int) []byte {
	if n <= peekable {
		b := bytes.Clone(u.peek(n))
		u.skip(len(b))
		return b
	}
	if u.err != nil {
		return nil
	}
	var b bytes.Buffer
	read, err := io.CopyN(&b, u.in, int64(n))
	u.at += read
	if err != nil {
		u.short(b.Len(), n, err)
		return nil
	}
	return b.Bytes()
}

func (u *unpickler) number(n int) int {
	var wide [4]byte
	u.skip(copy(wide[:], u.peek(n)))
	return int(binary.LittleEndian.Uint32(wide[:]))
}

// long returns a signed number of n bytes; as text if it has more than 64 bits, which are only compared.
func (u *unpickler) long(n int) any {
	b := u.bytes(n)
	if n > 8 {
		return fmt.Sprintf("0x%x", b)
	}
	var wide [8]byte
	if n > 0 && len(b) == n && b[n-1] >= 0x80 {
		wide = [8]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	}
	copy(wide[:], b)
	return int(binary.LittleEndian.Uint64(wide[:]))
}

func (u *unpickler) text(n int) {
	if n > peekable {
		u.push(string(u.bytes(n)))
		return
	}
	b := u.peek(n)
	if at, ok := u.texts[string(b)]; ok { // most are there, as keys
		u.push(u.named[at])
	} else {
		u.push(string(b))
	}
	u.skip(len(b))
}

func (u *unpickler) line() string {
	if u.err != nil {
		return ""
	}
	b, err := u.in.ReadSlice('\n')
	u.at += int64(len(b))
	if err != nil {
		u.fail("found a pickle that is cut off in a name")
		return ""
	}
	return strings.TrimSuffix(string(b), "\n")
}

func (u *unpickler) global(module, name string) {
	known, ok := pickledNames[module+"."+name]
	if !ok {
		u.fail("found %.100q in the pickle, expected only numpy arrays, numbers, texts and containers; nothing of "+
			"it was run", module+"."+name)
		return
	}
	u.push(known)
}
