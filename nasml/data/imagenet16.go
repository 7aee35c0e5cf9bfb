package data

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path"
	"strings"
)

// ImageNet16-120 as Dong and Yang 2020 take it (NAS-Bench-201): the images of
// labels 1 to 120 of the downsampled ImageNet, 151,700 for training, and for
// testing the 6,000 of the publisher's validation set. Labels become 0 to 119.
const (
	imagenetSide    = 16
	imagenetClasses = 1000 // that the files have
	imagenetKept    = 120
)

// imagenet16 has the MD5 sums that AutoDL-Projects pins for the publisher's
// eleven files. They were not checked against files of our own.
var imagenet16 = func() set {
	var train []File
	for i, sum := range []string{
		"27846dcaa50de8e21a7d1a35f30f0e91", "c7254a054e0e795c69120a5727050e3f", "4333d3df2e5ffb114b05d2ffc19b1e87",
		"1620cdf193304f4a92677b695d70d10f", "348b3c2fdbb3940c4e9e834affd3b18d", "6e765307c242a1b3d7d5ef9139b48945",
		"564926d8cbf8fc4818ba23d2faac7564", "f4755871f718ccb653440b9dd0ebac66", "bb6dd660c38c58552125b1a92f86b5d4",
		"8f03f34ac4b42271a294f91bf480f29b"} {
		train = append(train, imagenetFile(fmt.Sprintf("train_data_batch_%d", i+1), sum))
	}
	images := recordFormat{labels: []int{imagenetKept}, side: imagenetSide}.images
	return set{
		Train: {files: train, images: images},
		Test:  {files: []File{imagenetFile("val_data", "3410e3017fdaefba8d5073aaa65e4bd6")}, images: images},
	}
}()

func imagenetFile(base, sum string) File {
	return File{Path: path.Join(string(ImageNet16), base), MD5: sum, Classes: imagenetKept,
		ByHand: "get Imagenet16_train.zip and Imagenet16_val.zip (the pickled batches, not the npz files) from https://image-net.org/download-images.php, which asks for an account, unzip them"}
}

// pickledRecords returns the images of the first classes of a pickled batch as
// records: a label, counted from 0, and the bytes of the image by channel. The
// pickle is a dictionary with "data", a numpy array of bytes [N, 768], and
// "labels", a list of N numbers from 1 to 1000.
func pickledRecords(pickle []byte, classes int) ([]byte, error) {
	const size = 3 * imagenetSide * imagenetSide
	dict, err := unpickle(pickle)
	if err != nil {
		return nil, err
	}
	pixels, err := byteArray(dict["data"], size)
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	labels, ok := dict["labels"].(*[]any)
	if !ok || len(*labels)*size != len(pixels) {
		return nil, fmt.Errorf("found %s for labels, expected a list of %d", describe(dict["labels"]), len(pixels)/size)
	}
	var records []byte
	for i, l := range *labels {
		label, ok := l.(int)
		if !ok || label < 1 || label > imagenetClasses {
			return nil, fmt.Errorf("found %s for the label of image %d, expected 1 to %d", describe(l), i, imagenetClasses)
		}
		if label <= classes {
			records = append(records, byte(label-1))
			records = append(records, pixels[i*size:(i+1)*size]...)
		}
	}
	return records, nil
}

// byteArray returns the content of a pickled numpy array of bytes with rows of
// the given size. What numpy pickles is a call of _reconstruct and then the
// state (1, shape, dtype, Fortran order, content).
func byteArray(v any, row int) ([]byte, error) {
	array, ok := v.(*pickled)
	if !ok || array.what != "_reconstruct" || len(array.state) != 5 {
		return nil, fmt.Errorf("found %s, expected a numpy array", describe(v))
	}
	dtype, ok := array.state[2].(*pickled)
	if !ok || dtype.what != "dtype" || len(dtype.args) == 0 || dtype.args[0] != "u1" || array.state[3] != false {
		return nil, fmt.Errorf("found another numpy array, expected one of bytes (u1) in C order")
	}
	content, ok := array.state[4].([]byte)
	shape, isTuple := array.state[1].(tuple)
	if !ok || !isTuple || len(shape) != 2 || shape[1] != row || shape[0] != len(content)/row || len(content)%row != 0 {
		return nil, fmt.Errorf("found a numpy array of %d bytes, expected one of N×%d of them", len(content), row)
	}
	return content, nil
}

// describe says what a pickled value is without printing all of it.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case int:
		return fmt.Sprint(v)
	case *[]any:
		return fmt.Sprintf("a list of %d", len(*v))
	case *pickled:
		return "a numpy " + v.what
	}
	return fmt.Sprintf("a %T", v)
}

// unpickler reads what numpy arrays, lists and numbers in a dictionary look
// like in Python's pickle format, protocols 2 to 4, as plain data. It knows no
// other instruction and runs nothing: a call is only written down, and only
// that of numpy's own _reconstruct and dtype.
type unpickler struct {
	rest  []byte
	stack []any
	marks []int // lengths of the stack
	memo  map[int]any
	err   error // the first one; whatever is read after it is zero
}

type (
	tuple  []any
	global string
	// pickled is a numpy array or dtype: what was called to make it, and the
	// state that was given to it then.
	pickled struct {
		what        string
		args, state tuple
	}
)

// unpickle returns the dictionary that a pickle is. A pickle that breaks off,
// or has any other instruction, is an error.
func unpickle(pickle []byte) (map[string]any, error) {
	u := &unpickler{rest: pickle, memo: map[int]any{}}
	for u.err == nil {
		op := u.take(1)
		if u.err != nil {
			break
		}
		if op[0] == '.' {
			dict, ok := u.pop().(map[string]any)
			if !ok || len(u.rest) > 0 {
				u.fail("found something else than one dictionary in the pickle")
			}
			return dict, u.err
		}
		do, ok := opcodes[op[0]]
		if !ok {
			u.fail("found instruction 0x%02x in the pickle, expected only those of a dictionary with numpy arrays (protocols 2 to 4); nothing of it was run", op[0])
			break
		}
		do(u)
	}
	return nil, fmt.Errorf("%w, at byte %d", u.err, len(pickle)-len(u.rest))
}

// opcodes are the instructions by their codes, which pickletools.py lists.
var opcodes = map[byte]func(*unpickler){
	0x80: func(u *unpickler) { u.take(1) }, // the protocol
	0x95: func(u *unpickler) { u.take(8) }, // the length of a frame
	'(':  func(u *unpickler) { u.marks = append(u.marks, len(u.stack)) },
	'N':  func(u *unpickler) { u.push(nil) },
	0x88: func(u *unpickler) { u.push(true) },
	0x89: func(u *unpickler) { u.push(false) },
	'K':  func(u *unpickler) { u.push(u.number(1)) },
	'M':  func(u *unpickler) { u.push(u.number(2)) },
	'J':  func(u *unpickler) { u.push(int(int32(u.number(4)))) },
	'X':  func(u *unpickler) { u.push(string(u.take(u.number(4)))) },
	0x8c: func(u *unpickler) { u.push(string(u.take(u.number(1)))) },
	'C':  func(u *unpickler) { u.push(u.take(u.number(1))) },
	'B':  func(u *unpickler) { u.push(u.take(u.number(4))) },
	']':  func(u *unpickler) { u.push(&[]any{}) },
	'}':  func(u *unpickler) { u.push(map[string]any{}) },
	0x85: func(u *unpickler) { u.push(tuple(u.popN(1))) },
	0x86: func(u *unpickler) { u.push(tuple(u.popN(2))) },
	0x87: func(u *unpickler) { u.push(tuple(u.popN(3))) },
	't':  func(u *unpickler) { u.push(tuple(u.popMark())) },
	'a':  func(u *unpickler) { u.extend(u.popN(1)) },
	'e':  func(u *unpickler) { u.extend(u.popMark()) },
	's':  func(u *unpickler) { u.set(u.popN(2)) },
	'u':  func(u *unpickler) { u.set(u.popMark()) },
	'q':  func(u *unpickler) { u.memo[u.number(1)] = u.top() },
	'r':  func(u *unpickler) { u.memo[u.number(4)] = u.top() },
	0x94: func(u *unpickler) { u.memo[len(u.memo)] = u.top() },
	'h':  func(u *unpickler) { u.push(u.memo[u.number(1)]) },
	'j':  func(u *unpickler) { u.push(u.memo[u.number(4)]) },
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
		if !ok || !isGlobal || what == "ndarray" {
			u.fail("found a call of something else than numpy's _reconstruct and dtype in the pickle; it was not run")
		}
		u.push(&pickled{what: string(what), args: args})
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

func (u *unpickler) fail(format string, args ...any) {
	if u.err == nil {
		u.err = fmt.Errorf(format, args...)
	}
}

// take returns the next n bytes.
func (u *unpickler) take(n int) []byte {
	if n > len(u.rest) {
		u.fail("found a pickle that is cut off: %d bytes are left, expected %d", len(u.rest), n)
	}
	if u.err != nil {
		return nil
	}
	taken := u.rest[:n:n]
	u.rest = u.rest[n:]
	return taken
}

// number returns the next n ≤ 4 bytes, the lowest first.
func (u *unpickler) number(n int) int {
	var wide [4]byte
	copy(wide[:], u.take(n))
	return int(binary.LittleEndian.Uint32(wide[:]))
}

// line returns what comes before the next end of a line.
func (u *unpickler) line() string {
	n := bytes.IndexByte(u.rest, '\n')
	if n < 0 {
		u.fail("found a pickle that is cut off in a name")
	}
	return strings.TrimSuffix(string(u.take(n+1)), "\n")
}

// global pushes one of the three names of numpy that an array needs.
func (u *unpickler) global(module, name string) {
	switch module + "." + name {
	case "numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct", "numpy.ndarray", "numpy.dtype":
		u.push(global(name))
	default:
		u.fail("found %.100q in the pickle, expected numpy arrays only; nothing of it was run", module+"."+name)
	}
}

func (u *unpickler) push(v any) { u.stack = append(u.stack, v) }

func (u *unpickler) pop() any { return u.popN(1)[0] }

// top returns the value that was pushed last.
func (u *unpickler) top() any {
	v := u.pop()
	u.push(v)
	return v
}

// popN returns the last n values in the order in which they were pushed, all
// of them nil where there are fewer above the last mark.
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

// popMark returns the values above the last mark.
func (u *unpickler) popMark() []any {
	if len(u.marks) == 0 {
		u.fail("found an end without its beginning in the pickle")
		return nil
	}
	values := u.popN(len(u.stack) - u.marks[len(u.marks)-1])
	u.marks = u.marks[:len(u.marks)-1]
	return values
}

// extend appends values to the list below them.
func (u *unpickler) extend(values []any) {
	list, ok := u.top().(*[]any)
	if !ok {
		u.fail("found values of a list without the list in the pickle")
		return
	}
	*list = append(*list, values...)
}

// set puts key, value, key, value… into the dictionary below them.
func (u *unpickler) set(pairs []any) {
	dict, ok := u.top().(map[string]any)
	if !ok || len(pairs)%2 != 0 {
		u.fail("found values of a dictionary without the dictionary in the pickle")
		return
	}
	for i := 0; i < len(pairs); i += 2 {
		key, ok := pairs[i].(string)
		if !ok {
			u.fail("found a key that is no string in the pickle")
			return
		}
		dict[key] = pairs[i+1]
	}
}
