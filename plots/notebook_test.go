package plots

import (
	"bytes"
	"encoding/gob"
	"os"
	"path/filepath"
	"testing"

	"github.com/janpfeifer/gonb/gonbui"
	"github.com/janpfeifer/gonb/gonbui/protocol"
	"github.com/stretchr/testify/require"
)

// The kernel is played by two files, as GoNB hands two pipes to a cell.
func TestShowSendsBothForms(t *testing.T) {
	f := figure2(ICML, Bands)
	before := gonbui.IsNotebook
	t.Cleanup(func() { gonbui.IsNotebook = before })
	gonbui.IsNotebook = false
	require.ErrorIs(t, f.Show(), ErrNoNotebook)

	out, back := filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "back")
	require.NoError(t, os.WriteFile(out, nil, 0o600))
	require.NoError(t, os.WriteFile(back, nil, 0o600))
	t.Setenv(protocol.GONB_PIPE_ENV, out)
	t.Setenv(protocol.GONB_PIPE_BACK_ENV, back)
	gonbui.IsNotebook = true
	require.NoError(t, f.Show())
	var live Display
	require.NoError(t, live.Show(f))
	require.NoError(t, live.Show(f))
	require.NoError(t, live.Show(liveFigure())) // curves, a cell and a table

	sent, err := os.Open(out)
	require.NoError(t, err)
	defer sent.Close()
	decoder := gob.NewDecoder(sent)
	var messages [4]protocol.DisplayData
	for i := range messages {
		require.NoError(t, decoder.Decode(&messages[i]))
	}
	svg, err := f.Render("svg")
	require.NoError(t, err)
	require.Equal(t, string(svg), messages[0].Data[protocol.MIMEImageSVG])
	png, ok := messages[0].Data[protocol.MIMEImagePNG].([]byte)
	require.True(t, ok)
	require.True(t, bytes.HasPrefix(png, []byte("\x89PNG")))
	require.Equal(t, map[string]int{"width": 648}, messages[0].Metadata["image/png"])
	require.Empty(t, messages[0].DisplayID, "Show makes a new output each time")
	require.NotEmpty(t, messages[1].DisplayID)
	require.Equal(t, messages[1].DisplayID, messages[2].DisplayID, "a Display keeps its place")
	require.Equal(t, messages[1].DisplayID, messages[3].DisplayID)
	svg, err = liveFigure().Render("svg")
	require.NoError(t, err)
	require.Equal(t, string(svg), messages[3].Data[protocol.MIMEImageSVG])
}
