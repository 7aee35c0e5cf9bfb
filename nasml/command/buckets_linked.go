//go:build buckets

package command

import _ "github.com/nasml/lab/nasml/runs/bucket" // stores in buckets

func init() { linked = true }
