package supernet

import "strings"

// PublishedGenotype is a genotype that its authors gave away.
type PublishedGenotype struct {
	Genotype Genotype
	Method   string // that found it
	Searched string // data that it was searched on
	Source   string // where it stands
}

// Published are known genotypes of the DARTS space, by the authors' names but for GAEA's, which its paper only shows in
// Figure 3. That of CIFAR-10 is pcdartseedartscifar103103 in the authors' file; of two there, it has the numbers of
// parameters of Tables 4 and 5. That of ImageNet was released by the first author with a later port, as the paper's
// best.
var Published = map[string]PublishedGenotype{
	"DARTS_V1": {
		published("sep3:1 sep3:0 skip:0 sep3:1 skip:0 sep3:1 sep3:0 skip:2",
			"max:0 max:1 skip:2 max:0 max:0 skip:2 skip:2 avg:0"),
		"DARTS (1st order)", "CIFAR-10", "liamcli/gaea_release@36d1299 cnn/search_spaces/darts/genotypes.py, DARTS_V1",
	},
	"DARTS_V2": {
		published("sep3:0 sep3:1 sep3:0 sep3:1 sep3:1 skip:0 skip:0 dil3:2",
			"max:0 max:1 skip:2 max:1 max:0 skip:2 skip:2 max:1"),
		"DARTS (2nd order)", "CIFAR-10", "liamcli/gaea_release@36d1299 cnn/search_spaces/darts/genotypes.py, DARTS_V2",
	},
	"PDARTS": {
		published("skip:0 dil3:1 skip:0 sep3:1 sep3:1 sep3:3 sep3:0 dil5:4",
			"avg:0 sep5:1 sep3:0 dil5:2 max:0 dil3:1 dil3:1 dil5:3"),
		"P-DARTS", "CIFAR-10", "chenxin061/pdarts@b1575e1 genotypes.py, PDARTS",
	},
	"PC_DARTS_cifar": {
		published("sep3:1 skip:0 sep3:0 dil3:1 sep5:0 sep3:1 avg:0 dil3:1",
			"sep5:1 max:0 sep5:1 sep5:2 sep3:0 sep3:3 sep3:1 sep3:2"),
		"PC-DARTS", "CIFAR-10", "yuhuixu1993/PC-DARTS@283b086 genotypes.py, PC_DARTS_cifar",
	},
	"PC_DARTS_image": {
		published("skip:1 sep3:0 sep3:0 skip:1 sep3:1 sep3:3 sep3:1 dil5:4",
			"sep3:0 skip:1 dil5:2 max:1 sep3:2 sep3:1 sep5:0 sep3:3"),
		"PC-DARTS", "ImageNet", "yuhuixu1993/PC-DARTS@283b086 genotypes.py, PC_DARTS_image",
	},
	"GAEA_PC_DARTS_cifar": {
		published("sep3:1 skip:0 sep3:1 skip:2 sep3:1 sep3:2 sep3:0 dil3:4",
			"max:0 max:1 sep5:0 sep5:2 dil3:3 sep5:2 sep5:4 sep3:1"),
		"GAEA PC-DARTS", "CIFAR-10", "liamcli/PC-DARTS@1f5a3e0 genotypes.py, pcdartseedartscifar103103",
	},
	"GAEA_PC_DARTS_image": {
		published("skip:1 skip:0 sep3:2 sep3:1 sep5:2 sep3:0 sep5:3 sep5:2",
			"max:1 sep3:0 sep5:1 dil5:2 sep3:1 sep3:3 sep5:1 max:2"),
		"GAEA PC-DARTS", "ImageNet", "determined-ai/determined@015903f examples/nas/gaea_pytorch/eval/model_def.py",
	},
}

// published expands "operation:state" for the edges of both cells.
func published(normal, reduce string) Genotype {
	return Genotype{shortCell(normal), shortCell(reduce)}
}

func shortCell(text string) Cell {
	names := map[string]string{
		"skip": "skip_connect", "max": "max_pool_3x3", "avg": "avg_pool_3x3", "sep3": "sep_conv_3x3",
		"sep5": "sep_conv_5x5", "dil3": "dil_conv_3x3", "dil5": "dil_conv_5x5",
	}
	cell := Cell{Concat: []int{2, 3, 4, 5}}
	for word := range strings.FieldsSeq(text) {
		op, from, _ := strings.Cut(word, ":")
		cell.Genes = append(cell.Genes, Gene{names[op], int(from[0] - '0')})
	}
	return cell
}
