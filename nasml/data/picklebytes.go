package data

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

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
