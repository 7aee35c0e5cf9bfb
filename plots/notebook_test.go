package plots

import (
	"bytes"
	"encoding/base64"
	"encoding/gob"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/janpfeifer/gonb/gonbui"
	"github.com/janpfeifer/gonb/gonbui/protocol"
	"github.com/stretchr/testify/require"
)

// kernel plays GoNB, which hands two pipes to a cell: it keeps what is shown and
// acknowledges every request to wait for it.
type kernel struct {
	t     *testing.T
	shown chan protocol.DisplayData
}

func startKernel(t *testing.T) *kernel {
	dir := t.TempDir()
	var pipes [2]*os.File
	for i, name := range []string{protocol.GONB_PIPE_ENV, protocol.GONB_PIPE_BACK_ENV} {
		path := filepath.Join(dir, name)
		require.NoError(t, syscall.Mkfifo(path, 0o600))
		pipe, err := os.OpenFile(path, os.O_RDWR, 0) // which waits for nobody
		require.NoError(t, err)
		t.Setenv(name, path)
		pipes[i] = pipe
	}
	k := &kernel{t, make(chan protocol.DisplayData, 10)}
	go k.serve(gob.NewDecoder(pipes[0]), gob.NewEncoder(pipes[1]))
	return k
}

func (k *kernel) serve(from *gob.Decoder, to *gob.Encoder) {
	for {
		var message protocol.DisplayData
		if from.Decode(&message) != nil {
			return
		}
		ask, ok := message.Data[protocol.MIMECommValue].(protocol.CommValue)
		if !ok {
			k.shown <- message
			continue
		}
		if to.Encode(&protocol.CommValue{Address: protocol.GonbuiSyncAckAddress, Value: ask.Value}) != nil {
			return
		}
	}
}

func TestShowSendsBothForms(t *testing.T) {
	f := figure2(ICML, Bands)
	before := gonbui.IsNotebook
	t.Cleanup(func() { gonbui.IsNotebook = before })
	gonbui.IsNotebook = false
	require.ErrorIs(t, f.Show(), ErrNoNotebook)

	k := startKernel(t)
	gonbui.IsNotebook = true
	require.NoError(t, f.Show())
	var live Display
	require.NoError(t, live.Show(f))
	require.NoError(t, live.Show(f))
	require.NoError(t, live.Show(liveFigure())) // curves, a cell and a table

	var messages [4]protocol.DisplayData
	for i := range messages {
		select { // each Show has waited for its own
		case messages[i] = <-k.shown:
		default:
			require.Fail(t, "Show did not wait until it was shown", "message %d", i)
		}
	}
	svg, err := f.Render("svg")
	require.NoError(t, err)
	shown, alt := picture(t, messages[0])
	require.Equal(t, f.Alt(), alt)
	require.Equal(t, onScreen(svg), shown)
	require.Contains(t, string(svg), `<svg width="486pt"`)
	require.Contains(t, shown, `<svg width="680pt"`)
	_, drawn, _ := strings.Cut(string(svg), "viewBox")
	require.True(t, strings.HasSuffix(shown, drawn), "nothing else is changed")
	png, ok := messages[0].Data[protocol.MIMEImagePNG].([]byte)
	require.True(t, ok)
	require.True(t, bytes.HasPrefix(png, []byte("\x89PNG")))
	words := f.title() + ". " + plain(f.Caption)
	require.Equal(t, words, f.Alt())
	require.Equal(t, map[string]int{"width": 907}, messages[0].Metadata["image/png"])
	require.Equal(t, words, messages[0].Data[protocol.MIMETextPlain])
	require.Empty(t, messages[0].DisplayID, "Show makes a new output each time")
	require.NotEmpty(t, messages[1].DisplayID)
	require.Equal(t, messages[1].DisplayID, messages[2].DisplayID, "a Display keeps its place")
	require.Equal(t, messages[1].DisplayID, messages[3].DisplayID)
	svg, err = liveFigure().Render("svg")
	require.NoError(t, err)
	shown, _ = picture(t, messages[3])
	require.Equal(t, onScreen(svg), shown)
}

var imageTag = regexp.MustCompile(
	`^<img alt="([^"]*)" width="\d+" style="[^"]*" src="data:image/svg\+xml;base64,([^"]*)">$`)

// picture is the SVG that a message shows, with its alternative text.
func picture(t *testing.T, m protocol.DisplayData) (svg, alt string) {
	t.Helper()
	found := imageTag.FindStringSubmatch(m.Data[protocol.MIMETextHTML].(string))
	require.NotNil(t, found)
	text, err := base64.StdEncoding.DecodeString(found[2])
	require.NoError(t, err)
	return string(text), html.UnescapeString(found[1])
}
