// Package spectral has what the theory of Oymak+ 2021 computes with matrices
// and their spectra:
//
//   - rank-one estimators (Section 5): the leading direction of a weighted sum
//     of feature matrices, least squares along it, the bilevel search by
//     gradient that it competes with, and the exact law and large-system limits
//     of the two-stage algorithm;
//   - neural tangent kernels of mixed activations (Section 4.2);
//   - covering numbers and the effective dimension of a set of
//     hyper-parameters (Definition 1).
//
// It works in float64 with gonum: the graphs of package bilevel and supernet
// have neither factorizations nor eigenvectors.
package spectral
