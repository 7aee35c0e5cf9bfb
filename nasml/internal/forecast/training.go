package forecast

import (
	"strings"

	"github.com/nasml/lab/nasml/internal/images"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/training"
)

// Fitted to the first five runs of TestMemoryOfTrainings.
const (
	bytesAlways  = 5.3e8 // program and compiler, without cells
	bytesCell    = 5.5e7 // likewise, a cell
	bytesElement = 7.5   // an example's elements that are kept for the backward pass, with their temporaries
	bytesWeight  = 16    // a weight with its gradient, its velocity and its next value
)

// mapsOf is how many maps an operation keeps for its backward pass.
var mapsOf = map[string]float64{"sep": 2, "dil": 1, "max": 1, "avg": 1, "skip": 0}

func trainingBytes(s training.Settings, g supernet.Genotype, net *supernet.CellNet, of int) float64 {
	pixels := 3 * float64(s.Image*s.Image*of)
	if s.Crop != (images.Crop{}) {
		pixels = 0 // they are files
	}
	return bytesAlways + bytesCell*float64(s.Cells) + bytesElement*elements(s, g)*float64(s.Batch) +
		bytesWeight*float64(net.Parameters()) + pixels
}

// elements counts the numbers that an example's maps have: a cell's two inputs, what its operations keep, its nodes.
func elements(s training.Settings, g supernet.Genotype) (n float64) {
	side, width := float64(s.Image), float64(s.Channels)
	if strings.HasPrefix(s.Stem, "imagenet") {
		side /= 8
	}
	for i := range s.Cells {
		cell := g.Normal
		if i == s.Cells/3 || i == 2*s.Cells/3 {
			side, width, cell = side/2, 2*width, g.Reduce
		}
		maps := 2 + float64(len(cell.Concat))
		for _, gene := range cell.Genes {
			kind, _, _ := strings.Cut(gene.Op, "_")
			maps += mapsOf[kind]
		}
		n += maps * side * side * width
	}
	return n
}
