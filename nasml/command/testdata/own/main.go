// Command mine is nasml with a figure of this module.
package main

import (
	_ "example.com/mine/squares" // registers its figure
	"github.com/nasml/lab/nasml/command"
)

func main() { command.Main() }
