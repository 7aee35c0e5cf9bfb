// Package training trains one network of a search space from scratch, as the
// architectures that a search has found are evaluated: DARTS' way (Liu+ 2019,
// Section 3.2 and 3.3), that of PC-DARTS and of Li+ 2021, Appendix C.1.2.
package training
