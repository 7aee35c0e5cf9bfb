//go:build buckets

package main

import _ "github.com/nasml/lab/nasml/runs/bucket" // stores in buckets

func init() { linked = true }
