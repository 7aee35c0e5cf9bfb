package li2021

import (
	"github.com/nasml/lab/nasml/supernet"
)

// ownOperations are what operations of a genotype compute that are not the
// project's, by name, for the key of a trial.
func ownOperations(g supernet.Genotype) (map[string]string, error) {
	own := map[string]string{}
	for _, t := range supernet.CellTypes {
		for _, gene := range g.Cell(t).Genes {
			key, err := supernet.OperationKey(gene.Op)
			if err != nil {
				return nil, err
			}
			if key != gene.Op {
				own[gene.Op] = key
			}
		}
	}
	if len(own) == 0 {
		return nil, nil
	}
	return own, nil
}
