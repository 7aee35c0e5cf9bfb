package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestKeeperResumes(t *testing.T) {
	from := func(text string, err error) Keeper {
		return Keeper{Load: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), err }}
	}
	broken := errors.New("the disk is broken")
	for name, c := range map[string]struct {
		keeper Keeper
		read   error
		got    string
		resets int
		err    error
	}{
		"nothing is kept":   {keeper: Keeper{}},
		"nothing was saved": {keeper: from("", fs.ErrNotExist)},
		"cannot be opened":  {keeper: from("", broken), err: broken},
		"a state":           {keeper: from("state", nil), got: "state"},
		"of something else": {
			keeper: from("other", nil), got: "other", read: fmt.Errorf("no: %w", ErrOther), resets: 1,
		},
		"that cannot be read": {keeper: from("state", nil), got: "state", read: broken, err: broken},
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			resets := 0
			err := c.keeper.Resume(func(r io.Reader) error {
				_, err := got.ReadFrom(r)
				require.NoError(t, err)
				return c.read
			}, func() { resets++ })
			require.ErrorIs(t, err, c.err)
			require.Equal(t, c.got, got.String())
			require.Equal(t, c.resets, resets)
		})
	}
}

func TestKeeperSaves(t *testing.T) {
	saves := 0
	k := Keeper{Every: time.Hour, Save: func(write func(io.Writer) error) error {
		saves++
		return write(io.Discard)
	}}
	state := func(w io.Writer) error {
		_, err := w.Write([]byte("state"))
		return err
	}
	require.NoError(t, k.Resume(nil, nil))
	if k.Due() {
		require.NoError(t, k.Keep(state))
	}
	require.Zero(t, saves, "an hour has not passed")
	require.NoError(t, k.Keep(state))
	require.Equal(t, 1, saves)
	k.Every = time.Nanosecond
	if k.Due() {
		require.NoError(t, k.Keep(state))
	}
	require.Equal(t, 2, saves)
	var none Keeper
	require.NoError(t, none.Keep(state))
}
