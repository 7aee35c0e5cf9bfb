package plots

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image/png"
	"math"
	"strings"

	"gonum.org/v1/plot/vg/vgimg"
)

// encodePNG adds resolution and texts to the picture.
func encodePNG(l *layout) ([]byte, error) {
	c := vgimg.NewWith(vgimg.UseWH(l.width, l.height), vgimg.UseDPI(l.style.DPI))
	l.paint(c)
	var body bytes.Buffer
	if err := png.Encode(&body, c.Image()); err != nil {
		return nil, err
	}
	const header = 8 + 12 + 13 // signature and IHDR; all else comes after them
	var out bytes.Buffer
	out.Write(body.Bytes()[:header])
	perMetre := uint32(math.Round(float64(l.style.DPI) / 0.0254))
	resolution := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, perMetre), perMetre)
	writeChunk(&out, "pHYs", append(resolution, 1))
	writePNGText(&out, "Title", l.figure.title())
	writePNGText(&out, "Description", plain(l.figure.caption()))
	for _, pair := range l.figure.meta() {
		key, value, _ := strings.Cut(pair, "=")
		writePNGText(&out, key, value)
	}
	out.Write(body.Bytes()[header:])
	return out.Bytes(), nil
}

// writePNGText writes a text: as tEXt where it is ASCII, which every program
// reads, else as iTXt, which is for UTF-8.
func writePNGText(out *bytes.Buffer, key, value string) {
	switch {
	case value == "":
	case strings.IndexFunc(value, func(r rune) bool { return r > 126 }) < 0:
		writeChunk(out, "tEXt", []byte(key+"\x00"+value))
	default:
		writeChunk(out, "iTXt", []byte(key+"\x00\x00\x00\x00\x00"+value))
	}
}

// writeChunk writes length, kind, data and checksum.
func writeChunk(out *bytes.Buffer, kind string, data []byte) {
	chunk := append([]byte(kind), data...)
	out.Write(binary.BigEndian.AppendUint32(nil, uint32(len(data))))
	out.Write(chunk)
	out.Write(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(chunk)))
}
