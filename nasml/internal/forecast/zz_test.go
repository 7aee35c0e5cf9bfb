package forecast

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/training"
)

func TestZZ(t *testing.T) {
	files, _ := filepath.Glob("../../*/records/*/*.jsonl.gz")
	for _, f := range files {
		h, _ := os.Open(f)
		g, _ := gzip.NewReader(h)
		sc := bufio.NewScanner(g)
		sc.Buffer(nil, 1<<28)
		type agg struct {
			n         int
			min, max, sum float64
			fc        float64
			b         float64
			batch     int
		}
		all := map[string]*agg{}
		for sc.Scan() {
			var r struct {
				Trial struct {
					Figure string
					Params json.RawMessage
					Data   string
				}
				Scale   string
				Seconds float64
				Batch   int
				Host    struct{ CPUs int }
				Resumed int
			}
			if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(r.Trial.Params, []byte(`"genotype"`)) {
				var p struct {
					Settings training.Settings
					Genotype json.RawMessage
					Train, Test, Examples int
				}
				if err := json.Unmarshal(r.Trial.Params, &p); err != nil {
					fmt.Println(f, err)
					continue
				}
				var txt string
				_ = json.Unmarshal(p.Genotype, &txt)
				gg, err := supernet.ParseGenotype(txt)
				if err != nil {
					fmt.Println(f, err, string(p.Genotype))
				}
				c := Training(p.Settings, gg, 2000, 1000, 10)
				fmt.Printf("%s TRAIN C%d L%d im%d ep%d b%d  rec %.0f fc %.0f  %s\n", filepath.Base(f), p.Settings.Channels, p.Settings.Cells, p.Settings.Image, p.Settings.Epochs, p.Settings.Batch, r.Seconds, c.Seconds, r.Trial.Params[len(r.Trial.Params)-200:])
				continue
			}
			var p struct {
				Settings search.Settings
				Search   struct {
					Settings search.Settings
					Examples int
				}
				Examples int
			}
			if err := json.Unmarshal(r.Trial.Params, &p); err != nil {
				continue
			}
			s, n := p.Settings, p.Examples
			if s.Method == "" {
				s, n = p.Search.Settings, p.Search.Examples
			}
			if s.Method == "" {
				continue
			}
			if n == 0 {
				n = 50000
			}
			if s.Parts.Train > 0 {
				n = s.Parts.Train + s.Parts.Validation + s.Parts.Test
			}
			c := Search(s, n)
			k := fmt.Sprintf("%-20s %s %-14s %-10s C%d L%d im%d ep%d b%d n%d ev%d cu%d in%d hyper %s parts %v", filepath.Base(f), r.Scale, s.Method, s.Space, s.Channels, s.Cells, s.Image, s.Epochs, s.Batch, n, s.EvaluateEvery, s.Curvature, s.Instruments, s.Bilevel.Hypergradient, s.Parts)
			a := all[k]
			if a == nil {
				a = &agg{min: 1e9, fc: c.Seconds, b: c.Bytes, batch: r.Batch}
				all[k] = a
			}
			a.n++
			a.min = min(a.min, r.Seconds)
			a.max = max(a.max, r.Seconds)
			a.sum += r.Seconds
		}
		for k, a := range all {
			fmt.Printf("%s  x%d batch %d rec %.0f..%.0f mean %.0f fc %.0f  RATIO min %.2f mean %.2f  %.1fGB\n", k, a.n, a.batch, a.min, a.max, a.sum/float64(a.n), a.fc, a.min/a.fc, a.sum/float64(a.n)/a.fc, a.b/1e9)
		}
	}
}
