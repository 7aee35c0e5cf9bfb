package main

import (
	"fmt"

	_ "github.com/nasml/lab/nasml/li2021"
	_ "github.com/nasml/lab/nasml/notebook"
)

func main() { fmt.Println("18354") }
