package command

import (
	"fmt"

	"github.com/nasml/lab/nasml/backend/programs"
	"github.com/nasml/lab/nasml/catalog"
)

type cacheCmd struct {
	Show  cacheShow  `cmd:"" default:"1" help:"Say where the compiled programs are and how much they take."`
	Clear cacheClear `cmd:"" help:"Remove them; they are compiled again when they are needed."`
}

type cacheShow struct{}

// Run counts the compiled programs.
func (*cacheShow) Run(c console, cache *programs.Cache) error {
	if cache == nil {
		_, err := fmt.Fprintf(c.Out, "compiled programs are not kept: %s is off\n", programs.Env)
		return err
	}
	n, size, err := cache.Usage()
	if err != nil {
		return fmt.Errorf("counting the compiled programs: %w", err)
	}
	_, err = fmt.Fprintf(c.Out, "%d compiled programs, %.1f of %.0f MB, in %s\n", n, float64(size)/1e6,
		float64(cache.Limit)/1e6, cache.Dir)
	return err
}

type cacheClear struct{}

// Run removes the compiled programs, and nothing else.
func (*cacheClear) Run(c console, cache *programs.Cache) error {
	if cache == nil {
		return catalog.Usagef("no cache to clear: %s is off", programs.Env)
	}
	n, size, err := cache.Usage()
	if err == nil {
		err = cache.Clear()
	}
	if err != nil {
		return fmt.Errorf("clearing the compiled programs: %w", err)
	}
	_, err = fmt.Fprintf(c.Out, "removed %d compiled programs, %.1f MB, from %s\n", n, float64(size)/1e6, cache.Dir)
	return err
}
