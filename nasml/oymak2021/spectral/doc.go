// Package spectral has the matrix computations of the theory of Oymak+ 2021:
//
//   - rank-one estimators (Section 5): the leading direction of a weighted sum of feature matrices, least squares along
//     it, the bilevel search by gradient, and the exact law and large-system limits of the two-stage algorithm;
//   - neural tangent kernels of mixed activations (Section 4.2).
//
// It works in float64 with gonum, as GoMLX has neither factorizations nor eigenvectors. Functions of matrices panic as
// gonum does if shapes differ, and are NaN if gonum finds no eigenvalues.
package spectral
