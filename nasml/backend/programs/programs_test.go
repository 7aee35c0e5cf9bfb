package programs

import (
	"bytes"
	"crypto/sha256"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/nasml/lab/nasml/internal/steady"
)

func open(t *testing.T) *Cache {
	return &Cache{Dir: filepath.Join(t.TempDir(), "xla"), Limit: DefaultLimit}
}

func key(text string) Key { return KeyOf([]byte(text)) }

func TestWhatIsKeptIsFound(t *testing.T) {
	c := open(t)
	require.Nil(t, c.Get(key("a")), "there is no folder yet")
	require.NoError(t, c.Put(key("a"), []byte("program a")))
	require.NoError(t, c.Put(key("b"), []byte("program b")))
	require.Equal(t, "program a", string(c.Get(key("a"))))
	require.Equal(t, "program b", string(c.Get(key("b"))))
	c.Drop(key("a"))
	require.Nil(t, c.Get(key("a")))
	info, err := os.Stat(c.Dir)
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o077, "nobody else may read or write")
}

func TestKeysTellPartsApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SliceOf(rapid.Byte()), 1, 4).Draw(t, "parts")
		other := rapid.SliceOfN(rapid.SliceOf(rapid.Byte()), 1, 4).Draw(t, "other")
		same := len(parts) == len(other)
		for i := 0; same && i < len(parts); i++ {
			same = bytes.Equal(parts[i], other[i])
		}
		if (KeyOf(parts...) == KeyOf(other...)) != same {
			t.Fatal("keys of different parts are the same")
		}
	})
	require.NotEqual(t, KeyOf([]byte("ab"), []byte("c")), KeyOf([]byte("a"), []byte("bc")))
}

// No changed, missing or added byte passes.
func TestDamageIsSeen(t *testing.T) {
	c := open(t)
	program := []byte("the machine code of a program")
	k := key("p")
	file := c.path(k, programSuffix)
	require.NoError(t, c.Put(k, program))
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		data := append([]byte{}, whole...)
		switch at := rapid.IntRange(0, len(data)-1).Draw(t, "at"); rapid.IntRange(0, 2).Draw(t, "how") {
		case 0:
			data[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "change"))
		case 1:
			data = data[:at]
		default:
			data = append(data, whole[at])
		}
		require.NoError(t, os.WriteFile(file, data, 0o600))
		require.Nil(t, c.Get(k))
		_, err := os.Stat(file)
		require.ErrorIs(t, err, os.ErrNotExist, "what is broken is removed")
	})
	require.NoError(t, os.WriteFile(c.path(key("other"), programSuffix), whole, 0o600))
	require.Nil(t, c.Get(key("other")), "a program under another's name")
}

func TestTheProgramNotUsedForLongestGoes(t *testing.T) {
	c := open(t)
	program := make([]byte, 1000)
	c.Limit = 3500
	old := time.Now().Add(-time.Hour)
	for i, name := range []string{"a", "b", "c"} {
		require.NoError(t, c.Put(key(name), program))
		at := old.Add(time.Duration(i) * time.Minute)
		require.NoError(t, os.Chtimes(c.path(key(name), programSuffix), at, at))
	}
	require.NotNil(t, c.Get(key("a")), "a is used again")
	require.NoError(t, c.Put(key("d"), program))
	for name, there := range map[string]bool{"a": true, "b": false, "c": true, "d": true} {
		require.Equal(t, there, c.Get(key(name)) != nil, name)
	}
	require.NoError(t, c.Put(key("e"), make([]byte, 4000)))
	require.Nil(t, c.Get(key("e")), "larger than the limit")
	n, size, err := c.Usage()
	require.NoError(t, err)
	require.Equal(t, 3, n)
	require.LessOrEqual(t, size, c.Limit)
}

func TestTheLimitHoldsWithManyPrograms(t *testing.T) {
	c := open(t)
	c.Limit = 50_000
	for i := range 200 {
		require.NoError(t, c.Put(KeyOf([]byte{byte(i)}), make([]byte, 100+i*10)))
		_, size, err := c.Usage()
		require.NoError(t, err)
		require.LessOrEqual(t, size, c.Limit)
	}
}

func TestClearLeavesWhatIsNotOurs(t *testing.T) {
	c := open(t)
	require.NoError(t, c.Clear(), "there is no folder yet")
	require.NoError(t, c.Put(key("a"), []byte("program")))
	_, err := c.FileSum("programs.go")
	require.NoError(t, err)
	foreign := []string{"Cargo.lock", "abc.program", "md5.sum", "thesis.tex", "uv.lock"}
	long := time.Now().Add(-2 * abandoned)
	for _, name := range foreign {
		path := filepath.Join(c.Dir, name)
		require.NoError(t, os.WriteFile(path, make([]byte, 100), 0o600))
		require.NoError(t, os.Chtimes(path, long, long))
	}
	c.Limit = 10 // everything of its own goes
	require.NoError(t, c.trim())
	require.NoError(t, c.Clear())
	left, err := os.ReadDir(c.Dir)
	require.NoError(t, err)
	var names []string
	for _, file := range left {
		names = append(names, file.Name())
	}
	require.Equal(t, foreign, names)
}

func TestFileSumsAreKept(t *testing.T) {
	c := open(t)
	file := filepath.Join(t.TempDir(), "plugin.so")
	at := time.Now().Add(-time.Hour)
	write := func(text string) Key {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		require.NoError(t, os.Chtimes(file, at, at))
		sum, err := c.FileSum(file)
		require.NoError(t, err)
		return sum
	}
	require.Equal(t, Key(sha256.Sum256([]byte("one"))), write("one"))
	require.Equal(t, Key(sha256.Sum256([]byte("one"))), write("two"), "of the same size and time: not read again")
	at = at.Add(time.Second)
	require.Equal(t, Key(sha256.Sum256([]byte("two"))), write("two"), "of another time")
	sums, err := filepath.Glob(filepath.Join(c.Dir, "*"+sumSuffix))
	require.NoError(t, err)
	require.Len(t, sums, 2)
	for _, name := range sums {
		require.NoError(t, os.WriteFile(name, make([]byte, 2*sha256.Size), 0o600))
	}
	require.Equal(t, Key(sha256.Sum256([]byte("two"))), write("two"), "a broken sum is not believed")
	_, err = c.FileSum(filepath.Join(c.Dir, "nothing"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestLocksTakeTurns(t *testing.T) {
	c := open(t)
	var inside, most atomic.Int32
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			defer c.Lock(key("a"))()
			most.Store(max(most.Load(), inside.Add(1)))
			time.Sleep(5 * time.Millisecond)
			inside.Add(-1)
		})
	}
	release := c.Lock(key("another"))
	release()
	wait.Wait()
	require.EqualValues(t, 1, most.Load())
	left, err := os.ReadDir(c.Dir)
	require.NoError(t, err)
	require.Empty(t, left, "no lock stays")
}

func TestAFolderThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	c := &Cache{Dir: filepath.Join(file, "xla"), Limit: DefaultLimit}
	require.Error(t, c.Prepare())
	require.Nil(t, c.Get(key("a")))
	require.Error(t, c.Put(key("a"), []byte("program")))
	c.Lock(key("a"))() // does without
	sum, err := c.FileSum("programs.go")
	require.NoError(t, err, "a file is read all the same")
	require.NotZero(t, sum)
}

// What others may have written is not run, and the user is told.
func TestWhatOthersMayWriteIsRefused(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o002)) // as systems with a group for every user have it
	var told error
	c := open(t)
	c.Refused = func(err error) { told = err }
	keep := func() {
		t.Helper()
		told = nil
		require.NoError(t, c.Put(key("a"), []byte("program")))
		require.Equal(t, "program", string(c.Get(key("a"))), "%v", told)
	}
	keep()
	refused := func(says string) {
		t.Helper()
		told = nil
		require.Nil(t, c.Get(key("a")))
		require.ErrorContains(t, told, says)
	}
	program := c.path(key("a"), programSuffix)
	require.NoError(t, os.Chmod(program, 0o664))
	refused("its group may write to " + program)
	keep() // again
	for mode, says := range map[os.FileMode]string{0o770: "its group may write to ", 0o777: "everybody may write to "} {
		require.NoError(t, os.Chmod(c.Dir, mode))
		refused(says + c.Dir)
		require.ErrorContains(t, c.Put(key("b"), []byte("program")), says+c.Dir)
		require.ErrorContains(t, c.Prepare(), Env)
	}
	require.NoError(t, os.Chmod(c.Dir, 0o700))
	keep()
	if os.Geteuid() == 0 { // who alone gives files away
		require.NoError(t, os.Chown(program, 12345, 12345))
		refused(program + " belongs to the user with number 12345")
		keep()
		require.NoError(t, os.Chown(c.Dir, 12345, 12345))
		refused(c.Dir + " belongs to the user with number 12345")
		require.Error(t, c.Prepare())
	}
}

// A full disk: no file may grow beyond some bytes.
func TestAFullDiskLeavesNothingBehind(t *testing.T) {
	c := open(t)
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var old syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old))
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1 << 24, Max: old.Max}))
	defer func() { require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old)) }()
	require.Error(t, c.Put(key("a"), make([]byte, 1<<25)))
	left, err := os.ReadDir(c.Dir)
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoError(t, c.Put(key("a"), []byte("small")))
	require.Equal(t, "small", string(c.Get(key("a"))))
}

func TestDefault(t *testing.T) {
	t.Setenv(Env, "off")
	c, err := Default()
	require.NoError(t, err)
	require.Nil(t, c)
	dir := t.TempDir()
	t.Setenv(Env, dir)
	t.Setenv(LimitEnv, "5")
	c, err = Default()
	require.NoError(t, err)
	require.Equal(t, dir, c.Dir)
	require.EqualValues(t, 5_000_000, c.Limit)
	t.Setenv(LimitEnv, "5GB")
	_, err = Default()
	require.ErrorContains(t, err, `$NASML_XLA_CACHE_MB is "5GB", expected a number of megabytes above 0`)
	t.Setenv(LimitEnv, "")
	t.Setenv(Env, "")
	t.Setenv("XDG_CACHE_HOME", dir)
	t.Setenv("HOME", dir)
	c, err = Default()
	require.NoError(t, err)
	require.Equal(t, "xla", filepath.Base(c.Dir))
	require.EqualValues(t, DefaultLimit, c.Limit)
}

func TestNextPrograms(t *testing.T) {
	c := &Cache{Dir: t.TempDir(), Limit: 1 << 20}
	who, a, b := KeyOf([]byte("who")), KeyOf([]byte("a")), KeyOf([]byte("b"))
	require.Empty(t, c.Next(who))
	require.NoError(t, c.SetNext(who, []Key{a, b}))
	require.Equal(t, []Key{a, b}, c.Next(who))
	n, _, err := c.Usage()
	require.NoError(t, err)
	require.Zero(t, n, "is no program")
	require.NoError(t, os.WriteFile(c.path(who, nextSuffix), []byte("else"), 0o600))
	require.Empty(t, c.Next(who))
	require.NoFileExists(t, c.path(who, nextSuffix))
	require.NoError(t, c.SetNext(who, []Key{a}))
	require.NoError(t, c.Clear())
	require.Empty(t, c.Next(who))
}
