package main

import (
	"fmt"

	"github.com/nasml/lab/nasml/accept"
	"github.com/nasml/lab/nasml/code"
	_ "github.com/nasml/lab/nasml/khodak2020"
	_ "github.com/nasml/lab/nasml/li2021"
	_ "github.com/nasml/lab/nasml/oymak2021"
	_ "github.com/nasml/lab/nasml/roberts"
)

func main() {
	open, err := accept.Open(nil)
	fmt.Println(err)
	for _, k := range open {
		s, err := k.Source()
		fmt.Println("OPEN", k.Name(), s, err)
	}
	_ = code.Kinds
}
