package plots

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg/vgimg"
)

func encodePNG(l *layout) ([]byte, error) {
	c := vgimg.NewWith(vgimg.UseWH(l.width, l.height), vgimg.UseDPI(l.style.DPI))
	l.paint(c)
	var body bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&body, indexed(c.Image(), l.colors())); err != nil {
		return nil, err
	}
	const header = 8 + 12 + 13 // signature and IHDR; everything else comes after them
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

// writePNGText writes ASCII as tEXt, which every program reads, else iTXt.
func writePNGText(out *bytes.Buffer, key, value string) {
	switch {
	case value == "":
	case strings.IndexFunc(value, func(r rune) bool { return r > 126 }) < 0:
		writeChunk(out, "tEXt", []byte(key+"\x00"+value))
	default:
		writeChunk(out, "iTXt", []byte(key+"\x00\x00\x00\x00\x00"+value))
	}
}

func writeChunk(out *bytes.Buffer, kind string, data []byte) {
	chunk := append([]byte(kind), data...)
	out.Write(binary.BigEndian.AppendUint32(nil, uint32(len(data))))
	out.Write(chunk)
	out.Write(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(chunk)))
}

// A PNG has fewColors, or up to mostColors that cover a share of it, as those of a heat map.
const (
	fewColors, mostColors = 64, 256
	coloredShare          = 0.0002
)

// colors are those that are drawn, and each at half strength, as in thin lines.
func (l *layout) colors() color.Palette {
	var all color.Palette
	for _, o := range l.ops {
		for _, c := range []color.RGBA{o.color, tint(o.color, 0.5)} {
			if o.color.A == 255 && !slices.Contains(all, color.Color(c)) {
				all = append(all, c)
			}
		}
	}
	return all[:min(len(all), mostColors)]
}

// indexed reduces a picture to the drawn and the most frequent colours, which makes the file a quarter as large.
func indexed(picture image.Image, palette color.Palette) *image.Paletted {
	bounds := picture.Bounds()
	full := image.NewRGBA(bounds)
	draw.Draw(full, bounds, picture, bounds.Min, draw.Src)
	count := map[color.RGBA]int{}
	at := func(i int) color.RGBA {
		p := full.Pix[4*i : 4*i+4]
		return color.RGBA{R: p[0], G: p[1], B: p[2], A: p[3]}
	}
	for i := range len(full.Pix) / 4 {
		count[at(i)]++
	}
	colors := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(count[b]-count[a], int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B), int(a.A)-int(b.A))
	})
	for i, c := range colors {
		if len(palette) == mostColors {
			break
		}
		if slices.Contains(palette, color.Color(c)) {
			continue
		}
		if i < fewColors || float64(count[c]) > coloredShare*float64(len(full.Pix)/4) {
			palette = append(palette, c)
		}
	}
	index := map[color.RGBA]uint8{}
	for _, c := range colors {
		index[c] = uint8(palette.Index(c))
	}
	out := image.NewPaletted(bounds, palette)
	for i := range out.Pix {
		out.Pix[i] = index[at(i)]
	}
	return out
}
