// Package bucket keeps a run store in a bucket that many machines share:
//
//	NASML_STORE='s3://bucket/prefix?region=eu-central-1'
//	NASML_STORE=gs://bucket/prefix
//	NASML_STORE=azblob://container/prefix
//	NASML_STORE=file:///shared/folder      for file systems without locks
//
// Importing it makes [runs.Open] take such addresses. Their options are those of gocloud.dev/blob and its drivers, and
// lease=60s, the time after which a silent worker is dead. Credentials are those of the services' own tools.
//
// # How machines share
//
// An object is written whole or not at all, which every such service promises, and a record only if there is none. A
// worker renews one object, leases/WORKER, and puts an empty locks/KEY/WORKER for each trial that it takes. A lock
// counts as long as its worker's lease is fresh by the service's clock. To take a trial, a worker puts its own lock and
// then lists: if there is another fresh one, both step back and try again.
//
// What that costs a sweep of a thousand to ten million trials is told, with measurements, in docker/scaling.md.
package bucket

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/azureblob" // azblob://
	_ "gocloud.dev/blob/fileblob"  // file://
	_ "gocloud.dev/blob/gcsblob"   // gs://
	_ "gocloud.dev/blob/s3blob"    // s3://
	"golang.org/x/sync/errgroup"

	"github.com/nasml/lab/nasml/runs"
)

func init() {
	for _, scheme := range []string{"s3", "gs", "azblob", "file"} {
		runs.RegisterMedium(scheme, open)
	}
}

// Times of a bucket.
const (
	leaseTime = time.Minute     // after which a worker that renews nothing is dead; it renews four times as often
	patience  = 5 * time.Minute // how long an operation is tried again
	attempt   = time.Minute     // how long one try may take, and a second more for each megabyte

	firstPatience = 20 * time.Second // patience until the service has answered once
)

// Bucket is a [runs.Medium] in a bucket.
type Bucket struct {
	address string // without what may be secret
	bucket  *blob.Bucket
	worker  string
	times

	reached  atomic.Bool // the service has answered
	first    sync.Once   // begins the lease
	firstErr error
	asked    sync.Once // whether the bucket exists
	absent   error
	mu       sync.Mutex
	own      lease
	mine     map[string]bool // locks that are held here
	others   map[string]seen // leases by worker
}

type times struct{ lease, renew, patience, attempt time.Duration }

func open(address string) (runs.Medium, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("the address cannot be read: want scheme://bucket/prefix")
	}
	query := u.Query()
	t := times{leaseTime, leaseTime / 4, patience, attempt}
	if query.Has("lease") {
		if t.lease, err = time.ParseDuration(query.Get("lease")); err != nil || t.lease < time.Second {
			return nil, fmt.Errorf("lease=%s: want a time of at least a second, such as 60s", query.Get("lease"))
		}
		t.renew = t.lease / 4
		query.Del("lease")
	}
	prefix := strings.Trim(u.Path, "/")
	shown := u.Scheme + "://" + path.Join(u.Host, prefix)
	if u.Scheme == "file" {
		shown, prefix = "file://"+u.Path, ""
	} else {
		u.Path = ""
	}
	for key, value := range standard[u.Scheme] {
		if !query.Has(key) {
			query.Set(key, value)
		}
	}
	u.RawQuery = query.Encode()
	b, err := blob.OpenBucket(context.Background(), u.String())
	if err != nil { // the query may hold a secret
		return nil, errors.New(strings.ReplaceAll(err.Error(), u.String(), shown))
	}
	if prefix != "" {
		b = blob.PrefixedBucket(b, prefix+"/")
	}
	return newBucket(b, shown, t), nil
}

// standard settings of the services. The sums of S3 are left to those who ask for them: records and checkpoints carry
// their own, and not every server has S3's.
var standard = map[string]map[string]string{
	"file": {"create_dir": "true", "no_tmp_dir": "true", "metadata": "skip"},
	"s3":   {"request_checksum_calculation": "when_required", "response_checksum_validation": "when_required"},
}

func newBucket(b *blob.Bucket, shown string, t times) *Bucket {
	return &Bucket{address: shown, bucket: b, worker: workerName(), times: t, mine: map[string]bool{},
		others: map[string]seen{}}
}

func workerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "worker"
	}
	return fmt.Sprintf("%.40s-%d-%s", host, os.Getpid(), rand.Text()[:10])
}

// Where is the address of an object.
func (b *Bucket) Where(name string) string { return strings.TrimSuffix(b.address+"/"+name, "/") }

// Put puts objects into the bucket, many at a time. With keep it puts what is not there and
// returns runs.ErrTaken where one was.
func (b *Bucket) Put(keep bool, objects ...runs.Draft) error {
	var taken atomic.Pointer[error]
	var group errgroup.Group
	group.SetLimit(writers)
	for _, o := range objects {
		group.Go(func() error {
			err := b.put(o, keep)
			if errors.Is(err, runs.ErrTaken) {
				taken.Store(&err)
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := taken.Load(); err != nil {
		return *err
	}
	return nil
}

const writers = 32

// put puts one object. A try whose answer was lost may have put it: the next one finds it taken, by us.
func (b *Bucket) put(o runs.Draft, keep bool) error {
	var data bytes.Buffer
	if err := o.Write(&data); err != nil {
		return fmt.Errorf("writing %s: %w", b.Where(o.Name), err)
	}
	err := b.write(o.Name, data.Bytes(), keep)
	if keep && isTaken(err) {
		there, err := b.read(o.Name)
		if err == nil && bytes.Equal(there, data.Bytes()) {
			return nil
		}
		return fmt.Errorf("%s: %w", b.Where(o.Name), runs.ErrTaken)
	}
	return err
}

// write puts bytes under a name, whole or not at all.
func (b *Bucket) write(name string, data []byte, keep bool) error {
	return b.retry("write", name, len(data), func(ctx context.Context) error {
		w, err := b.bucket.NewWriter(ctx, name,
			&blob.WriterOptions{IfNotExist: keep, ContentType: "application/octet-stream"})
		if err != nil {
			return err
		}
		if _, err := w.Write(data); err != nil {
			return errors.Join(err, w.Close())
		}
		return w.Close()
	})
}

type object struct{ *bytes.Reader }

func (object) Close() error { return nil }

// Open reads an object whole: what is read has been there at one time.
func (b *Bucket) Open(name string) (runs.Object, error) {
	data, err := b.read(name)
	if err != nil {
		return nil, err
	}
	return object{bytes.NewReader(data)}, nil
}

func (b *Bucket) read(name string) (data []byte, err error) {
	err = b.retry("read", name, 0, func(ctx context.Context) error {
		data, err = b.bucket.ReadAll(ctx, name)
		return err
	})
	if isMissing(err) {
		if err := b.exists(); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%s: %w", b.Where(name), fs.ErrNotExist)
	}
	return data, err
}

// exists asks the service once whether the bucket exists: of one that does not, every
// object is missing. A service that keeps it to itself is believed.
func (b *Bucket) exists() error {
	b.asked.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), b.attempt)
		defer cancel()
		if there, err := b.bucket.IsAccessible(ctx); err == nil && !there {
			b.absent = fmt.Errorf("run store %s: there is no such bucket: make it or set NASML_STORE to another",
				b.address)
		}
	})
	return b.absent
}

// Remove removes an object.
func (b *Bucket) Remove(name string) error {
	err := b.retry("remove", name, 0, func(ctx context.Context) error { return b.bucket.Delete(ctx, name) })
	if isMissing(err) {
		return nil
	}
	return err
}

// Move copies an object and removes the old one: a crash between leaves both.
func (b *Bucket) Move(from, to string) error {
	err := b.retry("set aside", from, 0, func(ctx context.Context) error { return b.bucket.Copy(ctx, to, from, nil) })
	if err != nil {
		return err
	}
	return b.Remove(from)
}

// Walk visits what is below a folder when the walk begins.
func (b *Bucket) Walk(folder string, visit func(runs.Info) error) error {
	found, err := b.list(folder + "/")
	if err != nil {
		return err
	}
	for _, o := range found {
		if err := visit(runs.Info{Name: o.Key, Size: o.Size, ModTime: o.ModTime}); err != nil {
			return err
		}
	}
	return nil
}

// list returns what begins with prefix, a page of up to 1,000 at a time.
func (b *Bucket) list(prefix string) (all []*blob.ListObject, err error) {
	token := blob.FirstPageToken
	for token != nil {
		var page []*blob.ListObject
		err := b.retry("list", prefix, 0, func(ctx context.Context) (err error) {
			var next []byte
			if page, next, err = b.bucket.ListPage(ctx, token, 1000, &blob.ListOptions{Prefix: prefix}); err == nil {
				token = next
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if len(token) == 0 {
			break
		}
	}
	return all, nil
}
