// Command nasml sets up a checkout of this module and works with it: it opens
// the notebooks, runs the tests, computes and draws figures, and looks after
// the data and the finished trials. From anywhere in the checkout:
//
//	go tool nasml lab
//	go tool nasml run oymak2021/figure2 --scale quick
//
// It is package command with the four papers' figures.
package main

import "github.com/nasml/lab/nasml/command"

func main() { command.Main() }
