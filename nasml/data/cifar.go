package data

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
)

// cifar10 is known by its members' checksums, so that a repacked archive is the same. Those of the training batches
// were computed from real files, that of the test batch was not; all six are pinned by torchvision-ruby, beside the
// archive (SHA-256 c4a38c50…, MD5 c32a1d4a…). That of the head is from a copy with no more of the test batch.
var cifar10 = func() set {
	const folder = "cifar-10-batches-bin/"
	var members []Member
	for i, sum := range []string{
		"cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
		"a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
		"bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
		"014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
		"755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
	} {
		path := fmt.Sprintf(folder+"data_batch_%d.bin", i+1)
		members = append(members, Member{Path: path, Images: 10_000, SHA256: sum})
	}
	return cifar("cifar-10-binary.tar.gz", 170052171, recordFormat{labels: []int{10}, side: 32}, append(members, Member{
		Path:       folder + "test_batch.bin",
		Images:     10_000,
		SHA256:     "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
		Head:       1_000,
		HeadSHA256: "8314c96d7cd65618193bab23acdd5d4c4af15bf6dd00a1781d55beedf3be1ef5",
	})...)
}()

// cifar100 has torchvision-ruby's checksums; the archive's own is 58a81ae1…. They were not checked against real files.
// Of a record's two labels, the coarse one is ignored.
var cifar100 = cifar("cifar-100-binary.tar.gz", 168513733, recordFormat{labels: []int{20, 100}, side: 32},
	Member{Path: "cifar-100-binary/train.bin", Images: 50_000,
		SHA256: "f31298fc616915fa142368359df1c4ca2ae984d6915ca468b998a5ec6aeebf29"},
	Member{Path: "cifar-100-binary/test.bin", Images: 10_000,
		SHA256: "d8b1e6b7b3bee4020055f0699b111f60b1af1e262aeb93a0b659061746f8224a"})

// cifar describes an archive whose last member is the test set; its head, if any, is a split of its own.
func cifar(name string, size int64, format recordFormat, members ...Member) set {
	archive := File{Path: name, URLs: []string{"https://www.cs.toronto.edu/~kriz/" + name}, Size: size}
	for _, m := range members {
		m.Record = format.size()
		archive.Members = append(archive.Members, m)
	}
	last := len(members) - 1
	train, total := sizeOf(archive.Members[:last]), sizeOf(archive.Members)
	split := func(from, to int) part {
		return part{files: []File{archive}, from: from, to: to, images: format.images}
	}
	splits := set{Train: split(0, train), Test: split(train, total)}
	if head := members[last].Head; head > 0 {
		splits[Test1000] = split(train, train+head*format.size())
	}
	return splits
}

// recordFormat describes records: some labels, a byte each, of which the last counts, and an image by channel.
type recordFormat struct {
	labels []int // how many values each label has
	side   int   // pixels
}

func (r recordFormat) size() int { return len(r.labels) + 3*r.side*r.side }

// images splits records. It returns an error for labels out of range and for a partial record.
func (r recordFormat) images(content [][]byte) (Images, error) {
	im := Images{Height: r.side, Width: r.side, Channels: 3}
	total := 0
	for _, body := range content {
		if len(body)%r.size() != 0 {
			return im, fmt.Errorf("%w: found %d bytes, expected a multiple of %d", ErrBroken, len(body), r.size())
		}
		total += len(body) / r.size()
	}
	im.Labels, im.Pixels = make([]uint8, 0, total), make([]uint8, 3*r.side*r.side*total)
	for _, body := range content {
		for record := range slices.Chunk(body, r.size()) {
			for k, n := range r.labels {
				if label := int(record[k]); label >= n {
					return im, fmt.Errorf("%w: found label %d of image %d, expected 0 to %d", ErrBroken, label,
						im.Len(), n-1)
				}
			}
			interleave(im.Image(im.Len()), record[len(r.labels):])
			im.Labels = append(im.Labels, record[len(r.labels)-1])
		}
	}
	return im, nil
}

func interleave(pixels, channels []uint8) {
	area := len(channels) / 3
	red, green, blue := channels[:area], channels[area:2*area], channels[2*area:]
	for p := range area {
		pixels[3*p], pixels[3*p+1], pixels[3*p+2] = red[p], green[p], blue[p]
	}
}

// Member is a file of records in an archive.
type Member struct {
	Path       string // in the archive
	Images     int    // records in it
	Record     int    // bytes of each
	SHA256     string // of all, in hex
	Head       int    // of the last member: so many records make it an incomplete copy; if 0, there is none
	HeadSHA256 string // of these
}

// readArchive returns the members' content in the order of the list. A member that is missing, twice there, or of the
// wrong size or checksum is an error; other files are ignored. If only the head of the last member is there, it returns
// that and an error that wraps ErrIncomplete.
func readArchive(plain io.Reader, members []Member) ([]byte, error) {
	var body []byte
	found := map[string]int{} // images in each member
	known := func() string { return fmt.Sprintf("%d of %d files", len(found), len(members)) }
	err := eachEntry(plain, known, func(name string, entry *tar.Header, content io.Reader) (err error) {
		k := slices.IndexFunc(members, func(m Member) bool { return m.Path == name })
		if k < 0 {
			return nil
		}
		if _, twice := found[name]; twice {
			return fmt.Errorf("found %s twice in the archive, expected it once", name)
		}
		if body == nil { // not before the archive has been seen to be one
			body = make([]byte, sizeOf(members))
		}
		found[name], err = members[k].read(content, entry.Size, body[sizeOf(members[:k]):sizeOf(members[:k+1])])
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		switch images, ok := found[m.Path]; {
		case !ok:
			return nil, fmt.Errorf("found no %s in the archive", m.Path)
		case images < m.Images: // the last one
			return body[:len(body)-(m.Images-images)*m.Record], fmt.Errorf("%w: found the first %d of %d images in %s",
				ErrIncomplete, images, m.Images, m.Path)
		}
	}
	return body, nil
}

// eachEntry visits the entries of a tar archive to its end. Entries must be files or folders inside the archive's own
// folder; nothing is written. sofar says in an error what came before.
func eachEntry(
	plain io.Reader, sofar func() string, visit func(name string, entry *tar.Header, content io.Reader) error,
) error {
	for archive := tar.NewReader(plain); ; {
		entry, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("found %s and then no more of a tar archive: %w", sofar(), err)
		}
		name, err := entryName(entry)
		if err == nil {
			err = visit(name, entry, archive)
		}
		if err != nil {
			return err
		}
	}
	if _, err := io.Copy(io.Discard, plain); err != nil { // the checksum of the gzip file is at its end
		return fmt.Errorf("found an error after the last file of the archive: %w", err)
	}
	return nil
}

func sizeOf(members []Member) int {
	total := 0
	for _, m := range members {
		total += m.Images * m.Record
	}
	return total
}

// entryName returns an entry's cleaned name. It refuses what could reach outside of the folder: "..", absolute names,
// links.
func entryName(entry *tar.Header) (string, error) {
	switch entry.Typeflag {
	case tar.TypeReg, tar.TypeDir, tar.TypeXGlobalHeader:
	default:
		return "", fmt.Errorf("found %q in the archive, which is neither a file nor a folder (type %q)", entry.Name,
			entry.Typeflag)
	}
	if !filepath.IsLocal(filepath.FromSlash(entry.Name)) {
		return "", fmt.Errorf("found %q in the archive, a name that leads out of it", entry.Name)
	}
	return path.Clean(entry.Name), nil
}

// read fills body with the member or its head, and returns the number of images.
func (m Member) read(r io.Reader, size int64, body []byte) (int, error) {
	images, want := m.Images, m.SHA256
	if m.Head > 0 && size == int64(m.Head*m.Record) {
		images, want = m.Head, m.HeadSHA256
	}
	if size != int64(images*m.Record) {
		return 0, fmt.Errorf("found %d bytes in %s, expected %d", size, m.Path, m.Images*m.Record)
	}
	body = body[:size]
	if n, err := io.ReadFull(r, body); err != nil {
		return 0, fmt.Errorf("%s: %w", m.Path, short(err, n, len(body)))
	}
	if found := fmt.Sprintf("%x", sha256.Sum256(body)); found != want {
		return 0, fmt.Errorf("found SHA-256 %s of %s, expected %s", found, m.Path, want)
	}
	return images, nil
}
