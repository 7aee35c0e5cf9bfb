package command

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/nasml/lab/nasml/internal/gallery"
	"github.com/nasml/lab/nasml/runs"
)

type galleryCmd struct {
	Out string `help:"Folder for the pages (default: gallery, or one in the user's cache folder where this one is only readable)." placeholder:"DIR"`
}

func (v *galleryCmd) Run(ctx context.Context, c console) error {
	out, err := outFolder(c, v.Out, "gallery")
	if err != nil {
		return err
	}
	readWithoutXLA(ctx)
	shipped, err := gallery.Shipped(runs.WithProgress(ctx, runs.Silent))
	if err != nil {
		return err
	}
	if err := shipped.Write(out); err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.Out, filepath.Join(out, "index.html"))
	return err
}
