package data

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// maxRecord bounds a record's length; NAS-Bench-101's have some hundreds of bytes.
const maxRecord = 1 << 20

// tfRecords reads the records of a TFRecord file one after the other, in bounded memory. A record is
//
//	length  uint64, little endian
//	        masked CRC-32C of these 8 bytes, uint32, little endian
//	data    of this length
//	        masked CRC-32C of the data
//
// (https://www.tensorflow.org/tutorials/load_data/tfrecord).
type tfRecords struct {
	in     *bufio.Reader
	number int   // of the record that next returned last, from 1 on
	offset int64 // where that one begins
	end    int64 // where it ends
	data   []byte
}

func newTFRecords(in io.Reader) *tfRecords {
	return &tfRecords{in: bufio.NewReaderSize(in, 1<<16)}
}

// next returns the next record's data, which is reused, and io.EOF after the last. Other errors name the record, and
// wrap ErrBroken unless reading fails.
func (r *tfRecords) next() ([]byte, error) {
	r.number, r.offset = r.number+1, r.end
	var head [12]byte
	switch n, err := io.ReadFull(r.in, head[:]); {
	case errors.Is(err, io.EOF):
		return nil, io.EOF
	case err != nil:
		return nil, r.cut(err, n, len(head))
	}
	if err := r.check("length", head[:8], head[8:]); err != nil {
		return nil, err
	}
	length := binary.LittleEndian.Uint64(head[:8])
	if length > maxRecord {
		return nil, r.wrong("found a length of %d bytes, expected at most %d", length, maxRecord)
	}
	total := len(head) + int(length) + 4
	if cap(r.data) < int(length)+4 {
		r.data = make([]byte, 2*(length+4))
	}
	body := r.data[:length+4]
	if n, err := io.ReadFull(r.in, body); err != nil {
		return nil, r.cut(err, len(head)+n, total)
	}
	r.end = r.offset + int64(total)
	return body[:length], r.check("data", body[:length], body[length:])
}

func (r *tfRecords) check(what string, data, sum []byte) error {
	want, got := binary.LittleEndian.Uint32(sum), maskedCRC(data)
	if got != want {
		return r.wrong("found the checksum %08x of its %s, expected %08x as the file says", got, what, want)
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maskedCRC is a TFRecord's checksum: the CRC-32C rotated right by 15 bits plus a constant, modulo 2³².
func maskedCRC(data []byte) uint32 {
	c := crc32.Checksum(data, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

func (r *tfRecords) cut(err error, has, wants int) error {
	if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return r.at(err)
	}
	return r.wrong("found its first %d bytes and then the end of the file, expected %d bytes", has, wants)
}

func (r *tfRecords) wrong(format string, args ...any) error {
	return r.at(fmt.Errorf("%w: "+format, append([]any{ErrBroken}, args...)...))
}

func (r *tfRecords) at(err error) error {
	return fmt.Errorf("record %d (offset %d): %w", r.number, r.offset, err)
}
