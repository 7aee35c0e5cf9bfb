// Package papers registers every figure, table and theorem of the four papers. One
// import of it, for its side effect, fills the catalog:
//
//	import _ "github.com/nasml/lab/nasml/catalog/papers"
//
// A notebook cell keeps only one import named _, so that four of them would register one paper.
package papers

import (
	_ "github.com/nasml/lab/nasml/khodak2020" // register their entries
	_ "github.com/nasml/lab/nasml/li2021"
	_ "github.com/nasml/lab/nasml/oymak2021"
	_ "github.com/nasml/lab/nasml/roberts"
)
