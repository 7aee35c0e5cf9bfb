package gallery_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/internal/claims"
	"github.com/nasml/lab/nasml/runs"
)

// nobody answers no request and notes whom it was for.
type nobody struct{ asked []string }

func (n *nobody) RoundTrip(r *http.Request) (*http.Response, error) {
	n.asked = append(n.asked, r.URL.Host)
	return nil, errors.New("no network")
}

// A look at what is stored downloads nothing, on a machine that could.
func TestALookDownloadsNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("looks at every entry")
	}
	t.Setenv("NASML_DATA", t.TempDir())
	t.Setenv("NASML_STORE", t.TempDir())
	t.Setenv("GOMLX_BACKEND", "go")
	network, before := new(nobody), http.DefaultTransport
	http.DefaultTransport = network
	defer func() { http.DefaultTransport = before }()
	ctx := runs.KeepShipped(runs.WithProgress(t.Context(), runs.Silent))
	for _, e := range catalog.All() {
		for _, s := range settings(e) {
			if _, err := e.Stored(ctx, s); err != nil {
				var usage *catalog.UsageError
				require.True(t, claims.NotThere(err) || errors.As(err, &usage), "%s at %s: %v", e.ID, s, err)
			}
			require.Empty(t, network.asked, "%s at %s", e.ID, s)
		}
	}
}
